# SPDX-License-Identifier: BSD-3-Clause
"""Many comparisons at once: what is called a difference in a family of them, and which layers may be the best.

A family is one pattern at one place, with one of its quantities: each layer against the declared baseline, in each
case. Never all pairs: among 20 layers these would be 190 comparisons a case in place of 19, and most of them nobody
asks for.

*Differences.* Of the comparisons that are called different, at most q are none, on average: Benjamini and Yekutieli,
Annals of Statistics 29, 2001, p. 1165, theorem 1.3. It holds however the comparisons depend on one another, and they
do: all share the launches of the baseline, and the machine. Benjamini and Hochberg's rule (Journal of the Royal
Statistical Society B 57, 1995, p. 289) is proved for independent or positively dependent p alone, and two-sided p
against one baseline are not that for certain. The price is a factor of 1 + 1/2 + ... + 1/m, e.g. 4.3 for 40: two
launches more.

*Intervals* of what was chosen so are read at the level of the choice, R q / (m (1 + ... + 1/m)) for R chosen among m:
of such intervals at most q miss, on average (Benjamini and Yekutieli, Journal of the American Statistical Association
100, 2005, p. 71; with that factor for any dependence). So an interval is clear of zero exactly where BY says so.

*The leading group* holds the layers that may be the best, of which the truly best is one in all but `error` of all
campaigns: see `not_beaten`. One layer: "fastest"; several are not separated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import TypeVar

from cadge_analysis.stats.inference.range_test import stretch
from cadge_analysis.stats.inference.sequential import ERROR, LookPlan

_Key = TypeVar("_Key", bound=Hashable)


@cache
def harmonic(size: int) -> float:
    """Return 1 + 1/2 + ... + 1/size."""
    return sum(1 / k for k in range(1, size + 1))


def level_of(rank: int, size: int, error: float = ERROR) -> float:
    """Return the largest p that is a difference where `rank` of `size` comparisons have no larger one (BY)."""
    return rank * error / (size * harmonic(size))


def differing(p_values: Sequence[float], error: float = ERROR) -> int:
    """Return how many of a family's comparisons are differences by BY's rule: those with the smallest p."""
    ordered = sorted(p_values)
    size = len(ordered)
    return max((k for k, p in enumerate(ordered, 1) if p <= level_of(k, size, error) * (1 + 1e-9)), default=0)


def better_p(
    looks: LookPlan, look: int, differences: Sequence[float], *, correlation: float = 0.0, switching: float = 0.0
) -> float:
    """Return the one-sided p of paired differences that are not below zero by median."""
    return looks.p(
        look,
        sum(value >= 0 for value in differences),
        stretch=stretch(differences, -max(differences), correlation=correlation),
        switching=switching,
        correlation=correlation,
        one_sided=True,
    )


def not_beaten(
    names: Sequence[_Key], better: Callable[[_Key, _Key], float], *, error: float = ERROR
) -> tuple[_Key, ...]:
    """Return those that no other one is better than, by the one-sided p of `better(one, other)`.

    Multiple comparisons with the best (Hsu, Annals of Statistics 9, 1981, p. 1026, and 12, 1984, p. 1136): a layer is
    out where another one is better at a one-sided level of error / (layers - 1). Which layer looks best decides
    nothing before the tests: whichever truly is the best, it is out only if one of its own layers - 1 tests is wrong,
    so the data that show the best are never used to choose what is tested; and the error is shared among layers - 1
    comparisons, not among all pairs. Better means: its paired difference is below zero by median. Of two that are tied
    for the best in truth each stays with that probability. Where the error is too small for any result of so few
    launches, all stay.

    It is quick where those that look best come first: most are beaten by the first that they are tested against.
    """
    if len(names) < 2:
        return tuple(names)
    level = error / (len(names) - 1) * (1 + 1e-9)
    return tuple(one for one in names if not any(better(other, one) <= level for other in names if other != one))
