# SPDX-License-Identifier: BSD-3-Clause
"""Student's t: how far from its mean a normal value may lie whose spread is known from few others alone.

The tail is a regularised incomplete beta function, I_x(f/2, 1/2) at x = f / (f + t^2) (NIST Digital Library of
Mathematical Functions, 8.17.1), summed as its continued fraction (8.17.22) by Lentz's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, fsum, inf, lgamma, log, sqrt
from statistics import fmean

_TINY = 1e-300
_CLOSE = 1e-14
_TERMS_MOST = 500


def two_sided_tail(t: float, freedom: float) -> float:
    """Return the probability of a value at least as far from 0 as `t`; `freedom` is above 0, and need not be whole."""
    square = t * t
    if square == inf:
        return 0.0
    return _incomplete_beta(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5)


@lru_cache(maxsize=4096)
def reach(level: float, freedom: float) -> float:
    """Return which distance from 0 is passed with this probability, on both sides together."""
    if level >= 1:
        return 0.0
    few, many = 0.0, 1.0
    while two_sided_tail(many, freedom) > level:
        few, many = many, 2 * many
    for _ in range(80):
        middle = (few + many) / 2
        if two_sided_tail(middle, freedom) > level:
            few = middle
        else:
            many = middle
    return many


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of few normal values, or the difference of two such means, its standard error and that one's freedom."""

    value: float
    error: float
    freedom: int

    def tail(self, shift: float = 0.0) -> float:
        """Return the two-sided p that the true one is this."""
        away = abs(self.value - shift)
        if not self.error:
            return 0.0 if away else 1.0
        return two_sided_tail(away / self.error, self.freedom)

    def interval(self, level: float) -> tuple[float, float]:
        """Return what is not refused at a level."""
        far = reach(level, self.freedom) * self.error
        return self.value - far, self.value + far


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of two values or more."""
    return Mean(fmean(values), sqrt(_squares(values) / (len(values) - 1) / len(values)), len(values) - 1)


def difference_of(first: Sequence[float], second: Sequence[float]) -> Mean:
    """Return by how much the mean of the second is larger, of three values or more that scatter alike on both sides.

    Of a single value the other side says how it scatters.
    """
    freedom = len(first) + len(second) - 2
    pooled = (_squares(first) + _squares(second)) / freedom
    return Mean(fmean(second) - fmean(first), sqrt(pooled * (1 / len(first) + 1 / len(second))), freedom)


def _squares(values: Sequence[float]) -> float:
    middle = fmean(values)
    return fsum((one - middle) ** 2 for one in values)


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """Return I_x(a, b); `rest` is 1 - x, which is not computed from x since either may be very small."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    found = d
    for m in range(1, _TERMS_MOST):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + term / c
            c = c if abs(c) > _TINY else _TINY
            found *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return found
