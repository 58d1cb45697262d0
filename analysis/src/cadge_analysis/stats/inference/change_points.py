# SPDX-License-Identifier: BSD-3-Clause
"""Where a series changed: E-divisive, with the energy distance of exponent 1 and a seeded permutation test.

Matteson and James, Journal of the American Statistical Association 109, 2014, p. 334, sections 2 and 3. The series is
cut where it is farthest apart; p is how often a series in shuffled order, within the parts so far, is as far apart.
Then all parts are looked at again. All it asks is that values without a change could stand in any order. A part has at
least LEAST values: the newest one, if it alone is another, is no change yet.

Shuffles end at the ENOUGH-th that is as far apart, and p is then ENOUGH by their number (Besag and Clifford, Biometrika
78, 1991, p. 301): of a series without a change few are made. Hunter (Fleming et al., ICPE 2023) has a t-test in place
of them, which is quicker, but not exact: what it tests is the cut that looked best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise, takewhile
from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST = 2
LEVEL = 0.01
SHUFFLES = 9_999
SEED = 2014
ENOUGH = 10
_AT_ONCE = 500_000  # numbers that are held at a time: 4 MB


@dataclass(frozen=True, slots=True, order=True)
class ChangePoint:
    """The first place at which a series is another, and how often an unchanged one looks as changed by chance."""

    at: int
    p: float


def least_p(values: int, newer: int) -> float:
    """Return the least p that a change can have with `newer` of the values after it: two orders set them apart."""
    return 2 / comb(values, newer)


def needed(level: float) -> int:
    """Return of how many values at least a change can have a p of a level."""
    return next(n for n in count(2 * LEAST) if least_p(n, n // 2) <= level)


def change_points(values: Floats, level: float = LEVEL) -> tuple[ChangePoint, ...]:
    """Return where a series changed, in its order: its cuts, the farthest first, up to one that chance may have made.

    values: one a moment, in order; of fewer than `needed(level)` none is cut. Of series without any change a share of
    `level` at most has a cut.
    """
    if len(values) < needed(level):
        return ()
    return tuple(sorted(takewhile(lambda one: one.p <= level, cuts(values, SHUFFLES))))


def cuts(values: Floats, shuffles: int) -> Iterator[ChangePoint]:
    """Yield where a series is cut, the farthest first, without an end of its own: take them while p is small enough.

    One seed, so that the same series has the same answer.
    """
    random = np.random.default_rng(SEED)
    found: list[int] = []
    while True:
        ends = [0, *sorted(found), len(values)]
        parts = [values[begin:end] for begin, end in pairwise(ends)]
        farthest = [_farthest(part[None, :]) for part in parts]
        far, place = max((float(far[0]), begin + int(at[0])) for (far, at), begin in zip(farthest, ends, strict=False))
        if far <= 0:
            return
        as_far, done = 0, 0
        while as_far < ENOUGH and done < shuffles:
            size = min(shuffles - done, max(50, 4 * done), _AT_ONCE // max(map(len, parts)) ** 2 + 1)
            shuffled = [_farthest(random.permuted(np.tile(part, (size, 1)), axis=1))[0] for part in parts]
            reached = np.flatnonzero(np.max(shuffled, axis=0) >= far * (1 - 1e-9))[: ENOUGH - as_far]
            as_far += len(reached)
            done += int(reached[-1]) + 1 if as_far == ENOUGH else size
        yield ChangePoint(place, ENOUGH / done if as_far == ENOUGH else (1 + as_far) / (1 + done))
        found.append(place)


def _farthest(rows: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return how far each row's farthest cut sets its parts apart, and where it is: `x[:at]` from `x[at:end]`."""
    cut, end = np.arange(1, rows.shape[1] + 1)[:, None], np.arange(1, rows.shape[1] + 1)
    m, k = cut, np.where((cut >= LEAST) & (end - cut >= LEAST), end - cut, 0)  # 0: no such cut
    weight, one_less = m * k / (m + k), np.maximum(k - 1, 1)
    right = np.where(k, weight / (np.maximum(k, 1) * one_less), 0.0)
    across = 2 * weight / (m * np.maximum(k, 1)) + 2 * right
    left = right - across - weight / (m * np.maximum(m - 1, 1))
    sums = np.abs(rows[:, :, None] - rows[:, None, :]).cumsum(1).cumsum(2)  # of the first `cut` to the first `end`
    whole = np.einsum("rii->ri", sums)  # within the first so many, each pair twice
    score = (across * sums + left * whole[:, :, None] - right * whole[:, None, :]).reshape(len(rows), -1)
    best = score.argmax(1)
    return score[np.arange(len(rows)), best], best // rows.shape[1] + 1
