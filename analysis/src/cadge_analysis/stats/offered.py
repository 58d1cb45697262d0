# SPDX-License-Identifier: BSD-3-Clause
"""The load of a point: how much its launches were offered, and which points stand at one load.

Response time, and processors' time an operation, depend on the load more than on the layer. So points of a pattern
that is offered a load are compared at one load alone; which quantity says it, and how close loads have to be, stands in
the pattern's file (`one_load`). A point has a rate that was given, or each of its launches was offered a share of what
its own closed loop reached, which differs from launch to launch and from layer to layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.stats import intervals
from cadge_analysis.stats.load import Cell, Dataset, Sample

say = partial(messages.say, "stats")

NOT_RECORDED = say("offered.not_recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedLoad:
    """What the launches of a point were offered, in 1/s: the least and the most of them."""

    low: float
    high: float

    @property
    def text(self) -> str:
        """Return "200", or "120 to 9 564"."""
        low, high = (units.grouped(round(one)) for one in (self.low, self.high))
        return low if low == high else f"{low} to {high}"


def are_one_load(found: Sequence[OfferedLoad], within: float) -> bool:
    """Tell whether loads differ by no more than a share of the least."""
    return max(one.high for one in found) <= min(one.low for one in found) * (1 + within)


def rate_s(sample: Sample, quantity: str) -> float | None:
    """Return a rate of one launch in 1/s, of all endpoints together; None where it has none."""
    found = sample.quantities.get(quantity)
    if found is None or not (found.amounts or found.numbers):
        return None
    return sum(units.per_second(amount, ns) for amount, ns in found.amounts) if found.amounts else sum(found.numbers)


def offered_of(cell: Cell) -> OfferedLoad | None:
    """Return what the launches of a point were offered; None where they do not say it, or its pattern has no load."""
    rule = cell.case.file.one_load
    if rule is None:
        return None
    if given := cell.case.workload.integer(rule.given):
        return OfferedLoad(low=given, high=given)
    rates = [rate_s(sample, rule.offered) for sample in cell.samples]
    known = [rate for rate in rates if rate is not None]
    return OfferedLoad(low=min(known), high=max(known)) if known and len(known) == len(rates) else None


def unlike(cells: Iterable[Cell]) -> str:
    """Return why points cannot be compared: "offered 120/s and 9 564/s: no comparison"; "" where they can.

    Points without samples have no number to be compared.
    """
    loaded = [cell for cell in cells if cell.samples and cell.case.file.one_load is not None]
    found = [one for cell in loaded if (one := offered_of(cell)) is not None]
    if len(found) < len(loaded):
        return NOT_RECORDED
    rules = [cell.case.file.one_load for cell in loaded]
    within = min((rule.within for rule in rules if rule is not None), default=0.0)
    if not found or are_one_load(found, within):
        return ""
    texts = list(dict.fromkeys(f"{one.text}/s" for one in found))
    if len(texts) > 2:
        low, high = min(one.low for one in found), max(one.high for one in found)
        texts = [f"{OfferedLoad(low=low, high=high).text}/s"]
    return f"offered {' and '.join(texts)}: no comparison"


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
