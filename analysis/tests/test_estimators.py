# SPDX-License-Identifier: BSD-3-Clause
"""The candidates for the shift, and the machine's index: a planted drift is found, and costs what it should."""

from __future__ import annotations

import random
from math import exp, log

import pytest

from cadge_analysis.stats.estimators import ESTIMATORS, Side, median_of_pairs, shift_after_index
from cadge_analysis.stats.load import Series, read
from cadge_analysis.stats.machine_index import MachineIndex, machine_index
from cadge_results import Campaign


def series(name: str) -> Series:
    return Series("layer", name, (), ())


def drifting(chance: random.Random, names: str, rounds: int) -> tuple[dict[str, Side], list[float]]:
    """A campaign in which the machine wanders from launch to launch, with each series' index from the others."""
    launches, state, true = [], 0.0, []
    for number in range(rounds):
        for name in chance.sample(names, len(names)):
            state = 0.95 * state + chance.gauss(0, 0.05)
            true.append(state)
            launches.append((f"{name}{number}", series(name), state + chance.gauss(0, 0.02)))
    index = MachineIndex(tuple(launches))
    sides = {
        name: Side(
            values={(k, 0): 100 * exp(next(s for n, _, s in launches if n == f"{name}{k}")) for k in range(rounds)},
            machine={(k, 0): index.at(f"{name}{k}", {series("a"), series("b")}) for k in range(rounds)},
        )
        for name in "ab"
    }
    return sides, true


def test_the_index_leaves_out_the_series_that_are_compared() -> None:
    launches = tuple(
        (f"{name}{k}", series(name), {"a": 9.0, "b": 1.0, "c": 3.0}[name]) for k in range(5) for name in "abc"
    )
    index = MachineIndex(launches)
    assert index.at("a2", {series("a")}, neighbours=4) == 2
    assert index.at("a2", {series("a"), series("b")}) == 3
    assert index.at("a2", {series(name) for name in "abc"}) == 0
    assert index.at("unknown", set()) == 0


@pytest.mark.long
def test_the_index_of_a_campaign_is_small_where_nothing_drifts(campaign: Campaign) -> None:
    data = read(campaign)
    index = machine_index(data)
    valid = {sample.launch_id for cell in data.cells for sample in cell.samples}
    assert {name for name, _, _ in index.launches} <= valid
    assert len(index.launches) > 50
    values = [index.at(name, {of}) for name, of, _ in index.launches]
    assert max(map(abs, values)) < 0.05
    order = {record.launch_id: record.result.started_utc for record in data.records if record.result}
    assert [order[name] for name, _, _ in index.launches] == sorted(order[name] for name, _, _ in index.launches)


def test_the_index_narrows_intervals_under_drift_and_both_err_as_they_say() -> None:
    """200 campaigns of eight series and nine rounds, two of them the same: alarms at most as stated, with its noise."""
    chance = random.Random(8)
    alarms = dict.fromkeys(ESTIMATORS, 0)
    widths: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    bare = []
    for _ in range(200):
        sides, _ = drifting(chance, "abcdefgh", 9)
        for name, estimate in ESTIMATORS.items():
            found = estimate(sides["a"], sides["b"])
            assert found is not None
            assert found.low is not None
            assert found.high is not None
            alarms[name] += not found.low <= 0 <= found.high
            widths[name].append(found.high - found.low)
        without = shift_after_index(Side(values=sides["a"].values), Side(values=sides["b"].values))
        assert without is not None
        assert without.low is not None
        assert without.high is not None
        bare.append(without.high - without.low)
    assert all(count <= 200 * 0.05 + 3 * 3.1 for count in alarms.values())
    middle = {name: sorted(found)[100] for name, found in widths.items()}
    assert middle["shift after index"] < 0.7 * sorted(bare)[100]
    assert middle["shift after index"] < middle["median of pairs"]


def test_both_have_the_same_sign_and_find_a_shift() -> None:
    chance = random.Random(1)
    first = Side(values={(k, 0): 100 * chance.lognormvariate(0, 0.03) for k in range(9)})
    second = Side(values={key: 1.3 * value for key, value in first.values.items()})
    for estimate in (median_of_pairs, shift_after_index):
        found = estimate(first, second)
        assert found is not None
        assert found.log_ratio == pytest.approx(log(1.3), abs=0.02)
        assert found.low is not None
        assert found.low > 0
        assert estimate(second, first) == found.mirrored()
        assert estimate(Side(values={}), second) is None
