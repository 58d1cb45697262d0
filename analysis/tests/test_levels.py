# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons of launches that may be on two levels, and the scatter by which levels are suspected."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma
from scipy.special import polygamma as trigamma
from scipy.stats import mannwhitneyu

from cadge_analysis.stats.inference.levels import Levels, levels_of
from cadge_analysis.stats.inference.modes import may_have_two_levels, scatter_within
from cadge_analysis.stats.inference.scatter import Scatter, polygamma, scatter_of

SIDE = st.lists(st.floats(-1, 1).map(lambda value: round(value, 2)), min_size=9, max_size=9)
FAST = (0.0, 0.01, -0.01, 0.02, -0.02, 0.03)
SLOW = (0.26, 0.27, 0.25)


@given(SIDE, SIDE, st.booleans(), st.booleans(), st.sampled_from([0.2, 0.05, 0.01, 0.001]))
def test_interval_and_p_say_the_same(
    ours: list[float], base: list[float], cut: bool, base_cut: bool, level: float
) -> None:
    """Also with ties and zeros, which count against a finding."""
    one = Levels(tuple(ours), tuple(base), (cut, base_cut))
    ends, within = one.interval(level), (-0.3, 0.3)
    assert (ends is not None and (ends[0] > 0 or ends[1] < 0)) == (one.p_value() <= level)
    inside = ends is not None and within[0] < ends[0] and ends[1] < within[1]
    assert inside == (one.p_outside(within) <= level)
    back = Levels(tuple(base), tuple(ours), (base_cut, cut))
    assert back.p_value() == one.p_value()
    assert back.p_not_below() == one.p_not_above()


def test_each_level_is_compared_by_itself() -> None:
    ours = tuple(one - 0.045 for one in (*FAST, 0.04, 0.05, 0.015))
    found = Levels(ours, (*FAST, *SLOW), (False, True))
    theirs = max(mannwhitneyu(ours, side, alternative="less", method="exact").pvalue for side in (FAST, SLOW))
    assert found.p_not_below() == pytest.approx(theirs)
    same = Levels((*FAST, 0.04, 0.05, 0.015), (*FAST, *SLOW), (False, True))
    assert same.p_value() > 0.3, "as fast as the fast level"
    assert Levels((*FAST, *SLOW), (*FAST, *SLOW), (True, True)).p_value() == 1


def test_where_no_launch_reaches_the_other_side_all_agree() -> None:
    far = Levels((1.0, 1.1) * 4 + (1.0,), (*FAST, *SLOW), (True, True))
    assert far.p_value() == 2 / 512
    assert far.interval(2 / 512) == pytest.approx((1.0 - 0.27, 1.1 + 0.02))
    assert far.interval(0.001) is None


def test_levels_are_suspected_by_how_other_launches_scatter() -> None:
    """Two launches of nine are not enough to see that by themselves."""
    chance, seen, alone = random.Random(1), 0, 0
    for _ in range(200):
        plain = [[chance.gauss(0, 0.05) for _ in range(9)] for _ in range(20)]
        side = [chance.gauss(0, 0.05) + (0.26 if at > 1 else 0) for at in range(9)]
        seen += may_have_two_levels(side, scatter_within(plain))
        alone += may_have_two_levels(side)
    assert seen >= 190
    assert alone <= 150


def test_differences_alone_are_decided_where_all_agree() -> None:
    ours = [0.1 * at for at in range(9)]
    base = [one + (0.5 if at % 2 else 0.0) for at, one in enumerate(ours)]
    found = levels_of(ours, base, Scatter())
    assert found is not None
    assert found.are_cut == (False, False)
    assert found.p_value() == 1, "some differences are zero"
    assert found.interval(2 / 512) == pytest.approx((-0.5, 0.0))
    apart = levels_of([one - 0.1 for one in ours], base, Scatter())
    assert apart is not None
    assert apart.p_value() == 2 / 512
    assert apart.p_not_below(-0.1) == 1
    assert apart.interval(0.001) is None
    assert levels_of(FAST, FAST, Scatter()) is None, "fewer than nine"


@pytest.mark.parametrize("freedom", [2, 4, 10])
def test_the_common_variance_is_found(freedom: int) -> None:
    """Inverse chi-squares about 0.04, each seen in seven degrees of freedom."""
    chance, known = random.Random(freedom), []
    for _ in range(4000):
        variance = 0.04 * freedom / (2 * chance.gammavariate(freedom / 2, 1))
        known.append((variance * 2 * chance.gammavariate(3.5, 1) / 7, 7))
    found = scatter_of(known)
    assert found.common == pytest.approx(0.04, rel=0.1)
    assert found.freedom == pytest.approx(freedom, rel=0.15)
    assert scatter_of(known[:5]) == Scatter()
    assert scatter_of([(0.04, 7)] * 20).freedom == pytest.approx(100)


@pytest.mark.parametrize("x", [0.01, 0.5, 1, 4.5, 30, 5e5])
def test_digamma_and_trigamma_are_those_of_scipy(x: float) -> None:
    assert polygamma(x) == pytest.approx((float(digamma(x)), float(trigamma(1, x))), rel=1e-6)
