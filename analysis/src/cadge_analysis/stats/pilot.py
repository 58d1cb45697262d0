# SPDX-License-Identifier: BSD-3-Clause
"""The rate that a pilot proposes: half of what the slowest of its points reached in a closed loop.

A rate that is offered to all has to be one that every point bears: those of the baseline at half of their maximum, and
layers that take up to twice as long a request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cadge_analysis import units, words
from cadge_analysis.stats import intervals
from cadge_analysis.stats.load import Dataset

HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """What a point of the baseline reached in a closed loop, in 1/s: the median of its launches."""

    label: str
    per_s: float


def closed_loops(data: Dataset, pattern: str, rate: str) -> tuple[ClosedLoop, ...]:
    """Return the closed loops of a pattern's points, the slowest first. `rate`: the quantity that says them."""
    found = []
    for cell in data.cells:
        if cell.case.pattern != pattern or cell.series.kind != "layer":
            continue
        rates = [
            sum(units.per_second(amount, ns) for amount, ns in measured.amounts)
            for sample in cell.samples
            if (measured := sample.quantities.get(rate)) is not None
        ]
        if rates:
            where = f"{words.PLACES[cell.case.place]}, {words.WAITS[cell.case.wait]}"
            label = f"{cell.series.label} {where}, {words.workload(cell.case)}"
            found.append(ClosedLoop(label=label, per_s=intervals.median(rates)))
    return tuple(sorted(found, key=lambda one: (one.per_s, one.label)))


def proposed(loops: tuple[ClosedLoop, ...]) -> int:
    """Return half of the slowest closed loop, in two digits, rounded down; at least 1."""
    half = HALF * loops[0].per_s
    step = 10 ** max(0, math.floor(math.log10(half)) - 1) if half >= 1 else 1
    return max(1, math.floor(half / step) * step)
