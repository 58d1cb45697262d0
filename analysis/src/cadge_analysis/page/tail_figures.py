# SPDX-License-Identifier: BSD-3-Clause
"""The figure of tails by percentile: a few sizes of one pattern at one place, from the stored histograms."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import DataTable, Figure, Key
from cadge_analysis.draw import svg, tails
from cadge_analysis.draw.palette import Identity
from cadge_analysis.draw.tails import TailPanel, TailSpot
from cadge_analysis.page.figures import MAIN_PX, chart_of, faint_note
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.intervals import NAMED, TAIL_SAMPLES, TailPoint, tail_curve
from cadge_analysis.stats.launch_facts import LaunchFacts
from cadge_analysis.stats.load import Dataset, Series

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


def percentile_figure(
    rows: Sequence[Row],
    keys: Mapping[Series, Key],
    looks: Mapping[Series, Identity],
    facts: Mapping[tuple[Series, str, str], LaunchFacts],
    *,
    data: Dataset,
    name: str,
) -> Figure | None:
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
    drawn = [size for size in wanted if any(len(curve) >= POINTS_MIN for curve in by_size[size].values())]
    if not drawn:
        return None
    chart = chart_of(rows, looks, facts, data)
    shown = words.shown(file.main_quantity)
    panels = [
        TailPanel(
            title=f"{words.value(axis, size)}: {shown.unit}",
            spots={label: [_spot(point, shown.scale) for point in curve] for label, curve in by_size[size].items()},
        )
        for size in drawn
    ]
    title = f"Tail by percentile: {words.pattern(rows[0].cell.case)}, {words.WAITS[rows[0].cell.case.wait]}"
    by_label = {series.label: key for series, key in keys.items()}
    left_out = [words.value(axis, size) for size in wanted if size not in drawn]
    short = " " + say("tail_figures.few_samples", left_out=left_out) if left_out else ""
    reached = {point.one_in for size in drawn for curve in by_size[size].values() for point in curve}
    named = [one_in for one_in in NAMED if one_in in reached]
    return Figure(
        name=name,
        title=title,
        svg=svg.render(
            tails.figure(chart.lines, panels),
            name=name,
            title=title,
            description=_told(by_size[drawn[0]], words.value(axis, drawn[0]), shown.scale, shown.spoken),
            minimum_px=MAIN_PX,
        ),
        caption=say(
            "tail_figures.caption",
            tail_samples=TAIL_SAMPLES,
            short=short,
            faint=faint_note(chart),
        ),
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
                for size in drawn
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


def _told(curves: Mapping[str, Sequence[TailPoint]], at: str, scale: float, spoken: str) -> str:
    """Return what the first panel shows, for those who do not see it; the table has the others."""
    ends = [
        say(
            "tail_figures.curve",
            layer=words.isolated(label),
            first=curve[0].value_ns * scale,
            last=curve[-1].value_ns * scale,
            one_in=curve[-1].one_in,
        )
        for label, curve in curves.items()
        if curve
    ]
    return say("tail_figures.medians", at=at, spoken=spoken, ends=ends)
