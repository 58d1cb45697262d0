# SPDX-License-Identifier: BSD-3-Clause
"""Signed ranks against SciPy's and against all signs, intervals that agree with p, and how many launches do."""

from __future__ import annotations

import random
from itertools import product
from math import log, sqrt
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, wilcoxon

from cadge_analysis.stats.inference import families, signed_rank, verdict

SOME = st.lists(st.floats(-1, 1).map(lambda value: round(value, 2)), min_size=1, max_size=20)


@pytest.mark.parametrize("launches", [1, 2, 5, 9, 12, 30, 64, 200])
def test_p_is_that_of_scipy(launches: int) -> None:
    chance = random.Random(launches)
    for shift in (0.0, 0.2, 1.0):
        values = [chance.gauss(shift, 1) for _ in range(launches)]
        method = "exact" if launches <= signed_rank.EXACT_MAX else "approx"
        theirs = wilcoxon(values, method=method, correction=True)
        assert signed_rank.p_value(values) == pytest.approx(theirs.pvalue, rel=1e-9)
        below = wilcoxon(values, method=method, correction=True, alternative="less")
        assert signed_rank.p_not_below(values) == pytest.approx(below.pvalue, rel=1e-9)


def test_the_distribution_is_that_of_all_signs() -> None:
    ranks = range(1, 9)
    sums = [sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign) for signs in product((0, 1), repeat=8)]
    for against in range(37):
        share = sum(one <= against for one in sums) / 256
        assert signed_rank.two_sided(8, against) == pytest.approx(min(1.0, 2 * share))


@given(SOME, st.sampled_from([0.2, 0.05, 0.01, 0.001]))
def test_interval_and_p_say_the_same(values: list[float], level: float) -> None:
    """Also with ties and zeros, which count against a finding."""
    ends = signed_rank.interval(values, level)
    p = signed_rank.p_value(values)
    assert (ends is not None and (ends[0] > 0 or ends[1] < 0)) == (p <= level)
    within = (-0.3, 0.3)
    inside = ends is not None and within[0] < ends[0] and ends[1] < within[1]
    assert inside == (signed_rank.p_outside(values, within) <= level)
    if ends is not None:
        assert ends[0] <= signed_rank.estimate(values) <= ends[1]


@given(SOME)
def test_sides_may_be_exchanged(values: list[float]) -> None:
    back = [-value for value in values]
    assert signed_rank.p_value(values) == signed_rank.p_value(back)
    assert signed_rank.estimate(values) == -signed_rank.estimate(back)
    one, other = signed_rank.interval(values, 0.05), signed_rank.interval(back, 0.05)
    assert one is None or one == (-other[1], -other[0])  # type: ignore[index]


def test_a_worked_example() -> None:
    """Hollander, Wolfe and Chicken, example 3.1: Hamilton depression scale, T+ = 5 of nine patients."""
    scores = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010]
    assert signed_rank.p_not_below(scores) == pytest.approx(0.0195, abs=1e-4)
    assert signed_rank.estimate(scores) == pytest.approx(-0.46, abs=1e-9)
    assert signed_rank.interval(scores, 0.04) == pytest.approx((-0.786, -0.010), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_families_are_those_of_benjamini_and_hochberg(ps: list[float]) -> None:
    adjusted = false_discovery_control(ps, method="bh")
    assert verdict.adjusted(ps) == pytest.approx(adjusted)
    assert families.findings(ps, 0.2) == sum(one <= 0.2 * (1 + 1e-9) for one in adjusted)


def test_so_many_launches_decide_as_often_as_is_said() -> None:
    """Normal differences of which 60 % lie above zero."""
    chance = random.Random(4)
    shift = 0.2533
    share = 0.6399  # how often the sum of two of them is above zero
    launches = signed_rank.launches_to_decide(share, 0.05)
    assert launches is not None
    found = sum(signed_rank.p_value([chance.gauss(shift, 1) for _ in range(launches)]) <= 0.05 for _ in range(400))
    assert found / 400 == pytest.approx(signed_rank.power(launches, share, 0.05), abs=0.06)
    assert signed_rank.power(launches, share, 0.05) == pytest.approx(0.8, abs=0.05)
    assert signed_rank.launches_to_decide(0.5, 0.05) is None
    assert signed_rank.launches_to_decide(0.51, 0.05) is None
    assert signed_rank.power(5, 1.0, 0.05) == 0


@pytest.mark.parametrize(("launches", "level", "shift"), [(9, 0.005, 1.5), (9, 0.05, 0.8), (12, 0.01, 1.2)])
def test_power_of_few_launches_is_what_simulation_finds(launches: int, level: float, shift: float) -> None:
    chance = random.Random(7)
    drawn = ([chance.gauss(shift, 1) for _ in range(launches)] for _ in range(1500))
    found = sum(signed_rank.p_value(one) <= level for one in drawn) / 1500
    assert signed_rank.power(launches, NormalDist().cdf(shift * sqrt(2)), level) == pytest.approx(found, abs=0.06)


def test_power_where_all_have_to_agree() -> None:
    """2 / 2^9 is the one p at this level: each difference lies above zero."""
    shares = [NormalDist().cdf(shift * sqrt(2)) for shift in (1.0, 2.0)]
    found = [signed_rank.power(9, share, 2 / 512) for share in shares]
    assert found == pytest.approx([NormalDist().cdf(1.0) ** 9, NormalDist().cdf(2.0) ** 9], abs=0.06)
    assert signed_rank.power(9, 1.0, 2 / 512) == 1
    assert signed_rank.power(9, 1.0, 2 / 513) == 0


def test_launches_that_agree() -> None:
    assert [signed_rank.launches_needed(0.05 / size) for size in (1, 200, 1000, 8000)] == [6, 13, 16, 19]
    assert signed_rank.interval([log(2)] * 5, 0.05) is None
