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

It asks for one more thing than signs do: one hill. Where a layer switches between two levels from launch to launch,
n launches are all on one level in 2^(1-n) of all cases, and then look as surely different as can be. No test of that
comparison alone can tell; its family can. If a share s of a family's comparisons switch, launches that lie all on one
side and so far away have, averaged over the family, a probability of at most

    (1/2)^(n-1) (s + (1 - s) (1 + d/R)^-(n-1))

which is what p is. BY's bound (families.py) adds up over comparisons, so that it holds with such an average. s is the
share of comparisons whose differences are seen on two levels (modes.py). These themselves, and those of which either
side is seen on two, have s = 1: signs alone. Fewer than LAUNCHES_LEAST launches cannot show two levels, and have signs
alone as well. By simulation of 40 comparisons that all switch and do not differ, 10 % apart and normal with 0.5 % on
each level, 68 % of families of six launches and 12 % of nine had a wrong verdict as if there were one hill; now it is
none of 400. Where nothing switches as much is found as before (harness/bench/verdicts/two_levels.py).

Where neighbouring differences correlate by r, their range is smaller than that of independent ones: it is widened by
the root of (1 + r)/(1 - r), and the probability of all signs alike is that of a walk that remembers (signs.py). By
simulation (harness/bench/verdicts/range_test.py) the rate of wrong results is then at most the stated one up to a
correlation of 0.5, from 5 % down to 0.03 %, for normal and double exponential differences and such whose spread changes
from launch to launch; of even ones, which no latency's are, it is up to 1.2 times the stated one at 0.1, 1.9 at 0.3
and 4 at 0.5 (at 0.03 %; at 0.5 % it is 1.1, 1.2 and 1.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

from cadge_analysis.stats.inference import modes
from cadge_analysis.stats.inference.signs import leaves, two_sided

LAUNCHES_LEAST = modes.LAUNCHES_LEAST
"""Fewer say nothing of two levels."""
RESOLUTION = 0.002
"""Logarithms of ratios are not separated below this: histograms hold three digits of each side."""


def widened(correlation: float) -> float:
    """Return how many times its range a sample with this correlation of neighbours is taken to have."""
    return sqrt((1 + correlation) / (1 - correlation))


def _range(values: Sequence[float], correlation: float) -> float:
    return max(max(values) - min(values), RESOLUTION) * widened(correlation)


def stretch(values: Sequence[float], distance: float, *, correlation: float = 0.0) -> float:
    """Return 1 + d/R, for the distance of the nearest value from what it is compared with."""
    if distance <= 0:
        return 1.0
    return 1.0 + distance / _range(values, correlation)


def has_two_levels(logs: Sequence[float]) -> bool:
    """Tell whether launches, as logarithms, fall into two groups: there is more than one hill."""
    return modes.border(sorted(logs), resolution=RESOLUTION) is not None


def factor(launches: int, stretched: float, switching: float = 0.0) -> float:
    """Return by how much less often launches lie so far away than all on one side at all.

    switching: the share of comparisons on two levels, from 0 to 1.
    """
    if launches < LAUNCHES_LEAST:
        return 1.0
    return float(switching + (1 - switching) * stretched ** (1 - launches))


@lru_cache(maxsize=1024)
def inflation(launches: int, correlation: float) -> float:
    """Return how many times as often all signs are alike where neighbours correlate."""
    return leaves((launches,), (0,), correlation=correlation)[0] / two_sided(launches, 0)


def distance_needed(launches: int, level: float, *, switching: float = 0.0) -> float | None:
    """Return how far, in ranges of theirs, so many launches have to lie from zero at a two-sided level.

    0 where signs alone will do; None where no distance would.
    """
    by_signs = two_sided(launches, 0)
    if by_signs <= level * (1 + 1e-9):
        return 0.0
    if launches < LAUNCHES_LEAST or level <= switching * by_signs * (1 + 1e-6):
        return None
    return float(((level / by_signs - switching) / (1 - switching)) ** (-1 / (launches - 1)) - 1)


def interval(
    values: Sequence[float], level: float, *, correlation: float = 0.0, switching: float = 0.0
) -> tuple[float, float] | None:
    """Return the interval at a level that is too small for order statistics; None where no distance would do."""
    beyond = distance_needed(len(values), level, switching=switching)
    if beyond is None:
        return None
    reach = beyond * _range(values, correlation)
    return min(values) - reach, max(values) + reach
