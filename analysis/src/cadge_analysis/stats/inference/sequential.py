# SPDX-License-Identifier: BSD-3-Clause
"""Looks at paired launches that are fixed beforehand, with the error shared among them.

A campaign may be looked at after 9, 12, 18 and 30 launches, and end at the first look that decides. Each look has a
share of the error (Bonferroni): ranks change from look to look, so that spending it over looks has no exact form
without simulation. A look's p is that of its launches alone divided by its share, its interval that of its share of the
level; both hold at all looks at once, so they may be read at any of them, whatever made the campaign end there. Looks
at 9, 12, 18 and 30 launches with .1/.2/.3/.4 of 5 % are wrong in 3.7 % of campaigns
(harness/bench/verdicts/false_verdicts.py). What comes after the last look that was reached is not looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from cadge_analysis import messages
from cadge_analysis.stats.inference import signed_rank
from cadge_analysis.stats.inference.levels import Levels
from cadge_analysis.stats.inference.signed_rank import Interval

say = partial(messages.say, "stats")

ERROR = 0.05


@dataclass(frozen=True, slots=True)
class LookPlan:
    """After how many launches a campaign is looked at, and each look's part of the error relative to the others'."""

    looks: tuple[int, ...]
    parts: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.looks or len(self.looks) != len(self.parts):
            raise ValueError(say("sequential.one_level_a_look"))
        if self.looks[0] < 1 or any(a >= b for a, b in pairwise(self.looks)) or min(self.parts) <= 0:
            raise ValueError(say("sequential.looks_rise"))

    def reached(self, launches: int) -> int | None:
        """Return which look, counted from 0, was the last to be reached with so many launches; None: none yet."""
        place = bisect_right(self.looks, launches)
        return place - 1 if place else None

    def share(self, look: int) -> float:
        """Return a look's share of the error."""
        return self.parts[look] / sum(self.parts)

    def stretches(self, differences: Sequence[float]) -> list[Sequence[float]]:
        """Return the differences in pieces within which one launch may resemble the next: here all."""
        return [differences]

    def epochs(self, differences: Sequence[float]) -> tuple[float, ...]:
        """Return each epoch's estimate, where there are several (epochs.py)."""
        del differences
        return ()

    def estimate(self, differences: Sequence[float]) -> float:
        """Return the middle of the differences."""
        return signed_rank.estimate(differences)

    def attained(self, look: int, level: float) -> float:
        """Return how often this level is really spent by a look: rank sums are whole numbers."""
        launches = self.looks[look]
        return signed_rank.two_sided(launches, signed_rank.most_against(launches, level * self.share(look)))

    def p(self, look: int, differences: Sequence[float], *, levels: Levels | None = None) -> float:
        """Return the two-sided p of no difference, over all looks. levels: of the look's launches (levels.py)."""
        return min(1.0, (levels.p_value() if levels else signed_rank.p_value(differences)) / self.share(look))

    def p_not_below(self, look: int, differences: Sequence[float], *, levels: Levels | None = None) -> float:
        """Return the one-sided p of differences that are not below zero, over all looks."""
        return min(1.0, (levels.p_not_below() if levels else signed_rank.p_not_below(differences)) / self.share(look))

    def p_outside(
        self, look: int, differences: Sequence[float], within: Interval, *, levels: Levels | None = None
    ) -> float:
        """Return the two-sided p of a shift that does not lie between two values, over all looks."""
        found = levels.p_outside(within) if levels else signed_rank.p_outside(differences, within)
        return min(1.0, found / self.share(look))

    def interval(
        self, look: int, differences: Sequence[float], level: float, *, levels: Levels | None = None
    ) -> Interval | None:
        """Return the interval of a look that holds at this level over all looks; None: its launches are too few."""
        level *= self.share(look)
        return levels.interval(level) if levels else signed_rank.interval(differences, level)

    def launches_needed(self, look: int, level: float) -> int:
        """Return how many launches have to agree for a finding of this level at a look."""
        return signed_rank.launches_needed(level * self.share(look))

    def can_decide(self, look: int, level: float) -> bool:
        """Tell whether any launches of a look would be a finding of this level."""
        return self.looks[look] >= self.launches_needed(look, level)


FOUR_LOOKS = LookPlan((9, 12, 18, 30), (0.1, 0.2, 0.3, 0.4))


def fixed(launches: int) -> LookPlan:
    """Return the plan of one look alone: then everything is as if there were no looks."""
    return LookPlan((launches,), (1.0,))
