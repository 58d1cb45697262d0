# SPDX-License-Identifier: BSD-3-Clause
"""Drift between two campaigns: what is common, how far apart series lie, what floors show, how often it is wrong."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import replace
from itertools import combinations
from math import sqrt
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.inference.between import SERIES_LEAST, CampaignDrift, CellMove, between, spread_of
from cadge_analysis.stats.inference.student import reach, two_sided_tail


def cells(
    chance: random.Random, layers: int, floors: int = 0, *, each: int = 3, by: float = 0.0, drift: float = 0.03
) -> list[CellMove]:
    """Every series drifts by itself, and all move by the same."""
    found = []
    for number in range(layers + floors):
        own = by + chance.gauss(0, drift)
        is_floor = number >= layers
        found += [
            CellMove(series=str(number), is_floor=is_floor, shift=own + chance.gauss(0, 0.002), error=0.002)
            for _ in range(each)
        ]
    return found


def known(found: list[CellMove]) -> CampaignDrift:
    drift = between(found)
    assert drift is not None
    return drift


def test_student_as_in_tables() -> None:
    for t, freedom, p in ((12.706, 1, 0.05), (2.228, 10, 0.05), (6.869, 5, 0.001), (1.96, 1e7, 0.05)):
        assert two_sided_tail(t, freedom) == pytest.approx(p, rel=2e-3)
        assert reach(p, freedom) == pytest.approx(t, rel=1e-3)
    assert two_sided_tail(0, 3) == 1
    assert two_sided_tail(float("inf"), 3) == 0
    assert reach(1, 3) == 0


def test_few_series_say_nothing() -> None:
    chance = random.Random(1)
    assert between(cells(chance, SERIES_LEAST - 1, each=40)) is None
    assert between([]) is None
    assert between(cells(chance, SERIES_LEAST)) is not None


def test_what_is_common_and_how_far_apart_the_rest_is() -> None:
    found = known(cells(random.Random(2), 12, 8, by=0.2))
    assert found.common.value == pytest.approx(0.2, abs=0.03)
    assert found.common.low is not None
    assert found.common.high is not None
    assert found.common.low < 0.2 < found.common.high
    assert found.spread == pytest.approx(0.03, rel=0.5)
    assert found.series == 20
    assert found.has_floors
    assert not found.is_apart


def test_a_few_that_changed_move_neither_what_is_common_nor_the_spread_far() -> None:
    usual = cells(random.Random(3), 14)
    changed = [replace(one, shift=one.shift + 1) if one.series in {"0", "1"} else one for one in usual]
    before, after = known(usual), known(changed)
    assert after.common.value == pytest.approx(before.common.value, abs=0.02)
    assert before.spread <= after.spread < 2 * before.spread


def test_what_all_layers_do_and_no_floor_is_told_and_not_taken_for_the_machines() -> None:
    """A library that all layers share became slower by a fifth."""
    chance = random.Random(4)
    slower = [replace(one, shift=one.shift + 0.2) if not one.is_floor else one for one in cells(chance, 10, 5)]
    found = known(slower)
    assert found.is_apart
    assert found.common.value == pytest.approx(0, abs=0.05)
    assert found.layers is not None
    assert found.layers.value == pytest.approx(0.2, abs=0.05)
    assert found.spread < 0.06
    assert all(abs(one.shift - found.common.value) > 2 * found.error for one in slower if not one.is_floor)


def test_without_floors_nothing_tells_the_machine_s_part() -> None:
    chance = random.Random(5)
    assert not known(cells(chance, 10)).has_floors
    assert not known(cells(chance, 3, 4)).has_floors  # the rank sum of 3 and 4 never falls below 5 %
    assert known(cells(chance, 4, 4)).has_floors


def test_launches_that_are_noisy_explain_no_drift_away() -> None:
    """Most cells tell nothing; the few that are precise moved by very different amounts."""
    chance = random.Random(6)
    found = [
        CellMove(
            series=str(number),
            is_floor=False,
            shift=0.8 + chance.gauss(0, 0.4),
            error=0.01 if at == 0 else 2.0,
        )
        for number in range(12)
        for at in range(3)
    ]
    assert known(found).spread > 0.2


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.floats(-2, 2), st.floats(0, 0.5)), min_size=5, max_size=30)
)
def test_exchanged_campaigns_give_the_mirror_image(seen: list[tuple[int, bool, float, float]]) -> None:
    """To the last bit."""
    there = [
        CellMove(series=f"{number} {is_floor}", is_floor=is_floor, shift=shift, error=error)
        for number, is_floor, shift, error in seen
    ]
    first, second = between(there), between([replace(one, shift=-one.shift) for one in there])
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert second.common.value == -first.common.value
        assert (second.spread, second.freedom, second.is_apart) == (first.spread, first.freedom, first.is_apart)


@pytest.mark.parametrize(("series", "each"), [(5, 1), (6, 3), (12, 4)])
def test_drift_alone_is_called_a_change_no_more_often_than_it_says(series: int, each: int) -> None:
    """Two hundred pairs of campaigns; cells of a series drift together, which is the worst that they can do."""
    chance, far, of = random.Random(series), 0, 0
    for _ in range(200):
        seen = cells(chance, series, each=each, by=0.1)
        drift = known(seen)
        for one in seen:
            away = abs(one.shift - drift.common.value) / sqrt(drift.error**2 + one.error**2)
            far += two_sided_tail(away, drift.freedom) <= 0.05
            of += 1
    assert far / of <= 0.05


def _moves(count: int, chance: random.Random) -> list[CellMove]:
    return [
        CellMove(
            series=chance.choice("abcde"), is_floor=False, shift=chance.choice([chance.gauss(0, 0.1), 0.05]), error=0
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_spread_is_that_of_all_pairs(seed: int) -> None:
    """Counted without making the pairs, the quartile is that of the pairs."""
    chance = random.Random(seed)
    groups = [_moves(chance.randint(1, 30), chance) for _ in range(1 + seed % 2)]
    apart = sorted(
        abs(one.shift - other.shift)
        for cells in groups
        for one, other in combinations(cells, 2)
        if one.series != other.series
    )
    quartile = apart[(len(apart) - 1) // 4] if apart else 0.0
    assert spread_of(groups) == pytest.approx(quartile / NormalDist().inv_cdf(0.625) / sqrt(2), rel=1e-12)


def test_the_spread_of_many_cells_takes_little_memory() -> None:
    """Four thousand cells have eight million pairs."""
    cells = _moves(4000, random.Random(1))
    tracemalloc.start()
    spread_of([cells])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000
