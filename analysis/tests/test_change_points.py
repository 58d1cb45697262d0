# SPDX-License-Identifier: BSD-3-Clause
"""Change points: by hand, by what must not matter, and by how often chance is taken for a change."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadge_analysis.stats.inference.change_points import LEVEL, change_points, cuts, least_p, needed


def apart(values: list[float], at: int, end: int) -> float:
    """Return the statistic as the paper writes it (Matteson and James 2014, equations 6 and 7), with exponent 1."""
    x, y = values[:at], values[at:end]
    m, n = len(x), len(y)
    across = 2 / (m * n) * sum(abs(a - b) for a in x for b in y)
    within_x = sum(abs(a - b) for i, a in enumerate(x) for b in x[i + 1 :]) / (m * (m - 1) / 2)
    within_y = sum(abs(a - b) for i, a in enumerate(y) for b in y[i + 1 :]) / (n * (n - 1) / 2)
    return m * n / (m + n) * (across - within_x - within_y)


def farthest(values: list[float]) -> tuple[float, int]:
    found = [(apart(values, at, end), at) for at in range(2, len(values) - 1) for end in range(at + 2, len(values) + 1)]
    return max(found, key=lambda one: one[0])


def test_the_first_cut_is_the_paper_s() -> None:
    random = np.random.default_rng(5)
    for _ in range(30):
        values = random.normal(size=11)
        score, at = farthest(values.tolist())
        assert score > 0
        assert next(cuts(values, 20)).at == at


def test_p_of_a_clean_step_is_that_of_all_orders() -> None:
    """Of three and three equal values 2 of the 20 orders are as far apart as they can be."""
    assert least_p(6, 3) == pytest.approx(2 / 20)
    values = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    best = farthest(values)[0]
    orders = [farthest([values[i] for i in order])[0] for order in permutations(range(6))]
    exact = sum(one >= best - 1e-9 for one in orders) / len(orders)
    assert exact == pytest.approx(0.1)
    assert next(cuts(np.array(values), 99_999)).p == pytest.approx(exact, abs=0.06)  # ends at the tenth as far


def test_so_many_are_needed() -> None:
    assert (needed(0.01), needed(0.05)) == (10, 8)
    assert least_p(needed(LEVEL), needed(LEVEL) // 2) <= LEVEL < least_p(needed(LEVEL) - 1, needed(LEVEL) // 2)
    assert change_points(np.array([0.0] * 4 + [9.0] * 5)) == ()
    assert [one.at for one in change_points(np.array([0.0] * 5 + [9.0] * 5))] == [5]


def test_two_changes_are_found_and_a_lone_newest_value_is_none() -> None:
    noise = np.random.default_rng(2).normal(size=30) * 0.1
    there_and_back = np.r_[np.zeros(10), np.ones(10), np.zeros(10)] + noise
    assert [one.at for one in change_points(there_and_back)] == [10, 20]
    assert change_points(np.r_[noise[:20], 50.0]) == ()
    assert change_points(np.zeros(20)) == ()


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(10, 13),
    st.floats(-100, 100).map(lambda x: round(x, 3)),
    st.floats(0.01, 100),
)
def test_units_and_direction_do_not_matter(seed: int, n: int, shift: float, scale: float) -> None:
    values = np.random.default_rng(seed).normal(size=n) + 4.0 * (np.arange(n) >= n // 2)
    found = [one.at for one in change_points(values)]
    assert [one.at for one in change_points(values * scale + shift)] == found
    assert [one.at for one in change_points(-values)] == found
    assert change_points(values) == change_points(values)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(16, 20), st.data())
def test_a_step_that_no_noise_reaches_is_found_where_it_is(seed: int, n: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(5, n - 5))
    values = np.random.default_rng(seed).uniform(size=n) + 20.0 * (np.arange(n) >= at)
    assert at in [one.at for one in change_points(values)]


def test_chance_is_taken_for_a_change_no_more_often_than_is_said() -> None:
    """Of 1,000 series without a change 10 are expected; 24 or more have a chance of 1 in 10,000."""
    random = np.random.default_rng(17)
    assert sum(bool(change_points(random.normal(size=12))) for _ in range(1000)) < 24
