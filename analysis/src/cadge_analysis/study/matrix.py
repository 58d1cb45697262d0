# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of a study: every style on every substrate over the same link, each beside the base style's own time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, number_columns, row_name, words_column
from cadge_analysis.blocks.model import Block, Figure, Heading, Span, Table, TableCell, TableLine
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.page.figures.main_figure import FigureSource, figure, figure_source
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.family_verdicts import told_apart
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate
from cadge_analysis.stats.load import Cell
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.study.distance import belongs, is_plain
from cadge_analysis.study.published import MatrixOf, MeasureOf

say = partial(messages.say, "study")

DRAWN_MIN = 2
"""Sizes of a figure."""
TABLE_MIN = 2
"""Styles, and substrates, between which differences are divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One table: a measure at one place and in one wait mode on one substrate. Cells and rows are by layer and size."""

    measure: MeasureOf
    place: str
    wait: str
    substrate: str
    cells: Mapping[tuple[str, int], Cell]
    rows: Mapping[tuple[str, int], Row]

    def row(self, style: str, size: int) -> Row | None:
        return self.rows.get((f"{style}-{self.substrate}", size))


def _parts(comparison: Comparison, spec: MatrixOf) -> Iterator[_Part]:
    rows = {row.cell.point_id: row for row in comparison.rows}
    layers = {f"{style}-{substrate}" for style in spec.styles for substrate in spec.substrates}
    plain = [cell for cell in comparison.data.cells if cell.series.layer in layers and belongs(cell, "*")]
    for measure in spec.measures:
        for place in words.PLACE_ORDER:
            for wait in words.WAIT_ORDER:
                here = {
                    (cell.series.layer, cell.case.size): cell
                    for cell in plain
                    if (cell.case.place, cell.case.wait) == (place, wait)
                    and any(is_plain(cell.case, measure.pattern, size) for size in measure.bytes)
                }
                for substrate in spec.substrates:
                    cells = {key: cell for key, cell in here.items() if key[0].endswith(f"-{substrate}")}
                    found = {key: rows[cell.point_id] for key, cell in cells.items() if cell.point_id in rows}
                    if found:
                        yield _Part(
                            measure=measure, place=place, wait=wait, substrate=substrate, cells=cells, rows=found
                        )


def _marks(comparison: Comparison, parts: Iterable[_Part], spec: MatrixOf) -> dict[str, str]:
    """Return how points beside the base style are marked; a family is a measure at a place, in a wait mode."""
    families: dict[tuple[MeasureOf, str, str], list[tuple[Numbers, Numbers]]] = defaultdict(list)
    for part in parts:
        for (_, size), row in part.rows.items():
            base = part.row(spec.base, size)
            if base is not None and row is not base:
                families[part.measure, part.place, part.wait].append((row.numbers, base.numbers))
    told = told_apart(comparison.data, families, withheld=bool(comparison.withheld)).values()
    return {name: one.mark for family in told for name, one in family.items()}


def _ratio(row: Row | None, base: Row | None, marks: Mapping[str, str]) -> Value | None:
    if row is None or base is None:
        return None
    ratio = intervals.ratio(row.numbers.by_round, base.numbers.by_round)
    flag = marks.get(row.cell.point_id, "")
    return estimate_value(ratio, scale=1.0, reason="", sign=units.TIMES, flag=flag)


def _value(part: _Part, style: str, size: int) -> Value:
    row = part.row(style, size)
    if row is not None:
        return estimate_value(row.numbers.central, scale=words.shown(row.numbers.quantity).scale, reason="")
    cell = part.cells.get((f"{style}-{part.substrate}", size))
    return Value(text=units.MISSING, reason=f"{cell.state}: {reason(cell)}" if cell else "not planned")


def _line(part: _Part, spec: MatrixOf, style: str, sizes: Sequence[int], marks: Mapping[str, str]) -> TableLine:
    is_base = style == spec.base
    cells = (
        _cell(
            _value(part, style, size),
            None if is_base else _ratio(part.row(style, size), part.row(spec.base, size), marks),
        )
        for size in sizes
    )
    return line_of(row_name(f"{style}-{part.substrate}", spec.styles[style]), cells, role="base" if is_base else "")


def _cell(value: Value, ratio: Value | None) -> TableCell:
    """Return a value with its ratio to the base style below it."""
    small = [("", value.detail), ("why", value.reason)]
    if ratio:
        small.append((ratio.flag, f"{ratio.text} {ratio.detail}"))
    return TableCell(
        spans=(Span(value.text),),
        small=tuple((role, text) for role, text in small if text),
        role="num none" if value.reason else "num",
        raw=value.raw,
    )


def _figure(part: _Part, source: FigureSource) -> Figure | None:
    members = [row for row in part.rows.values() if row.cell.case.size in part.measure.bytes]
    if len({row.cell.case.size for row in members}) < DRAWN_MIN:
        return None
    name = f"{part.measure.pattern}-{part.place}-{part.wait}-{part.substrate}"
    return figure(members, source, name=name)


def tables(comparison: Comparison, spec: MatrixOf) -> Iterator[Block]:
    """Yield a table for each measure, place, wait mode and substrate that has a number."""
    source = figure_source(comparison.data)
    parts = list(_parts(comparison, spec))
    marks = _marks(comparison, parts, spec)
    for part in parts:
        sizes = [size for size in part.measure.bytes if any(size == key[1] for key in part.cells)]
        some = next(iter(part.rows.values()))
        shown = words.shown(some.numbers.quantity)
        styles = [style for style in spec.styles if any(f"{style}-{part.substrate}" == key[0] for key in part.cells)]
        title = (
            f"{part.measure.title} on {spec.substrates[part.substrate]}, {words.PLACES[part.place]}, "
            f"{words.WAITS[part.wait]}"
        )
        unit = say(
            "matrix.below_each_ratio",
            heading=some.numbers.quantity.heading,
            unit=shown.unit,
            base=spec.base,
            substrate=part.substrate,
        )
        yield Heading(3, title)
        yield Table(
            label=title,
            role="plain matrix",
            columns=(words_column("layer"), *number_columns(map(units.size, sizes))),
            lines=tuple(_line(part, spec, style, sizes, marks) for style in styles),
            caption=(Span(unit),),
            caption_role="dim",
        )
        if drawn := _figure(part, source):
            yield drawn


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values)


def answers(comparison: Comparison, spec: MatrixOf) -> Iterator[str]:
    """Yield, place by place, whether the style or the substrate makes the difference, for the ends of each measure.

    Or why that is withheld, as the campaign's report does; nothing is divided of values that have no interval.
    """
    if comparison.withheld:
        yield say("matrix.what_styles_what_substrates", withheld=comparison.withheld)
        return
    grouped: dict[tuple[MeasureOf, str, str], dict[str, _Part]] = {}
    for part in _parts(comparison, spec):
        grouped.setdefault((part.measure, part.place, part.wait), {})[part.substrate] = part
    for (measure, place, wait), parts in grouped.items():
        for size in dict.fromkeys((measure.bytes[0], measure.bytes[-1])):
            central = {
                (style, substrate): row.numbers.central
                for substrate, part in parts.items()
                for style in spec.styles
                if (row := part.row(style, size)) is not None
            }
            sentence = _sentence({key: one.value for key, one in central.items()}, spec)
            if sentence:
                why = comparison.why_not(measure.pattern, place, wait) or _too_few(central.values())
                where = f"{words.PLACES[place]}, {words.WAITS[wait]}"
                yield f"{measure.title}, {units.size(size)}, {where}: {f'withheld: {why}.' if why else sentence}"


def _too_few(central: Iterable[Estimate]) -> str:
    """Say that some value has no interval of 95 %, so that its place among others may be chance; "" where all have."""
    fewest = min(central, key=lambda one: one.coverage)
    if fewest.coverage >= TARGET_COVERAGE:
        return ""
    return say("matrix.too_few_interval", launches=fewest.launches)


def _shares(table: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return which share of the variance of the logarithm is of the rows, of the columns, and of single pairs of them.

    Two-way analysis of variance with one value a cell (Fisher 1925); logarithms, since costs multiply.
    """
    logs = [[math.log(value) for value in row] for row in table]
    grand = fmean(value for row in logs for value in row)
    rows = sum((fmean(row) - grand) ** 2 for row in logs) * len(logs[0])
    columns = sum((fmean(column) - grand) ** 2 for column in zip(*logs, strict=True)) * len(logs)
    total = sum((value - grand) ** 2 for row in logs for value in row)
    return (rows / total, columns / total, max(0.0, total - rows - columns) / total) if total else (0.0, 0.0, 0.0)


def _sentence(values: Mapping[tuple[str, str], float], spec: MatrixOf) -> str:
    """Return what of the differences is the style's and what the substrate's, by medians over launches."""
    substrates = [name for name in spec.substrates if any(on == name for _, on in values)]
    whole = [style for style in spec.styles if all((style, on) in values for on in substrates)]
    if min(len(substrates), len(whole)) < TABLE_MIN:
        return ""
    style, substrate, rest = _shares([[values[style, on] for on in substrates] for style in whole])
    spreads = [_spread([values[one, on] for one in whole]) for on in substrates]
    told = ", ".join(
        f"{units.times(spread)} on {spec.substrates[on]}" for on, spread in zip(substrates, spreads, strict=True)
    )
    return say("matrix.styles_lie_within_variance", told=told, style=style, substrate=substrate, rest=rest)
