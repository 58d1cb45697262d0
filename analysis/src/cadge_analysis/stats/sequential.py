# SPDX-License-Identifier: BSD-3-Clause
"""Looks at paired launches that are fixed beforehand, with the error spent over them; tests and intervals at each.

A campaign may be looked at after 9, 12, 18 and 30 launches, and end at the first look that decides. The error is spent
over the looks (Lan and DeMets, Biometrika 70, 1983, p. 659), little at first: each look has a nominal level, and all
levels are raised or lowered together, so that what one error allows a larger one allows as well. The rate over all
looks is exact, see signs.py: with .004/.008/.015/.04 a sign test is wrong in 2.56 % of all campaigns. Looking after
each launch from the 9th to the 30th, each time at 5 %, would be wrong in 12.2 %; at these four looks, each at 5 %, in
9.5 % (`every_launch`, `LookPlan.spent`).

p at a look is the probability, if there is no difference, that any look of the plan, earlier or later, shows as much as
this one: the smallest error at which the plan would have said so here. The interval at a look holds all shifts that
are not refused there: the two order statistics that the look's limit names. Both hold at all looks at once, so they may
be read at any of them, whatever made the campaign end there (Jennison and Turnbull, Journal of the Royal Statistical
Society B 51, 1989, p. 305: repeated confidence intervals; their Group Sequential Methods with Applications to Clinical
Trials, 2000, chapter 9). What comes after the last look that was reached is not looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from cadge_analysis.stats.signs import leaves, most_fewer, two_sided

ERROR = 0.05


@dataclass(frozen=True, slots=True)
class LookPlan:
    """After how many launches a campaign is looked at, and the nominal level of each look relative to the others'."""

    looks: tuple[int, ...]
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.looks or len(self.looks) != len(self.levels):
            raise ValueError("a plan has one level for each of its looks")
        if self.looks[0] < 1 or any(a >= b for a, b in pairwise(self.looks)) or min(self.levels) <= 0:
            raise ValueError("looks rise, and levels are above zero")

    def reached(self, launches: int) -> int | None:
        """Return which look, counted from 0, was the last to be reached with so many launches; None: none yet."""
        place = bisect_right(self.looks, launches)
        return place - 1 if place else None

    def fewest(self, level: float, *, correlation: float = 0.0) -> tuple[int, ...]:
        """Return how many launches of each look may lie on the smaller side of a difference at this error over all.

        -1 where no result of that look is one. These are the largest limits that do not spend more than the error.
        """
        return _fewest(self, level, correlation)

    def spent(self, fewest: Sequence[int], *, correlation: float = 0.0) -> tuple[float, ...]:
        """Return how often each look is the first that finds a difference where there is none."""
        return leaves(self.looks, tuple(fewest), correlation=correlation)

    def p(self, look: int, fewer: int, *, correlation: float = 0.0, one_sided: bool = False) -> float:
        """Return the p over all looks of a look, counted from 0, with `fewer` launches on the smaller side.

        One-sided, `fewer` are those on the side that the hypothesis says is the fuller one.
        """
        launches = self.looks[look]
        if 2 * fewer >= launches:
            return 1.0
        limits = self._at(two_sided(launches, fewer) / self.levels[look])
        return min(1.0, sum(leaves(self.looks, limits, correlation=correlation, one_sided=one_sided)))

    def _at(self, scale: float) -> tuple[int, ...]:
        return tuple(most_fewer(n, min(1.0, scale * level)) for n, level in zip(self.looks, self.levels, strict=True))


FOUR_LOOKS = LookPlan((9, 12, 18, 30), (0.004, 0.008, 0.015, 0.04))


def fixed(launches: int) -> LookPlan:
    """Return the plan of one look alone: then everything is as if there were no looks."""
    return LookPlan((launches,), (1.0,))


@lru_cache(maxsize=1024)
def _fewest(plan: LookPlan, level: float, correlation: float) -> tuple[int, ...]:
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
        if sum(leaves(plan.looks, plan._at(scales[middle]), correlation=correlation)) <= level * (1 + 1e-9):
            few = middle + 1
        else:
            many = middle
    return plan._at(scales[few - 1]) if few else (-1,) * len(plan.looks)


def repeated_interval(values: Sequence[float], fewer: int) -> tuple[float, float] | None:
    """Return the interval of a look, from its values and its limit; None where its limit is -1: nothing is refused."""
    if fewer < 0:
        return None
    ordered = sorted(values)
    return ordered[fewer], ordered[len(ordered) - 1 - fewer]


def every_launch(first: int, last: int, nominal: float = ERROR) -> float:
    """Return how often looking after each launch finds a difference where there is none: a warning, not a method."""
    looks = tuple(range(first, last + 1))
    return sum(leaves(looks, tuple(most_fewer(n, nominal) for n in looks)))
