# SPDX-License-Identifier: BSD-3-Clause
"""Looks fixed beforehand: their shares of the error, intervals that cover, and rounds that follow one another."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.inference import serial, signed_rank
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, LookPlan, fixed


def autoregression(chance: random.Random, rounds: int, correlation: float) -> list[float]:
    values = [chance.gauss(0, 1)]
    for _ in range(rounds - 1):
        values.append(correlation * values[-1] + (1 - correlation**2) ** 0.5 * chance.gauss(0, 1))
    return values


@given(st.lists(st.floats(-1, 1), min_size=30, max_size=30), st.integers(0, 3), st.sampled_from([0.2, 0.05, 0.01]))
def test_p_and_interval_say_the_same_at_each_look(values: list[float], look: int, level: float) -> None:
    seen = values[: FOUR_LOOKS.looks[look]]
    ends = FOUR_LOOKS.interval(look, seen, level)
    assert (ends is not None and (ends[0] > 0 or ends[1] < 0)) == (FOUR_LOOKS.p(look, seen) <= level * (1 + 1e-9))


def test_the_error_is_shared() -> None:
    assert sum(FOUR_LOOKS.share(look) for look in range(4)) == pytest.approx(1)
    nine = [1.0] * 9
    assert FOUR_LOOKS.p(0, nine) == pytest.approx(10 * 2 / 512)
    assert fixed(9).p(0, nine) == 2 / 512
    assert [FOUR_LOOKS.launches_needed(look, 0.05) for look in range(4)] == [9, 8, 8, 7]
    assert [FOUR_LOOKS.can_decide(look, 0.05 / 20) for look in range(4)] == [False, True, True, True]
    assert sum(FOUR_LOOKS.attained(look, 0.05) for look in range(4)) == pytest.approx(0.0467, abs=1e-4)


def test_intervals_cover_at_all_looks_at_once() -> None:
    """Over 1,500 campaigns, an interval at any of the looks misses the middle no more often than is shared out."""
    chance = random.Random(3)
    missed = 0
    for _ in range(1500):
        values = [chance.gauss(0, 1) for _ in range(30)]
        found = [FOUR_LOOKS.interval(look, values[:n], 0.05) for look, n in enumerate(FOUR_LOOKS.looks)]
        missed += any(one is not None and not one[0] <= 0 <= one[1] for one in found)
    assert missed / 1500 == pytest.approx(0.037, abs=3 * 0.005)


def test_correlation_is_judged_at_less() -> None:
    """2,000 campaigns of nine launches whose neighbours correlate by 0.3, at the level that is then asked for."""
    chance = random.Random(11)
    level = serial.error_for(0.3, 0.05)
    assert (level, serial.error_for(0.0, 0.05)) == (0.01, 0.05)
    wrong = sum(signed_rank.p_value(autoregression(chance, 9, 0.3)) <= level for _ in range(2000))
    assert wrong / 2000 <= 0.05


@pytest.mark.parametrize("rounds", [9, 30])
@pytest.mark.parametrize("correlation", [0.0, 0.2])
def test_the_correlation_of_a_campaign_is_found(rounds: int, correlation: float) -> None:
    chance = random.Random(5)
    found = serial.serial_correlation((autoregression(chance, rounds, correlation) for _ in range(600)), baselines=600)
    assert found is not None
    assert found.correlation == pytest.approx(correlation, abs=0.06)
    assert found.error < 0.03
    assert found.used == (found.correlation if correlation else 0)
    assert not found.withheld


def test_what_is_too_alike_is_withheld_and_what_says_nothing_is_left_out() -> None:
    chance = random.Random(6)
    drifting = serial.serial_correlation(autoregression(chance, 18, 0.9) for _ in range(100))
    assert drifting is not None
    assert drifting.withheld
    assert serial.serial_correlation([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 2.0]]) is None
    few = serial.serial_correlation(autoregression(chance, 9, 0.0) for _ in range(600))
    assert few is not None
    assert few.error == pytest.approx(1 / 6, rel=0.01)  # one baseline of nine rounds, however many cells
    lone = serial.serial_correlation([[1.0, 2.0, 4.0, 3.0, 5.0, 6.0, 9.0, 7.0, 8.0]])
    assert lone is not None
    assert lone.error == pytest.approx(1 / 3)  # of one cell nothing is known of how far cells lie apart
    ordered = serial.serial_correlation([[float(k) for k in range(12)]])
    assert ordered is not None
    assert ordered.correlation > 0.9


def test_a_plan_is_checked() -> None:
    for looks, parts in (((), ()), ((9, 9), (1.0, 1.0)), ((9, 12), (1.0,)), ((9,), (0.0,))):
        with pytest.raises(ValueError, match="look"):
            LookPlan(looks, parts)
    assert [FOUR_LOOKS.reached(n) for n in (0, 8, 9, 11, 12, 29, 30, 99)] == [None, None, 0, 0, 1, 2, 3, 3]
