# SPDX-License-Identifier: BSD-3-Clause
"""Four verdicts on many shifts at a time: faster, slower, the same, or that it cannot be told.

A difference counts where its p stands up to all others that were asked for with it: adjusted by Benjamini and Yekutieli
(Annals of Statistics 29, 2001, theorem 1.3), whose bound on the share of false alarms among what is called different
holds whatever the comparisons have to do with each other, and those of one machine have. Two are the same where the
whole interval lies within the stated margin. What is surely different and lies within the margin is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import count
from math import ceil, comb, log1p
from typing import Literal

from cadge_analysis.stats.families import harmonic
from cadge_analysis.stats.intervals import TARGET_COVERAGE
from cadge_analysis.stats.shift import Shift

FALSE_SHARE = 0.05
"""At most this share of what is called different is not, on average."""
LAUNCHES_FOR_AN_INTERVAL = {True: 6, False: 4}
"""Of each side, paired or not: fewer have no interval of 95 %."""
MORE_MOST = 1000


class Verdict(StrEnum):
    """What is said of the second side."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict, the p after adjustment, and about how many launches more of each side would decide; None: too many."""

    verdict: Verdict
    p: float
    more: int | None = 0


def adjusted(ps: Sequence[float]) -> list[float]:
    """Return each p as it counts among all of them, in the given order (Benjamini and Yekutieli)."""
    m = len(ps)
    found, least = [1.0] * m, 1.0
    for rank, index in sorted(enumerate(sorted(range(m), key=lambda i: ps[i]), start=1), reverse=True):
        least = min(least, ps[index] * m * harmonic(m) / rank)
        found[index] = least
    return found


def judge(shifts: Sequence[tuple[Shift, Literal["low", "high"]]], margin: float) -> list[Judged]:
    """Judge shifts of one family, each with what is better. `margin`: 0.05 for 5 %."""
    ps = adjusted([shift.p for shift, _ in shifts])
    return [_judged(shift, better, p, log1p(margin), len(ps)) for (shift, better), p in zip(shifts, ps, strict=True)]


def _judged(shift: Shift, better: str, p: float, margin: float, family: int) -> Judged:
    low, high = shift.low, shift.high
    sure = shift.coverage >= TARGET_COVERAGE
    if low is not None and high is not None and sure and -margin <= low and high <= margin:
        return Judged(verdict=Verdict.SAME, p=p)
    if p <= FALSE_SHARE and shift.log_ratio:
        rises = shift.log_ratio > 0
        return Judged(verdict=Verdict.FASTER if rises == (better == "high") else Verdict.SLOWER, p=p)
    return Judged(verdict=Verdict.UNKNOWN, p=p, more=_more(shift, margin, family))


def _more(shift: Shift, margin: float, family: int) -> int | None:
    """Return about how many launches more would do: intervals become narrower with the root of their number."""
    have, away = min(shift.launches), abs(shift.log_ratio)
    least = LAUNCHES_FOR_AN_INTERVAL[shift.paired]
    if away > margin:
        least = max(least, _least_for_a_family(family, paired=shift.paired))
    if shift.low is None or shift.high is None or shift.coverage < TARGET_COVERAGE:
        return max(least - have, 1)
    # out of zero where it is beyond the margin, else wholly within it
    reach = away if away > margin else margin - away
    half = (shift.high - shift.low) / 2
    if reach <= 0 or half >= reach * (MORE_MOST / have) ** 0.5:
        return None
    return max(ceil(have * (half / reach) ** 2) - have, least - have, 1)


@lru_cache(maxsize=256)
def _least_for_a_family(family: int, *, paired: bool) -> int:
    """Return how many launches of each side stand up to a family even if all of them agree."""
    bound = FALSE_SHARE / (family * harmonic(family))
    return next(n for n in count(1) if (2 / 2**n if paired else 2 / comb(2 * n, n)) <= bound)
