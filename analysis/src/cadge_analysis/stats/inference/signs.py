# SPDX-License-Identifier: BSD-3-Clause
"""The walk of signs: how many of so many paired differences lie above zero, launch after launch, if the truth is zero.

Which way a difference goes is then a fair coin, whatever the shape of the differences: the walk is exact, and whether
it leaves given limits at given looks is summed over all of its ways, not simulated (Armitage, McPherson and Rowe,
Journal of the Royal Statistical Society A 132, 1969, p. 235: the recursion over looks).

Differences that follow each other alike make the coin remember. The model is then a Gaussian autoregression of first
order, x' = r x + e, of which only the sign is seen; x is cut into STRENGTHS equally probable parts on each side of
zero, which makes it a Markov chain with exact marginals. Under r = 0 nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist

STRENGTHS = 6
"""Parts on each side of zero. With 6 the rates are within a twentieth of themselves of simulated ones up to r = 0.5."""
POINTS = 12
"""Where each part is integrated: so many equally probable points of it."""

Chain = tuple[tuple[float, ...], ...]


@lru_cache(maxsize=4096)
def two_sided(launches: int, fewer: int) -> float:
    """Return the sign test's p where `fewer` of the launches lie on the one side and all others on the other.

    Conover, Practical Nonparametric Statistics, 3rd edition, section 3.4. 0 where `fewer` is below zero: never.
    """
    return min(1.0, 2 * sum(comb(launches, k) for k in range(fewer + 1)) / (1 << launches))


@lru_cache(maxsize=8192)
def most_fewer(launches: int, level: float) -> int:
    """Return the largest number on the smaller side that is a difference at this level; -1 where not even 0 is."""
    most = level * (1 + 1e-9) * (1 << launches) / 2
    ways, all_ways, fewer = 1, 1, -1
    while 2 * (fewer + 1) < launches and all_ways <= most:
        fewer += 1
        ways = ways * (launches - fewer) // (fewer + 1)
        all_ways += ways
    return fewer


@lru_cache(maxsize=128)
def _chain(correlation: float) -> Chain:
    """Return from which part the walk goes to which with what probability; the first half of the parts is below 0."""
    if correlation == 0:
        return ((0.5, 0.5), (0.5, 0.5))
    normal, parts = NormalDist(), 2 * STRENGTHS
    ends = [normal.inv_cdf(part / parts) for part in range(1, parts)]
    spread = sqrt(1 - correlation * correlation)
    rows = []
    for part in range(parts):
        row = [0.0] * parts
        for point in range(POINTS):
            centre = correlation * normal.inv_cdf((part + (point + 0.5) / POINTS) / parts)
            reached = [0.0, *(normal.cdf((end - centre) / spread) for end in ends), 1.0]
            for to in range(parts):
                row[to] += (reached[to + 1] - reached[to]) / POINTS
        rows.append(tuple(row))
    return tuple(rows)


@lru_cache(maxsize=8192)
def leaves(
    looks: tuple[int, ...], fewest: tuple[int, ...], *, correlation: float = 0.0, one_sided: bool = False
) -> tuple[float, ...]:
    """Return, for each look, the probability that the walk leaves its limits there and at no look before.

    looks: after so many launches, ascending. fewest: the walk leaves where no more than so many lie on one side; -1: it
    cannot. `one_sided`: only where so few lie below. `correlation`: that of neighbouring differences, from 0 to below
    1.
    """
    if correlation == 0 and len(looks) == 1:
        return (two_sided(looks[0], fewest[0]) / (2 if one_sided else 1),)
    chain = _chain(correlation)
    parts = len(chain)
    ways = _first(parts)
    found, launches = [], 1
    for look, fewer in zip(looks, fewest, strict=True):
        while launches < look:
            ways = _step(ways, chain)
            launches += 1
        outside = 0.0
        for above, row in enumerate(ways):
            if look - above <= fewer or (above <= fewer and not one_sided):
                outside += sum(row)
                ways[above] = [0.0] * parts
        found.append(outside)
    return tuple(found)


@lru_cache(maxsize=512)
def ways_above(launches: int, *, correlation: float = 0.0) -> tuple[float, ...]:
    """Return the probability of each number of differences above zero, from 0 to all of one or more launches."""
    chain = _chain(correlation)
    ways = _first(len(chain))
    for _ in range(launches - 1):
        ways = _step(ways, chain)
    return tuple(sum(row) for row in ways)


def _first(parts: int) -> list[list[float]]:
    """Return ways[above][part] after one launch: the probability of so many above zero, the last in this part."""
    below = [1 / parts if part < parts // 2 else 0.0 for part in range(parts)]
    return [below, [1 / parts - one for one in below]]


def _step(ways: Sequence[Sequence[float]], chain: Chain) -> list[list[float]]:
    """Return where the walk is one launch later."""
    parts = len(chain)
    after = [[0.0] * parts for _ in range(len(ways) + 1)]
    for above, row in enumerate(ways):
        for weight, to_each in zip(row, chain, strict=True):
            if weight:
                for to, chance in enumerate(to_each):
                    after[above + (2 * to >= parts)][to] += weight * chance
    return after
