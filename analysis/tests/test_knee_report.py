# SPDX-License-Identifier: BSD-3-Clause
"""The knee: found launch by launch from p99 and achieved rate, with its interval, beside the generator's limit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import export, messages, report, units
from cadge_analysis.messages import say
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.knee import Knee, Loads, loads
from cadge_results import Campaign

LOADS = (10, 30, 50, 70, 90)
CLOSED_LOOP = 1_000_000
GENERATOR = 2_000_000
SPAN_NS = 100_000_000

Hook = Callable[[dict[str, Any], dict[str, Any], int], None]
Tail = Callable[[str, int, int], tuple[int, float]]
"""Layer, load and launch -> p99 in ns, and the share of the offered rate that was achieved."""


def usual(layer: str, percent: int, launch: int) -> tuple[int, float]:
    """One keeps its tail up to 70 %, in two launches of six to 50 %; the other no longer keeps up from 50 % on."""
    if layer == "native-ucx":
        return 2000, 0.98 if percent >= 50 else 1.0
    long_from = 70 if launch in (1, 4) else 90
    return (10_100 if percent >= long_from else 9_900 if percent > 10 else 2000), 1.0


def hook(tail: Tail) -> Callable[[dict[str, Any], dict[str, Any], int], None]:
    def fill(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        layer = point["subject"]["layer"]
        percent = point["workload"]["parameters"]["load_percent"]
        offered = CLOSED_LOOP * percent // 100 * SPAN_NS // 10**9
        if layer == "null-self":
            offered = GENERATOR * (2 if percent == LOADS[-1] else 1) * percent // LOADS[-1] * SPAN_NS // 10**9
            p99_ns, share = 1000, min(1.0, GENERATOR * SPAN_NS / 10**9 / offered)
        else:
            p99_ns, share = tail(layer, percent, number)
        attempt["quantities"] = {}
        synthetic.set_samples(attempt, [(1000, 9800), (p99_ns, 200)], "response")
        synthetic.set_rate(attempt, offered, SPAN_NS, "offered")
        synthetic.set_rate(attempt, round(offered * share), SPAN_NS, "achieved")
        synthetic.set_rate(attempt, CLOSED_LOOP, 10**9, "closed_loop")

    return fill


def campaign(
    folder: Path,
    tail: Tail = usual,
    *,
    null: bool = True,
    loads_of: tuple[int, ...] = LOADS,
    hooked: Hook | None = None,
) -> Campaign:
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx", *(("null-self",) if null else ())),
        sizes=loads_of,
        places=("within", "self"),
        waits=("poll",),
        patterns=(("load", 64),),
        given=({"request_bytes": 8},),
        floors=False,
        troubles=False,
        attempt_hook=hooked or hook(tail),
    )
    return synthetic.make(folder, options)


def found(made: Campaign) -> tuple[dict[str, Knee], Loads]:
    everything = loads(compare.compare(load.read(made)))
    return {knee.series.layer: knee for knee in everything.knees if knee.case.place == "within"}, everything


def test_the_knee_is_the_median_over_launches_of_each_launchs_own(tmp_path: Path) -> None:
    knees, _ = found(campaign(tmp_path))
    tcp, ucx = knees["sockets-tcp"], knees["native-ucx"]
    # 50 in two launches, 70 in four: the median and both ends of six
    assert (tcp.load.value, tcp.load.low, tcp.load.high) == (70, 50, 70)
    assert (tcp.rate.value, tcp.rate.low, tcp.rate.high) == (700_000, 500_000, 700_000)
    assert tcp.rest_ns.value == pytest.approx(2000, rel=1e-3)
    assert (tcp.bearing_all, tcp.bearing_none) == (0, 0)
    assert (ucx.load.value, ucx.load.low, ucx.load.high) == (30, 30, 30), "98 % of what was offered is too little"


def test_what_bears_all_and_what_bears_nothing(tmp_path: Path) -> None:
    """The highest load measured is a bound, and so is the lowest where not even that is achieved."""
    knees, _ = found(campaign(tmp_path, lambda layer, _, __: (2000, 1.0 if layer == "sockets-tcp" else 0.5)))
    assert (knees["sockets-tcp"].load.value, knees["sockets-tcp"].bearing_all) == (90, 6)
    assert (knees["native-ucx"].load.value, knees["native-ucx"].bearing_none) == (0, 6)
    assert knees["native-ucx"].rate.value == 0


def test_without_a_point_at_rest_there_is_no_knee(tmp_path: Path) -> None:
    knees, _ = found(campaign(tmp_path, loads_of=(30, 50)))
    assert not knees


def test_the_generators_limit_is_what_the_layer_that_does_nothing_achieves_at_most(tmp_path: Path) -> None:
    _, everything = found(campaign(tmp_path))
    [limit] = everything.generators.values()
    assert limit.limit.value == pytest.approx(GENERATOR, rel=1e-3)
    assert limit.reached
    assert all(knee.case.place == "within" for knee in everything.knees), "the generator's own rows have no knee"
    _, without = found(campaign(tmp_path / "without", null=False))
    assert not without.generators
    assert not without.shares


def text_of(made: Campaign, folder: Path) -> pagereader.Node:
    report.build(made.path, folder / "r.html")
    return pagereader.read((folder / "r.html").read_text())


def test_the_report_shows_knees_and_how_near_the_generators_limit_rates_come(tmp_path: Path) -> None:
    root = text_of(campaign(tmp_path / "store"), tmp_path)
    table = root.one("table", class_="knees")
    assert "at most 5 times that at 10\u202f %" in table.text.replace("10\u202f%", "10\u202f %")
    rows = {row.one("bdi").text: [cell.text for cell in row.all("td")] for row in table.one("tbody").all("tr")}
    assert rows["sockets-tcp"][1] == "70\u202f%[50\u202f%,\u00a070\u202f%]"
    assert rows["sockets-tcp"][4] == "35.0above 30\u202f%", "700,000 of 2,000,000"
    assert rows["native-ucx"][1].startswith("30\u202f%")
    assert rows["native-ucx"][4] == "15.0"
    figure = root.one("figure", id="fig-load-within-poll-p99")
    assert "p99: Response time against load, 8 B, polling" in figure.text
    assert root.all("figure", id="fig-load-within-poll-p999") == [], "of 60,000 samples 60 lie beyond the p99.9"
    by_case = {(row.layer, row.case.split("/")[5]): row.fields for row in pagereader.full_rows(root)}
    assert by_case["sockets-tcp", "90"]["generator"].classes == "few"
    assert by_case["sockets-tcp", "50"]["generator"].text == "25.0"
    assert by_case["sockets-tcp", "50"]["generator"].classes == ""
    assert say("remarks", "near_generator_limit.title", n=4, marked=0.3) in root.text
    assert "most 2\u202f000\u202f000 a second" in root.text


def test_a_campaign_without_the_generators_limit_says_so(tmp_path: Path) -> None:
    root = text_of(campaign(tmp_path / "store", null=False), tmp_path)
    assert say("remarks", "no_generator_limit.title") in root.text
    table = root.one("table", class_="knees")
    assert say("report", "knee_table.limit_unknown", generator="null") in table.text
    assert say("cells", "shown.generators_limit_not_measured") not in table.text, "in the note, and in no row"
    assert [head.attrs["data-f"] for head in table.all("th", scope="col")[1:]] == [
        "wait",
        "knee",
        "knee_rate",
        "rest_p99",
        "launches",
    ]


def test_bounds_are_said_as_such(tmp_path: Path) -> None:
    made = campaign(tmp_path / "store", lambda layer, _, __: (2000, 1.0 if layer == "sockets-tcp" else 0.5))
    table = text_of(made, tmp_path).one("table", class_="knees")
    assert "at least 90\u202f%" in table.text
    assert "below 10\u202f%" in table.text
    assert "6 bear all loads" in table.text
    assert "6 bear none" in table.text
    rates = {row.one("bdi").text: row.all("td")[2] for row in table.one("tbody").all("tr")}
    assert rates["native-ucx"].text.startswith(units.MISSING), "no load is borne, so there is no rate at which one is"
    assert "data-v" not in rates["native-ucx"].attrs
    assert "data-v" in rates["sockets-tcp"].attrs


def test_the_export_has_knees(tmp_path: Path) -> None:
    made = campaign(tmp_path)
    stream = io.StringIO()
    export.write(made, "json", stream)
    knees = {one["layer"]: one for one in json.loads(stream.getvalue())["knees"]}
    assert knees["sockets-tcp"]["load_percent"] == 70
    assert (knees["sockets-tcp"]["load_percent_low"], knees["sockets-tcp"]["load_percent_high"]) == (50, 70)
    assert knees["sockets-tcp"]["rate_per_s"] == 700_000
    assert knees["sockets-tcp"]["generator_limit_per_s"] == pytest.approx(GENERATOR, rel=1e-3)
    stream = io.StringIO()
    export.write(made, "csv", stream)
    row = next(
        row
        for row in csv.DictReader(io.StringIO(stream.getvalue()))
        if (row["layer"], row["load_percent"]) == ("sockets-tcp", "50")
    )
    assert float(row["generator_share"]) == pytest.approx(0.25, rel=1e-3)


def test_what_lies_below_all_loads_that_were_measured_has_no_number(tmp_path: Path) -> None:
    """Half of the launches bear 10 %, half none: 5 % was never measured."""
    made = campaign(tmp_path / "store", lambda _, percent, launch: (2000, 1.0 if percent == 10 and launch < 3 else 0.5))
    table = text_of(made, tmp_path).one("table", class_="knees")
    assert "5\u202f%" not in "".join(row.all("td")[1].own for row in table.one("tbody").all("tr"))
    assert "3 bear none" in table.text


def few_samples(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Give one layer 999 samples at one load."""
    hook(usual)(point, attempt, number)
    if point["subject"]["layer"] == "sockets-tcp" and point["workload"]["parameters"]["load_percent"] == LOADS[1]:
        synthetic.set_samples(attempt, [(1000, 979), (2000, 20)], "response")


def test_a_p99_of_few_samples_decides_no_knee(tmp_path: Path) -> None:
    made = campaign(tmp_path / "store", hooked=few_samples)
    knees, _ = found(made)
    assert knees["sockets-tcp"].withheld == messages.say("stats", "knee.few_samples", fewest=999, needed=1000)
    root = text_of(made, tmp_path)
    rows = {row.one("bdi").text: row for row in root.one("table", class_="knees").one("tbody").all("tr")}
    cells = [cell.text for cell in rows["sockets-tcp"].all("td")]
    assert cells[1] == cells[2] == cells[3] == "\u2013withheld: a launch's p99 rests on 999 samples, needs 1\u202f000"
    stream = io.StringIO()
    export.write(made, "json", stream)
    exported = json.loads(stream.getvalue())["knees"]
    assert {one["layer"]: one["load_percent"] for one in exported}["sockets-tcp"] is None


def test_the_p999_is_drawn_where_samples_suffice(tmp_path: Path) -> None:
    """Up to half of the load 120,000 samples, of which two in a thousand take 50 us; above that too few."""
    few = hook(usual)

    def many(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        few(point, attempt, number)
        if point["subject"]["layer"] != "null-self" and point["workload"]["parameters"]["load_percent"] <= 50:
            synthetic.set_samples(attempt, [(1000, 19_700), (3000, 260), (50_000, 40)], "response")

    report.build(campaign(tmp_path / "store", hooked=many).path, tmp_path / "r.html")
    figure = pagereader.read((tmp_path / "r.html").read_text()).one("figure", id="fig-load-within-poll-p999")
    rows = {row.one("th").text: [cell.text for cell in row.all("td")] for row in figure.one("tbody").all("tr")}
    assert list(rows) == ["10\u202f%", "30\u202f%", "50\u202f%"]
    assert {cell.partition(" ")[0] for cells in rows.values() for cell in cells} == {"50.0"}
