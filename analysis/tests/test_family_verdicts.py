# SPDX-License-Identifier: BSD-3-Clause
"""Whole families of paired comparisons: how often something is told apart that is not, whatever is compared."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import exp

import pytest

from cadge_analysis.stats import intervals
from cadge_analysis.stats.family_verdicts import judge_families
from cadge_analysis.stats.pairing import Compared, Rounds, paired

pytestmark = pytest.mark.spare

ROUNDS, MEMBERS, FAMILIES = 9, 12, 300


@dataclass(frozen=True)
class World:
    """Members and what they are beside, round by round, all the same but for `shifted`, which are a fifth slower."""

    base: Rounds
    members: tuple[Rounds, ...]

    def compared(self) -> dict[int, Compared]:
        return {at: paired(one, self.base) for at, one in enumerate(self.members)}


def world(chance: random.Random, *, follow: float = 0.0, shifted: int = 0) -> World:
    """Rounds of a series are alike by `follow` from one to the next."""

    def series(shift: float) -> Rounds:
        state, found = chance.gauss(0, 1), {}
        for k in range(ROUNDS):
            found[k, 0] = exp(0.05 * state + shift)
            state = follow * state + (1 - follow**2) ** 0.5 * chance.gauss(0, 1)
        return found

    return World(series(0.0), tuple(series(0.2 if at < shifted else 0.0) for at in range(MEMBERS)))


def test_a_family_says_less_that_is_wrong_than_its_intervals_do() -> None:
    """Of families in which nothing differs; before, one interval that leaves 1 out was enough."""
    chance = random.Random(1)
    wrong = before = 0
    for _ in range(FAMILIES):
        made = world(chance)
        found, _ = judge_families({"one": made.compared()}, 0.0)
        wrong += any(one.differs for one in found["one"].verdicts.values())
        ratios = [intervals.ratio(one, made.base) for one in made.members]
        before += any(one.low is not None and one.high is not None and (one.low > 1 or one.high < 1) for one in ratios)
    assert wrong / FAMILIES < 0.05
    assert before / FAMILIES > 0.2


def test_what_differs_is_told_all_the_same() -> None:
    chance, told, wrong = random.Random(2), 0, 0
    for _ in range(100):
        found, _ = judge_families({"one": world(chance, shifted=6).compared()}, 0.0)
        differing = {at for at, one in found["one"].verdicts.items() if one.differs}
        told += len(differing & set(range(6)))
        wrong += len(differing - set(range(6)))
    assert told > 0.6 * 600
    assert wrong < 0.05 * told


def test_rounds_that_follow_each_other_are_allowed_for() -> None:
    """By the correlation over all families: at 0.4 a lone cell would be wrong in 13 %."""
    chance, wrong, cells = random.Random(3), 0, 0
    for _ in range(60):
        lone = {at: {0: world(chance, follow=0.4).compared()[0]} for at in range(20)}
        found, whole = judge_families(lone, 0.0)
        assert whole is not None
        wrong += sum(one.verdicts[0].differs for one in found.values())
        cells += len(lone)
    assert wrong / cells < 0.06


def test_one_family_is_judged_without_what_the_others_say_of_its_size() -> None:
    """Nine rounds that agree, the smallest near zero, stand alone among two, and not among twelve."""
    up = {(k, 0): 1.002 + (k * 4 % 9) / 100 for k in range(ROUNDS)}
    flat = {(k, 0): 1.0 for k in range(ROUNDS)}
    noise = {(k, 0): 1.0 + (-1) ** k / 100 for k in range(ROUNDS)}
    few = {("few", at): paired(one, flat) for at, one in enumerate((up, noise))}
    many = {("many", at): paired(one, flat) for at, one in enumerate((up, *[noise] * 11))}
    found, _ = judge_families({"few": few, "many": many}, 0.0)
    assert [found[name].verdicts[name, 0].differs for name in ("few", "many")] == [True, False]
    assert found["few"].verdicts["few", 0].p == found["many"].verdicts["many", 0].p <= 2 / 2**ROUNDS


def test_there_is_nothing_without_common_rounds() -> None:
    found, whole = judge_families({"none": {0: paired({(0, 0): 1.0}, {(1, 0): 1.0})}, "empty": {}}, 0.05)
    assert whole is None
    assert not found["none"].verdicts[0].differs
    assert not found["empty"].verdicts
