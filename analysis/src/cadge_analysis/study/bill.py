# SPDX-License-Identifier: BSD-3-Clause
"""The bill of a round trip: what of it is the floor, what the layer's engine, what the contract and the driver.

Parts are differences of medians, so that they add up to the total; their intervals join the ends of both medians, and
are wider than those of differences taken round by round. The engine's own time comes from its own benchmark, made at
another time: it is never paired with the campaign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.draw import stacked
from cadge_analysis.draw.palette import FLOOR as FLOOR_INK
from cadge_analysis.draw.palette import LIGHT
from cadge_analysis.draw.stacked import StackedBar
from cadge_analysis.draw.svg import Spec
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Cell
from cadge_analysis.study.distance import belongs, is_plain
from cadge_analysis.study.engine import NS_BY_UNIT, EngineBench
from cadge_analysis.study.published import BillOf, Publication

say = partial(messages.say, "study")

FLOOR, ENGINE, REST = "floor", "engine", "contract and driver"
TOGETHER = say("bill.together")
SOFTWARE = say("bill.software")  # of the published system
PARTS = (FLOOR, SOFTWARE, ENGINE, REST, TOGETHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTripBill:
    """One bill: total and parts in ns. A part that could not be told is absent; `remark` says why."""

    label: str
    detail: str
    total: Estimate | None
    parts: dict[str, Estimate]
    remark: str

    @property
    def drawn(self) -> bool:
        """True where the parts can be stacked: none of them is below nothing."""
        return bool(self.parts) and all(part.value >= 0 for part in self.parts.values())


def _exact(value_ns: float) -> Estimate:
    return Estimate(value=value_ns, low=None, high=None, coverage=0.0, launches=1)


def published_item(published: Publication, bill: BillOf) -> RoundTripBill:
    """Return the published bill, which knows two parts."""
    figures = published.figures
    total, floor, above = (_exact(figures[name].value * 1e3) for name in (bill.total, bill.floor, bill.above))
    return RoundTripBill(
        label=f"{published.system}, {published.year}",
        detail="published",
        total=total,
        parts={FLOOR: floor, SOFTWARE: above},
        remark=say("bill.published"),
    )


def _engine(cell: Cell, bill: BillOf, bench: EngineBench | None) -> Estimate | str:
    """Return what the engine takes for this round trip without Cadge, floor included, or why that is not known."""
    if bench is None:
        return say("bill.no_file")
    pattern = bill.engine_reading.get(cell.case.place)
    if pattern is None:
        return say("bill.no_reading_named", place=words.PLACES[cell.case.place])
    name = pattern.replace("{substrate}", cell.series.layer.partition("-")[2])
    reading = bench.find(name)
    if reading is None:
        return say("bill.no_reading", name=name)
    if reading.unit not in NS_BY_UNIT:
        return say("bill.no_time", name=name, unit=reading.unit, units=list(NS_BY_UNIT))
    scale = NS_BY_UNIT[reading.unit]
    return Estimate(
        value=reading.median * scale, low=reading.low * scale, high=reading.high * scale, coverage=0.0, launches=0
    )


def _item(cell: Cell, row: Row | None, bill: BillOf, bench: EngineBench | None) -> RoundTripBill:
    label = cell.series.label
    detail = f"{words.PLACES[cell.case.place]}, {words.WAITS[cell.case.wait]}"
    if row is None:
        why = f"{cell.state}: {reason(cell)}"
        return RoundTripBill(label=label, detail=detail, total=None, parts={}, remark=why)
    total = row.numbers.central
    if row.floor is None:
        return RoundTripBill(label=label, detail=detail, total=total, parts={}, remark=row.reason or "no floor")
    floor = row.floor.central
    engine = _engine(cell, bill, bench)
    if isinstance(engine, str):
        together = intervals.unpaired_difference(total, floor)
        parts, remark = {FLOOR: floor, TOGETHER: together}, f"Not divided further: {engine}."
    else:
        parts = {
            FLOOR: floor,
            ENGINE: intervals.unpaired_difference(engine, floor),
            REST: intervals.unpaired_difference(total, engine),
        }
        remark = say("bill.own_benchmark")
    below = [name for name, part in parts.items() if part.value < 0]
    if below:
        remark += " " + say("bill.not_drawn", below=list(below))
    return RoundTripBill(label=label, detail=detail, total=total, parts=parts, remark=remark)


def items(
    comparison: Comparison, published: Publication, bill: BillOf, bench: EngineBench | None
) -> Sequence[RoundTripBill]:
    """Return the published bill and one for each of our layers, place and wait mode that was planned."""
    rows = {row.cell.point_id: row for row in comparison.rows}
    cells = [
        cell
        for cell in comparison.data.cells
        if belongs(cell, published.layers) and is_plain(cell.case, bill.pattern, bill.bytes)
    ]
    cells.sort(key=lambda c: (words.PLACE_ORDER.index(c.case.place), words.WAIT_ORDER.index(c.case.wait), c.series))
    ours = [_item(cell, rows.get(cell.point_id), bill, bench) for cell in cells]
    return published_item(published, bill), *ours


def summary(item: RoundTripBill) -> str:
    """Return a bill in one line: the total and its parts, each with its share."""
    if item.total is None:
        return ""
    parts = [
        f"{name} {units.us(part.value)} ({units.percent(part.value / item.total.value, 0)})"
        for name, part in item.parts.items()
    ]
    return f"{units.us(item.total.value)}\u00a0\u00b5s = {' + '.join(parts)}"


SLOTS = {SOFTWARE: 2, ENGINE: 0, REST: 1, TOGETHER: 9}
COLOURS = {FLOOR: FLOOR_INK} | {name: LIGHT[slot] for name, slot in SLOTS.items()}
VARIABLES = {FLOOR: "floor"} | {name: f"s{slot}" for name, slot in SLOTS.items()}


def stacked_bill(items: Sequence[RoundTripBill]) -> Spec:
    """Return the chart of all bills that can be stacked."""
    bars = [
        StackedBar(
            name=f"{item.label}, {item.detail}",
            text=summary(item),
            parts={name: part.value / item.total.value for name, part in item.parts.items()},
        )
        for item in items
        if item.total is not None
    ]
    return stacked.figure(
        bars,
        {name: COLOURS[name] for name in PARTS},
        end=1.0,
        title=say("stack.share_round_trip"),
        ticks=(0, 0.25, 0.5, 0.75, 1),
        tick_expr="format(datum.value*100,'d')+'\u202f%'",
    )
