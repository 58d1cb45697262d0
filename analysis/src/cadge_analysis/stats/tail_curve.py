# SPDX-License-Identifier: BSD-3-Clause
"""A tail as a curve: of all samples of all launches together, the value that one in so many exceeds.

Percentiles stand as 1/(1-p): "one in 100" is the p99. Each point is counted in the merged histograms, none is
interpolated, and the curve ends where fewer than `TAIL_SAMPLES` samples lie beyond: there a single pause of the machine
would decide it. Beside each stands what single launches gave, from the lowest to the highest: a description, not an
interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cadge_analysis.stats.intervals import TAIL_SAMPLES
from cadge_results.histogram import Histogram, merge, mergeable

ONE_IN = (2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000, 10_000)
NAMED = {2: "p50", 10: "p90", 100: "p99", 1000: "p99.9", 10_000: "p99.99"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TailPoint:
    """What one sample in so many exceeds, in ns, and the same of the lowest and of the highest launch."""

    one_in: int
    value_ns: int
    low_ns: int
    high_ns: int


def exceeded(histogram: Histogram, one_in: int) -> int:
    """Return the value in ns that one in so many samples exceeds: by HDR, number floor(p n + 1/2) or else 1."""
    total = histogram.total
    return histogram.value_of(max(1, (2 * (one_in - 1) * total + one_in) // (2 * one_in)))


def tail_curve(histograms: Sequence[Histogram]) -> tuple[TailPoint, ...]:
    """Return the curve of the launches' histograms; nothing where they cannot be added, or hold too few samples."""
    filled = [one for one in histograms if one]
    if not filled or not mergeable(filled):
        return ()
    pooled = merge(filled)
    reached = [one_in for one_in in ONE_IN if pooled.total // one_in >= TAIL_SAMPLES]
    return tuple(_point(pooled, filled, one_in) for one_in in reached)


def _point(pooled: Histogram, histograms: Sequence[Histogram], one_in: int) -> TailPoint:
    own = [exceeded(one, one_in) for one in histograms]
    return TailPoint(one_in=one_in, value_ns=exceeded(pooled, one_in), low_ns=min(own), high_ns=max(own))
