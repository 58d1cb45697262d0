# SPDX-License-Identifier: BSD-3-Clause
"""How variances of few values differ from one to the next, beyond what few values explain.

Variances are taken as a common one times inverse chi-squares; both are estimated from the moments of their logarithms
(Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, article 3, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, variance

VARIANCES_LEAST = 6
"""Fewer say nothing of how variances differ."""
FREEDOM_MOST = 100.0


@dataclass(frozen=True, slots=True)
class Scatter:
    """A variance that many have about in common, and of how many degrees of freedom it is worth: 0 of none."""

    common: float = 0.0
    freedom: float = 0.0


def scatter_of(variances: Sequence[tuple[float, int]]) -> Scatter:
    """Return what variances above zero have in common, each with its degrees of freedom."""
    if len(variances) < VARIANCES_LEAST:
        return Scatter()
    logs, explained = [], []
    for one, freedom in variances:
        first, second = polygamma(freedom / 2)
        logs.append(log(one) - first + log(freedom / 2))
        explained.append(second)
    between = variance(logs) - fmean(explained)
    few, many = 0.0, FREEDOM_MOST
    if between > polygamma(many / 2)[1]:
        for _ in range(40):  # the trigamma function falls
            middle = (few + many) / 2
            few, many = (middle, many) if polygamma(middle / 2)[1] > between else (few, middle)
    first, _ = polygamma(many / 2)
    return Scatter(common=exp(fmean(logs) + first - log(many / 2)), freedom=many)


def polygamma(x: float) -> tuple[float, float]:
    """Return the digamma and the trigamma function, by recurrence and their series (Abramowitz and Stegun 6.3, 6.4)."""
    steps = [x + at for at in range(20)]
    z = x + 20
    first = log(z) - 1 / (2 * z) - 1 / (12 * z**2) - sum(1 / one for one in steps)
    return first, 1 / z + 1 / (2 * z**2) + 1 / (6 * z**3) + sum(1 / one**2 for one in steps)
