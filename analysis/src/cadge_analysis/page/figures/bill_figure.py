# SPDX-License-Identifier: BSD-3-Clause
"""The bill of a small message: of each layer's time what the machine takes, what its transport, what the layer itself.

The machine's part is the floor of that place and wait mode. The transport's is what the bare exchange on the layer's
own substrate takes above it, where one was measured as a reference; what is left is the layer's own, contract and
driver included. Without such a reference nothing tells transport and layer apart, and the bill says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median_low

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import DataTable, Figure
from cadge_analysis.draw import stacked
from cadge_analysis.draw.axes import TICK
from cadge_analysis.draw.palette import FLOOR as FLOOR_INK
from cadge_analysis.draw.palette import LIGHT, style_of
from cadge_analysis.draw.scales import linear_axis
from cadge_analysis.draw.stacked import StackedBar
from cadge_analysis.page.figures.main_figure import FigureSource, between, drawn, estimate_text
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.floors import Floor
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Dataset

say = partial(messages.say, "figures")

MACHINE, TRANSPORT, OWN, TOGETHER = "machine", "transport", "layer's own", say("bill_figure.together")
COLOURS = {MACHINE: FLOOR_INK, TRANSPORT: LIGHT[1], OWN: LIGHT[0], TOGETHER: LIGHT[5]}
SMALL_BYTES = 8
LONGEST = 15
"""The axis ends at the longest bar of at most so many times the median one: of longer ones the text says how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """A layer's total and its parts, which add up; `remark` says why a part is missing."""

    row: Row
    parts: Mapping[str, Estimate]
    remark: str


def _transport(row: Row, data: Dataset) -> Floor | None:
    """Return the reference on the layer's own substrate; None where none was measured at that size."""
    series = row.cell.series
    substrate = series.layer.removeprefix(style_of(series)).removeprefix("-")
    for reference in row.references:
        file = data.plan.floors.get(reference.program.cell.series.layer)
        if file is not None and file.substrate == substrate:
            return reference
    return None


def bill(row: Row, data: Dataset) -> Bill | None:
    """Return the bill of a time that has a floor; None of anything else."""
    total = row.numbers.central
    if row.floor is None or row.numbers.quantity.unit != "ns":
        return None
    floor, transport = row.floor.central, _transport(row, data)
    if total.value < floor.value:
        return Bill(row=row, parts={}, remark=say("bill_figure.faster_than_floor"))
    together = {MACHINE: floor, TOGETHER: intervals.unpaired_difference(total, floor)}
    if transport is None:
        return Bill(row=row, parts=together, remark=say("bill_figure.no_bare_exchange"))
    bare = transport.central
    if not floor.value <= bare.value <= total.value:
        why = "above the layer" if bare.value > total.value else "below the floor"
        return Bill(row=row, parts=together, remark=say("bill_figure.bare_exchange_lies", why=why))
    parts = {
        MACHINE: floor,
        TRANSPORT: intervals.unpaired_difference(bare, floor),
        OWN: intervals.unpaired_difference(total, bare),
    }
    return Bill(row=row, parts=parts, remark="")


def bill_figure(rows: Sequence[Row], source: FigureSource, *, name: str) -> Figure | None:
    """Draw the bills at 8 B, or at the smallest size above none, of rows of one figure; None where there are none."""
    first = rows[0].cell.case
    axis = first.file.parameters[first.file.axis]
    sizes = sorted({row.cell.case.size for row in rows if row.cell.case.size})
    if axis.unit != "bytes" or not sizes:
        return None
    size = SMALL_BYTES if SMALL_BYTES in sizes else sizes[0]
    found = [one for row in rows if row.cell.case.size == size and (one := bill(row, source.data)) is not None]
    bills = sorted(found, key=lambda one: (one.row.numbers.central.value, one.row.cell.series))
    payable = [one for one in bills if one.parts]
    if not payable:
        return None
    shown = words.shown(first.file.main_quantity)
    names = [part for part in COLOURS if any(part in one.parts for one in bills)]
    totals = [one.row.numbers.central.value * shown.scale for one in payable]
    most = LONGEST * median_low(totals)
    reach = linear_axis([total for total in totals if total <= most])
    cut = sum(total > reach.high for total in totals)
    arrows = " " + say("bill_figure.arrows", cut=cut) if cut else ""
    title = f"Where {words.value(axis, size)} goes: {words.pattern(first)}, {words.WAITS[first.wait]}"
    ends = {one.row.cell.series.label: total for one, total in zip(payable, totals, strict=True)}
    first_of = {tuple(one.parts): one for one in reversed(payable)}
    bars = [
        StackedBar(
            name=one.row.cell.series.label,
            text=_summary(one, shown.scale, shown.unit, named=first_of[tuple(one.parts)] is one),
            parts={part: value.value * shown.scale for part, value in one.parts.items()},
            ink=source.looks[one.row.cell.series].ink_token,
        )
        for one in payable
    ]
    return drawn(
        stacked.figure(bars, COLOURS, end=reach.high, title=shown.unit, ticks=reach.ticks, tick_expr=TICK),
        name=name,
        title=title,
        description=between(ends, at=words.value(axis, size), spoken=shown.spoken),
        caption=say("bill_figure.caption", arrows=arrows),
        table=DataTable(
            columns=("layer", f"total, {shown.unit}", *(f"{part}, {shown.unit}" for part in names), "remark"),
            rows=tuple(
                (
                    one.row.cell.series.label,
                    estimate_text(one.row.numbers.central, shown.scale),
                    *(
                        estimate_text(one.parts[part], shown.scale) if part in one.parts else units.MISSING
                        for part in names
                    ),
                    one.remark,
                )
                for one in bills
            ),
        ),
    )


def _summary(one: Bill, scale: float, unit: str, *, named: bool) -> str:
    """Return the sum that a bar is. named: with what each part is."""
    total = one.row.numbers.central.value
    parts = [
        f"{f'{part} ' if named else ''}{units.sig3(value.value * scale)} ({units.percent(value.value / total, 0)})"
        for part, value in one.parts.items()
    ]
    return f"{units.sig3(total * scale)}\u00a0{unit} = {' + '.join(parts)}"
