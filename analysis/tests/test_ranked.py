# SPDX-License-Identifier: BSD-3-Clause
"""Ranked panels: order, who is shaded, headlines from a table of values, marks, and the table behind each plot."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pagereader
import pytest
import synthetic
import test_natives
import test_picture

from cadge_analysis import report, units
from cadge_analysis.blocks.ranked import Bar, PanelAxis, Picture
from cadge_analysis.cells.shown import wire_bytes
from cadge_analysis.draw.scales import log_axis
from cadge_analysis.judged import judged
from cadge_analysis.page.ranked import (
    EMULATED,
    PanelSource,
    _caution,
    _headline,
    first_picture,
    further_picture,
    pictured,
)
from cadge_analysis.stats.beside_native import MARK, DirectPrograms
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, LeadingGroup
from cadge_analysis.stats.compare import Row, compare
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.intervals import Estimate, over_rounds
from cadge_analysis.stats.launch_facts import LaunchFacts
from cadge_analysis.stats.load import Case, Dataset, Series, read
from cadge_results import CampaignWriter, NativeFile, Workload

HEADLINE_WORDS = 20
FASTER = {"says": Verdict.FASTER, "ratio": SimpleNamespace(value=0.05, low=0.04, high=0.0625), "more_is_better": False}


def headline(count: int, value_ns: float = 372.0, *, against: dict[str, Any] | None = None, **given: Any) -> str:  # noqa: ANN401
    """Return the headline of so many layers, of which the group has what is given; the first takes value_ns."""
    apart = given.pop("apart", [])
    series = [Series("layer", f"layer-{number}", (), ()) for number in range(count)]
    file = synthetic.WORKLOADS.file("rpc")
    case = cast("Case", SimpleNamespace(file=file, does_rank=True))
    rows = [
        SimpleNamespace(
            cell=SimpleNamespace(series=one, point_id=one.label, case=case),
            numbers=SimpleNamespace(
                quantity=file.main_quantity,
                more_is_better=False,
                central=Estimate(
                    value=value_ns * (number + 1), **(ends or {"low": None, "high": None}), coverage=0.0, launches=9
                ),
            ),
            ratio=Estimate(value=1.588 * (number + 1), low=None, high=None, coverage=0.0, launches=9),
        )
        for number, one in enumerate(series)
        for ends in [{"low": apart[number][0], "high": apart[number][1]} if apart else {}]
    ]
    usual = {"ranked": count, "launches": 9, "launches_most": 9, "unranked": (), "withheld": False}
    members = tuple(series[: given.pop("members", count)])
    group = LeadingGroup(case=case, members=members, **(usual | given))
    by_point = {"layer-0": SimpleNamespace(**against)} if against else {}
    verdicts = SimpleNamespace(by_point=by_point, baseline="sockets-tcp", delta=0.05)
    return _headline(cast("list[Row]", rows), group, cast("CampaignVerdicts", verdicts))


@pytest.mark.parametrize(
    ("count", "given", "said"),
    [
        (5, {"members": 1}, "layer-0 leads: 0.372 µs, 1.59x the floor"),
        (
            5,
            {"members": 1, "against": FASTER},
            "layer-0 leads: 0.372 µs, 1.59x the floor, 20.0x [16.0,\xa025.0] as fast as sockets-tcp",
        ),
        (5, {"members": 1, "against": FASTER | {"says": Verdict.SAME}}, "layer-0 leads: 0.372 µs, 1.59x the floor"),
        (5, {"members": 3}, "3-way tie: layer-0, layer-1, layer-2, 0.372 µs, 1.59x the floor"),
        (6, {"members": 4}, "4-way tie: layer-0, layer-1, layer-2, layer-3, 0.372 µs, 1.59x the floor"),
        (9, {"members": 8}, "8-way tie: layer-0, layer-1, layer-2 and 5 more, 0.372 µs, 1.59x the floor"),
        (
            5,
            {"members": 3, "apart": [(1, 2), (3, 4), (3, 4), (5, 6), (5, 6)]},
            "layer-0 first, not certainly before 2 others: 0.372 µs, 1.59x the floor",
        ),
        (
            5,
            {"members": 2, "apart": [(1, 2), (3, 4), (3, 4), (5, 6), (5, 6)], "against": FASTER},
            "layer-0 first, not certainly before layer-1: 0.372 µs, 1.59x the floor, 20.0x [16.0,",
        ),
        (
            5,
            {"members": 3, "apart": [(1, 4), (3, 5), (6, 7), (8, 9), (8, 9)]},
            "2-way tie: layer-0, layer-1, 0.372 µs, 1.59x the floor",
        ),
        (2, {"alike": True}, "2-way tie within 5\u202f%: layer-0, layer-1, 0.372 µs, 1.59x the floor"),
        (3, {}, "No layer leads: 9 launches cannot separate 3 layers. Lowest: layer-0, 0.372 µs, 1.59x the floor"),
        (3, {"launches": 2}, "No layer leads: 2 to 9 launches cannot separate 3 layers. Lowest: layer-0, 0.372 µs"),
        (3, {"withheld": True}, "No ranking, verdicts are withheld. Lowest: layer-0, 0.372 µs, 1.59x the floor"),
        (3, {"withheld": True, "unlike": "x"}, "No ranking, layers ran at unlike loads. Lowest: layer-0, 0.372 µs"),
        (1, {}, "Only layer-0 has a number: 0.372 µs, 1.59x the floor"),
    ],
)
def test_a_headline_of_at_most_twenty_words_is_the_answer(count: int, given: dict[str, Any], said: str) -> None:
    found = headline(count, **given)
    assert found.replace(units.TIMES, "x").startswith(said)
    assert len(found.replace("\u202f", "").split()) <= HEADLINE_WORDS


@pytest.mark.parametrize(
    ("unsteady", "disturbed", "said"),
    [
        (0, 0, ""),
        (2, 2, ""),
        (3, 2, "Caution: of attempts, 15\u202f% did not settle."),
        (20, 5, "Caution: of attempts, 100\u202f% did not settle, 25\u202f% disturbed."),
    ],
)
def test_a_panel_says_which_warnings_touch_it(unsteady: int, disturbed: int, said: str) -> None:
    numbers = [
        SimpleNamespace(central=SimpleNamespace(launches=10), unsteady=unsteady, disturbed=disturbed),
        SimpleNamespace(central=SimpleNamespace(launches=10), unsteady=0, disturbed=0),
    ]
    assert _caution([cast("Row", SimpleNamespace(numbers=one)) for one in numbers]) == said


def test_a_page_has_the_pictures_layers_in_its_order_and_shades_those_that_lead(tmp_path: Path) -> None:
    data = test_picture.data_of(tmp_path)
    wanted = pictured(compare(data)).questions
    root = pagereader.read(report.html(report.page_of(data)))
    panels = root.one("section", id="answer").all("figure", class_="ranking")
    assert len(panels) == len(wanted) == 2
    for panel, question in zip(panels, wanted, strict=True):
        rows = panel.one("tbody").all("tr")
        assert [row.one("bdi").text for row in rows] == [bar.name for bar in question.bars]
        shaded = [row.one("bdi").text for row in panel.all("tr", class_="leads")]
        assert shaded == [bar.name for bar in question.bars if bar.leads]
        assert panel.one("h3").text == question.headline
        dots = [float(row.all("circle")[-1].attrs["cx"].rstrip("%")) for row in rows]
        assert dots == sorted(dots, reverse=question.better == "high"), "best first along the axis"
        floor = panel.one("tfoot").one("line").attrs["x1"]
        assert {row.one("line", class_="floor").attrs["x1"] for row in rows} == {floor}
        assert len({len(row.all("td")) for row in rows}) == 1, "a table for who cannot see the plot"
        assert all(row.one("th").attrs["scope"] == "row" for row in rows)


def test_an_axis_places_values_and_a_few_round_ticks() -> None:
    axis = PanelAxis(log_axis([0.3, 60.0], wide=2))
    places = [float(axis.at(value).rstrip("%")) for value in (0.3, 1, 10, 60)]
    assert places == sorted(places)
    assert 0 < places[0] < places[-1] < 100
    assert axis.at(0) == "3.0%", "a logarithm has no place for nothing"
    assert [text for _, text in axis.ticks] == ["1", "10"]
    assert [text for _, text in PanelAxis(log_axis([1500, 2e6], wide=2)).ticks] == ["10k", "100k", "1M"]
    for low in (0.01, 0.7, 3.0):
        for times in (1.0, 1.3, 5.0, 90.0, 1e4, 1e7):
            assert 1 <= len(PanelAxis(log_axis([low, low * times], wide=2)).ticks) <= 4 or times < 2


@pytest.mark.parametrize(
    ("pattern", "caps", "overhead", "size", "carried"),
    [
        ("rpc", ("RELIABLE",), 0, 8, 24),  # a call that is made of messages
        ("rpc", ("RELIABLE",), 8, 8, 32),
        ("rpc", ("RPC",), 24, 8, 32),
        ("rpc", ("RPC",), 0, 8, None),
        ("rpc", ("RELIABLE",), 0, 4080, 4096),
        ("rpc", ("RELIABLE",), 0, 4081, None),  # its 16 B more take it to the long path
        ("pingpong", ("RELIABLE",), 4, 8, 12),
        ("pingpong", ("RELIABLE",), 4, 8192, None),  # on the long path
    ],
)
def test_bytes_on_the_wire(pattern: str, caps: tuple[str, ...], overhead: int, size: int, carried: int | None) -> None:
    file = synthetic.WORKLOADS.file(pattern)
    values = {name: size for name in file.moves if name in file.parameters}
    workload = Workload(pattern=pattern, parameters=tuple(values.items()))
    facts = cast("LaunchFacts", SimpleNamespace(caps=caps, overhead_bytes=overhead, short_bytes=4096))
    assert wire_bytes(facts, file, workload) == carried


# ---- direct programs that the campaign measured ----


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Bare messages with and without touched data, and calls; a program beside the former that takes 115 ns less."""
    campaign = synthetic.make(
        tmp_path_factory.mktemp("beside"),
        synthetic.Options(
            layers=("native-ucx", "sockets-tcp"),
            sizes=(8, 65536),
            places=("within",),
            waits=("poll",),
            patterns=(("pingpong", 1), ("rpc", 1)),
            touches=("none", "write+read"),
            launches=test_natives.ROUNDS,
            samples=400,
            troubles=False,
            attempt_hook=test_natives.exact,
        ),
    )
    own = next(
        point
        for point in campaign.plan.points
        if point.subject.layer == "native-ucx"
        and point.workload.pattern == "pingpong"
        and (point.workload["bytes"], point.workload["touch"]) == (8, "none")
    )
    of = test_natives.NativeCell.model_validate(
        {
            "cell_id": "a",
            "point_id": own.point_id,
            "tool": "a tool",
            "bytes": 8,
            "statistic": "p50",
            "clocked": True,
            "batch": 1,
        }
    )
    found = NativeFile(schema_=NativeFile.schema_id(), rounds=9, cells=(of,), readings=tuple(test_natives.readings(of)))
    with CampaignWriter.resume(campaign.path) as writer:
        writer.put_native(found)
    return read(campaign)


def test_a_direct_program_stands_beside_all_that_exchanges_the_same(beside: Dataset) -> None:
    direct = DirectPrograms.of(beside)
    found = {
        (cell.series.layer, cell.case.pattern, cell.case.size)
        for cell in beside.cells
        if cell.series.kind == "layer" and direct.beside(cell) is not None
    }
    assert found == {("native-ucx", "pingpong", 8), ("native-ucx", "rpc", 8)}


def test_a_tax_that_was_measured_here_marks_the_row(beside: Dataset) -> None:
    [question] = pictured(compare(beside)).questions
    marks = {bar.name: (MARK in bar.marks, EMULATED in bar.marks, bar.direct) for bar in question.bars}
    assert marks["sockets-tcp"] == (False, True, None)
    assert marks["native-ucx"][:2] == (True, True)
    assert marks["native-ucx"][2] == pytest.approx(test_natives.TOOL_NS * test_natives.drift(4) / 1000, rel=0.05)


@pytest.mark.parametrize(
    ("more_ns", "taxed"), [(10, False), (30, True), (60, True), (-60, False)]
)  # of 500 ns: 5 % are 25
def test_a_tax_of_more_than_five_percent_or_fifty_nanoseconds_is_one(
    beside: Dataset, more_ns: float, taxed: bool
) -> None:
    assert beside.natives is not None
    [pair] = beside.natives.pairs
    assert pair.ratio is not None
    assert pair.tax_ns is not None
    times = 1 + more_ns / test_natives.TOOL_NS
    log = math.log(times)
    found = replace(
        pair,
        ratio=replace(pair.ratio, log_ratio=log, low=log - 0.001, high=log + 0.001),
        tax_ns=replace(pair.tax_ns, value=more_ns, low=more_ns - 1, high=more_ns + 1),
    )
    assert found.is_taxed is taxed


def test_a_card_is_made_of_what_a_run_keeps(beside: Dataset) -> None:
    found = pictured(compare(beside))
    assert Picture.of(found.stored()) == found
    assert isinstance(found.stored()["questions"][0]["bars"], list), "as JSON has it"
    assert Bar.of(found.stored()["questions"][0]["bars"][0]) == found.questions[0].bars[0]


def test_an_interval_is_explained_once_and_means_the_same_in_each_panel(tmp_path: Path) -> None:
    data = test_picture.data_of(tmp_path, layers=("native-ucx", "sockets-tcp"), patterns=(("rpc", 1),), sizes=(8,))
    said = report.edition(report.page_of(data), "text")
    notes = [line for line in said.splitlines() if line.startswith("- [a, b]: ")]
    assert notes == ["- [a, b]: 96\u202f% interval over 12 launches"]
    source, rows = panels_of(data)
    p99, cpu = further_picture(source, first_picture(source)).questions
    for bar in p99.bars:
        found = over_rounds(rows[bar.name].numbers.own_p99)
        assert (bar.value, bar.low, bar.high) == tuple(
            one / 1000 for one in (found.value, found.low, found.high) if one
        )
    for bar in cpu.bars:
        samples = rows[bar.name].cell.samples
        each = {
            one.round: sum(use.user_ns + use.system_ns for _, use in one.cpu) / one.operations / 1000 for one in samples
        }
        found = over_rounds(each)
        assert (bar.value, bar.low, bar.high) == pytest.approx((found.value, found.low, found.high))
    floor = next(iter(rows.values())).floor
    assert floor is not None
    assert p99.floor == over_rounds(floor.program.own_p99).value / 1000
    assert cpu.floor is None


def test_a_note_of_the_first_picture_is_not_repeated_below_it(beside: Dataset) -> None:
    source, _ = panels_of(beside)
    first = first_picture(source)
    further = further_picture(source, first)
    assert {note.mark for note in first.notes} >= {"†", "○", "e"}
    assert [note.text for note in further.notes] == ["p99, processor time: medians over launches"]


def test_a_panel_names_the_layers_that_cannot_run_it(tmp_path: Path) -> None:
    layers = ("native-ucx", "peregrine-shm", "sockets-tcp")
    data = test_picture.data_of(
        tmp_path, layers=layers, places=("within", "between"), sizes=(8,), attempt_hook=None, troubles=True
    )
    found = {one.place: one.absent for one in pictured(compare(data)).questions}
    assert found == {"within": "", "between": "Not here: peregrine-shm (only within one host)."}
    assert found["between"] in report.edition(report.page_of(data), "text").replace("\n", " ")


def panels_of(data: Dataset) -> tuple[PanelSource, dict[str, Row]]:
    comparison = compare(data)
    rows = {row.cell.series.label: row for row in comparison.rows}
    return PanelSource.of(comparison, judged(comparison)), rows
