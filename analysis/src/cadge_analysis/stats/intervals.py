# SPDX-License-Identifier: BSD-3-Clause
"""Statistics over launches: distribution-free, exact where that can be had, and never averages of percentiles.

A launch (a fresh pair of processes) is the unit of replication; the many samples inside one launch share its memory
layout, its connection and its moment, so they say nothing about another launch (Georges et al., OOPSLA 2007; Kalibera
and Jones, ISMM 2013). From each launch one number is taken, its own quantile or rate; over launches the median of these
numbers is shown with the order-statistic interval. All times are nanoseconds.

Launches of several epochs have in common what an epoch moved, so each epoch gives one value, as verdicts take them
(inference/epochs.py): of two or three epochs the launches' interval is widened until it holds each one's, from
EPOCHS_LEAST on value and interval are their mean's, by Student's t; of what is above zero, that of logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import comb, exp, log, log1p

from cadge_analysis import messages, units
from cadge_analysis.stats.inference import signed_rank
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST, RoundKey, by_epoch
from cadge_analysis.stats.inference.student import mean_of
from cadge_results.formats.histogram import Histogram, merge, mergeable

say = partial(messages.say, "stats")

TARGET_COVERAGE = 0.95
TAIL_SAMPLES = 100
DISAGREE_WITHIN = 0.05
"""A ratio of medians that lies no further from the median of ratios contradicts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A median over launches and the interval that covers the true median with the stated probability.

    `low` and `high` are None for a single launch: one value has no interval. `coverage` is then 0. `pairs_disagree`: it
    is a median of paired ratios which the ratio of both medians contradicts.
    """

    value: float
    low: float | None
    high: float | None
    coverage: float
    launches: int
    paired: bool = False
    pairs_disagree: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """A quantile of all samples of all launches together, with the range that single launches gave.

    `value` is None where fewer than `TAIL_SAMPLES` samples lie beyond the quantile; `reason` says so. The range
    (`low`, `high`) is of launches' own quantiles; it is a description, not a confidence interval.
    """

    value: float | None
    low: float | None
    high: float | None
    samples: int
    reason: str | None


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the middle of the two middle ones (Hyndman and Fan 1996, type 7, at 1/2)."""
    if not values:
        raise ValueError(say("intervals.median_of_nothing"))
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


@cache
def rank_coverage(launches: int, rank: int) -> float:
    """Return the probability that the `rank`-th smallest and `rank`-th largest of n values enclose the median.

    Exact for any continuous distribution: 1 - 2 P(Binomial(n, 1/2) < rank) (David and Nagaraja, Order Statistics,
    3rd edition, section 7.1). Six launches and rank 1 give 0.96875.
    """
    below = sum(comb(launches, k) for k in range(rank))
    return 1.0 - 2 * below / (1 << launches)


@cache
def rank_of_interval(launches: int) -> int:
    """Return the largest rank whose interval still covers 95 %; 1 where even the full range covers less."""
    rank = 1
    while rank + 1 <= launches - rank and rank_coverage(launches, rank + 1) >= TARGET_COVERAGE:
        rank += 1
    return rank


def over_launches(values: Sequence[float], *, paired: bool = False) -> Estimate:
    """Return the median over launches and its order-statistic interval, with the coverage that it really has."""
    n = len(values)
    if n == 1:
        return Estimate(value=values[0], low=None, high=None, coverage=0.0, launches=1, paired=paired)
    ordered = sorted(values)
    rank = rank_of_interval(n)
    return Estimate(
        value=median(ordered),
        low=ordered[rank - 1],
        high=ordered[n - rank],
        coverage=rank_coverage(n, rank),
        launches=n,
        paired=paired,
    )


def over_rounds(by_round: Mapping[RoundKey, float], *, paired: bool = False) -> Estimate:
    """Return the median over launches and its interval; over epochs where there are several."""
    are_positive = min(by_round.values()) > 0
    return _over_epochs(by_round, partial(over_launches, paired=paired), median, are_positive=are_positive)


def _over_epochs(
    values: Mapping[RoundKey, float],
    of_launches: Callable[[Sequence[float]], Estimate],
    middle: Callable[[Sequence[float]], float],
    *,
    are_positive: bool,
) -> Estimate:
    """Return what launches give, or epochs where there are several; middle: of an epoch."""
    found, epochs = of_launches(list(values.values())), by_epoch(values)
    if len(epochs) < 2:
        return found
    each = [middle(one) for one in epochs]
    if len(epochs) < EPOCHS_LEAST:
        ends = [end for end in (found.low, found.high) if end is not None]
        return replace(found, low=min(ends + each), high=max(ends + each))
    into, back = (log, exp) if are_positive else (float, float)
    mean = mean_of([into(one) for one in each])
    low, high = mean.interval(1 - TARGET_COVERAGE)
    return replace(found, value=back(mean.value), low=back(low), high=back(high), coverage=TARGET_COVERAGE)


def over_pairs(differences: Sequence[float]) -> Estimate:
    """Return the middle of paired differences and their interval, by signed ranks; without one, their range."""
    n, walsh = len(differences), signed_rank.averages(differences)
    value = median(walsh)
    if n == 1:
        return Estimate(value=value, low=None, high=None, coverage=0.0, launches=1, paired=True)
    against = max(0, signed_rank.most_against(n, 1 - TARGET_COVERAGE))
    return Estimate(
        value=value,
        low=walsh[against],
        high=walsh[-1 - against],
        coverage=1 - signed_rank.two_sided(n, against),
        launches=n,
        paired=True,
    )


def quantile(histogram: Histogram, per_mille: int) -> int:
    """Return the value at a quantile given in thousandths (500 = median, 999 = p99.9), by HdrHistogram's rule.

    That is the upper end of the first bucket at which the cumulative count reaches floor(q n + 1/2), at least 1
    (`getValueAtPercentile` of every HdrHistogram library); integers throughout, so that no rounding can differ.
    """
    if not histogram:
        raise ValueError(say("intervals.quantile_of_nothing"))
    return histogram.value_of(max(1, (2 * per_mille * histogram.total + 1000) // 2000))


def tails(histograms: Sequence[Histogram], per_milles: Sequence[int]) -> list[Tail]:
    """Return tail quantiles of all launches' samples together, each if enough samples lie beyond it.

    Needed are `TAIL_SAMPLES` samples beyond the quantile, all launches together; so p99 asks for 10,000 samples and
    p99.9 for 100,000. Samples of one launch follow one another and are not independent; with fewer, a single pause of
    the machine would decide the value. Histograms are added before quantiles are taken, never after.
    """
    if not mergeable(histograms):
        n = sum(one.total for one in histograms)
        none = Tail(value=None, low=None, high=None, samples=n, reason=say("intervals.buckets_differ"))
        return [none for _ in per_milles]
    pooled = merge(histograms)
    return [_tail(pooled, histograms, per_mille) for per_mille in per_milles]


def _tail(pooled: Histogram, histograms: Sequence[Histogram], per_mille: int) -> Tail:
    n = pooled.total
    beyond = n * (1000 - per_mille) // 1000
    if beyond < TAIL_SAMPLES:
        needed = TAIL_SAMPLES * 1000 // (1000 - per_mille)
        return Tail(
            value=None,
            low=None,
            high=None,
            samples=n,
            reason=f"{units.grouped(n)} samples; needs {units.grouped(needed)}",
        )
    own = [quantile(histogram, per_mille) for histogram in histograms if histogram]
    return Tail(value=quantile(pooled, per_mille), low=min(own), high=max(own), samples=n, reason=None)


def _unpaired_ratio(ours: Estimate, base: Estimate) -> Estimate:
    """Return the ratio of two medians; the interval joins the extreme ends and covers at least the product."""
    if ours.low is None or ours.high is None or base.low is None or base.high is None:
        low = high = None
        coverage = 0.0
    else:
        low, high = ours.low / base.high, ours.high / base.low
        coverage = ours.coverage * base.coverage
    return Estimate(
        value=ours.value / base.value,
        low=low,
        high=high,
        coverage=coverage,
        launches=min(ours.launches, base.launches),
    )


def unpaired_difference(ours: Estimate, base: Estimate) -> Estimate:
    """Return the difference of two medians, with its interval joined like that of the ratio."""
    if ours.low is None or ours.high is None or base.low is None or base.high is None:
        low = high = None
        coverage = 0.0
    else:
        low, high = ours.low - base.high, ours.high - base.low
        coverage = ours.coverage * base.coverage
    return Estimate(
        value=ours.value - base.value,
        low=low,
        high=high,
        coverage=coverage,
        launches=min(ours.launches, base.launches),
    )


def _over_paired_rounds(differences: Mapping[RoundKey, float]) -> Estimate:
    """Return the middle of paired differences and their interval; over epochs where there are several."""
    return _over_epochs(differences, over_pairs, signed_rank.estimate, are_positive=False)


def _pairs(ours: Mapping[RoundKey, float], base: Mapping[RoundKey, float]) -> dict[RoundKey, tuple[float, float]]:
    """Return values of the same rounds, or nothing unless every launch of ours has its partner.

    Where the base was measured up to an earlier look, in the first of our rounds and no others, these are compared.
    """
    common = sorted(ours.keys() & base.keys())
    ended_early = len(common) == len(base) and common == sorted(ours)[: len(common)]
    if not common or (len(common) < len(ours) and not ended_early):
        return {}
    return {number: (ours[number], base[number]) for number in common}


def ratio(ours: Mapping[RoundKey, float], base: Mapping[RoundKey, float]) -> Estimate:
    """Return ours ÷ base over launches; both are keyed by round (and launch in it).

    Launches of one round ran close together in time, so where every launch of ours has a partner in its round the
    ratio is taken round by round, and middle and interval are those of the ratios (`over_pairs`): what drifts with the
    machine cancels. Otherwise it is the ratio of the two medians, with an interval from the ends of both (coverage at
    least the product of both coverages, the launches being independent).
    """
    pairs = _pairs(ours, base)
    if pairs:
        if min(min(pair) for pair in pairs.values()) <= 0:  # no logarithm
            return over_rounds({key: x / y for key, (x, y) in pairs.items()}, paired=True)
        found = _over_paired_rounds({key: log(x / y) for key, (x, y) in pairs.items()})
        medians = log(median(list(ours.values())) / median(list(base.values())))
        low, high = (None if end is None else exp(end) for end in (found.low, found.high))
        disagree = do_disagree(medians, found.value, found.low, found.high)
        return replace(found, value=exp(found.value), low=low, high=high, pairs_disagree=disagree)
    return _unpaired_ratio(over_rounds(ours), over_rounds(base))


def do_disagree(
    medians: float, pairs: float, low: float | None, high: float | None, margin: float = DISAGREE_WITHIN
) -> bool:
    """Tell whether the ratio of two medians contradicts the median of paired ratios, with its interval; logarithms.

    So it does where it lies by more than the margin away, and on the other side of 1 or beyond the interval. Both stand
    in one row: a reader who divides the medians has to be told.
    """
    if abs(medians - pairs) <= log1p(margin):
        return False
    beyond = low is not None and high is not None and not low <= medians <= high
    return beyond or medians * pairs <= 0


def difference(ours: Mapping[RoundKey, float], base: Mapping[RoundKey, float]) -> Estimate:
    """Return ours - base over launches, paired by round like `ratio`."""
    pairs = _pairs(ours, base)
    if pairs:
        return _over_paired_rounds({key: x - y for key, (x, y) in pairs.items()})
    return unpaired_difference(over_rounds(ours), over_rounds(base))


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
    """Return a tail as a curve: the value that one in so many of all launches' samples exceeds, "one in 100" the p99.

    Each point is counted in the merged histograms, none is interpolated, and the curve ends where fewer than
    `TAIL_SAMPLES` samples lie beyond. Nothing comes back where histograms cannot be added, or hold too few.
    """
    filled = [one for one in histograms if one]
    if not filled or not mergeable(filled):
        return ()
    pooled = merge(filled)
    reached = [one_in for one_in in ONE_IN if pooled.total // one_in >= TAIL_SAMPLES]
    return tuple(_point(pooled, filled, one_in) for one_in in reached)


def _point(pooled: Histogram, histograms: Sequence[Histogram], one_in: int) -> TailPoint:
    own = [exceeded(one, one_in) for one in histograms]
    return TailPoint(one_in=one_in, value_ns=exceeded(pooled, one_in), low_ns=min(own), high_ns=max(own))
