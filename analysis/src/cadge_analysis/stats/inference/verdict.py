# SPDX-License-Identifier: BSD-3-Clause
"""Four verdicts: faster, slower, the same, or that it cannot be told; by one rule, whatever was compared and how.

A difference counts where its p is small enough among all that were asked for with it, by Benjamini and Hochberg's rule
(families.py). "Same" is a finding as well, not the want of one: the whole interval lies inside the stated margin, two
one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987, p. 657). It goes before faster
and slower: what is surely different and lies within the margin is the same, and the interval says the rest. Both are
chosen together, each comparison by the smaller p of the two, and read at one level: no comparison can be wrong in both,
since what is called different by mistake is the same. Whatever the verdict, the interval's farther end bounds how far
apart both sides are.

Exchanged sides give the mirrored verdict. A zero difference counts against every finding: against a difference, and
against a bound that it touches.

Comparisons within a campaign, paired, at looks that were fixed beforehand: paired_verdicts.py. Shifts between
campaigns: `judge`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import count
from math import comb, log1p
from typing import Literal

from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.families import level_of_choice
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.shift import EpochShift

LAUNCHES_FOR_AN_INTERVAL = {True: 6, False: 4}
"""Of each side, paired or not: fewer have no interval of 95 %."""

Interval = tuple[float, float]


class Verdict(StrEnum):
    """What is said of the second side."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNKNOWN = "cannot tell"

    @property
    def word(self) -> str:
        """The word that a reader sees; the value is what files hold."""
        return "undecided" if self is Verdict.UNKNOWN else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of one comparison, of logarithms: p of no difference, p of one of delta or more, both two-sided.

    interval: that of a level; None where nothing is refused at it. It leaves out 0 where p is no larger than the level,
    and lies inside +-delta where p_same is not.
    """

    p: float
    p_same: float
    interval: Callable[[float], Interval | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityVerdict:
    """A verdict for a quantity of which less is better, the interval that it is read from, and that one's level."""

    says: Verdict
    interval: Interval | None
    level: float


def bounds(delta: float) -> Interval:
    """Return what +-delta is as logarithms: as far to the one side as to the other, so that sides may be exchanged."""
    return -log1p(delta), log1p(delta)


def level_chosen(family: Sequence[Evidence], size: int, error: float = ERROR) -> float:
    """Return the level at which verdicts of a family of this size are read.

    Members of which nothing is known are in its size alone.
    """
    return level_of_choice([min(one.p, one.p_same) for one in family], size, error)


def said(evidence: Evidence, delta: float, level: float) -> QuantityVerdict:
    """Return what is said at this level."""
    lowest, highest = bounds(delta)
    shown = evidence.interval(level)
    says = Verdict.UNKNOWN
    if shown is not None and lowest < shown[0] and shown[1] < highest:
        says = Verdict.SAME
    elif shown is not None and (shown[0] > 0 or shown[1] < 0):
        says = Verdict.SLOWER if shown[0] > 0 else Verdict.FASTER
    return QuantityVerdict(says=says, interval=shown, level=level)


# -- shifts


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalVerdict:
    """A verdict, the interval that it is read from, that one's level, and the p after adjustment.

    The interval is of log-ratios of the quantity itself, whatever is better; None where nothing is refused at the
    level. `more`: how many launches of each side are missing before any could decide, where the verdict is "cannot
    tell"; None: none are. `drowned`: no number of launches would decide, since what the machine did between
    the sides is as large. `withheld`: nothing may be said.
    """

    verdict: Verdict
    p: float
    interval: Interval | None = None
    level: float = ERROR
    more: int | None = None
    drowned: bool = False
    withheld: bool = False

    @property
    def is_silent(self) -> bool:
        """Tell whether no verdict was possible, however large the difference: withheld, or launches are too few."""
        return self.verdict is Verdict.UNKNOWN and (self.withheld or self.interval is None)


def adjusted(ps: Sequence[float]) -> list[float]:
    """Return each p as it counts among all of them, in the given order (Benjamini and Hochberg)."""
    m = len(ps)
    found, least = [1.0] * m, 1.0
    for rank, index in sorted(enumerate(sorted(range(m), key=lambda i: ps[i]), start=1), reverse=True):
        least = min(least, ps[index] * m / rank)
        found[index] = least
    return found


def judge(shifts: Sequence[tuple[ShiftEstimate, Literal["low", "high"]]], margin: float) -> list[IntervalVerdict]:
    """Judge shifts of one family, each with what is better. `margin`: 0.05 for 5 %."""
    family = [_evidence(shift, margin) for shift, _ in shifts]
    level = level_chosen(family, len(family))
    found = []
    for (shift, better), evidence, p in zip(shifts, family, adjusted([one.p for one in family]), strict=True):
        read = said(evidence, margin, level)
        says = MIRRORED.get(read.says, read.says) if better == "high" else read.says
        is_open = says is Verdict.UNKNOWN
        drift = shift.beyond(level) if is_open else 0.0
        found.append(
            IntervalVerdict(
                verdict=says,
                p=p,
                interval=read.interval,
                level=read.level,
                more=_more(shift, log1p(margin), len(family)) if is_open else None,
                drowned=is_open and drift >= _reach(shift, log1p(margin)),
            )
        )
    return found


MIRRORED = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}


def _evidence(shift: ShiftEstimate, margin: float) -> Evidence:
    return Evidence(p=shift.p, p_same=shift.p_outside(*bounds(margin)), interval=shift.interval)


def _reach(drifted: ShiftEstimate, margin: float) -> float:
    """Return how far an interval may reach: not to zero where the shift is beyond the margin, else within it."""
    away = abs(drifted.log_ratio)
    return away if away > margin else margin - away


def _more(drifted: ShiftEstimate, margin: float, family: int) -> int | None:
    """Return how many launches of each side are missing before any could decide; None: none are, or epochs are."""
    shift = drifted.shift
    if isinstance(shift, EpochShift):
        return None
    least = LAUNCHES_FOR_AN_INTERVAL[shift.paired]
    if abs(drifted.log_ratio) > margin:
        least = max(least, _least_for_a_family(family, paired=shift.paired))
    missing = least - min(shift.launches)
    return missing if missing > 0 else None


@lru_cache(maxsize=256)
def _least_for_a_family(family: int, *, paired: bool) -> int:
    """Return how many launches of each side stand up to a family even if all of them agree."""
    bound = ERROR / family
    return next(n for n in count(1) if (2 / 2**n if paired else 2 / comb(2 * n, n)) <= bound)
