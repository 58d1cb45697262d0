# SPDX-License-Identifier: BSD-3-Clause
"""Which floor a cell is divided by, when two layers are told apart, and what counts as one layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic

from cadge_analysis.page import remarks
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.intervals import Estimate
from cadge_results import Campaign


def estimate(low: float | None, high: float | None, coverage: float) -> Estimate:
    return Estimate(value=1.5, low=low, high=high, coverage=coverage, launches=6)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (estimate(1.2, 1.8, 0.96875), True),
        (estimate(0.2, 0.8, 0.96875), True),
        (estimate(0.9, 1.8, 0.96875), False),
        (estimate(1.2, 1.8, 0.5), False),
        (estimate(None, None, 0.0), False),
    ],
)
def test_told_apart_only_by_a_whole_interval_of_enough_coverage(ratio: Estimate, expected: bool) -> None:
    assert compare.decided(ratio) is expected


def test_floors_are_of_the_same_place_wait_size_and_kind(campaign: Campaign) -> None:
    found = compare.compare(load.read(campaign))
    assert found.rows
    for row in found.rows:
        if row.floor is None:
            assert row.reason
            continue
        ours, floor = row.cell.case, row.floor.cell.case
        assert (floor.place, floor.wait, floor.size) == (ours.place, ours.wait, ours.size)
        assert (floor.pattern == "flow") is (ours.pattern == "stream")
        rivals = [n for n in found.floor_numbers if compare.key_of_floor(n.cell.case) == compare.key_of_floor(floor)]
        values = [n.central.value for n in rivals]
        assert row.floor.central.value == (max(values) if row.numbers.more_is_better else min(values))


def test_the_floor_differs_by_size_between_hosts(campaign: Campaign) -> None:
    floors = compare.compare(load.read(campaign)).floors
    assert floors["between", "poll", "exchange", 8].cell.series.layer == "floor-xdp"
    assert floors["between", "poll", "exchange", 4096].cell.series.layer == "floor-tcp"


def test_settings_and_shims_make_an_entry_of_their_own() -> None:
    tuned = load.Series("layer", "sockets-tcp", ("delay",), (("delay.delay_ns", "20000"),))
    assert tuned.label == "sockets-tcp + delay (delay.delay_ns=20000)"
    assert load.Series("layer", "sockets-tcp", (), ()).label == "sockets-tcp"


def test_a_path_may_change_in_its_numbers_alone(tmp_path: Path) -> None:
    options = synthetic.Options(layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), samples=100)
    data = load.read(synthetic.make(tmp_path, options))
    comparison = compare.compare(data)
    (facts,) = {key: f for key, f in load.launch_facts(data).items() if key[0].kind == "layer"}.values()

    def found(*paths: str) -> bool:
        stated = tuple(replace(facts[0], used=path) for path in paths)
        every = remarks.remarks(comparison, {(data.layers[0], "within", "poll"): stated})
        return any("changed during the campaign" in remark.title for remark in every)

    assert not found("tcp; send buffer 69120 B", "tcp; send buffer 87040 B")
    assert found("posix/memory", "tcp/lo")
    # two ends that differ in numbers alone are one path, as if they had agreed
    assert load.distinct_paths(["tcp; buffer 1 B", "tcp; buffer 2 B"]) == "tcp; buffer 1 B"
    assert load.distinct_paths(["posix/memory", "tcp/lo"]) == "posix/memory | tcp/lo"
