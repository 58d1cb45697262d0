# SPDX-License-Identifier: BSD-3-Clause
"""Results that signs cannot give are as rare as stated, and the same whichever way they are asked for."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.inference import range_test
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, LookPlan, fixed

DRAWS = 40_000
NINE = fixed(9)


def p_of(
    values: list[float], looks: LookPlan = NINE, look: int = 0, correlation: float = 0.0, switching: float = 0.0
) -> float:
    fewer = min(sum(value <= 0 for value in values), sum(value >= 0 for value in values))
    away = range_test.stretch(values, max(min(values), -max(values)), correlation=correlation)
    return looks.p(look, fewer, stretch=away, correlation=correlation, switching=switching)


def uniform(rng: random.Random) -> float:
    return rng.uniform(-1, 1)


def normal(rng: random.Random) -> float:
    return rng.gauss(0, 1)


def uneven(rng: random.Random) -> float:
    """Launches whose spread differs."""
    return rng.gauss(0, 1) * rng.choice((0.1, 1, 3))


@pytest.mark.parametrize("draw", [uniform, normal, uneven])
@pytest.mark.parametrize("launches", [9, 12])
@pytest.mark.first(1)
def test_wrong_results_are_as_rare_as_stated(draw: Callable[[random.Random], float], launches: int) -> None:
    rng = random.Random(12)
    p_values = [p_of([draw(rng) for _ in range(launches)], fixed(launches)) for _ in range(DRAWS)]
    for level in (0.05, 0.01, 0.002):
        wrong = sum(p <= level for p in p_values) / DRAWS
        assert wrong <= level + 3 * (level / DRAWS) ** 0.5


def test_it_is_exact_for_even_distributions() -> None:
    rng = random.Random(13)
    wrong = sum(p_of([uniform(rng) for _ in range(9)]) <= 0.003 for _ in range(DRAWS))
    assert wrong / DRAWS == pytest.approx(0.003, abs=0.0008)


def test_over_all_looks_wrong_results_are_as_rare_as_stated() -> None:
    """Also where the first looks say nothing by signs: 0.2 % over four looks."""
    rng = random.Random(14)
    wrong = 0
    for _ in range(DRAWS // 4):
        values = [normal(rng) for _ in range(30)]
        wrong += any(p_of(values[:n], FOUR_LOOKS, look) <= 0.02 for look, n in enumerate(FOUR_LOOKS.looks))
    assert wrong / (DRAWS // 4) <= 0.02 + 3 * (0.02 / (DRAWS // 4)) ** 0.5


VALUES = st.lists(st.floats(-0.5, 3.0), min_size=9, max_size=9)


@given(
    VALUES,
    st.sampled_from([0.05, 0.004, 0.0005, 1e-6]),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.05, 0.6, 1.0]),
    st.booleans(),
)
def test_the_interval_and_p_say_the_same(
    values: list[float], level: float, correlation: float, switching: float, four: bool
) -> None:
    looks = FOUR_LOOKS if four else fixed(9)
    found = looks.interval(values, 0, level, correlation=correlation, switching=switching)
    assert found is not None or switching > 0
    p = p_of(values, looks, correlation=correlation, switching=switching)
    if abs(p / level - 1) > 1e-4:
        assert (found is not None and (found[0] > 0 or found[1] < 0)) == (p <= level)


@given(VALUES)
def test_it_never_says_less_than_signs(values: list[float]) -> None:
    fewer = min(sum(value <= 0 for value in values), sum(value >= 0 for value in values))
    assert p_of(values) <= fixed(9).p(0, fewer) * (1 + 1e-12)
    if fewer:
        assert p_of(values) == fixed(9).p(0, fewer)


def test_too_few_launches_say_nothing_new() -> None:
    assert range_test.factor(8, 100.0) == 1.0
    assert range_test.distance_needed(8, 0.001) is None
    assert fixed(8).interval([1.0] * 8, 0, 0.001) is None
    assert fixed(9).interval([1.0, 1.1, 1.2] * 3, 0, 0.001) is not None
    assert p_of([1.0] * 8, fixed(8)) == 2 / 256


def test_where_all_switch_signs_alone_speak() -> None:
    far = [1.0, 1.2, 1.1, 1.3, 1.0, 1.1, 1.2, 1.1, 1.0]
    assert p_of(far, switching=1.0) == 2 / 512
    assert range_test.distance_needed(9, 0.003, switching=1.0) is None
    assert 2 / 512 * 0.1 < p_of(far, switching=0.1) < 2 / 512 * 0.15
    assert range_test.distance_needed(9, 2 / 512 * 0.1, switching=0.1) is None


def test_the_steps_of_a_histogram_are_no_levels() -> None:
    assert not range_test.has_two_levels([0.004] * 5 + [0.005] * 4)
    assert range_test.has_two_levels([0.004] * 5 + [0.008] * 4)
    assert not range_test.has_two_levels([0.0] * 4 + [1.0] * 4), "of eight nobody knows"


def test_values_that_are_alike_are_not_infinitely_sure() -> None:
    """Histograms hold three digits: what looks alike need not be."""
    assert p_of([0.004] * 9) == pytest.approx(2 / 512 / 3**8)


def test_correlation_takes_much_away() -> None:
    values = [1.0, 1.2, 1.1, 1.3, 1.0, 1.1, 1.2, 1.1, 1.0]
    assert p_of(values) < p_of(values, correlation=0.1) < p_of(values, correlation=0.5)
