# SPDX-License-Identifier: BSD-3-Clause
"""Two launches: nothing is decided, which stands once; a median that no launch gave is no value; the machine moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from pageparts import headline, limits
from test_machine_probe import probed

from cadge_analysis import messages, report
from cadge_analysis.blocks.make import panels_of, region_of
from cadge_analysis.blocks.model import PageDocument, Remark
from cadge_analysis.blocks.ranked import Picture
from cadge_analysis.messages import say
from cadge_analysis.page.parts import launch_remarks
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.load import Dataset
from cadge_results.formats.record import HostLoad

OPTIONS = synthetic.Options(
    layers=("sockets-tcp", "native-ucx"),
    sizes=(8, 4096),
    places=("within",),
    waits=("poll",),
    patterns=(("rpc", 1), ("stream", 64)),
    launches=2,
    samples=200,
    troubles=False,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load.read(synthetic.make(tmp_path_factory.mktemp("two"), OPTIONS))


@pytest.fixture(scope="module")
def page(data: Dataset) -> PageDocument:
    return report.page_of(data)


def test_that_nothing_is_decided_stands_once_and_in_the_headline(page: PageDocument) -> None:
    first = region_of(page.blocks, "answer")
    assert first is not None
    found = [one for one in first.blocks if isinstance(one, Picture)]
    assert [bar.leads for one in found for question in one.questions for bar in question.bars] == [False] * 4
    assert headline(page).startswith("Valid, but nothing is decided: ")


def test_one_question_says_itself_that_nobody_leads(tmp_path: Path) -> None:
    one = load.read(synthetic.make(tmp_path / "one", replace(OPTIONS, patterns=(("rpc", 1),))))
    made = report.page_of(one)
    assert next(panels_of(made.blocks)).headline.startswith("No layer leads")
    assert headline(made).startswith("Valid: ")


def told(data: Dataset, values: dict[str, tuple[float, ...]]) -> list[Remark]:
    """Return the remarks of a campaign whose rows of RPC at 8 B are these, in ns, by layer, and others as measured."""
    rows, found = [], compare.compare(data)
    for row in found.rows:
        mine = (
            values.get(row.cell.series.label, ()) if (row.cell.case.pattern, row.cell.case.size) == ("rpc", 8) else ()
        )
        by_round = {RoundKey(round_): value for round_, value in enumerate(mine)} or row.numbers.by_round
        rows.append(replace(row, numbers=replace(row.numbers, by_round=by_round)))
    return list(launch_remarks.remarks(replace(found, rows=tuple(rows))))


def test_a_median_that_no_launch_gave_is_named_with_both(data: Dataset) -> None:
    assert told(data, {}) == []
    assert told(data, {"native-ucx": (1000.0, 1999.0)}) == []
    assert told(data, {"native-ucx": (1000.0, 3000.0, 9000.0)}) == [], "the middle one of three was measured"
    (one,) = told(data, {"native-ucx": (1000.0, 8_000_000.0), "sockets-tcp": (2000.0, 4000.0, 1000.0, 9000.0)})
    assert one.title == messages.say("remarks", "launch_remarks.apart_title", n=2)
    assert "native-ucx, RPC of 8 B within one host, polling: 1.00 and 8\u202f000 \u00b5s; " in one.text
    assert "sockets-tcp, RPC of 8 B within one host, polling: 2.00 and 4.00 \u00b5s." in one.text
    assert one.size == "25.0\u202f% of 8 numbers"
    assert one.serious


def with_probed(data: Dataset, lines: dict[int, float]) -> Dataset:
    """Return the campaign whose layers' launches bounced a line in 100 ns, but for those at these places."""
    layers = [record.launch_id for record in data.records if record.launch.subject.kind == "layer"]
    line = {name: lines.get(place, 100.0) for place, name in enumerate(layers)}
    return probed(data, lambda one: {"line_ns": line.get(one.launch_id, 900.0), "copy_ns": 9.0})


def without_rows(data: Dataset, lines: dict[int, float]) -> Comparison:
    """Return the same compared, of which nothing is said of medians."""
    return replace(compare.compare(with_probed(data, lines)), rows=())


def test_launches_while_the_machine_was_slower_are_counted_by_their_machine_probe(data: Dataset) -> None:
    every = sum(record.launch.subject.kind == "layer" for record in data.records)
    (one,) = launch_remarks.remarks(without_rows(data, {0: 240.0}))
    assert one.title == say("remarks", "launch_remarks.moved_title", launches=1)
    assert f"in 1 of {every} launches a bounced cache line took up to 2.40\u00d7 the usual 100 ns" in one.text
    assert one.serious == (1 / every > 0.1)
    assert list(launch_remarks.remarks(without_rows(data, {0: 149.0}))) == []


def test_stolen_time_is_told_of_launches_not_of_their_hosts(data: Dataset) -> None:
    hosts = ("h1", "h2", "h3")
    records = []
    for record in data.records:
        assert record.result is not None
        load = tuple(HostLoad(host=host, steal_ns=record.result.wall_ns // 50) for host in hosts)
        records.append(record.model_copy(update={"load": load}))
    page = report.page_of(replace(data, records=tuple(records)))
    title = "Time was stolen by the hypervisor"
    (found,) = [one for one in limits(page) if one.title == title]
    assert found.size == f"{len(records)} of {len(records)} launches (100\u202f%)"
    assert "2.0\u202f% at worst" in found.text
