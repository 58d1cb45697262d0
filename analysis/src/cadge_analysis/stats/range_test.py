# SPDX-License-Identifier: BSD-3-Clause
"""How surely differences that all lie on one side are differences, from how far they lie from zero.

Differences of two layers that are alike have a distribution that is symmetric about zero, with one hill: that holds of
the difference of any two independent draws from a distribution with one hill (Hodges and Lehmann, Annals of
Mathematical Statistics 25, 1954, p. 787). Then n of them all lie on one side, with the nearest d away from zero and
within a range of R, with a probability of at most

    (1/2)^(n-1) (1 + d/R)^-(n-1)

(Lanke, Scandinavian Journal of Statistics 1, 1974, p. 28: the interval [x_1 - t R, x_n + t R] misses the middle no
more often than that with t for d/R). Why: given that the largest is m, each other one, whose density falls from zero
on, lies between m d/(d + R) and m with at most R/(d + R) of the probability that it has below m. So launches need not
be alike, only independent; it is exact where each side is uniform, and with d = 0 it is the sign test.

It asks for one more thing than signs do, the hill. Two hills, of which each layer is on one in each launch, make zero
the highest of three; but a campaign in which one layer happened to be on the one hill in all launches, and the other
layer on the other, would be called different. The sign test calls it so as well; modes.py looks for hills.

Where neighbouring differences correlate by r, their range is smaller than that of independent ones: it is widened by
the root of (1 + r)/(1 - r), and the probability of all signs alike is that of a walk that remembers (signs.py). By
simulation (harness/bench/range_test.py) the rate of wrong results is then at most the stated one up to a correlation of
0.5, from 5 % down to 0.03 %, for normal and double exponential differences and such whose spread changes from launch to
launch; of even ones, which no latency's are, it is up to 1.2 times the stated one at 0.1, 1.9 at 0.3 and 4 at 0.5 (at
0.03 %; at 0.5 % it is 1.1, 1.2 and 1.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

from cadge_analysis.stats.signs import leaves, two_sided

LAUNCHES_LEAST = 6
"""Fewer are not called an interval, though the theorem would give one."""
RESOLUTION = 0.002
"""Logarithms of ratios are not told apart below this: histograms hold three digits of each side."""


def widened(correlation: float) -> float:
    """Return how many times its range a sample with this correlation of neighbours is taken to have."""
    return sqrt((1 + correlation) / (1 - correlation))


def _range(values: Sequence[float], correlation: float) -> float:
    return max(max(values) - min(values), RESOLUTION) * widened(correlation)


def stretch(values: Sequence[float], distance: float, *, correlation: float = 0.0) -> float:
    """Return 1 + d/R, for the distance of the nearest value from what it is compared with."""
    if len(values) < LAUNCHES_LEAST or distance <= 0:
        return 1.0
    return 1.0 + distance / _range(values, correlation)


def factor(launches: int, stretched: float) -> float:
    """Return by how much less often launches lie so far away than all on one side at all."""
    return float(stretched ** (1 - launches))


@lru_cache(maxsize=1024)
def inflation(launches: int, correlation: float) -> float:
    """Return how many times as often all signs are alike where neighbours correlate."""
    return leaves((launches,), (0,), correlation=correlation)[0] / two_sided(launches, 0)


def distance_needed(launches: int, level: float) -> float | None:
    """Return how far, in ranges of theirs, so many launches have to lie from zero at a two-sided level.

    0 where signs alone will do; None where launches are too few.
    """
    if launches < LAUNCHES_LEAST or level <= 0:
        return 0.0 if two_sided(launches, 0) <= level * (1 + 1e-9) else None
    return max(0.0, float((two_sided(launches, 0) / level) ** (1 / (launches - 1)) - 1))


def interval(values: Sequence[float], level: float, *, correlation: float = 0.0) -> tuple[float, float] | None:
    """Return the interval at a level that is too small for order statistics; None where values are too few."""
    beyond = distance_needed(len(values), level)
    if beyond is None:
        return None
    reach = beyond * _range(values, correlation)
    return min(values) - reach, max(values) + reach
