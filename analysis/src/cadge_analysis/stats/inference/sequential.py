# SPDX-License-Identifier: BSD-3-Clause
"""Looks at paired launches that are fixed beforehand, with the error spent over them; tests and intervals at each.

A campaign may be looked at after 9, 12, 18 and 30 launches, and end at the first look that decides. The error is spent
over the looks (Lan and DeMets, Biometrika 70, 1983, p. 659), little at first: each look has a nominal level, and all
levels are raised or lowered together, so that what one error allows a larger one allows as well. The rate over all
looks is exact, see signs.py: with .004/.008/.015/.04 a sign test is wrong in 2.56 % of all campaigns. Looking after
each launch from the 9th to the 30th, each time at 5 %, would be wrong in 12.2 %; at these four looks, each at 5 %, in
9.5 % (`LookPlan.spent`).

p at a look is the probability, if there is no difference, that any look of the plan, earlier or later, shows as much as
this one: the smallest error at which the plan would have said so here. The interval at a look holds all shifts that
are not refused there: the two order statistics that the look's limit names. Both hold at all looks at once, so they may
be read at any of them, whatever made the campaign end there (Jennison and Turnbull, Journal of the Royal Statistical
Society B 51, 1989, p. 305: repeated confidence intervals; their Group Sequential Methods with Applications to Clinical
Trials, 2000, chapter 9). What comes after the last look that was reached is not looked at.

Signs alone say the same of a difference of 3 % and of thirty times: nine of nine are p = 0.0039 and no less, and a
family of forty asks for less. How far the launches lie from zero, in units of their own range, says the rest: see
range_test.py. Where all launches of a look lie on one side, each look's nominal level is compared with that p; where
its level is below what signs can say, the result is an interval wider than the launches' range. Results that signs
can give are the same with and without it, since all that it adds lies in what "all on one side" allows already; what it
spends at looks too early for signs is in p, by the sum of their levels.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

from cadge_analysis import messages
from cadge_analysis.stats.inference import range_test
from cadge_analysis.stats.inference.signs import leaves, most_fewer, two_sided

say = partial(messages.say, "stats")

ERROR = 0.05


@dataclass(frozen=True, slots=True)
class LookPlan:
    """After how many launches a campaign is looked at, and the nominal level of each look relative to the others'."""

    looks: tuple[int, ...]
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.looks or len(self.looks) != len(self.levels):
            raise ValueError(say("sequential.one_level_a_look"))
        if self.looks[0] < 1 or any(a >= b for a, b in pairwise(self.looks)) or min(self.levels) <= 0:
            raise ValueError(say("sequential.looks_rise"))

    def reached(self, launches: int) -> int | None:
        """Return which look, counted from 0, was the last to be reached with so many launches; None: none yet."""
        place = bisect_right(self.looks, launches)
        return place - 1 if place else None

    def fewest(self, level: float, *, correlation: float = 0.0) -> tuple[int, ...]:
        """Return how many launches of each look may lie on the smaller side of a difference at this error over all.

        -1 where no signs of that look are one. These are the largest limits that do not spend more than the error.
        """
        return self._at(_scale(self, level, correlation))

    def spent(self, fewest: Sequence[int], *, correlation: float = 0.0) -> tuple[float, ...]:
        """Return how often each look is the first that finds a difference where there is none."""
        return leaves(self.looks, tuple(fewest), correlation=correlation)

    def attained(self, look: int, level: float, *, correlation: float = 0.0) -> float:
        """Return how often this error over all looks is really spent by a look, counted from 0, and those before it.

        By signs, and by the range where a look's signs can say nothing at this error.
        """
        reached = LookPlan(self.looks[: look + 1], self.levels[: look + 1])
        return reached._spent(_scale(self, level, correlation), correlation)

    def p(
        self,
        look: int,
        fewer: int,
        *,
        stretch: float = 1.0,
        switching: float = 0.0,
        correlation: float = 0.0,
        one_sided: bool = False,
    ) -> float:
        """Return the p over all looks of a look, counted from 0, with `fewer` launches on the smaller side.

        stretch: where that is none, how far they lie from zero (`range_test.stretch`); switching: which share of
        comparisons is on two levels (`range_test.factor`). One-sided, `fewer` are those on the side that the hypothesis
        says is the fuller one.
        """
        launches = self.looks[look]
        if 2 * fewer >= launches:
            return 1.0
        nominal = two_sided(launches, fewer)
        if fewer == 0:
            nominal *= range_test.factor(launches, stretch, switching)
        return min(1.0, self._least(nominal / self.levels[look], correlation, one_sided=one_sided))

    def interval(
        self, values: Sequence[float], look: int, level: float, *, correlation: float = 0.0, switching: float = 0.0
    ) -> tuple[float, float] | None:
        """Return the interval of a look, from its values, that holds at this error over all looks.

        It leaves out zero exactly where p is no larger than the error. None where the launches are too few for any.
        """
        launches = self.looks[look]
        scale = _scale(self, level, correlation)
        nominal = min(1.0, scale * self.levels[look])
        fewer = most_fewer(launches, nominal)
        if fewer >= 0:
            return repeated_interval(values, fewer)
        return range_test.interval(values, nominal, correlation=correlation, switching=switching)

    def distance_needed(self, look: int, level: float) -> float | None:
        """Return how far, in ranges of theirs, the launches of a look have to lie from zero; see range_test.py."""
        return range_test.distance_needed(self.looks[look], min(1.0, _scale(self, level, 0.0) * self.levels[look]))

    def _at(self, scale: float) -> tuple[int, ...]:
        return tuple(most_fewer(n, min(1.0, scale * level)) for n, level in zip(self.looks, self.levels, strict=True))

    def _spent(self, scale: float, correlation: float, *, one_sided: bool = False) -> float:
        """Return how often any look shows as much as a nominal level of its own level times the scale asks for."""
        limits = self._at(scale)
        by_signs = sum(leaves(self.looks, limits, correlation=correlation, one_sided=one_sided))
        return by_signs + scale * self._by_range(limits, correlation) / (2 if one_sided else 1)

    def _least(self, scale: float, correlation: float, *, one_sided: bool = False) -> float:
        """Return the least that this scale or a larger one spends.

        Where a look's signs begin to say something, its range no longer speaks, and a larger scale may spend less.
        """
        begins = (two_sided(n, 0) / level for n, level in zip(self.looks, self.levels, strict=True))
        scales = (scale, *(one for one in begins if one > scale))
        return min(self._spent(one, correlation, one_sided=one_sided) for one in scales)

    def _by_range(self, limits: Sequence[int], correlation: float) -> float:
        """Return what looks at which signs can say nothing spend at most, a unit of scale."""
        return sum(
            level * range_test.inflation(launches, correlation)
            for launches, level, fewer in zip(self.looks, self.levels, limits, strict=True)
            if fewer < 0 and launches >= range_test.LAUNCHES_LEAST
        )


FOUR_LOOKS = LookPlan((9, 12, 18, 30), (0.004, 0.008, 0.015, 0.04))


def fixed(launches: int) -> LookPlan:
    """Return the plan of one look alone: then everything is as if there were no looks."""
    return LookPlan((launches,), (1.0,))


@lru_cache(maxsize=4096)
def _scale(plan: LookPlan, level: float, correlation: float) -> float:
    """Return by how much all levels can be raised or lowered together for this error over all looks; 0: never."""
    scales = sorted(
        {
            two_sided(n, fewer) / share
            for n, share in zip(plan.looks, plan.levels, strict=True)
            for fewer in range((n + 1) // 2)
        }
    )
    few, many = 0, len(scales)  # the error rises with the scale: the first that is too large is sought
    while few < many:
        middle = (few + many) // 2
        if plan._least(scales[middle], correlation) <= level * (1 + 1e-9):
            few = middle + 1
        else:
            many = middle
    reached = scales[few - 1] if few else 0.0
    # from there to the next step of the signs the error rises evenly, by what the range can say
    limits = plan._at(reached)
    rise = plan._by_range(limits, correlation)
    if not rise:
        return reached
    left = level - sum(leaves(plan.looks, limits, correlation=correlation))
    most = scales[few] * (1 - 1e-6) if few < len(scales) else reached
    return max(reached, min(left / rise, most))


def repeated_interval(values: Sequence[float], fewer: int) -> tuple[float, float] | None:
    """Return the interval of a look, from its values and its limit; None where its limit is -1: nothing is refused."""
    if fewer < 0:
        return None
    ordered = sorted(values)
    return ordered[fewer], ordered[len(ordered) - 1 - fewer]
