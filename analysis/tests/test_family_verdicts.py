# SPDX-License-Identifier: BSD-3-Clause
"""Whole families of paired comparisons: how often something is told apart that is not, whatever is compared."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import exp

import pytest

from cadge_analysis.stats import intervals
from cadge_analysis.stats.family_verdicts import judge_families
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.pairing import PairedRatios, Rounds, paired

ROUNDS, MEMBERS, FAMILIES = 9, 12, 300


@dataclass(frozen=True)
class World:
    """Members and what they are beside, round by round, all the same but for `shifted`, which are a fifth slower."""

    base: Rounds
    members: tuple[Rounds, ...]

    def compared(self) -> dict[int, PairedRatios]:
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


@pytest.mark.first(2)
@pytest.mark.parametrize(("launches", "share"), [(6, 1.0), (9, 1.0), (9, 0.5), (12, 1.0)])
def test_launches_on_two_levels_are_no_difference(launches: int, share: float) -> None:
    """With all launches on one level by chance a comparison looks as sure as can be; before, 75 % of these families
    of six launches had such a verdict, and 16 % of nine."""
    chance = random.Random(4)
    wrong, seen = 0, 0
    for _ in range(FAMILIES):
        base = {RoundKey(k): exp(chance.gauss(0, 0.003)) for k in range(launches)}
        members = {
            at: {
                key: exp((chance.choice((-0.05, 0.05)) if at < 40 * share else 0.0) + chance.gauss(0, 0.004))
                for key in base
            }
            for at in range(40)
        }
        found, _ = judge_families({"one": {at: paired(one, base) for at, one in members.items()}}, 0.0)
        verdicts = found["one"].verdicts
        wrong += any(one.differs for one in verdicts.values())
        seen += sum(verdicts[at].two_levels for at in range(round(40 * share)))
    assert wrong / FAMILIES <= 0.05
    assert (seen / FAMILIES / 40 / share > 0.7) == (launches >= 9)


def test_what_differs_is_told_although_others_switch() -> None:
    """And what switches is told where each of its levels differs."""
    chance = random.Random(8)
    base = {RoundKey(k): exp(chance.gauss(0, 0.003)) for k in range(9)}
    members = {at: {key: 1.2 * exp(chance.gauss(0, 0.004)) for key in base} for at in range(6)}
    members |= {at: {key: exp(chance.gauss(0, 0.02)) for key in base} for at in range(6, 36)}
    members |= {
        at: {RoundKey(k): (1.2 if k % 2 else 1.3) * exp(chance.gauss(0, 0.003)) for k in range(9)}
        for at in range(36, 40)
    }
    found, _ = judge_families({"one": {at: paired(one, base) for at, one in members.items()}}, 0.0)
    verdicts = found["one"].verdicts
    on_two = {at for at, one in verdicts.items() if one.two_levels}
    assert on_two >= {36, 37, 38, 39}
    assert len(on_two) <= 8
    assert [at for at, one in verdicts.items() if one.differs] == [0, 1, 2, 3, 4, 5, 36, 37, 38, 39]
    assert all(verdicts[at].p <= 2 / 512 for at in range(36, 40))


def test_what_both_sides_do_alike_cancels() -> None:
    """The machine switches, or drifts, and both layers with it; a side that switches by itself is seen."""
    chance = random.Random(6)
    switching = [1.0 if k % 2 else 1.5 for k in range(9)]
    for levels in ([1 + k / 8 for k in range(9)], switching):
        sides = [{RoundKey(k): value * exp(chance.gauss(0, 0.01)) for k, value in enumerate(levels)} for _ in range(2)]
        assert not paired(*sides).two_levels
    alone = {RoundKey(k): exp(chance.gauss(0, 0.01)) for k in range(9)}
    assert paired(sides[0], alone).two_levels
    assert paired(alone, sides[0]).two_levels
    eight = [{key: side[key] for key in list(side)[:8]} for side in (alone, sides[0])]
    assert not paired(*eight).two_levels


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
    """Nine rounds that agree, the smallest near zero, stand alone among two, and not among fifteen."""
    up = {RoundKey(k): 1.002 + (k * 4 % 9) / 100 for k in range(ROUNDS)}
    flat = {RoundKey(k): 1.0 for k in range(ROUNDS)}
    noise = {RoundKey(k): 1.0 + (-1) ** k * k / 100 for k in range(ROUNDS)}
    few = {("few", at): paired(one, flat) for at, one in enumerate((up, noise))}
    many = {("many", at): paired(one, flat) for at, one in enumerate((up, *[noise] * 14))}
    found, _ = judge_families({"few": few, "many": many}, 0.0)
    assert [found[name].verdicts[name, 0].differs for name in ("few", "many")] == [True, False]
    assert found["few"].verdicts["few", 0].p == found["many"].verdicts["many", 0].p <= 2 / 2**ROUNDS


def test_there_is_nothing_without_common_rounds() -> None:
    found, whole = judge_families({"none": {0: paired({RoundKey(0): 1.0}, {RoundKey(1): 1.0})}, "empty": {}}, 0.05)
    assert whole is None
    assert not found["none"].verdicts[0].differs
    assert not found["empty"].verdicts
