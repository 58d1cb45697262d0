# SPDX-License-Identifier: BSD-3-Clause
"""Costs that cannot be negative, by least squares of the relative error; a handful of unknowns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

RANK = 1e-9
"""A pivot below this part of the largest one is none: the columns cannot be separated."""


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """Return the solution of a small square system, or None where it has no single one."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    count = len(rows)
    largest = max((abs(value) for row in matrix for value in row), default=0.0)
    for at in range(count):
        best = max(range(at, count), key=lambda row: abs(rows[row][at]))
        if abs(rows[best][at]) <= RANK * largest:
            return None
        rows[at], rows[best] = rows[best], rows[at]
        for below in range(at + 1, count):
            factor = rows[below][at] / rows[at][at]
            rows[below] = [low - factor * high for low, high in zip(rows[below], rows[at], strict=True)]
    found = [0.0] * count
    for at in reversed(range(count)):
        known = sum(rows[at][later] * found[later] for later in range(at + 1, count))
        found[at] = (rows[at][count] - known) / rows[at][at]
    return found


def _scaled(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[list[float]]:
    return [[one / value for one in row] for row, value in zip(rows, values, strict=True)]


def _squares(parts: Sequence[Sequence[float]], taken: Sequence[int]) -> list[float] | None:
    matrix = [[sum(row[a] * row[b] for row in parts) for b in taken] for a in taken]
    return solve(matrix, [sum(row[a] for row in parts) for a in taken])


def can_tell(rows: Sequence[Sequence[float]], values: Sequence[float]) -> bool:
    """Tell whether the rows determine every unknown."""
    return len(rows) >= len(rows[0]) and _squares(_scaled(rows, values), range(len(rows[0]))) is not None


def costs(rows: Sequence[Sequence[float]], values: Sequence[float]) -> tuple[float, ...]:
    """Return what each unit of each column costs, none less than nothing, so that the relative errors are least.

    Every choice of columns that may cost something is tried: exact, and quick for as few as there are.
    """
    parts = _scaled(rows, values)
    count = len(rows[0])
    best, error = (0.0,) * count, float("inf")
    for size in range(1, count + 1):
        for taken in combinations(range(count), size):
            found = _squares(parts, taken)
            if found is None or min(found) < 0:
                continue
            off = sum((sum(row[a] * one for a, one in zip(taken, found, strict=True)) - 1) ** 2 for row in parts)
            if off < error - 1e-15:
                every = dict(zip(taken, found, strict=True))
                best, error = tuple(every.get(a, 0.0) for a in range(count)), off
    return best
