# SPDX-License-Identifier: BSD-3-Clause
"""Shifts between two sides: exact small cases, both sides exchanged, and how often intervals and tests are wrong."""

from __future__ import annotations

import random
from itertools import permutations
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from cadge_analysis.stats.inference import shift

VALUES = st.lists(st.floats(1, 1e9), min_size=1, max_size=9)


def test_pairs_are_judged_by_signed_ranks() -> None:
    """Against SciPy's."""
    first = {k: 100.0 + k for k in range(12)}
    second = {k: (100.0 + k) * (1.05 + 0.01 * (k - 3) ** 2 * (-1) ** k) for k in range(12)}
    found = shift.paired(first, second)
    assert found is not None
    logs = [log(second[k] / first[k]) for k in range(12)]
    assert found.p == pytest.approx(wilcoxon(logs, method="exact").pvalue)
    assert found.low is not None
    assert found.low < found.log_ratio < found.high  # type: ignore[operator]
    assert found.coverage == pytest.approx(0.9575, abs=1e-4)


@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (2, 3), (4, 3), (3, 4)])
def test_the_rank_sum_counts_every_order(ours: int, theirs: int) -> None:
    """Against all orders, one by one."""
    counts = [0] * (ours * theirs + 1)
    for order in set(permutations("a" * ours + "b" * theirs)):
        counts[sum(x == "a" and y == "b" for i, x in enumerate(order) for y in order[i + 1 :])] += 1
    assert shift._pair_counts(ours, theirs) == tuple(counts)


def test_known_cases_of_the_rank_sum() -> None:
    """Nine against nine: p = 2/C(18, 9) where all are apart; tables give rank 18 of 81 for 95 %."""
    apart = shift.unpaired([1.0] * 9, [2.0] * 9)
    assert apart is not None
    assert apart.p == pytest.approx(2 / 48620)
    assert shift.rank_of_pairs(9, 9)[0] == 18
    assert shift.rank_of_pairs(2, 2) == (0, 0.0)
    few = shift.unpaired([1.0, 2.0], [3.0, 4.0])
    assert few is not None
    assert (few.low, few.high) == (None, None)


@given(VALUES, VALUES)
def test_exchanged_sides_give_the_mirror_image(first: list[float], second: list[float]) -> None:
    there, back = shift.unpaired(first, second), shift.unpaired(second, first)
    assert there is not None
    assert back is not None
    assert back == there.mirrored()


@given(st.dictionaries(st.integers(0, 20), st.tuples(st.floats(1, 1e9), st.floats(1, 1e9)), max_size=12))
def test_exchanged_sides_of_pairs(values: dict[int, tuple[float, float]]) -> None:
    first = {key: one for key, (one, _) in values.items()}
    second = {key: other for key, (_, other) in values.items()}
    there, back = shift.paired(first, second), shift.paired(second, first)
    assert (there is None) == (not values)
    assert back == (there.mirrored() if there else None)


@given(VALUES)
def test_a_side_beside_itself_has_no_shift(values: list[float]) -> None:
    same = shift.unpaired(values, values)
    assert same is not None
    assert same.log_ratio == 0
    assert same.p == 1
    assert same.low is None or (same.high is not None and same.low <= 0 <= same.high)
    both = dict(enumerate(values))
    pairs = shift.paired(both, both)
    assert pairs is not None
    assert (pairs.log_ratio, pairs.p) == (0, 1)


def test_a_shift_is_found_where_it_is() -> None:
    chance = random.Random(1)
    first = [chance.lognormvariate(5, 0.1) for _ in range(12)]
    second = [1.2 * chance.lognormvariate(5, 0.1) for _ in range(15)]
    found = shift.unpaired(first, second)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low < log(1.2) < found.high
    assert exp(found.log_ratio) == pytest.approx(1.2, rel=0.15)
    assert found.p < 0.05


def test_intervals_cover_and_tests_err_as_often_as_they_say() -> None:
    """Two thousand comparisons of alike sides: no more than 5 % false alarms, no less than 95 % covered."""
    chance = random.Random(7)
    alarms = covered = 0
    for _ in range(2000):
        one = shift.unpaired(
            [chance.lognormvariate(0, 0.2) for _ in range(7)], [chance.lognormvariate(0, 0.2) for _ in range(9)]
        )
        assert one is not None
        assert one.low is not None
        assert one.high is not None
        alarms += one.p <= 0.05
        covered += one.low <= 0 <= one.high
    # three standard errors of a rate of 5 %
    assert alarms / 2000 <= 0.05 + 3 * 0.0049
    assert covered / 2000 >= 0.95 - 3 * 0.0049


def test_many_launches_go_by_the_normal_distribution() -> None:
    rank, coverage = shift.rank_of_pairs(60, 60)
    assert coverage == pytest.approx(0.95, abs=0.002)
    assert 1350 < rank < 1450
