# SPDX-License-Identifier: BSD-3-Clause
"""Axes and label places of charts: ranges, round ticks, labels pushed apart. Pure arithmetic on numbers and pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

LABEL_PX = 13.0


@dataclass(frozen=True, slots=True)
class Axis:
    """A vertical axis: its data range, its ticks and how far up a value stands (0 bottom, 1 top)."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool

    def share(self, value: float) -> float:
        """Return how far up a value stands."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """Return the value that stands so far up; beyond 0 and 1 too."""
        if self.log:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)


def log_axis(values: Iterable[float], wide: int = 3) -> Axis:
    """Return a logarithmic axis around positive values; ticks at 1-2-5, at 1 alone over more than `wide` decades."""
    found = [value for value in values if value > 0]
    low, high = min(found) / 1.18, max(found) * 1.18
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades <= wide else (1,)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = tuple(step * 10.0**e for e in exponents for step in steps if low <= step * 10.0**e <= high)
    return Axis(low, high, ticks, log=True)


def linear_axis(values: Iterable[float]) -> Axis:
    """Return a linear axis from zero with about five round ticks."""
    top = max(values) * 1.06
    raw = top / 5
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(base * factor for factor in (1, 2, 2.5, 5, 10) if base * factor >= raw)
    return Axis(0.0, top, tuple(step * k for k in range(int(top / step) + 1)), log=False)


def spread(wanted: Sequence[float], room: float) -> list[float]:
    """Push label positions (px from the top) apart to `LABEL_PX`, moving each as little as the order allows."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups: list[list[float]] = []  # [centre, members]
    for index in order:
        groups.append([wanted[index], 1])
        while len(groups) > 1:
            (above, n), (below, m) = groups[-2], groups[-1]
            if below - above >= (n + m) / 2 * LABEL_PX:
                break
            groups[-2:] = [[(above * n + below * m) / (n + m), n + m]]
    placed: list[float] = []
    for centre, members in groups:
        span = members * LABEL_PX
        top = min(max(centre - span / 2, -LABEL_PX), max(room + LABEL_PX - span, -LABEL_PX))
        if placed:
            top = max(top, placed[-1] + LABEL_PX / 2)
        placed.extend(top + (k + 0.5) * LABEL_PX for k in range(int(members)))
    result = [0.0] * len(wanted)
    for index, place in zip(order, placed, strict=True):
        result[index] = place
    return result


def positions(sizes: Iterable[int], *, proportional: bool = False) -> dict[int, float]:
    """Return where each size stands on the x axis: at its log2, zero one and a half steps left of the rest.

    Of what is `proportional`, at its own value.
    """
    every = set(sizes)
    if proportional:
        return {size: float(size) for size in sorted(every)}
    positive = sorted(size for size in every if size)
    spots = {size: math.log2(size) for size in positive}
    if 0 in every:
        spots[0] = (spots[positive[0]] if positive else 1.5) - 1.5
    return dict(sorted(spots.items()))


def labelled(spots: Mapping[int, float], width: int, room_px: float) -> set[int]:
    """Return the sizes whose labels fit side by side: the last one, and from the left what keeps its distance."""
    if len(spots) < 2:
        return set(spots)
    sizes = sorted(spots, key=lambda size: spots[size])
    scale = width / (spots[sizes[-1]] - spots[sizes[0]])
    chosen = [sizes[0]]
    for size in sizes[1:-1]:
        gap = (spots[size] - spots[chosen[-1]]) * scale
        if gap >= room_px and (spots[sizes[-1]] - spots[size]) * scale >= room_px:
            chosen.append(size)
    return {*chosen, sizes[-1]}
