# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of every kind, of several endpoints, over an axis that is no size: what a pattern's file may ask for."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
from synthetic import counted

from cadge_analysis import export, report
from cadge_analysis.draw.scales import positions
from cadge_analysis.messages import say
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Measurement
from cadge_analysis.stats.numbers import apart, per_launch
from cadge_results import Campaign, PatternFile
from cadge_results.plugins.parameter import Quantity

CROWD = {
    "schema": "cadge.pattern/1",
    "title": "Crowd",
    "summary": "Many ask at once.",
    "order": 5,
    "measures": {"clock": "c", "side": "s", "synchronised": "s", "reduced": "r"},
    "roles": {
        "load": {"count": "clients", "peers": ["server"], "hosts": "first", "acts": True},
        "server": {"count": 1, "peers": ["load"], "hosts": "others", "acts": False},
    },
    "parameters": {
        "clients": {"title": "clients", "unit": "count", "min": 1, "max": 32},
        "pause_ns": {"title": "pause", "unit": "ns", "min": 0, "max": 10**9, "default": 0},
    },
    "quantities": {
        "done": {"title": "operations", "unit": "1/s", "better": "high", "kind": "rate"},
        "missed": {"title": "deadlines missed", "unit": "operations", "better": "low", "kind": "count"},
        "slope": {"title": "slope", "unit": "ns/client", "better": "low", "kind": "fit"},
        "answer": {"title": "answer", "unit": "ns", "better": "low", "kind": "histogram", "head": "p50, answer"},
    },
    "axis": "clients",
    "floor": {"none": "a crowd has no floor"},
    "loop": "open",
}
THIN = "\u202f"


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Two endpoints count 1000 and 3000 operations in a millisecond, more with each launch and client."""
    if point["subject"]["kind"] == "floor":
        return
    clients = point["workload"]["parameters"]["clients"]
    ends = range(2)
    attempt["quantities"] = {}
    synthetic.set_samples(attempt, [(1000 * (number + 1), 10)], "answer")
    attempt["quantities"]["answer"].append({**attempt["quantities"]["answer"][0], "endpoint": 1})
    attempt["quantities"] |= {
        "done": [{"endpoint": e, "amount": (1000 + 2000 * e) * clients, "elapsed_ns": 10**6} for e in ends],
        "missed": [{"endpoint": e, "value": number + e} for e in ends],
        "slope": [{"endpoint": e, "value": 0.5 + e} for e in ends],
    }


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    known = synthetic.WORKLOADS
    file = PatternFile.from_object(CROWD, source="crowd")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(synthetic, "WORKLOADS", replace(known, patterns={**known.patterns, "crowd": file}))
        options = synthetic.Options(
            layers=("sockets-tcp", "rdma-ucx"),
            sizes=(1, 2, 8),
            places=("within",),
            waits=("poll",),
            patterns=(("crowd", 1),),
            floors=False,
            troubles=False,
            attempt_hook=by_hand,
        )
        return synthetic.make(tmp_path_factory.mktemp("crowd"), options)


def test_the_report_shows_every_quantity(crowd: Campaign, tmp_path: Path) -> None:
    report.build(crowd.path, tmp_path / "r.html")
    root = pagereader.read((tmp_path / "r.html").read_text())
    assert say("report", "views.under_load") not in root.text, "this loop is open"
    rows = {row.case: row for row in pagereader.full_rows(root) if row.layer == "sockets-tcp"}
    assert set(rows) == {f"crowd/within/{clients}/0" for clients in (1, 2, 8)}
    fields = rows["crowd/within/2/0"].fields
    assert fields["p50"].text == f"8{THIN}000{THIN}000"  # (2000 + 6000) in a millisecond, in every launch
    assert fields["pooled"].text == f"8{THIN}000{THIN}000"
    assert fields["apart"].text == "3.00"  # 1000 and 3000
    assert fields["missed"].numbers[0] == 6.0  # 1, 3 ... 11: their median
    assert fields["slope"].text == "1.00"
    assert fields["answer"].text == "3.50"
    assert fields["ratio"].smalls == ["a crowd has no floor"]
    assert {"cpu_load", "cpu_server", "cpu_all", "switches_load"} <= set(fields)
    figure = root.one("figure", id="fig-crowd-within-poll")
    heads = [head.text for head in figure.one("thead").all("th")]
    assert heads[:2] == ["clients", "rdma-ucx, 1/s"], "a crowd has no floor"
    assert [line.one("th").text for line in figure.one("tbody").all("tr")] == ["1", "2", "8"]


def test_the_export_has_a_column_for_every_quantity(crowd: Campaign) -> None:
    stream = io.StringIO()
    export.write(crowd, "csv", stream)
    row = next(r for r in csv.DictReader(io.StringIO(stream.getvalue())) if r["clients"] == "8")
    assert float(row["done_per_s"]) == 32e6
    assert float(row["done_pooled_per_s"]) == 32e6
    assert float(row["ends_apart"]) == 3.0
    assert float(row["missed_operations"]) == 6.0
    assert float(row["slope_ns_client"]) == 1.0
    assert float(row["answer_p50_ns"]) == pytest.approx(3500, rel=1e-3)
    assert row["pause_ns"] == "0"


SLOPE = {
    **CROWD,
    "title": "Slope",
    "parameters": {"steep": {"title": "steepness", "unit": "percent", "min": 1, "max": 150}},
    "roles": {"load": {"acts": True}},
    "quantities": {
        "answer": {"title": "answer", "unit": "ns", "better": "low", "kind": "histogram"},
        "slipped": {
            "title": "slipped",
            "unit": "attempts",
            "better": "low",
            "kind": "count",
            "caveat": "Its feet gave way.",
        },
    },
    "axis": "steep",
}


def slipping(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """At 100 % every attempt slips, at 50 % the first, at 10 % none."""
    steep = point["workload"]["parameters"]["steep"]
    attempt["quantities"] = {}
    synthetic.set_samples(attempt, [(1000 * steep, 100)], "answer")
    slips = steep == 100 or (steep == 50 and number == 0)
    attempt["quantities"]["slipped"] = [{"endpoint": 0, "value": int(slips)}]
    attempt["warmup"]["steady"] = steep != 100


def test_a_share_in_percent_and_a_caveat(tmp_path: Path) -> None:
    """Shares stand in proportion; a caveat is told row by row and in the notes, and has no column."""
    known = synthetic.WORKLOADS
    file = PatternFile.from_object(SLOPE, source="slope")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(synthetic, "WORKLOADS", replace(known, patterns={**known.patterns, "slope": file}))
        options = synthetic.Options(
            layers=("sockets-tcp", "rdma-ucx"),
            sizes=(10, 50, 100),
            places=("within",),
            waits=("poll",),
            patterns=(("slope", 1),),
            floors=False,
            troubles=False,
            attempt_hook=slipping,
        )
        campaign = synthetic.make(tmp_path / "slope", options)
    report.build(campaign.path, tmp_path / "r.html")
    root = pagereader.read((tmp_path / "r.html").read_text())
    rows = {row.case: row for row in pagereader.full_rows(root) if row.layer == "sockets-tcp"}
    assert set(rows) == {f"slope/within/{steep}" for steep in (10, 50, 100)}
    details = {case: row.fields["launches"].smalls[0] for case, row in rows.items()}
    assert "slipped" not in details["slope/within/10"]
    assert "slipped" not in rows["slope/within/10"].fields
    assert details["slope/within/50"].endswith(", 1 slipped")
    assert details["slope/within/100"].endswith(", 6 slipped")
    said = root.text
    assert "14 attempts slipped" in said
    short = root.one("table", **{"class": "summary"}).one("tbody").all("tr")
    marked = [["slipped" in cell.text for cell in row.all("td")] for row in short]
    assert marked == [[False, False, True]] * 2, "of more than half of the launches, wherever the number stands"
    assert f"By steepness: 50{THIN}% 2 of 12, 100{THIN}% 12 of 12; by layer: rdma-ucx 7 of 18" in said
    assert f"By steepness: 100{THIN}% 100.0{THIN}%" in said, "what is no size is not called one"
    figure = root.one("figure", id="fig-slope-within-poll")
    assert [line.one("th").text for line in figure.one("tbody").all("tr")] == [f"{n}{THIN}%" for n in (10, 50, 100)]
    assert file.parameters["steep"].refuse(151) == "151 is more than the maximum of 150 percent"
    for wrong in ({"kind": "fit"}, {"kind": "rate", "unit": "1/s"}):
        with pytest.raises(ValueError, match="a caveat is of a count"):
            Quantity(title="t", better="low", caveat="no", **{"unit": "x", **wrong})


def test_positions_of_what_is_in_proportion() -> None:
    assert positions([100, 10, 50], proportional=True) == {10: 10.0, 50: 50.0, 100: 100.0}
    assert positions([8, 16]) == {8: 3.0, 16: 4.0}


def quantity(kind: Any, unit: str) -> Quantity:  # noqa: ANN401 - one of four words
    return Quantity(title="t", unit=unit, better="low", kind=kind)


def test_several_endpoints_make_one_number() -> None:
    rates = Measurement(amounts=((1000, 1000), (500, 1000)))
    assert per_launch(rates, quantity("rate", "MB/s")) == 1500.0
    assert per_launch(rates, quantity("rate", "1/s")) == 1.5e9
    numbers = Measurement(numbers=(1.0, 2.0, 6.0))
    assert per_launch(numbers, quantity("count", "x")) == 9.0
    assert per_launch(numbers, quantity("fit", "x")) == 2.0
    assert per_launch(Measurement(counts=counted((10, 1), (20, 2))), quantity("histogram", "ns")) == 20.0


def apart_of(measured: list[Measurement], of: Quantity) -> Estimate | None:
    return apart({RoundKey(number): one for number, one in enumerate(measured)}, of)


def test_how_far_endpoints_lie_apart() -> None:
    """The highest by the lowest, launch by launch, whatever is measured; nothing where one end alone measured."""
    latency = quantity("histogram", "ns")
    slow = Measurement(by_end=tuple(counted((value, 3)) for value in (10, 20, 40)))
    even = Measurement(by_end=tuple(counted((value, 3)) for value in (10, 10, 20)))
    found = apart_of([slow, even, even], latency)
    assert found is not None
    assert (found.value, found.launches) == (2.0, 3)
    assert apart_of([slow, Measurement(counts=counted((10, 3)))], latency) is None
    found = apart_of([Measurement(amounts=((1000, 1000), (500, 1000)))], quantity("rate", "1/s"))
    assert found is not None
    assert found.value == 2.0
    assert apart_of([Measurement(amounts=((1000, 1000), (0, 1000)))], quantity("rate", "1/s")) is None
