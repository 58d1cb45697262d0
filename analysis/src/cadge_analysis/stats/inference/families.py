# SPDX-License-Identifier: BSD-3-Clause
"""Many comparisons at once: what is called a difference in a family of them, and which layers may be the best.

A family is one pattern at one place, with one of its quantities: each layer against the declared baseline, in each
case. Never all pairs: among 20 layers these would be 190 comparisons a case in place of 19, and most of them nobody
asks for.

*Findings.* Of the comparisons that are called different, or the same, at most q are not, on average: Benjamini and
Hochberg, Journal of the Royal Statistical Society B 57, 1995, p. 289. It is proved for comparisons that are
independent, or depend on each other positively (Benjamini and Yekutieli, Annals of Statistics 29, 2001, p. 1165); those
with one baseline, whose launches they share, do so. For all pairs of layers it is not proved: by simulation it holds
(harness/bench/verdicts/false_verdicts.py).

*Intervals* of what was chosen so are read at the level of the choice, R q / m for R chosen among m: of such intervals
at most q miss, on average (Benjamini and Yekutieli, Journal of the American Statistical Association 100, 2005, p. 71).
So an interval is clear of zero exactly where the rule says so.

*The leading group* holds the layers that may be the best, of which the truly best is one in all but `error` of all
campaigns: see `not_beaten`. One layer: "fastest"; several are not separated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from cadge_analysis.stats.inference.sequential import ERROR

_Key = TypeVar("_Key", bound=Hashable)


def level_of(rank: int, size: int, error: float = ERROR) -> float:
    """Return the largest p that is a finding where `rank` of `size` comparisons have no larger one."""
    return rank * error / size


def findings(p_values: Sequence[float], error: float = ERROR) -> int:
    """Return how many of a family's comparisons are findings: those with the smallest p."""
    ordered = sorted(p_values)
    size = len(ordered)
    return max((k for k, p in enumerate(ordered, 1) if p <= level_of(k, size, error) * (1 + 1e-9)), default=0)


def level_of_choice(p_values: Sequence[float], size: int, error: float = ERROR) -> float:
    """Return the level of the choice in a family of this size; members of which nothing is known are in it alone."""
    every = [*p_values, *[1.0] * (size - len(p_values))]
    return level_of(max(1, findings(every, error)), max(1, size), error)


def not_beaten(
    names: Sequence[_Key], better: Callable[[_Key, _Key], float], pairs_most: int, *, error: float = ERROR
) -> tuple[_Key, ...]:
    """Return those that no other one is better than, by the one-sided p of `better(one, other)`.

    Multiple comparisons with the best (Hsu, Annals of Statistics 9, 1981, p. 1026, and 12, 1984, p. 1136): a layer is
    out where another one is better at a one-sided level of error / (layers - 1). Which layer looks best decides
    nothing before the tests: whichever truly is the best, it is out only if one of its own layers - 1 tests is wrong,
    so the data that show the best are never used to choose what is tested; and the error is shared among layers - 1
    comparisons, not among all pairs. Better means: its paired difference is below zero by median. Of two that are tied
    for the best in truth each stays with that probability. No test of at most `pairs_most` pairs has a p below
    2 ** -pairs_most: where the level is smaller, all stay, and nothing is tested.

    It is quick where those that look best come first: most are beaten by the first that they are tested against.
    """
    if len(names) < 2:
        return tuple(names)
    level = error / (len(names) - 1) * (1 + 1e-9)
    if 2.0**-pairs_most > level:
        return tuple(names)
    return tuple(one for one in names if not any(better(other, one) <= level for other in names if other != one))
