# SPDX-License-Identifier: BSD-3-Clause
"""Published measurements beside ours, both as distance from their own floor: time above it, and ratio to it.

Absolute times of machines thirty years apart say nothing of the software; how far each is above what its own machine
can do at best does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, number_columns, plain, row_name, words_column
from cadge_analysis.blocks.model import (
    PUBLISHED,
    Block,
    Column,
    Fact,
    Facts,
    Heading,
    Span,
    Table,
    TableCell,
    TableLine,
)
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.load import Case, Cell, Dataset
from cadge_analysis.study.published import Publication, PublishedFigure, PublishedPoint

say = partial(messages.say, "study")

UNITS = {"us": "\u00b5s", "Mb/s": "Mb/s", "MB/s": "MB/s", "1/s": "1/s", "share": "", "times": "times"}


def shown(figure: PublishedFigure) -> str:
    """Return a published figure with its unit, as published: no digit added or taken away."""
    if figure.unit == "share":
        return f"{figure.value * 100:g}{units.THIN}%"
    number = units.grouped(int(figure.value)) if figure.value.is_integer() else f"{figure.value:g}"
    return f"{number} {UNITS[figure.unit]}"


def published_value(figure: PublishedFigure, before: str = "") -> Value:
    """Return a published figure as a cell; `before`: words that stand before it."""
    return Value(text=f"{before} {shown(figure)}".strip(), detail=figure.tag, raw=f"{figure.value:.12g}")


def figure_facts(figures: Sequence[PublishedFigure]) -> tuple[Facts, ...]:
    """Return published figures with their tags and sources; nothing where there are none."""
    seen = tuple(Fact(name=one.name, text=f"{shown(one)} ({one.tag}; {one.source})") for one in figures)
    return (Facts(seen),) if seen else ()


def belongs(cell: Cell, layers: str) -> bool:
    """Tell whether a cell is of one of the study's layers as it is: no shims, no settings."""
    series = cell.series
    return series.kind == "layer" and fnmatchcase(series.layer, layers) and not series.shims and not series.settings


def is_plain(case: Case, pattern: str, size: int) -> bool:
    """Tell whether a case is of a pattern at one value of its axis, everything else as it usually is.

    A number of which the pattern prefers the highest may have any value.
    """
    return (case.pattern, case.size) == (pattern, size) and all(
        name == case.file.axis or case.file.is_usual(name, case.workload) or case.file.family.get(name) == "highest"
        for name in case.file.parameters
    )


def planned(comparison: Comparison, layers: str, against: PublishedPoint) -> list[Cell]:
    """Return the cells of ours that stand beside a published measurement; of several depths the preferred one."""
    found = [
        cell
        for cell in comparison.data.cells
        if belongs(cell, layers)
        and cell.case.place == against.place
        and is_plain(cell.case, against.pattern, against.bytes)
    ]
    for name in found[0].case.file.family if found else ():
        most = max(cell.case.workload.integer(name) for cell in found)
        found = [cell for cell in found if cell.case.workload[name] == most]
    return found


def _published_value(figures: dict[str, PublishedFigure], name: str | None, why: str) -> Value:
    return Value(text=units.MISSING, reason=why) if name is None else published_value(figures[name])


def published_ratio(published: Publication, against: PublishedPoint) -> float | None:
    """Return the published ratio to the floor: stated, or total \u00f7 floor."""
    if against.ratio is not None:
        return published.figures[against.ratio].value
    if against.floor is None:
        return None
    return published.figures[against.total].value / published.figures[against.floor].value


def _published_line(published: Publication, against: PublishedPoint, largest: float) -> TableLine:
    figures = published.figures
    ratio = published_ratio(published, against)
    tag = figures[against.ratio].tag if against.ratio else "derived"
    is_rate = against.is_rate
    above = say("distance.rate_no_time_above") if is_rate and against.above is None else against.no_floor
    return line_of(
        row_name(f"{published.system}, {published.year}", "published"),
        (
            _published_value(figures, against.total, ""),
            _published_value(figures, against.floor, against.no_floor),
            _published_value(figures, against.above, above),
            Value(text=units.MISSING, reason=against.no_floor)
            if ratio is None
            else Value(text=units.times(ratio), detail=tag, raw=f"{ratio:.12g}"),
            _bar(ratio, largest, is_rate=is_rate),
        ),
        role=PUBLISHED,
    )


def _bar(ratio: float | None, largest: float, *, is_rate: bool) -> TableCell:
    """Return a ratio as a bar: a share for rates, a logarithm from 1 for times; nothing where there is none."""
    if ratio is None or ratio <= 0:
        return TableCell()
    share = ratio if is_rate else math.log(ratio) / math.log(largest) if largest > 1 else 0
    return TableCell(bar=f"{max(1.0, min(1.0, share) * 100):.0f}")


def _our_line(cell: Cell, row: Row | None, largest: float, data: Dataset) -> TableLine:
    detail = f"{words.PLACES[cell.case.place]}, {words.WAITS[cell.case.wait]}"
    if row is None:
        empty = Value(text=units.MISSING, reason=f"{cell.state}: {reason(cell)}")
        blank = Value(text=units.MISSING)
        return line_of(row_name(cell.series.label, detail), (empty, blank, blank, blank, TableCell()))
    numbers, is_rate = row.numbers, row.numbers.more_is_better
    scale = words.shown(numbers.quantity).scale
    none = row.reason or ""
    if row.floor is not None:
        detail += f"; floor: {words.floor_name(row.floor, data)}"
    above = say("distance.rate_no_time_above") if is_rate else none
    return line_of(
        row_name(cell.series.label, detail),
        (
            estimate_value(numbers.central, scale=scale, reason=none),
            estimate_value(row.floor.central if row.floor else None, scale=scale, reason=none),
            estimate_value(row.above, scale=scale, reason=above),
            estimate_value(row.ratio, scale=1.0, reason=none, sign=units.TIMES),
            _bar(row.ratio.value if row.ratio else None, largest, is_rate=is_rate),
        ),
    )


def _columns() -> tuple[Column, ...]:
    numbers = number_columns(("total", "floor", "above the floor", say("ratio")))
    return words_column("system"), *numbers, words_column("the ratio, drawn", "ratio")


def distance(comparison: Comparison, published: Publication, against: PublishedPoint) -> Iterator[Block]:
    """Yield one published measurement above ours, layer by layer; what is missing says why."""
    cells = planned(comparison, published.layers, against)
    rows = {row.cell.point_id: row for row in comparison.rows}
    mine = [rows.get(cell.point_id) for cell in cells]
    ratios = [row.ratio.value for row in mine if row is not None and row.ratio is not None]
    largest = max([*ratios, published_ratio(published, against) or 1.0])
    ours = [_our_line(cell, row, largest, comparison.data) for cell, row in zip(cells, mine, strict=True)]
    unit = say("distance.published_stated_ours_mb") if against.is_rate else "round trip, \u00b5s"
    yield Heading(3, against.title)
    if against.note:
        yield plain(against.note)
    yield Table(
        label=against.title,
        role="summary distance",
        columns=_columns(),
        lines=(_published_line(published, against, largest), *ours),
        caption=(Span(unit),),
        caption_role="dim",
    )
    if not cells:
        yield plain(_missing(published.layers, against), "dim")


def _missing(layers: str, against: PublishedPoint) -> str:
    what = f"{against.what} of {units.size(against.bytes)} {words.PLACES[against.place]}"
    return say("distance.ours_blank_campaign_planned", what=what, layers=layers)


def distances(comparison: Comparison, published: Publication) -> tuple[Block, ...]:
    """Return every comparison of the study, in its order."""
    return tuple(block for against in published.comparisons for block in distance(comparison, published, against))
