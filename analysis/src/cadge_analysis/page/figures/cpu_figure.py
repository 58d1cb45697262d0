# SPDX-License-Identifier: BSD-3-Clause
"""What a small message costs: its time against the time of processors, polling and blocking joined by a line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import DataTable, Figure
from cadge_analysis.draw import scatter
from cadge_analysis.draw.chart import Line
from cadge_analysis.draw.scatter import Spot
from cadge_analysis.page.families import in_family, main_family
from cadge_analysis.page.figures.main_figure import FigureSource, between, drawn, estimate_text
from cadge_analysis.stats.compare import Row

say = partial(messages.say, "figures")

SMALL_BYTES = 8


def _split(row: Row) -> tuple[float, float] | None:
    """Return user and system time of all sides, in ns an operation: totals over all launches."""
    samples = row.cell.samples
    operations = sum(sample.operations for sample in samples)
    if not operations or any(not sample.cpu for sample in samples):
        return None
    uses = [use for sample in samples for _, use in sample.cpu]
    return sum(use.user_ns for use in uses) / operations, sum(use.system_ns for use in uses) / operations


def _at(rows: Sequence[Row], wait: str) -> list[Row]:
    """Return the rows of the figure of a wait mode at 8 B, or at the smallest value of its axis."""
    here = [row for row in rows if row.cell.case.wait == wait]
    family = main_family(here)
    members = [row for row in here if family is not None and in_family(row.cell.case, family)]
    sizes = sorted({row.cell.case.size for row in members})
    if not sizes:
        return []
    size = SMALL_BYTES if SMALL_BYTES in sizes else sizes[0]
    return [row for row in members if row.cell.case.size == size]


def cpu_figure(rows: Sequence[Row], source: FigureSource, *, name: str) -> Figure | None:
    """Draw the rows of one pattern at one place; None where it is no time, or was not measured in both wait modes."""
    if not rows or rows[0].numbers.quantity.unit != "ns":
        return None
    both = [_at(rows, wait) for wait in words.WAIT_ORDER]
    if not all(both) or len({row.cell.case.size for some in both for row in some}) != 1:
        return None
    found = [(row, split) for some in both for row in some if (split := _split(row)) is not None and sum(split) > 0]
    if len({row.cell.case.wait for row, _ in found}) < len(both):
        return None
    case = found[0][0].cell.case
    scale = words.shown(case.file.main_quantity).scale
    series = [one for one in source.keys if any(row.cell.series == one for row, _ in found)]
    lines = [Line(label=one.label, look=source.looks[one]) for one in series]
    spots = [
        Spot(
            label=row.cell.series.label,
            x=row.numbers.central.value * scale,
            y=sum(split) * scale,
            ringed=row.cell.case.wait == words.WAIT_ORDER[-1],
        )
        for row, split in found
    ]
    at = words.size(case)
    title = f"Time against processors: {words.pattern(case)}, {at}"
    ends = {spot.label: spot.x for spot in spots if not spot.ringed}
    x_title = f"{case.file.main_quantity.title}, p50, \u00b5s"
    return drawn(
        scatter.figure(spots, lines, x_title=x_title, y_title=say("cpu_figure.axis")),
        name=name,
        title=title,
        description=between(ends, at=at, spoken=words.shown(case.file.main_quantity).spoken),
        caption=say("cpu_figure.caption", at=at),
        keys=tuple(source.keys[one] for one in series),
        table=DataTable(
            columns=("layer", "waits", "time, \u00b5s", "processors, \u00b5s", "user, \u00b5s", "system, \u00b5s"),
            rows=tuple(
                (
                    row.cell.series.label,
                    words.WAITS[row.cell.case.wait],
                    estimate_text(row.numbers.central, scale),
                    *(units.sig3(value * scale) for value in (sum(split), *split)),
                )
                for row, split in sorted(found, key=lambda one: (one[0].cell.series, one[0].cell.case.wait != "poll"))
            ),
        ),
    )
