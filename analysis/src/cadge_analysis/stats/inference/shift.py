# SPDX-License-Identifier: BSD-3-Clause
"""By how much one side differs from another: a ratio with its interval, and how surely there is a difference at all.

Distribution-free, and exact but where that is said. Everything is a difference of logarithms, so that the sides may be
exchanged: then the shift changes its sign, and nothing else, to the last bit.

Two series of one campaign are paired: their launches stand side by side in each round, and share what the machine was
like then. The shift, its interval and its p are those of the signed rank (signed_rank.py).

Two campaigns are not paired. The shift is the median of all differences between a launch of one and a launch of the
other (Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963, p. 598), with the interval and the p of the rank
sum (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition, sections 4.1 to 4.3). That takes
launches for independent and both sides for alike but for the shift; what the machine did between two campaigns is in
it. `ShiftEstimate` takes that out, as far as it is known (between.py).

Where either side has several epochs, what is independent is the epoch: launches of one share what it moved. Then the
values are the epochs' estimates, one each (epochs.py). Of two campaigns they are compared by Student's two-sample t,
which takes epochs of both sides to scatter alike; a side of one epoch is one more value of that (Sokal and Rohlf,
Biometry, 4th edition, section 9.4). Where epochs move cells by as much as launches scatter, and no drift is taken out,
37 to 43 % of cells without a difference have a p of 5 % or less by launches, and 5 % by 2, 3, 4 or 6 epochs
(harness/bench/verdicts/between_campaigns.py --epochs).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb, erf, log, sqrt
from statistics import NormalDist
from typing import Self, TypeVar

from cadge_analysis.stats.inference import signed_rank
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST, by_epoch, do_agree
from cadge_analysis.stats.inference.student import Mean, difference_of, mean_of
from cadge_analysis.stats.intervals import TARGET_COVERAGE, median, over_pairs

_Key = TypeVar("_Key", bound=Hashable)

EXACT_PAIRS_MAX = 2500
"""Beyond so many pairs of launches the rank sum's distribution is the normal one, with a correction for continuity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """The logarithm of (second side / first side), its interval, and the two-sided p of no difference.

    `low` and `high` are None where the launches are too few for an interval; `coverage` is what it really covers.
    """

    log_ratio: float
    low: float | None
    high: float | None
    coverage: float
    p: float
    launches: tuple[int, int]
    paired: bool
    differences: tuple[float, ...]
    """Walsh averages of pairs, or of each launch of the one with each of the other; the smallest first."""

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the interval that misses with this probability at most; None where even the widest one does."""
        n, m = self.launches
        rank = signed_rank.most_against(n, level) + 1 if self.paired else rank_at(n, m, level)
        return (self.differences[rank - 1], self.differences[-rank]) if rank else None

    def steps(self) -> tuple[tuple[float, float, float], ...]:
        """Return the interval of each level that has one of its own, as (level, low, high): the widest first."""
        if self.paired:
            levels = [
                signed_rank.two_sided(self.launches[0], against) for against in range((len(self.differences) + 1) // 2)
            ]
        else:
            levels = list(_levels_of_pairs(*self.launches))
        n = len(self.differences)
        return tuple(
            (level, self.differences[rank], self.differences[n - 1 - rank]) for rank, level in enumerate(levels)
        )

    def error(self) -> float:
        """Return the standard error that launches give: a normal one's whose interval is as wide; 0: of one launch.

        From the interval and not from the values, so that one stalled launch says no more than another.
        """
        ends = next((step for step in reversed(self.steps()) if step[0] <= 1 - TARGET_COVERAGE), None)
        level, low, high = ends or self.steps()[0]
        return (high - low) / 2 / NormalDist().inv_cdf(1 - level / 2) if level < 1 else 0.0

    def mirrored(self) -> Self:
        """Return the same shift as seen from the other side."""
        return replace(
            self,
            log_ratio=-self.log_ratio,
            low=None if self.high is None else -self.high,
            high=None if self.low is None else -self.low,
            launches=(self.launches[1], self.launches[0]),
            differences=tuple(-value for value in reversed(self.differences)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochShift(Shift):
    """A shift over epochs, by t: `mean` of what they differ by. `differences` are those of epochs."""

    mean: Mean

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval that misses with this probability."""
        return self.mean.interval(level)

    def steps(self) -> tuple[tuple[float, float, float], ...]:
        """Return nothing: every level has an interval of its own."""
        return ()

    def error(self) -> float:
        """Return the standard error of the mean."""
        return self.mean.error

    def mirrored(self) -> Self:
        """Return the same shift as seen from the other side."""
        return replace(Shift.mirrored(self), mean=replace(self.mean, value=-self.mean.value))


def paired(first: Mapping[_Key, float], second: Mapping[_Key, float]) -> Shift | None:
    """Return the shift over what both sides have; None where that is nothing. All values are above zero."""
    both = sorted(set(first) & set(second), key=repr)
    if not both:
        return None
    epochs = by_epoch({key: log(second[key]) - log(first[key]) for key in both})
    estimates = [signed_rank.estimate(one) for one in epochs]
    n = len(both)
    if len(epochs) >= EPOCHS_LEAST:
        return _over_epochs(mean_of(estimates), (n, n), sorted(estimates), is_paired=True)
    differences = [one for epoch in epochs for one in epoch]
    found = over_pairs(differences)
    is_open = len(epochs) > 1 and not do_agree(estimates)
    return Shift(
        log_ratio=found.value,
        low=found.low,
        high=found.high,
        coverage=found.coverage,
        p=1.0 if is_open else signed_rank.p_value(differences),
        launches=(n, n),
        paired=True,
        differences=tuple(signed_rank.averages(differences)),
    )


def unpaired(first: Sequence[float], second: Sequence[float]) -> Shift | None:
    """Return the shift between two samples; None where one is empty. All values are above zero."""
    if not first or not second:
        return None
    ours, theirs = [log(value) for value in first], [log(value) for value in second]
    differences = sorted(b - a for a in ours for b in theirs)
    rank, coverage = rank_of_pairs(len(ours), len(theirs))
    return Shift(
        log_ratio=median(differences),
        low=differences[rank - 1] if rank else None,
        high=differences[-rank] if rank else None,
        coverage=coverage,
        p=rank_sum_test(differences, len(ours), len(theirs)),
        launches=(len(ours), len(theirs)),
        paired=False,
        differences=tuple(differences),
    )


def between_epochs(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Shift | None:
    """Return the shift between two samples, whose launches are given epoch by epoch; of one epoch each by launches."""
    if not first or not second or len(first) + len(second) == 2:
        return unpaired([one for of in first for one in of], [one for of in second for one in of])
    ours, theirs = ([signed_rank.estimate([log(one) for one in of]) for of in side] for side in (first, second))
    launches = sum(map(len, first)), sum(map(len, second))
    differences = sorted(b - a for a in ours for b in theirs)
    return _over_epochs(difference_of(ours, theirs), launches, differences, is_paired=False)


def _over_epochs(mean: Mean, launches: tuple[int, int], differences: Sequence[float], *, is_paired: bool) -> EpochShift:
    low, high = mean.interval(1 - TARGET_COVERAGE)
    return EpochShift(
        log_ratio=mean.value,
        low=low,
        high=high,
        coverage=TARGET_COVERAGE,
        p=mean.tail(),
        launches=launches,
        paired=is_paired,
        differences=tuple(differences),
        mean=mean,
    )


@lru_cache(maxsize=256)
def _levels_of_pairs(ours: int, theirs: int) -> tuple[float, ...]:
    """Return how often the shift lies outside of the smallest and largest difference, the second ones, and so on."""
    return tuple(min(1.0, 2 * at_most(rank, ours, theirs)) for rank in range((ours * theirs + 1) // 2))


@lru_cache(maxsize=256)
def _pair_counts(ours: int, theirs: int) -> tuple[int, ...]:
    """Return in how many of the orders of both samples so many pairs have the second above the first, for each number.

    By the recursion of Mann and Whitney (Annals of Mathematical Statistics 18, 1947, p. 50): the highest of all is of
    the second sample, and above all of the first, or of the first.
    """
    rows = [[1] for _ in range(theirs + 1)]  # with none of the first sample there is one order, without any pair
    for a in range(1, ours + 1):
        row = [[1]]
        for b in range(1, theirs + 1):
            counts = [0] * (a * b + 1)
            for pairs, ways in enumerate(rows[b]):
                counts[pairs] += ways
            for pairs, ways in enumerate(row[b - 1]):
                counts[pairs + a] += ways
            row.append(counts)
        rows = row
    return tuple(rows[theirs])


def at_most(pairs: float, ours: int, theirs: int) -> float:
    """Return the probability of no more pairs than this with the second above the first, if there is no difference."""
    if pairs < 0:
        return 0.0
    if ours * theirs <= EXACT_PAIRS_MAX:
        return sum(_pair_counts(ours, theirs)[: int(pairs) + 1]) / comb(ours + theirs, ours)
    deviation = sqrt(ours * theirs * (ours + theirs + 1) / 12)
    return (1 + erf((pairs + 0.5 - ours * theirs / 2) / deviation / sqrt(2))) / 2


def rank_of_pairs(ours: int, theirs: int) -> tuple[int, float]:
    """Return which smallest and largest difference enclose the shift with 95 %, and with which probability they do.

    0 and 0.0 where even the smallest and the largest of all do not.
    """
    rank = rank_at(ours, theirs, 1 - TARGET_COVERAGE)
    return rank, 1 - 2 * at_most(rank - 1, ours, theirs) if rank else 0.0


def rank_at(ours: int, theirs: int, level: float) -> int:
    """Return which smallest and largest difference enclose the shift but with this probability; 0: none do."""
    few, many = 0, ours * theirs // 2
    while few < many:  # the probability rises with the rank: the largest that will do is sought
        middle = (few + many + 1) // 2
        if 2 * at_most(middle - 1, ours, theirs) <= level * (1 + 1e-9):
            few = middle
        else:
            many = middle - 1
    return few


def rank_sum_test(differences: Sequence[float], ours: int, theirs: int) -> float:
    """Return the two-sided p of no difference. Of pairs that are alike as many as can be speak against one."""
    above = sum(value > 0 for value in differences)
    below = sum(value < 0 for value in differences)
    alike = len(differences) - above - below
    fewer = min(above, below)
    fewer += min(alike, max(len(differences) // 2 - fewer, 0))
    return min(1.0, 2 * at_most(fewer, ours, theirs))
