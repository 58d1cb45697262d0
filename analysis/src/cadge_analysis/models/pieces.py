# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines through measured sizes, and where one line ends and the next begins.

Deviations are relative, since sizes and times span orders of magnitude: one of 10 % weighs as much at 16 bytes as at a
megabyte. No line has a negative start or a negative slope: no message takes less time than none, or less the larger it
is. What such a line cannot follow is no line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

SIZES_LEAST = 3
"""A line through two sizes always fits, and so says nothing."""


@dataclass(frozen=True, slots=True)
class StraightLine:
    """start + slope x (bytes - 1): the first byte is in the start, as LogGP has it."""

    start: float
    slope: float

    def at(self, size: int) -> float:
        """Return the value at a size in bytes."""
        return self.start + self.slope * (size - 1)


@dataclass(frozen=True, slots=True)
class Curve:
    """Values at rising sizes, and what a deviation at each of them is divided by: the value itself, as a rule."""

    sizes: tuple[int, ...]
    values: tuple[float, ...]
    scales: tuple[float, ...]

    def part(self, first: int, end: int) -> Curve:
        """Return the sizes from number `first` up to, and without, number `end`."""
        return Curve(self.sizes[first:end], self.values[first:end], self.scales[first:end])

    def off(self, line: StraightLine) -> tuple[float, ...]:
        """Return how far a line lies from each value, in parts of its scale."""
        return tuple(
            abs(line.at(size) - value) / scale
            for size, value, scale in zip(self.sizes, self.values, self.scales, strict=True)
        )


def straight(curve: Curve) -> StraightLine:
    """Return the line with the least sum of squared deviations whose start and slope are not negative."""
    weights = [1 / (scale * scale) for scale in curve.scales]
    total = sum(weights)
    steps = [size - 1 for size in curve.sizes]
    mean_step = sum(w * x for w, x in zip(weights, steps, strict=True)) / total
    mean = sum(w * y for w, y in zip(weights, curve.values, strict=True)) / total
    spread = sum(w * (x - mean_step) ** 2 for w, x in zip(weights, steps, strict=True))
    common = sum(w * (x - mean_step) * y for w, x, y in zip(weights, steps, curve.values, strict=True))
    slope = common / spread if spread else 0.0
    if slope <= 0:
        return StraightLine(max(0.0, mean), 0.0)
    start = mean - slope * mean_step
    if start >= 0:
        return StraightLine(start, slope)
    squares = sum(w * x * x for w, x in zip(weights, steps, strict=True))
    through = sum(w * x * y for w, x, y in zip(weights, steps, curve.values, strict=True))
    return StraightLine(0.0, max(0.0, through / squares))


@dataclass(frozen=True, slots=True)
class PoorFit:
    """No pieces do: at its best the worst size is so far off, in parts of its value."""

    size: int
    off: float


def pieces(curves: Sequence[Curve], *, tolerance: float, most: int) -> tuple[tuple[int, int], ...] | PoorFit:
    """Return where all curves, which have the same sizes, fall apart into straight pieces: (first, end) by number.

    The fewest pieces such that no value of any curve is further than `tolerance` from its line, at most `most`, each of
    three sizes or more; where several divisions have as few, the one with the least sum of squared deviations.
    """
    count = len(curves[0].sizes)
    spans = [(i, j) for i, j in combinations(range(count + 1), 2) if j - i >= SIZES_LEAST]
    off = {(i, j): [part.off(straight(part)) for part in (curve.part(i, j) for curve in curves)] for i, j in spans}
    worst = {span: max(max(found) for found in off[span]) for span in spans}
    squares = {span: sum(sum(x * x for x in found) for found in off[span]) for span in spans}
    divisions = [found for number in range(1, most + 1) for found in _divisions(count, number)]
    good = [found for found in divisions if all(worst[span] <= tolerance for span in found)]
    if good:
        return min(good, key=lambda found: (len(found), sum(squares[span] for span in found)))
    nearest = min(divisions, key=lambda found: max(worst[span] for span in found))
    first, end = max(nearest, key=lambda span: worst[span])
    most_off = [max(found[i] for found in off[first, end]) for i in range(end - first)]
    number = max(range(end - first), key=lambda i: most_off[i])
    return PoorFit(curves[0].sizes[first + number], most_off[number])


def _divisions(count: int, number: int) -> list[tuple[tuple[int, int], ...]]:
    """Return every way to divide `count` sizes into so many pieces that are long enough."""
    found = (tuple(pairwise((0, *cuts, count))) for cuts in combinations(range(1, count), number - 1))
    return [one for one in found if all(end - first >= SIZES_LEAST for first, end in one)]
