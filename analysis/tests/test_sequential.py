# SPDX-License-Identifier: BSD-3-Clause
"""Looks fixed beforehand: exact rates against all walks and against simulation, nested limits, intervals that cover."""

from __future__ import annotations

import random
from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cadge_analysis.stats.inference import sequential, serial, shift, signs
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, LookPlan, fixed


def autoregression(chance: random.Random, rounds: int, correlation: float) -> list[float]:
    values = [chance.gauss(0, 1)]
    for _ in range(rounds - 1):
        values.append(correlation * values[-1] + (1 - correlation**2) ** 0.5 * chance.gauss(0, 1))
    return values


def fewer_of(values: list[float]) -> int:
    above = sum(value > 0 for value in values)
    return min(above, len(values) - above)


@pytest.mark.parametrize("one_sided", [False, True])
def test_the_walk_is_every_walk(one_sided: bool) -> None:
    """All 2^10 walks, one by one."""
    looks, fewest = (4, 7, 10), (0, 1, 2)
    counts = [0, 0, 0]
    for walk in product((0, 1), repeat=10):
        for at, (look, limit) in enumerate(zip(looks, fewest, strict=True)):
            above = sum(walk[:look])
            if look - above <= limit or (above <= limit and not one_sided):
                counts[at] += 1
                break
    assert signs.leaves(looks, fewest, one_sided=one_sided) == pytest.approx([one / 1024 for one in counts])


def test_one_look_is_the_sign_test() -> None:
    for launches in (1, 6, 9, 30):
        for fewer in range(launches + 1):
            values = [-1.0] * fewer + [1.0] * (launches - fewer)
            against = min(fewer, launches - fewer)
            assert fixed(launches).p(0, against) == pytest.approx(shift.sign_test(values))


def test_known_rates() -> None:
    """The spending that was simulated with 2.6 %, and what looking after each launch costs."""
    assert FOUR_LOOKS.spent((0, 1, 3, 8)) == pytest.approx((0.00391, 0.00439, 0.00504, 0.01226), abs=1e-5)
    assert sum(FOUR_LOOKS.spent((0, 1, 3, 8))) == pytest.approx(0.0256, abs=1e-4)
    assert FOUR_LOOKS.fewest(0.026) == (0, 1, 3, 8)
    assert FOUR_LOOKS.fewest(0.05) == (0, 1, 3, 9)
    assert sum(FOUR_LOOKS.spent((0, 1, 3, 9))) == pytest.approx(0.0498, abs=1e-4)
    assert FOUR_LOOKS.fewest(1e-12) == (-1, -1, -1, -1)
    unspent = LookPlan((9, 12, 18, 30), (1.0, 1.0, 1.0, 1.0))
    each = tuple(signs.most_fewer(look, 0.05) for look in unspent.looks)
    assert sum(unspent.spent(each)) == pytest.approx(0.0954, abs=1e-4)


@example(0.0625, 1, 1, 0.2)  # here a larger scale spends less
@given(st.floats(1e-6, 0.2), st.integers(0, 3), st.integers(0, 14), st.sampled_from([0.0, 0.2]))
def test_p_and_limits_say_the_same(level: float, look: int, fewer: int, correlation: float) -> None:
    limit = FOUR_LOOKS.fewest(level, correlation=correlation)[look]
    assert (FOUR_LOOKS.p(look, fewer, correlation=correlation) <= level) == (fewer <= limit)
    assert sum(FOUR_LOOKS.spent(FOUR_LOOKS.fewest(level, correlation=correlation), correlation=correlation)) <= level


def test_one_sided_p_are_no_more_than_two_sided() -> None:
    for look, launches in enumerate(FOUR_LOOKS.looks):
        for fewer in range((launches + 1) // 2):
            one, two = FOUR_LOOKS.p(look, fewer, one_sided=True), FOUR_LOOKS.p(look, fewer)
            assert two / 2 - 1e-12 <= one <= two


def test_limits_widen_with_the_error_and_narrow_with_the_correlation() -> None:
    levels = [0.001, 0.01, 0.02, 0.03, 0.05, 0.1]
    for one, other in pairwise(levels):
        assert all(a <= b for a, b in zip(FOUR_LOOKS.fewest(one), FOUR_LOOKS.fewest(other), strict=True))
    plain, correlated = FOUR_LOOKS.fewest(0.05), FOUR_LOOKS.fewest(0.05, correlation=0.3)
    assert correlated == (-1, 0, 2, 7)
    assert all(a <= b for a, b in zip(correlated, plain, strict=True))


def test_intervals_cover_at_all_looks_at_once() -> None:
    """Over 1,500 campaigns, an interval at any of the looks misses the median no more often than is spent."""
    chance = random.Random(3)
    limits = FOUR_LOOKS.fewest(0.05)
    missed = 0
    for _ in range(1500):
        values = [chance.expovariate(1) - 0.6931471805599453 for _ in range(30)]  # skewed, with median 0
        found = [
            sequential.repeated_interval(values[:look], limit)
            for look, limit in zip(FOUR_LOOKS.looks, limits, strict=True)
        ]
        missed += any(one is not None and not one[0] <= 0 <= one[1] for one in found)
    assert missed / 1500 == pytest.approx(0.0498, abs=3 * 0.0056)


@pytest.mark.parametrize("correlation", [0.1, 0.3, 0.5])
def test_correlation_makes_as_many_false_alarms_as_computed(correlation: float) -> None:
    """4,000 campaigns: the rate of nine launches at 5 %, of four looks, and of four looks that allow for it."""
    chance = random.Random(11)
    nine = four = allowed = 0
    plain, careful = (0, 1, 3, 8), FOUR_LOOKS.fewest(0.05, correlation=correlation)
    for _ in range(4000):
        values = autoregression(chance, 30, correlation)
        seen = [fewer_of(values[:look]) for look in FOUR_LOOKS.looks]
        nine += seen[0] <= 1
        four += any(a <= b for a, b in zip(seen, plain, strict=True))
        allowed += any(a <= b for a, b in zip(seen, careful, strict=True))
    expected = signs.leaves((9,), (1,), correlation=correlation)[0]
    assert nine / 4000 == pytest.approx(expected, abs=0.015)
    assert four / 4000 == pytest.approx(sum(FOUR_LOOKS.spent(plain, correlation=correlation)), abs=0.018)
    assert allowed / 4000 <= 0.05 + 0.01
    if correlation == 0.3:
        assert expected == pytest.approx(0.096, abs=0.003)


@pytest.mark.parametrize("rounds", [9, 30])
@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_the_correlation_of_a_campaign_is_found(rounds: int, correlation: float) -> None:
    chance = random.Random(5)
    found = serial.serial_correlation((autoregression(chance, rounds, correlation) for _ in range(600)), baselines=600)
    assert found is not None
    assert found.correlation == pytest.approx(correlation, abs=0.06)
    assert found.error < 0.03
    if correlation == 0:
        assert found.used == 0
    else:
        assert found.correlation + found.error <= found.used < found.correlation + found.error + 0.011
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
    for looks, levels in (((), ()), ((9, 9), (1.0, 1.0)), ((9, 12), (1.0,)), ((9,), (0.0,))):
        with pytest.raises(ValueError, match="look"):
            LookPlan(looks, levels)
    assert [FOUR_LOOKS.reached(n) for n in (0, 8, 9, 11, 12, 29, 30, 99)] == [None, None, 0, 0, 1, 2, 3, 3]
