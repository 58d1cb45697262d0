# SPDX-License-Identifier: BSD-3-Clause
"""By how much each percentile of a time differs between two sides: where the median stayed and the tail did not.

Each launch has its own percentiles, as long as enough of its samples lie beyond (measures.py); they are compared launch
by launch as the main quantity is (shift.py), with the drift that was found of the main quantity (drifted.py). The
intervals of one cell hold all together: each misses with ERROR over their number (Bonferroni). The idea is that of the
shift function (Doksum, Annals of Statistics 2, 1974, p. 267; Wilcox, Introduction to Robust Estimation and Hypothesis
Testing, 3rd edition, section 5.1), of launches in place of samples, and of ratios in place of differences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log1p

from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.rounds import by_epoch
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.shift import between_epochs, paired
from cadge_analysis.stats.intervals import median
from cadge_analysis.stats.measures import samples_needed
from cadge_analysis.stats.numbers import Numbers, tail_by_round

PER_MILLES = (500, 750, 900, 950, 990, 995, 999)


@dataclass(frozen=True, slots=True, kw_only=True)
class TailShift:
    """One percentile on both sides: the medians of launches' own, in ns, and the shift as logarithms.

    `low` and `high` are None where the launches are too few for an interval at `level`.
    """

    per_mille: int
    first_ns: float
    second_ns: float
    log_ratio: float
    low: float | None
    high: float | None
    level: float


def tail_shifts(ours: Numbers, theirs: Numbers, beside: ShiftEstimate) -> tuple[TailShift, ...]:
    """Return the shift of every percentile that all launches of both sides have.

    beside: the shift of the main quantity, of which pairing and drift are taken. Nothing of what is no time.
    """
    if ours.quantity.kind != "histogram":
        return ()
    fewest = min(
        sample.quantities[one.cell.case.file.main].counts.total for one in (ours, theirs) for sample in one.cell.samples
    )
    known = [per_mille for per_mille in PER_MILLES if samples_needed(per_mille) <= fewest]
    level = ERROR / max(1, len(known))
    found = (_of(ours, theirs, beside, per_mille, level) for per_mille in known)
    return tuple(one for one in found if one is not None)


def _of(ours: Numbers, theirs: Numbers, beside: ShiftEstimate, per_mille: int, level: float) -> TailShift | None:
    here, there = tail_by_round(ours, per_mille), tail_by_round(theirs, per_mille)
    if min(*here.values(), *there.values()) <= 0:
        return None
    is_paired = beside.shift.paired
    shift = paired(here, there) if is_paired else between_epochs(by_epoch(here), by_epoch(there))
    if shift is None:
        return None
    drifted = replace(beside, shift=shift)
    ends = drifted.interval(level)
    return TailShift(
        per_mille=per_mille,
        first_ns=median(list(here.values())),
        second_ns=median(list(there.values())),
        log_ratio=drifted.log_ratio,
        low=ends[0] if ends else None,
        high=ends[1] if ends else None,
        level=level,
    )


def beyond(shifts: tuple[TailShift, ...], margin: float) -> float:
    """Return how far the interval of any percentile lies beyond what counts as the same; 0 where none does."""
    edge = log1p(margin)
    away = [max(one.low - edge, -edge - one.high) for one in shifts if one.low is not None and one.high is not None]
    return max([0.0, *away])
