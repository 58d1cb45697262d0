# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts on families of shifts: what counts as different, the same, or neither; sides exchanged; false alarms."""

from __future__ import annotations

import random
from typing import Literal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.shift import paired, unpaired
from cadge_analysis.stats.inference.verdict import IntervalVerdict, Verdict, adjusted, bounds, judge

Better = Literal["low", "high"]
OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}


def shift(ratio: float, spread: float, launches: int = 9) -> ShiftEstimate:
    """One whose launches lie evenly between the ratio times and divided by (1 + spread)."""
    span = [2 * i / (launches - 1) - 1 if launches > 1 else 0.0 for i in range(launches)]
    found = paired(
        {str(i): 1.0 for i in range(launches)}, {str(i): ratio * (1 + spread) ** one for i, one in enumerate(span)}
    )
    assert found is not None
    return ShiftEstimate(found)


def alone(one: ShiftEstimate, better: Better = "low") -> IntervalVerdict:
    [judged] = judge([(one, better)], 0.05)
    return judged


def test_adjusted_as_by_hand() -> None:
    assert adjusted([0.01, 0.04, 0.02, 0.9]) == pytest.approx([0.01 * 4, 0.04 * 4 / 3, 0.02 * 4 / 2, 0.9])
    assert adjusted([]) == []


def test_four_verdicts() -> None:
    assert alone(shift(1.5, 0.1)).verdict is Verdict.SLOWER
    assert alone(shift(1.5, 0.1), "high").verdict is Verdict.FASTER
    assert alone(shift(0.8, 0.1)).verdict is Verdict.FASTER
    assert alone(shift(1.01, 0.02)).verdict is Verdict.SAME
    unsure = alone(shift(1.02, 0.5))
    assert (unsure.verdict, unsure.more) == (Verdict.UNKNOWN, None)


def test_what_is_surely_different_and_within_the_margin_is_the_same() -> None:
    assert alone(shift(1.03, 0.005)).verdict is Verdict.SAME


def test_the_p_of_no_difference_does_not_decide_a_verdict() -> None:
    """Findings of the same raise the level at which a difference is read; the p does not count them."""
    same, slower = shift(1.0, 0.01), shift(1.5, 0.1, launches=7)
    judged = judge([(slower, "low"), *[(same, "low")] * 19], 0.05)
    assert [one.verdict for one in judged] == [Verdict.SLOWER, *[Verdict.SAME] * 19]
    assert judged[0].p > 0.05
    assert judge([(shift(1.03, 0.005), "low")], 0.05)[0].p < 0.05  # and it is the same


def test_few_launches_decide_nothing() -> None:
    """Three that agree are no evidence, and no interval of theirs covers 95 %."""
    for one in (shift(3.0, 0.0, launches=3), shift(1.0, 0.0, launches=3)):
        judged = alone(one)
        assert judged.verdict is Verdict.UNKNOWN
        assert judged.more == 3


def test_among_many_more_is_asked_of_each() -> None:
    """Nine that agree stand alone; among two hundred without a difference they do not."""
    surely, nothing = shift(2.0, 0.01), shift(1.001, 0.3)
    assert judge([(surely, "low")], 0.05)[0].verdict is Verdict.SLOWER
    judged = judge([(surely, "low"), *[(nothing, "low")] * 199], 0.05)
    assert judged[0].verdict is Verdict.UNKNOWN
    assert judged[0].more is not None


def test_the_same_stands_up_to_the_family_as_well() -> None:
    """Nine that all lie within the margin stand alone; among two hundred of which nothing is known they do not."""
    surely, nothing = shift(1.01, 0.02), shift(1.001, 0.3)
    assert judge([(surely, "low")], 0.05)[0].verdict is Verdict.SAME
    assert judge([(surely, "low"), *[(nothing, "low")] * 199], 0.05)[0].verdict is Verdict.UNKNOWN
    assert {one.verdict for one in judge([(surely, "low")] * 200, 0.05)} == {Verdict.SAME}


@example([1.0, 1.0], [0.75, 0.75], 0.5, False, ((0.0, -0.4), 0.0))
@given(
    st.lists(st.floats(0.5, 2), min_size=1, max_size=9),
    st.lists(st.floats(0.5, 2), min_size=1, max_size=9),
    st.floats(0.0005, 0.5),
    st.booleans(),
    st.sampled_from([((0.0,), 0.0), ((0.03,), 0.02), ((0.0, 0.1), 0.01), ((0.0, -0.4), 0.0)]),
)
def test_an_interval_says_what_p_says(
    first: list[float], second: list[float], level: float, is_paired: bool, drift: tuple[tuple[float, ...], float]
) -> None:
    """It leaves out zero, or lies within the margin, where the p of that is no larger than its level.

    But for a level that is next to the p in its last digit: 1 - level is rounded.
    """
    found = paired(dict(enumerate(first)), dict(enumerate(second))) if is_paired else unpaired(first, second)
    assert found is not None
    one = ShiftEstimate(found, *drift, freedom=4.5)
    interval, (low, high) = one.interval(level), bounds(0.05)
    assume(all(abs(p - level) > 1e-12 for p in (one.p, one.p_outside(low, high))))
    assert (interval is not None and not interval[0] <= 0 <= interval[1]) == (one.p <= level)
    assert (interval is not None and low < interval[0] and interval[1] < high) == (one.p_outside(low, high) <= level)


@given(
    st.lists(
        st.tuples(st.floats(0.3, 3), st.floats(0, 0.5), st.integers(1, 14), st.sampled_from(["low", "high"])),
        max_size=8,
    ),
    st.floats(0.01, 0.2),
)
def test_exchanged_sides_give_opposite_verdicts(found: list[tuple[float, float, int, Better]], margin: float) -> None:
    there = [(shift(ratio, spread, launches), better) for ratio, spread, launches, better in found]
    back = [(one.mirrored(), better) for one, better in there]
    for one, other in zip(judge(there, margin), judge(back, margin), strict=True):
        assert other.verdict is OPPOSITE.get(one.verdict, one.verdict)
        assert (other.p, other.more) == (one.p, one.more)


def test_alike_sides_are_hardly_ever_called_different() -> None:
    """Forty cells without a difference, two hundred times: in at most 5 % of these any of them is called different."""
    chance, wrong = random.Random(3), 0
    for _ in range(200):
        cells = []
        for _ in range(40):
            one = paired(
                {str(i): chance.lognormvariate(0, 0.1) for i in range(12)},
                {str(i): chance.lognormvariate(0, 0.1) for i in range(12)},
            )
            assert one is not None
            cells.append(ShiftEstimate(one))
        judged = judge([(one, "low") for one in cells], 0.05)
        wrong += any(one.verdict in OPPOSITE for one in judged)
    assert wrong / 200 <= 0.05 + 3 * 0.0155


@pytest.mark.parametrize(("is_paired", "launches"), [(True, 12), (False, 8)])
def test_launches_that_all_agree_are_asked_to_stand_up_to_the_family(is_paired: bool, launches: int) -> None:
    """Of 100 cells with 3 launches one more each would not do: as many are wanted as then decide, and no fewer do."""

    def cells(number: int) -> list[tuple[ShiftEstimate, Better]]:
        first, second = [1.0 + i / 1e6 for i in range(number)], [2.0 + i / 1e6 for i in range(number)]
        pairs = paired(dict(enumerate(first)), dict(enumerate(second)))
        found = pairs if is_paired else unpaired(first, second)
        alike = paired({1: 1.0}, {1: 1.0})
        assert found is not None
        assert alike is not None
        return [(ShiftEstimate(found), "low"), *[(ShiftEstimate(alike), "low")] * 99]

    [few, *_] = judge(cells(3), 0.05)
    assert few.more == launches - 3
    assert judge(cells(launches - 1), 0.05)[0].verdict is Verdict.UNKNOWN
    assert judge(cells(launches), 0.05)[0].verdict is Verdict.SLOWER
