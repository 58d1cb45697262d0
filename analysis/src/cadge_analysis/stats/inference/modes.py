# SPDX-License-Identifier: BSD-3-Clause
"""Rows that have two values rather than one: their launches fall into two groups, or the operations within launches do.

A median between two groups says which of them is larger, not what a layer takes; whoever reads it should know that.

**Launches.** They are in two groups where at some place of their sorted logarithms each side holds a quarter of them,
and three at least, and the gap between the sides is wider than WIDER times the whole range of either side, and than
APART. Nine launches of one group look like two in 0.8 % where they are normally distributed, in 3.1 % where uniformly,
2.3 % exponentially, 0.5 % by Laplace, 0.6 % where the tail is that of Student's t with 2 degrees of freedom, and 1.3 %
where they walk at random; eighteen in less than 0.1 % of each (20,000 draws, without APART, which makes it rarer;
test_modes.py draws some again). It is found, with 40 % of nine launches in the second group, in 38 % where groups lie 6
standard deviations apart, 61 % at 8 and 75 % at 12. Fewer than LAUNCHES_LEAST say nothing.

**For verdicts** (`may_have_two_levels`) launches are suspected sooner, since ranks are wrong of two groups, and the
price is small: then each level is compared by itself (levels.py). They are suspected as well where the largest ratio of
the sum of squares between both sides of a place to that within them is one that 7 % of normal samples exceed
(Engelman and Hartigan, Journal of the American Statistical Association 64, 1969, p. 1647). The variance within is
moderated by that of the family's other launches (Smyth 2004; scatter.py): nine launches alone show it badly. Of groups
that lie 5 standard deviations apart, two and seven launches, 99 % are suspected where all launches scatter alike, 73 %
where their variances differ as of 4 degrees of freedom, and 49 % without such others; four and five: 100, 93 and 71 %.

**Operations.** Of one launch's samples, in steps of an eighth of an octave, each with its two neighbours: two
peaks that each hold SHARE_LEAST of all samples on their side of the lowest step between them, which is at most DEEP
times as high as the lower peak. Some ten thousand samples make that certain; fewer than SAMPLES_LEAST say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil, exp, log, log1p
from statistics import median

import numpy as np

from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.inference.scatter import Scatter, scatter_of
from cadge_results.formats.histogram import Histogram

LAUNCHES_LEAST = 9
SIDE_LEAST = 3
SIDE_SHARE = 0.25
WIDER = 1.5
APART = 0.1
"""Groups that lie nearer than a tenth do not change what a reader takes home."""
SUSPECTED_LEAST = 2
SUSPECTED_SHARE = 0.15
_FREEDOMS = (0, 4, 16, 100)
_SUSPECTED_FROM = {
    9: (44.3, 40.0, 35.9, 35.0),
    12: (48.8, 46.3, 43.0, 41.6),
    18: (60.4, 58.8, 56.2, 54.0),
    30: (84.4, 83.7, 81.8, 78.5),
    100: (222.5, 221.6, 219.0, 212.4),
}
"""By launches and freedom: the sum of squares between, over the variance within, that 7 % of normal samples exceed.

40,000 draws; between these it is straight, over the logarithm of a freedom and one.
"""
RESOLUTION = 0.002
"""Logarithms of ratios are not separated below this: histograms hold three digits of each side."""
SAMPLES_LEAST = 2_000
SHARE_LEAST = 0.15
DEEP = 1 / 3
_STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Two groups: the middle of each, in the quantity's own unit, and how many are in it.

    `border`: the least value of the upper group. `in_order`: all launches of one group were made before those of the
    other, so that something changed on the way.
    """

    low: float
    high: float
    lower: int
    upper: int
    border: float
    in_order: bool = False


def of_launches(by_round: Mapping[RoundKey, float]) -> Modes | None:
    """Return the two groups of a row's launches, whose keys rise as they were made; None where there is one."""
    made = [by_round[key] for key in sorted(by_round)]
    if not made or min(made) <= 0:
        return None
    values = sorted(made)
    logs = [log(value) for value in values]
    widest = border(logs)
    if widest is None or exp(logs[widest] - logs[widest - 1]) < 1 + APART:
        return None
    sides = [value >= values[widest] for value in made]
    changes = sum(a != b for a, b in pairwise(sides))
    return Modes(
        low=median(values[:widest]),
        high=median(values[widest:]),
        lower=widest,
        upper=len(values) - widest,
        border=values[widest],
        in_order=changes == 1,
    )


def border(logs: Sequence[float], *, resolution: float = 0.0) -> int | None:
    """Return where the upper of two groups begins in sorted logarithms, however near they are; None: one group.

    resolution: a group's range is taken for no smaller. Fewer than LAUNCHES_LEAST are one group.
    """
    if len(logs) < LAUNCHES_LEAST:
        return None
    least = max(SIDE_LEAST, ceil(SIDE_SHARE * len(logs)))
    widest = max(range(least, len(logs) - least + 1), key=lambda at: logs[at] - logs[at - 1])
    ranges = logs[widest - 1] - logs[0], logs[-1] - logs[widest]
    return widest if logs[widest] - logs[widest - 1] > WIDER * max(*ranges, resolution) else None


def has_two_levels(logs: Sequence[float]) -> bool:
    """Tell whether launches, as logarithms, fall into two groups, however near."""
    return border(sorted(logs), resolution=RESOLUTION) is not None


@dataclass(frozen=True, slots=True)
class Split:
    """Sorted values in two parts, the first so long: the sums of squares between the parts, and within them."""

    at: int
    between: float
    within: float


def split(ordered: Sequence[float]) -> Split:
    """Return the two parts of at least four sorted logarithms that lie farthest apart."""
    n = len(ordered)
    least = max(SUSPECTED_LEAST, ceil(SUSPECTED_SHARE * n))
    sums = [0.0, *accumulate(ordered)]
    between, at = max(
        (at * (n - at) / n * (sums[at] / at - (sums[n] - sums[at]) / (n - at)) ** 2, at)
        for at in range(least, n - least + 1)
    )
    whole = sum((one - sums[n] / n) ** 2 for one in ordered)
    return Split(at=at, between=between, within=max(whole - between, n * RESOLUTION**2))


def scatter_within(sides: Iterable[Sequence[float]]) -> Scatter:
    """Return how launches scatter within levels, one or two, of many series' launches as logarithms."""
    parts = [(split(sorted(one)).within, len(one) - 2) for one in sides if len(one) >= LAUNCHES_LEAST]
    return scatter_of([(within / freedom, freedom) for within, freedom in parts])


def may_have_two_levels(logs: Sequence[float], scatter: Scatter = Scatter()) -> bool:  # noqa: B008 - frozen
    """Tell whether launches, as logarithms, may fall into two groups: those that do, and others that lie far apart.

    scatter: of the family's launches within levels (`scatter_within`).
    """
    n = len(logs)
    if n < LAUNCHES_LEAST:
        return False
    found, known = split(sorted(logs)), scatter.freedom
    by_launches = [float(np.interp(log1p(known), np.log1p(_FREEDOMS), limits)) for limits in _SUSPECTED_FROM.values()]
    limit = float(np.interp(n, list(_SUSPECTED_FROM), by_launches))
    variance = (found.within + known * scatter.common) / (n - 2 + known)
    return found.between > limit * variance or has_two_levels(logs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSplit:
    """A machine probe that was never the same in both groups: its middle beside the lower and the upper one, in ns."""

    probe: str
    low_ns: float
    high_ns: float


def separating_probes(found: Modes, launches: Sequence[tuple[float, Mapping[str, float]]]) -> tuple[ProbeSplit, ...]:
    """Return the machine probes that separate a row's groups; a launch is its value, and what was measured beside it.

    Then the machine was in two states, and the layer need not be.
    """
    lower = [near for value, near in launches if value < found.border]
    upper = [near for value, near in launches if value >= found.border]
    told = []
    for probe in sorted({name for _, near in launches for name in near}):
        below, above = ([near[probe] for near in side if probe in near] for side in (lower, upper))
        if min(len(below), len(above)) < SIDE_LEAST or not (min(above) > max(below) or min(below) > max(above)):
            continue
        low_ns, high_ns = median(below), median(above)
        if max(low_ns, high_ns) >= (1 + APART) * min(low_ns, high_ns):
            told.append(ProbeSplit(probe=probe, low_ns=low_ns, high_ns=high_ns))
    return tuple(told)


def within_launches(launches: Sequence[Histogram]) -> Modes | None:
    """Return the two groups of single operations, where more than half of the launches that can tell have two.

    The groups are those of these launches together: their middles, and how many operations.
    """
    can_tell = [one for one in launches if one.total >= SAMPLES_LEAST]
    in_two = [found for one in can_tell if (found := of_operations(one))]
    if 2 * len(in_two) <= len(can_tell):
        return None
    return Modes(
        low=median(one.low for one in in_two),
        high=median(one.high for one in in_two),
        lower=sum(one.lower for one in in_two),
        upper=sum(one.upper for one in in_two),
        border=median(one.border for one in in_two),
    )


def of_operations(samples: Histogram) -> Modes | None:
    """Return the two groups of a launch's operations, of a histogram in ns; None where there is one."""
    if samples.total < SAMPLES_LEAST:
        return None
    values_ns, often = samples.highs, samples.counts
    steps = np.rint(_STEPS * np.log2(values_ns)).astype(np.int64)
    heights = np.bincount(steps - steps[0], weights=often)
    # three neighbours together: short times are multiples of what the clock counts in, and leave single steps empty
    valley = _valley(np.convolve(heights, np.ones(3), mode="same").tolist())
    if valley is None:
        return None
    lower = int(np.searchsorted(steps, steps[0] + valley, side="right"))
    below, every = int(samples.upto[lower - 1]), samples.total
    return Modes(
        low=float(samples.value_of((below + 1) // 2)),
        high=float(samples.value_of(below + (every - below + 1) // 2)),
        lower=below,
        upper=every - below,
        border=float(values_ns[lower]),
    )


def _valley(heights: Sequence[float]) -> int | None:
    """Return the lowest step between the two peaks, or None where there is one peak alone."""
    total = sum(heights)  # each sample three times
    best: tuple[float, int] | None = None
    below = 0.0
    highest = list(accumulate(heights, max))
    highest_above = list(accumulate(reversed(heights), max))[::-1]
    for at in range(1, len(heights) - 1):
        below += heights[at - 1]
        above = total - below - heights[at]
        lower_peak = min(highest[at - 1], highest_above[at + 1])
        deep = heights[at] <= DEEP * lower_peak
        if deep and min(below, above) >= SHARE_LEAST * total:
            depth = heights[at] / lower_peak
            best = min(best, (depth, at)) if best else (depth, at)
    return best[1] if best else None
