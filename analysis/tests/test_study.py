# SPDX-License-Identifier: BSD-3-Clause
"""The page of a study: published figures as they are in its data, ours as in the campaign, blanks with reasons."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import ablated
import pagereader
import pytest
import yaml
from arithmetic import ratio_spread

from cadge_analysis.errors import BadInputError
from cadge_analysis.messages import say
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.study import engine, hypotheses, published
from cadge_analysis.study.views import build
from cadge_results import Campaign

PEREGRINE = Path(__file__).parents[1] / "studies" / "peregrine"
THIN, NBSP = "\u202f", "\u00a0"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return ablated.make(tmp_path_factory.mktemp("ablated"))


def page(campaign: Campaign, out: Path, bench: Path | None = None) -> pagereader.Node:
    build([campaign], PEREGRINE, out, engine_bench=bench)
    return pagereader.read(out.read_text())


def bench_file(folder: Path, *readings: dict[str, Any]) -> Path:
    path = folder / "bench.json"
    path.write_text(json.dumps({"readings": readings}))
    return path


def reading(name: str, median: float, unit: str = "us") -> dict[str, Any]:
    return {"name": name, "unit": unit, "median": median, "low": median - 0.1, "high": median + 0.1}


def rows_of(root: pagereader.Node, kind: str) -> list[list[pagereader.Node]]:
    """Return the rows of each table of a kind."""
    return [table.one("tbody").all("tr") for table in root.all("table", class_=kind)]


def test_it_is_one_file_that_asks_for_nothing(campaign: Campaign, tmp_path: Path) -> None:
    root = page(campaign, tmp_path / "s.html")
    text = (tmp_path / "s.html").read_text()
    assert "http:" not in text
    assert "https:" not in text
    assert not re.findall(r"url\((?!#)", text)
    assert [script.attrs for script in root.all("script")] == [{"type": "application/json", "id": "data"}]
    ids = [node.attrs["id"] for node in root.walk() if "id" in node.attrs]
    assert len(ids) == len(set(ids))
    for link in root.all("a"):
        assert link.attrs["href"].removeprefix("#") in ids
    assert root.one("h1").text.startswith("Peregrine, 1993 and now")


def test_equal_records_give_equal_bytes(campaign: Campaign, tmp_path: Path) -> None:
    page(campaign, tmp_path / "one.html")
    page(campaign, tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_every_published_figure_stands_there_with_its_tag(campaign: Campaign, tmp_path: Path) -> None:
    root = page(campaign, tmp_path / "s.html")
    stated = yaml.safe_load((PEREGRINE / published.FILE).read_text())["figures"].values()
    shown = {row.one("th").text: [cell.text for cell in row.all("td")] for row in rows_of(root, "figures")[0]}
    assert {name: (cells[1], cells[2]) for name, cells in shown.items()} == {
        figure["name"]: (figure["tag"], figure["source"]) for figure in stated
    }
    assert shown["Software of a null RPC above the network penalty"][0] == "309 \u00b5s"
    assert shown["RPC with an in-argument of 1 KB, round trip"][0] == f"1{THIN}397 \u00b5s"
    assert shown["User-level rate of multi-packet calls"][0] == "8.9 Mb/s"


def test_derived_figures_follow_from_those_they_are_derived_of() -> None:
    value = {name: figure.value for name, figure in published.read(PEREGRINE).figures.items()}
    assert value["null_floor"] == value["null_rpc"] - value["null_above"]
    assert value["kilobyte_floor"] == value["kilobyte_rpc"] - value["kilobyte_above"]
    assert value["multi_floor"] == pytest.approx(value["multi_rate"] / value["multi_share"], abs=0.005)
    assert {figure.tag for figure in published.read(PEREGRINE).figures.values()} <= {"seed", "found", "derived"}


def test_distances_from_the_floor(campaign: Campaign, tmp_path: Path) -> None:
    root = page(campaign, tmp_path / "s.html")
    tables = rows_of(root, "distance")
    assert len(tables) == 4
    first, shm, udp = tables[0]
    assert [cell.own for cell in first.all("td")[:4]] == ["573 \u00b5s", "264 \u00b5s", "309 \u00b5s", "2.17\u00d7"]
    assert [cell.smalls for cell in first.all("td")[:4]] == [["seed"], ["derived"], ["seed"], ["derived"]]
    assert shm.all("td")[0].smalls == ["refused: peregrine-shm runs only within one host"]
    # Between hosts the p50 of round n is 10,008 ns * 1.5^n, the floor's 1,500 ns.
    own = [ablated.p50_ns("peregrine-udp", None, 8, n) / 1500 for n in range(12)]
    ratio = [float(number) for number in udp.all("td")[3].attrs["data-v"].split()]
    assert ratio == pytest.approx(ratio_spread(own)[0], rel=0.002)
    assert len(tables[2]) == 1  # no stream was planned
    local = tables[3][0].all("td")
    assert local[0].own == "149 \u00b5s"
    assert local[1].smalls == local[3].smalls == ["no floor of a local call was found published"]


def test_without_a_benchmark_the_bill_has_two_parts_and_says_why(campaign: Campaign, tmp_path: Path) -> None:
    root = page(campaign, tmp_path / "s.html")
    heads = [head.text for head in root.one("table", class_="bill").one("thead").all("th")]
    assert heads == [
        "system",
        "round trip",
        "floor",
        say("study", "bill.software"),
        say("study", "bill.together"),
    ]
    rows = rows_of(root, "bill")[0]
    assert [row.one("th").own for row in rows] == ["Peregrine, 1993", *ablated.LAYERS, *ablated.LAYERS]
    assert [cell.own for cell in rows[0].all("td")] == ["573", "264", "309", "\u2013"]
    assert say("study", "bill.no_file") in rows[1].text
    total, floor, _, rest = (float(cell.attrs.get("data-v", "0").split()[0]) for cell in rows[2].all("td"))
    assert rest == pytest.approx(total - floor)


def test_with_a_benchmark_the_bill_has_three_parts_that_add_up(campaign: Campaign, tmp_path: Path) -> None:
    bench = bench_file(tmp_path, reading("shm 8 B", 4.0), reading("udp 8 B", 9000, "ticks"))
    root = page(campaign, tmp_path / "s.html", bench)
    rows = rows_of(root, "bill")[0]
    values = [cell.attrs.get("data-v", "").split() for cell in rows[1].all("td")]
    total, floor, software, own, rest, together = values
    assert software == together == []
    assert float(own[0]) == pytest.approx(4000 - float(floor[0]))
    assert float(floor[0]) + float(own[0]) + float(rest[0]) == pytest.approx(float(total[0]))
    low, high = float(own[1]), float(own[2])
    assert (low, high) == pytest.approx((3900 - float(floor[2]), 4100 - float(floor[1])))
    assert "is in ticks, which is no unit of time" in rows[2].text
    assert "has no reading \u201cudp 8 B, between\u201d" in rows[4].text
    picture = root.one("figure", id="fig-bill").all("svg", role="img")[0]
    assert "peregrine-shm, within one host, polling" in picture.text
    assert f"{THIN}%" in picture.all("desc")[0].text


def test_a_part_below_nothing_is_said_and_not_drawn(campaign: Campaign, tmp_path: Path) -> None:
    root = page(campaign, tmp_path / "s.html", bench_file(tmp_path, reading("shm 8 B", 0.5)))
    rows = rows_of(root, "bill")[0]
    assert "engine came out negative" in rows[1].text
    picture = root.one("figure", id="fig-bill").all("svg", role="img")[0]
    assert "peregrine-shm, within" not in picture.text


def test_the_ablation_stands_there(campaign: Campaign, tmp_path: Path) -> None:
    root = page(campaign, tmp_path / "s.html")
    tables = rows_of(root, "ablation")
    assert len(tables) == 3
    names = [row.one("th").own for row in tables[0]]
    assert names == ["none", *ablated.OFF]
    assert tables[0][2].all("td")[0].own == f"1.20\u00d7{THIN}*"
    assert tables[0][1].all("td")[0].attrs["class"] == "num same"
    assert "No result: peregrine-shm runs only within one host." in root.one("section", id="ablation").text


def test_a_campaign_without_variants_has_a_page_too(tmp_path: Path) -> None:
    made = ablated.make(tmp_path, settings=({},))
    root = page(made, tmp_path / "s.html")
    assert say("study", "no_ablation") in root.one("section", id="ablation").text


def test_a_campaign_without_such_layers_has_a_page_of_blanks(tmp_path: Path) -> None:
    made = ablated.make(tmp_path, layers=("sockets-tcp",), settings=({},), attempt_hook=None)
    root = page(made, tmp_path / "s.html")
    assert [len(rows) for rows in rows_of(root, "distance")] == [1, 1, 1, 1]
    assert root.one("section", id="answer").text.count("Ours is blank") == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "JSON"),
        ("{}", "readings: is missing; it must be a list"),
        ('{"readings": [{"name": "a"}]}', "readings.0.unit: is missing; it must be text"),
        ('{"readings": [{"name": "a", "unit": "us", "median": 1, "low": 2, "high": 3}]}', "a: the median does not lie"),
        (
            '{"readings": [{"name": "a", "unit": "us", "median": "1", "low": 0, "high": 3}]}',
            "must be a number, not '1'",
        ),
    ],
)
def test_wrong_benchmark_files(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(BadInputError, match=re.escape(said)):
        engine.read(path)


def test_a_benchmark_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"none\.json cannot be read"):
        engine.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("total: null_rpc", "total: null_rcp", "no figure is called null_rcp"),
        ("tag: seed", "tag: heard", "tag: must be one of seed, found, derived, not 'heard'"),
        ("schema: cadge.study/1", "schema: cadge.study/2", "cadge.study"),
        ("year: 1993", "year: [", "line"),
        ("unit: share", "unit: furlong", "unit: must be one of us, "),
    ],
)
def test_wrong_published_figures(old: str, new: str, said: str, tmp_path: Path) -> None:
    (tmp_path / published.FILE).write_text((PEREGRINE / published.FILE).read_text().replace(old, new, 1))
    with pytest.raises(BadInputError, match=re.escape(said)):
        published.read(tmp_path)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"open": 2}, hypotheses.UNKNOWN),
        ({"for": 2}, "holds"),
        ({"for": 1, "open": 1}, say("study", "hypotheses.holds_where_can_told")),
        ({"against": 2}, "does not hold"),
        ({"against": 1, "open": 1}, say("study", "hypotheses.does_not_hold_where")),
        ({"for": 1, "against": 1}, say("study", "hypotheses.depends_layer_size")),
    ],
)
def test_what_cases_say_of_a_hypothesis(counts: dict[str, int], says: str) -> None:
    assert hypotheses._verdict(2, Counter(counts)) == says
    assert hypotheses._verdict(0, Counter()) == say("study", "hypotheses.not_tested_no_campaign")


@pytest.mark.parametrize(
    ("low", "high", "at_most", "above"),
    [
        (1.0, 2.0, "for", "against"),
        (1.0, 2.1, "open", "against"),
        (2.0, 2.5, "open", "against"),
        (2.1, 2.5, "against", "against"),
        (1.0, 3.0, "open", "against"),
        (1.0, 3.1, "open", "open"),
        (3.0, 4.0, "against", "open"),
        (3.1, 4.0, "against", "for"),
    ],
)
def test_what_an_interval_says_of_a_bound(low: float, high: float, at_most: str, above: str) -> None:
    """That it is at most 2, and that it is above 3."""
    ratio = Estimate(value=(low + high) / 2, low=low, high=high, coverage=0.95, launches=9)
    assert (hypotheses.speaks(ratio, most=2.0), hypotheses.speaks(ratio, above=3.0)) == (at_most, above)
    assert hypotheses.speaks(replace(ratio, coverage=0.94), most=9.0) == "open"
    assert hypotheses.speaks(replace(ratio, low=None), most=9.0) == "open"
    assert hypotheses.speaks(replace(ratio, high=None), most=9.0) == "open"
