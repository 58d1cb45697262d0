# SPDX-License-Identifier: BSD-3-Clause
"""A shift between two campaigns, less what the machine did meanwhile, as far as that is known.

Two things make it uncertain: launches within the campaigns, and what the machine did to this cell beyond what it did to
all. Each has an interval of its own at any level, the one of ranks (shift.py), the other of Student's t around 0; the
shift's is put together from the distances of both ends, side by side (Zou and Donner, Statistics in Medicine 27, 2008,
p. 1693: limits of a sum from the limits of its parts). Without a spread that is the interval of ranks itself. p is the
smallest level whose interval leaves a value out, so that both always say the same. Over epochs the first interval is
t's as well (shift.py).

Where a common shift has no floors beside it (between.py), it is the machine's part or is not: both are tried, the
interval holds both intervals and p is the larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

from cadge_analysis.stats.inference.shift import EpochShift, Shift
from cadge_analysis.stats.inference.student import Mean, reach, two_sided_tail

_HALVINGS = 40


@dataclass(frozen=True)
class ShiftEstimate:
    """A shift and the drift that is in it. `commons`: what may be the machine's part; the last one is taken out.

    `error` and `freedom`: the standard deviation of what the machine did beyond that, and how well it is known.
    """

    shift: Shift
    commons: tuple[float, ...] = (0.0,)
    error: float = 0.0
    freedom: float = 1.0

    @property
    def log_ratio(self) -> float:
        """The shift less the machine's part."""
        return self.shift.log_ratio - self.commons[-1]

    @cached_property
    def p(self) -> float:
        """The two-sided p of no difference; 1 where one of `commons` makes it a gain and another one a loss."""
        aways = [self.shift.log_ratio - common for common in self.commons]
        if min(aways) < 0 < max(aways):
            return 1.0
        return max(map(self._p_of_zero, aways))

    def p_outside(self, low: float, high: float) -> float:
        """Return the two-sided p of a shift that does not lie between these."""
        return max(
            max(self._p_below(self.shift.log_ratio - common - low), self._p_above(high + common - self.shift.log_ratio))
            for common in self.commons
        )

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the interval that misses with this probability at most; None where even the widest one does."""
        ranks = self.shift.interval(level)
        if ranks is None:
            return None
        drift = self.beyond(level)
        middle = self.shift.log_ratio
        low, high = (sqrt((middle - end) ** 2 + drift**2) for end in ranks)
        return middle - max(self.commons) - low, middle - min(self.commons) + high

    def beyond(self, level: float) -> float:
        """Return by how much the machine moves a cell in no more than this share of all cases."""
        return self.error * reach(level, self.freedom) if self.error else 0.0

    def _p_of_zero(self, away: float) -> float:
        return self._p_below(away) if away > 0 else self._p_above(-away) if away < 0 else 1.0

    def _p_below(self, room: float) -> float:
        """Return the smallest level whose interval reaches less than `room` below the shift."""
        return self._smallest([(level, self.shift.log_ratio - low) for level, low, _ in self._steps], room)

    def _p_above(self, room: float) -> float:
        return self._smallest([(level, high - self.shift.log_ratio) for level, _, high in self._steps], room)

    @cached_property
    def _steps(self) -> tuple[tuple[float, float, float], ...]:
        return self.shift.steps()

    def _smallest(self, steps: Sequence[tuple[float, float]], room: float) -> float:
        if isinstance(self.shift, EpochShift):
            return self._over_epochs(self.shift.mean, room)
        return min((max(level, self._tail(room, half)) for level, half in steps if half < room), default=1.0)

    def _over_epochs(self, mean: Mean, room: float) -> float:
        """Return the same of a shift whose interval of any level is t's: where both levels are one."""
        if room <= 0:
            return 1.0
        if not mean.error:
            return self._tail(room, 0.0)
        if not self.error:
            return two_sided_tail(room / mean.error, mean.freedom)
        few, many = 0.0, room
        for _ in range(_HALVINGS):
            half = (few + many) / 2
            is_far = two_sided_tail(half / mean.error, mean.freedom) > self._tail(room, half)
            few, many = (half, many) if is_far else (few, half)
        return two_sided_tail(few / mean.error, mean.freedom)

    def _tail(self, room: float, half: float) -> float:
        away = sqrt(room**2 - half**2)
        return two_sided_tail(away / self.error if self.error else inf, self.freedom)

    def mirrored(self) -> ShiftEstimate:
        """Return the same as seen from the other side."""
        return ShiftEstimate(self.shift.mirrored(), tuple(-common for common in self.commons), self.error, self.freedom)
