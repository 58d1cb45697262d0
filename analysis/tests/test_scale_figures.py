# SPDX-License-Identifier: BSD-3-Clause
"""More processes: their number is found in a pattern's file, times to connect and memory are launches' own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.blocks.lines import lines_of
from cadge_analysis.blocks.markdown import markdown
from cadge_analysis.blocks.model import Figure, Region
from cadge_analysis.messages import say
from cadge_analysis.page.figures.main_figure import figure_source
from cadge_analysis.page.figures.scale_figures import NO_MEMORY, channels, counts, scale
from cadge_analysis.stats.launch_facts import LayerMemory, heaviest, taken
from cadge_analysis.stats.load import Dataset, read
from cadge_results import LaunchRecord
from cadge_results.formats.launch import Endpoint
from cadge_results.formats.result import ResidentFacts


def ends(record: LaunchRecord, peers: list[tuple[int, ...]]) -> LaunchRecord:
    """Return the record as of a launch whose endpoints have these peers."""
    seat = record.launch.endpoints[0]
    made = tuple(seat.model_copy(update={"peers": one}) for one in peers)
    assert all(isinstance(one, Endpoint) for one in made)
    return record.model_copy(update={"launch": record.launch.model_copy(update={"endpoints": made})})


def connected(record: LaunchRecord, ns: int) -> LaunchRecord:
    """Return the record as if connecting had taken so long."""
    assert record.result is not None
    phases = {**record.result.phases_ns, "connect": ns}
    return record.model_copy(update={"result": record.result.model_copy(update={"phases_ns": phases})})


def sizes(private: int, shared: int = 0) -> dict[str, int]:
    """Return what a process has at one moment; its files are in no sum."""
    return {"private": private, "shared": shared, "shared_part": shared // 2, "file": 9_000_000}


def weighed(record: LaunchRecord, private: int, shared: int = 0, *, heavy: int = -1) -> LaunchRecord:
    """Return the record as if one process had taken so much, from 200 kB on, and all others nothing."""
    assert record.result is not None
    number = len(record.launch.endpoints)
    before = sizes(200_000)
    told = [{"before": before, "opened": before, "connected": before} for _ in range(number)]
    told[heavy]["connected"] = sizes(200_000 + private, shared)
    facts = tuple(ResidentFacts.model_validate(one) for one in told)
    return record.model_copy(update={"result": record.result.model_copy(update={"resident_bytes": facts})})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    options = synthetic.Options(
        layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), launches=6, troubles=False
    )
    return read(synthetic.make(tmp_path_factory.mktemp("scale"), options))


def test_a_channel_is_counted_once_whoever_lists_it(data: Dataset) -> None:
    record = data.records[0]
    assert channels(ends(record, [(1,), (0,)])) == 1
    assert channels(ends(record, [(1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)])) == 6, "each of four with each other"
    assert channels(ends(record, [(1, 1), (0, 0)])) == 2, "two channels of one pair"
    assert channels(ends(record, [(0,)])) == 1, "a process with itself"


def test_numbers_of_processes_are_what_roles_are_counted_by(data: Dataset) -> None:
    found = {name: counts(file) for name, file in data.patterns.items()}
    assert found["rpc"] == ()
    assert {"pairs"} == set(found["stream"])


def test_the_time_to_connect_is_the_median_of_launches_with_so_many_channels(data: Dataset) -> None:
    assert scale(figure_source(data)) is None, "one number of channels"
    records, number = [], 0
    for record in data.records:
        if record.launch.subject.kind != "layer":
            records.append(record)
            continue
        peers = [(1,), (0,)] if number % 2 else [(1, 2), (0,), (0,)]
        records.append(connected(ends(record, peers), (1000, 2_000_000, 3000, 4_000_000, 5000, 9_000_000)[number]))
        number += 1
    view = scale(figure_source(replace(data, records=tuple(records))))
    assert view is not None
    (figure,) = figures_of(view)
    assert figure.name == "connect-within-poll"
    rows = {row[0]: row[1].split(" ")[0] for row in figure.table.rows}
    assert rows == {"1": "4\u202f000", "2": "3.00"}
    assert "(6 launches)" in figure.caption


def figures_of(region: Region) -> list[Figure]:
    return [one for one in region.blocks if isinstance(one, Figure)]


def said_of(region: Region) -> str:
    return markdown(lines_of((region,)))


def several(data: Dataset) -> list[LaunchRecord]:
    """Return the launches of the layer, in turn with one channel and with two, of which endpoint 0 then has both."""
    records = [record for record in data.records if record.launch.kind == "layer"]
    return [ends(one, [(1, 2), (0,), (0,)] if at % 2 else [(1,), (0,)]) for at, one in enumerate(records)]


def test_memory_is_what_the_process_with_the_most_channels_took(data: Dataset) -> None:
    one, two = several(data)[:2]
    assert heaviest(one) == 1, "the last of equal ones: the first gathers what all say"
    assert heaviest(two) == 0
    assert taken(one) is None, "not in the record"
    assert taken(weighed(one, 50_000, 4_000_000)) == LayerMemory(
        memory=4_050_000, shared=4_000_000, shared_part=2_000_000
    )
    assert taken(weighed(two, 50_000, heavy=0)) == LayerMemory(memory=50_000, shared=0, shared_part=0)
    assert taken(weighed(two, 50_000)) == LayerMemory(memory=0, shared=0, shared_part=0), "another took it"
    assert taken(weighed(two, 50_000).model_copy(update={"status": "failed"})) is None
    known = weighed(one, 50_000)
    assert known.result is not None
    untold = tuple(facts.model_copy(update={"connected": None}) for facts in known.result.resident_bytes)
    assert (
        taken(known.model_copy(update={"result": known.result.model_copy(update={"resident_bytes": untold})})) is None
    )


def test_the_memory_is_the_median_of_launches_with_so_many_channels(data: Dataset) -> None:
    old = scale(figure_source(replace(data, records=tuple(connected(one, 1000) for one in several(data)))))
    assert old is not None
    assert [figure.name for figure in figures_of(old)] == ["connect-within-poll"]
    assert NO_MEMORY in said_of(old)
    took = (
        (30_000, 0),
        (5_000_000, 4_000_000),
        (40_000, 0),
        (6_000_000, 5_000_000),
        (20_000, 0),
        (7_000_000, 5_000_000),
    )
    records = [weighed(one, *took[at], heavy=-1 if at % 2 == 0 else 0) for at, one in enumerate(several(data))]
    view = scale(figure_source(replace(data, records=tuple(records))))
    assert view is not None
    (figure,) = figures_of(view)
    assert figure.name == "memory-within-poll"
    assert NO_MEMORY not in said_of(view)
    assert figure.table.columns == ("channels", "sockets-tcp, kB")
    rows = {row[0]: row[1] for row in figure.table.rows}
    assert rows == {
        "1": "30.0 [20.0,\u00a040.0]",
        "2": "11\u202f000 [9\u202f000,\u00a012\u202f000]; 5\u202f000 shared",
        say("figures", "scale_figures.each_further"): "11\u202f000; 5\u202f000 shared",
    }
    assert "6 launches of " in figure.caption


def test_launches_that_asked_for_other_messages_are_not_mixed(data: Dataset) -> None:
    """Of three numbers of channels two are of one pattern; the third is of another, whose buffers are larger."""
    records = [weighed(one, 30_000, heavy=at % 2 - 1) for at, one in enumerate(several(data))]
    other = ends(records[0], [(1, 2, 3), (0,), (0,), (0,)])
    known = data.attempts[other.launch_id]
    attempts = data.attempts | {"another": replace(known, patterns=frozenset({"stream"}))}
    other = other.model_copy(update={"launch": other.launch.model_copy(update={"launch_id": "another"})})
    changed = replace(data, records=(*records, weighed(other, 900_000_000, heavy=0)), attempts=attempts)
    view = scale(figure_source(changed))
    assert view is not None
    (figure,) = figures_of(view)
    assert [row[0] for row in figure.table.rows][:-1] == ["1", "2"]


def test_nothing_is_said_of_launches_that_did_not_connect(tmp_path: Path) -> None:
    options = synthetic.Options(layers=("sockets-tcp",), sizes=(8,), launches=2, troubles=False)
    data = read(synthetic.make(tmp_path, options))
    assert scale(figure_source(data)) is None


def test_a_number_of_processes_off_the_axis_has_a_figure_of_its_own(tmp_path: Path) -> None:
    """Two pairs reach, together, three times what one pair does over one layer, and as much over the other."""

    def by_hand(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        pairs, layer = point["workload"]["parameters"]["pairs"], point["subject"]["layer"]
        attempt["quantities"] = {}
        amount = 3_000_000 if pairs == 2 and layer == "native-ucx" else 1_000_000
        synthetic.set_rate(attempt, amount, 1_000_000_000)

    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8, 64),
        places=("within",),
        waits=("poll",),
        patterns=(("stream", 16),),
        given=({"pairs": 1}, {"pairs": 2}),
        launches=3,
        floors=False,
        troubles=False,
        attempt_hook=by_hand,
    )
    report.build(synthetic.make(tmp_path / "store", options).path, tmp_path / "r.html")
    root = pagereader.read((tmp_path / "r.html").read_text())
    figure = root.one("figure", id="fig-stream-within-poll-pairs")
    assert [head.text.partition(",")[0] for head in figure.one("thead").all("th")] == [
        "pairs",
        "native-ucx",
        "sockets-tcp",
    ]
    cells = [[cell.text for cell in row.all("td")] for row in figure.one("tbody").all("tr")]
    ratios = [[cell.rpartition("; ")[2] for cell in row] for row in cells]
    assert ratios == [["1.00\u00d7", "1.00\u00d7"], ["3.00\u00d7", "1.00\u00d7"]]
    section = root.one("section", id="scale").text
    assert "pairs: 1 and 2" in section
    assert say("figures", "scale_figures.no_memory") in section
