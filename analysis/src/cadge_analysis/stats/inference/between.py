# SPDX-License-Identifier: BSD-3-Clause
"""What lies between two campaigns of one machine beside what is asked for: its drift, estimated over series.

Launches of a campaign are replicates of its hour. Between campaigns there is one more component of variance, of which
two campaigns are a single draw, however many launches they have (Kalibera and Tuma, EPEW 2006, LNCS 4054, p. 63:
"Precise Regression Benchmarking with Random Effects"). What replicates it are the other series of the same two
campaigns: most of them did not change. Floors and references are among them, and no build of ours changes these.

*What moved all alike*, `common`: the median over series of their own medians over cells, so that a few that truly
changed, or one with many cells, do not move it; with the interval of order statistics over series.

*How far apart the rest is*, `spread`: an empirical null, whose width is taken from the middle of what was observed and
not from theory (Efron, Journal of the American Statistical Association 99, 2004, p. 96, section 4). A quarter of the
differences between cells of different series lie within what a quarter of normal ones would: the scale Qn of Rousseeuw
and Croux (JASA 88, 1993, p. 1273), which asks for no centre, is as good as 82 % of the values would be if all were
normal, and holds as long as half of the series did not change. Pairs of cells of one series are left out, as they share
what befell it. Of that scale only what the launches of the most precise quarter of cells explain is taken away: where a
busy machine makes most cells' launches noisy, they would explain everything, and the few that are precise would be
called changed (of eight campaigns beside others' work, in 28 pairs, 6.5 % of all cells were).

A change is then judged against Student's t with the spread's degrees of freedom (see drifted.py): EFFICIENCY of two
less than there are series, since cells of a series hang together. By simulation of 1,500 pairs of campaigns of 5 to 8
series, of which all drift by 3 % by themselves: 1.4 to 2.1 % of cells have a p of 5 % or less, 0.3 to 0.5 % one of 1 %,
0.01 to 0.09 % one of 0.1 % (with one less in place of two the last was up to 0.5 %).

*The layer that is judged* is left out of both, so that a layer that moved alone widens nothing by which it is judged.
Of 60 simulated pairs of campaigns with six launches, one of 5 or 10 layers being four times as slow, all its cells are
found, and none of the others is called (harness/bench/verdicts/between_campaigns.py --simulate 60 --plant 300).

*The floors.* What moved all layers alike, and no floor, is no drift but a finding: a library that all of them share
may have become slower. So floors and layers are separated by the rank sum over series (`is_apart`); where they differ,
what floors did is the machine's part. Where there are too few of either for that test ever to tell, the common shift
has no floors beside it: a change is then only called one if it is one with and without the common shift, and so is
"the same".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf, pi, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.shift import rank_sum_test
from cadge_analysis.stats.intervals import Estimate, median, over_launches

if TYPE_CHECKING:
    from numpy.typing import NDArray

SERIES_LEAST = 5
"""Fewer series say nothing of how series differ."""
EFFICIENCY = 0.82
_QUARTER = 0.25
_WITHIN = NormalDist().inv_cdf((1 + _QUARTER) / 2)
"""Within so many standard deviations of 0 a quarter of normal values lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMove:
    """One cell: the logarithm of how many times as long it took in the second campaign, and its standard error.

    `is_floor`: no build of ours has a part in it. The error is what launches within both campaigns explain.
    """

    series: str
    is_floor: bool
    shift: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignDrift:
    """Drift between two campaigns, of cells that are alike. Logarithms: above 0 the second took longer.

    `common`: what is taken for the machine's part; `spread`: the standard deviation of what is left of a cell's drift;
    `freedom`: how well that is known. `layers`, `floors`: each by itself; None where there is none.
    """

    common: Estimate
    spread: float
    freedom: float
    layers: Estimate | None
    floors: Estimate | None
    is_apart: bool
    has_floors: bool

    @property
    def series(self) -> int:
        """How many there are."""
        return sum(one.launches for one in (self.layers, self.floors) if one is not None)

    @property
    def error(self) -> float:
        """The standard deviation of a cell's drift once the common one is out: of the spread, and of the median.

        The variance of a median of n normal values is pi/2 times that of their mean.
        """
        return self.spread * sqrt(1 + pi / 2 / max(1, self.common.launches))


def between(cells: Sequence[CellMove], *, without: str = "") -> CampaignDrift | None:
    """Return the drift that cells show; None where they are of too few series.

    without: a layer that is judged by the others, and has no part in it.
    """
    cells = [one for one in cells if one.is_floor or one.series != without] if without else cells
    of_layers, of_floors = (
        list(of_series([one for one in cells if one.is_floor is kind]).values()) for kind in (False, True)
    )
    every = [*of_layers, *of_floors]
    if len(every) < SERIES_LEAST - bool(without):
        return None
    apart = is_apart(of_layers, of_floors)
    groups = [[one for one in cells if one.is_floor is kind] for kind in (False, True)] if apart else [cells]
    return CampaignDrift(
        common=over_launches(of_floors if apart else every),
        spread=spread_of(groups),
        freedom=EFFICIENCY * (len(every) + bool(without) - (3 if apart else 2)),
        layers=over_launches(of_layers) if of_layers else None,
        floors=over_launches(of_floors) if of_floors else None,
        is_apart=apart,
        has_floors=can_be_apart(len(of_layers), len(of_floors)),
    )


def of_series(cells: Sequence[CellMove]) -> dict[str, float]:
    """Return the median of each series."""
    found: dict[str, list[float]] = defaultdict(list)
    for one in cells:
        found[one.series].append(one.shift)
    return {series: median(shifts) for series, shifts in found.items()}


def can_be_apart(layers: int, floors: int) -> bool:
    """Tell whether the rank sum over so many series could ever tell floors and layers apart."""
    return min(layers, floors) > 0 and 2 / comb(layers + floors, layers) <= ERROR


def is_apart(layers: Sequence[float], floors: Sequence[float]) -> bool:
    """Tell whether layers surely moved otherwise than floors; each value is that of a series."""
    if not can_be_apart(len(layers), len(floors)):
        return False
    return rank_sum_test([b - a for a in layers for b in floors], len(layers), len(floors)) <= ERROR


def spread_of(groups: Sequence[Sequence[CellMove]]) -> float:
    """Return how far cells lie apart beyond what their launches explain; differences are taken within groups."""
    explained = sorted(one.error for cells in groups for one in cells)
    seen = _quartile_apart(groups) / _WITHIN / sqrt(2)
    return sqrt(max(0.0, seen**2 - explained[(len(explained) - 1) // 4] ** 2))


def _quartile_apart(groups: Sequence[Sequence[CellMove]]) -> float:
    """Return the first quartile of the differences between cells of two series; 0 where there are none.

    Pairs are counted, not made: of n cells those not farther apart than x take n log n steps, and the quartile is the
    least x that has a quarter of them. Halving the distance of two floats, as the whole numbers that order them, ends.
    """
    every = [_ShiftOrder.of(cells) for cells in groups]

    def twice_within(most: float) -> int:
        return sum(one.twice_within(most) for one in every)

    pairs = twice_within(inf) // 2
    if not pairs:
        return 0.0
    low, high = 0, int(np.float64(max(np.ptp(one.shifts) for one in every)).view(np.int64)) + 1
    while low < high:
        middle = (low + high) // 2
        if twice_within(float(np.int64(middle).view(np.float64))) > (pairs - 1) // 4 * 2:
            high = middle
        else:
            low = middle + 1
    return float(np.int64(low).view(np.float64))


@dataclass(frozen=True, slots=True)
class _ShiftOrder:
    """Cells in the order of their shifts, with the number of each one's series.

    `before`: of each place and series, how many of its cells come before.
    """

    shifts: NDArray[np.float64]
    series: NDArray[np.int64]
    before: NDArray[np.int32]

    @classmethod
    def of(cls, cells: Sequence[CellMove]) -> _ShiftOrder:
        """Sort cells."""
        shifts = np.array([one.shift for one in cells])
        order = shifts.argsort()
        names, series = np.unique([one.series for one in cells], return_inverse=True)
        is_of = series[order, None] == np.arange(len(names))
        before = np.concatenate([np.zeros((1, len(names)), np.int32), is_of.cumsum(0, np.int32)])
        return cls(shifts[order], series[order], before)

    def twice_within(self, most: float) -> int:
        """Return how many pairs of two series are at most so far apart, from either end: rounding has no side."""
        upwards = self.shifts.searchsorted(self.shifts + most, side="right")
        downwards = self.shifts.searchsorted(self.shifts - most, side="left")
        alike = self.before[upwards, self.series] - self.before[downwards, self.series]
        return int((upwards - downwards - alike).sum())
