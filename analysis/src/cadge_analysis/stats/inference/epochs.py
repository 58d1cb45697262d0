# SPDX-License-Identifier: BSD-3-Clause
"""Launches of several epochs, each on a testbed made anew: what an epoch moves, all of its launches have in common.

Epochs are the highest level of replication (Kalibera and Jones, ISMM 2013, sections 6 and 9). An epoch's estimate is
the middle of the Walsh averages of its launches. From EPOCHS_LEAST epochs on test and interval are over these
estimates, by Student's t as there: with fewer than six, signed ranks decide nothing. How launches scatter within an
epoch, or follow one another, has no part in it.

Two or three epochs are too few: t with one or two degrees of freedom reaches too far. The test is that of launches
then, but a comparison whose epochs lie on both sides of 1 is undecided, and intervals hold every epoch's estimate.
Where epochs move layers by as much as launches scatter, of what is called different so much is not, in per cent, with
1, 2, 3, 4 and 6 epochs of nine launches: 36, 27, 17, 1, 2 (harness/bench/verdicts/false_verdicts.py).

Single values follow the same rule (intervals.py). Between campaigns any number of epochs is tested by t (shift.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean

from cadge_analysis.stats.inference import signed_rank
from cadge_analysis.stats.inference.levels import Levels
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST, do_agree
from cadge_analysis.stats.inference.sequential import LookPlan
from cadge_analysis.stats.inference.signed_rank import Interval
from cadge_analysis.stats.inference.student import Mean, mean_of


@dataclass(frozen=True, slots=True)
class EpochPlan(LookPlan):
    """One look at the launches of several epochs, too few for a test. `sizes`: how many each has, in their order."""

    sizes: tuple[int, ...]

    def stretches(self, differences: Sequence[float]) -> list[Sequence[float]]:
        """Return the differences epoch by epoch."""
        return [differences[begin:end] for begin, end in pairwise(accumulate(self.sizes, initial=0))]

    def epochs(self, differences: Sequence[float]) -> tuple[float, ...]:
        """Return each epoch's estimate."""
        return tuple(signed_rank.estimate(one) for one in EpochPlan.stretches(self, differences))

    def p(self, look: int, differences: Sequence[float], *, levels: Levels | None = None) -> float:
        """Return the two-sided p of no difference; 1 where epochs lie on both sides."""
        if not do_agree(self.epochs(differences)):
            return 1.0
        return LookPlan.p(self, look, differences, levels=levels)

    def p_not_below(self, look: int, differences: Sequence[float], *, levels: Levels | None = None) -> float:
        """Return the one-sided p of differences that are not below zero; 1 where an epoch is not."""
        if max(self.epochs(differences)) >= 0:
            return 1.0
        return LookPlan.p_not_below(self, look, differences, levels=levels)

    def p_outside(
        self, look: int, differences: Sequence[float], within: Interval, *, levels: Levels | None = None
    ) -> float:
        """Return the two-sided p of a shift that does not lie between two values; 1 where an epoch does not."""
        found = self.epochs(differences)
        if min(found) <= within[0] or max(found) >= within[1]:
            return 1.0
        return LookPlan.p_outside(self, look, differences, within, levels=levels)

    def interval(
        self, look: int, differences: Sequence[float], level: float, *, levels: Levels | None = None
    ) -> Interval | None:
        """Return the interval of the launches, widened until it holds every epoch; None: they are too few."""
        own = LookPlan.interval(self, look, differences, level, levels=levels)
        found = self.epochs(differences)
        return own and (min(own[0], *found), max(own[1], *found))


@dataclass(frozen=True, slots=True)
class OverEpochs(EpochPlan):
    """One look at EPOCHS_LEAST epochs or more, by t over their estimates. Two levels of launches do not matter."""

    def stretches(self, differences: Sequence[float]) -> list[Sequence[float]]:
        """Return nothing: that launches resemble each other does no harm."""
        del differences
        return []

    def estimate(self, differences: Sequence[float]) -> float:
        """Return the mean of the epochs' estimates."""
        return fmean(self.epochs(differences))

    def attained(self, look: int, level: float) -> float:
        """Return the level: t spends all of it."""
        del look
        return level

    def p(self, look: int, differences: Sequence[float], *, levels: Levels | None = None) -> float:
        """Return the two-sided p of no difference."""
        del look, levels
        return self._mean(differences).tail()

    def p_not_below(self, look: int, differences: Sequence[float], *, levels: Levels | None = None) -> float:
        """Return the one-sided p of differences that are not below zero."""
        del look, levels
        mean = self._mean(differences)
        half = mean.tail() / 2
        return half if mean.value < 0 else 1 - half

    def p_outside(
        self, look: int, differences: Sequence[float], within: Interval, *, levels: Levels | None = None
    ) -> float:
        """Return the two-sided p of a shift that does not lie between two values."""
        del look, levels
        mean = self._mean(differences)
        return max(map(mean.tail, within)) if within[0] < mean.value < within[1] else 1.0

    def interval(
        self, look: int, differences: Sequence[float], level: float, *, levels: Levels | None = None
    ) -> Interval | None:
        """Return the shifts that are not refused at a level."""
        del look, levels
        return self._mean(differences).interval(level)

    def launches_needed(self, look: int, level: float) -> int:
        """Return 1: any number of launches may decide."""
        del look, level
        return 1

    def _mean(self, differences: Sequence[float]) -> Mean:
        return mean_of(self.epochs(differences))


def of_epochs(plan: LookPlan, sizes: Sequence[int]) -> LookPlan:
    """Return the plan of one look at so many launches of each epoch; of fewer than two it is the plan itself."""
    several = tuple(size for size in sizes if size)
    if len(several) < 2:
        return plan
    return (OverEpochs if len(several) >= EPOCHS_LEAST else EpochPlan)(plan.looks, plan.parts, several)
