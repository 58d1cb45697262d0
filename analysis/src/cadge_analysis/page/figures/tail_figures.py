# SPDX-License-Identifier: BSD-3-Clause
"""The figure of tails by percentile: a few sizes of one pattern at one place, from the stored histograms."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import DataTable, Figure
from cadge_analysis.draw import tails
from cadge_analysis.draw.chart import Mark
from cadge_analysis.draw.tails import TailPanel, TailSpot
from cadge_analysis.page import verdict_words
from cadge_analysis.page.figures.main_figure import (
    FEW_SIZES,
    FigureSource,
    bars_note,
    between,
    chart_of,
    drawn,
    faint_note,
    figure_of,
    mark_of,
    title_of,
)
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.intervals import NAMED, TAIL_SAMPLES, Estimate, Tail, TailPoint, tail_curve
from cadge_analysis.stats.knee import Knee
from cadge_analysis.stats.numbers import P99, tail_by_round

say = partial(messages.say, "figures")

SIZES = (8, 1024, 65536, 1048576)
"""Sizes are the measured ones nearest to these; of another axis, so many spread over what was measured."""
POINTS_MIN = 4
"""A curve that does not reach the p90 is no tail."""


def chosen(sizes: Sequence[int], *, is_bytes: bool) -> list[int]:
    """Return which of the measured values of an axis are shown."""
    found = sorted(set(sizes))
    if len(found) <= len(SIZES):
        return found
    if is_bytes:
        return sorted(
            {min(found, key=lambda size: (abs(math.log2(size or 0.5) - math.log2(at)), size)) for at in SIZES}
        )
    return sorted({found[round(n * (len(found) - 1) / (len(SIZES) - 1))] for n in range(len(SIZES))})


def _curve(row: Row) -> tuple[TailPoint, ...]:
    main = row.cell.case.file.main
    return tail_curve([sample.quantities[main].counts for sample in row.cell.samples])


def _spot(point: TailPoint, scale: float) -> TailSpot:
    return TailSpot(
        one_in=point.one_in, value=point.value_ns * scale, low=point.low_ns * scale, high=point.high_ns * scale
    )


def percentile_figure(rows: Sequence[Row], source: FigureSource, *, name: str) -> Figure | None:
    """Draw the tails of rows that share pattern, place, wait mode and family; None where none reaches the p90."""
    file = rows[0].cell.case.file
    if file.main_quantity.kind != "histogram":
        return None
    axis = file.parameters[file.axis]
    by_size: dict[int, dict[str, tuple[TailPoint, ...]]] = defaultdict(dict)
    samples = {(row.cell.case.size, row.cell.series.label): row.numbers.samples for row in rows}
    wanted = chosen([row.cell.case.size for row in rows], is_bytes=axis.unit == "bytes")
    for row in rows:
        if row.cell.case.size in wanted:
            by_size[row.cell.case.size][row.cell.series.label] = _curve(row)
    reaching = [size for size in wanted if any(len(curve) >= POINTS_MIN for curve in by_size[size].values())]
    if not reaching:
        return None
    chart = chart_of(rows, source)
    shown = words.shown(file.main_quantity)
    panels = [
        TailPanel(
            title=f"{words.value(axis, size)}: {shown.unit}",
            spots={label: [_spot(point, shown.scale) for point in curve] for label, curve in by_size[size].items()},
        )
        for size in reaching
    ]
    title = f"Tail by percentile: {words.pattern(rows[0].cell.case)}, {words.WAITS[rows[0].cell.case.wait]}"
    by_label = {series.label: key for series, key in source.keys.items()}
    left_out = [words.value(axis, size) for size in wanted if size not in reaching]
    short = " " + say("tail_figures.few_samples", left_out=left_out) if left_out else ""
    reached = {point.one_in for size in reaching for curve in by_size[size].values() for point in curve}
    named = [one_in for one_in in NAMED if one_in in reached]
    return drawn(
        tails.figure(chart.lines, panels),
        name=name,
        title=title,
        description=between(
            {label: curve[0].value_ns * shown.scale for label, curve in by_size[reaching[0]].items() if curve},
            at=words.value(axis, reaching[0]),
            spoken=shown.spoken,
        ),
        caption=say("tail_figures.caption", tail_samples=TAIL_SAMPLES, short=short),
        marks=faint_note(chart),
        keys=tuple(by_label[line.label] for line in chart.lines),
        table=DataTable(
            columns=(chart.along, "layer", "samples", *(f"{NAMED[one_in]}, {shown.unit}" for one_in in named)),
            rows=tuple(
                (
                    words.value(axis, size),
                    line.label,
                    units.grouped(samples[size, line.label]),
                    *(_cell(by_size[size][line.label], one_in, shown.scale) for one_in in named),
                )
                for size in reaching
                for line in chart.lines
                if line.label in by_size[size]
            ),
        ),
    )


def _cell(curve: Sequence[TailPoint], one_in: int, scale: float) -> str:
    point = next((point for point in curve if point.one_in == one_in), None)
    if point is None:
        return units.MISSING
    low, high = (units.sig3(value * scale) for value in (point.low_ns, point.high_ns))
    return f"{units.sig3(point.value_ns * scale)} {units.interval(low, high)}"


def tail_figure(rows: Sequence[Row], knees: Sequence[Knee], source: FigureSource, *, name: str) -> Figure:
    """Draw the p99 of the same rows, with a ring at the highest load that each series sustains."""
    found = [(row, intervals.over_rounds(tail_by_round(row.numbers, P99))) for row in rows]
    how = say("figures.p99_markers", bars=bars_note(rows))
    return _tail_figure(found, knees, source, name=name, percentile="p99", how=how)


def far_tail_figure(rows: Sequence[Row], knees: Sequence[Knee], source: FigureSource, *, name: str) -> Figure | None:
    """Draw the p99.9 in the same way, of what has the samples for it; None where less than two loads have."""
    found = [(row, tail) for row in rows if (tail := row.numbers.p999) is not None and tail.value is not None]
    if len({row.cell.case.size for row, _ in found}) < FEW_SIZES:
        return None
    how = say("figures.tail_markers")
    return _tail_figure(found, knees, source, name=name, percentile="p99.9", how=how)


def _tail_figure(
    found: Sequence[tuple[Row, Estimate | Tail]],
    knees: Sequence[Knee],
    source: FigureSource,
    *,
    name: str,
    percentile: str,
    how: str,
) -> Figure:
    rows = [row for row, _ in found]
    quantity = rows[0].numbers.quantity
    shown = words.shown(quantity)
    at = {knee.series: knee.load.value for knee in knees if not knee.withheld}
    chart = chart_of(rows, source)
    marks: dict[str, list[Mark]] = defaultdict(list)
    for row, tail in found:
        size = row.cell.case.size
        ringed = size <= at.get(row.cell.series, 0.0)
        marks[row.cell.series.label].append(mark_of(size, tail, shown.scale, ringed=ringed))
    chart = replace(
        chart,
        title=f"{quantity.title}, {percentile}, {shown.unit}",
        floor=(),
        foreign=(),
        lines=tuple(
            replace(line, marks=_one_ring(sorted(marks[line.label], key=lambda mark: mark.size)))
            for line in chart.lines
        ),
    )
    return figure_of(
        chart,
        source,
        name=name,
        title=f"{percentile}: {title_of(rows[0].cell.case)}",
        caption=say("figures.knee", how=how, load_note=verdict_words.load_note(rows)),
    )


def _one_ring(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Leave the last ring alone: the knee is the highest of the loads that are borne."""
    last = max((place for place, mark in enumerate(marks) if mark.ringed), default=-1)
    return tuple(replace(mark, ringed=place == last) for place, mark in enumerate(marks))
