# SPDX-License-Identifier: BSD-3-Clause
"""A published table whose rows are combinations, and the same table of each of our layers.

Nothing is left out: what a layer cannot do is a cell, or a row, with its reason; layers without any number stand below
with theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product

from cadge_analysis import units, words
from cadge_analysis.blocks.make import number_columns, plain, reason_cell, row_name, words_column
from cadge_analysis.blocks.model import PUBLISHED, Block, Fact, Facts, Heading, Region, Table, TableCell, TableLine
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.load import Cell, Series
from cadge_analysis.study.distance import published_value
from cadge_analysis.study.published import ColumnOf, GridOf, Publication, TopologyOf
from cadge_analysis.study.shares import by_round
from cadge_results.plugins.parameter import holds

Where = tuple[Series, str, str]
"""A layer as it was opened, its place and wait mode: a table."""
Combination = tuple[TopologyOf, Mapping[str, str]]
"""A row: a topology, and a word of each further parameter."""


def _combinations(spec: GridOf) -> Iterator[Combination]:
    for topology in spec.topologies:
        for said in product(*spec.by.values()):
            yield topology, dict(zip(spec.by, said, strict=True))


def _is_usual(cell: Cell, given: Mapping[str, object]) -> bool:
    """Tell whether whatever a column and its row leave open is as it usually is."""
    file, workload = cell.case.file, cell.case.workload
    return all(
        name in given or file.parameters[name].is_required or file.is_usual(name, workload) for name in file.parameters
    )


def _labels(combination: Combination, spec: GridOf) -> tuple[str, ...]:
    topology, said = combination
    return (topology.name, *(spec.by[name][word] for name, word in said.items()))


def _value(cell: Cell | None, row: Row | None, column: ColumnOf) -> Value:
    if cell is None:
        return Value(text=units.MISSING, reason="not planned")
    if row is None:
        return Value(text=units.MISSING, reason=reason(cell))
    if column.carries:
        rates = by_round(cell, column.carries)
        return estimate_value(intervals.over_rounds(rates), scale=1.0, reason="")
    return estimate_value(row.numbers.central, scale=words.shown(row.numbers.quantity).scale, reason="")


class _LayerCells:
    """The cells of one layer at one place in one wait mode, looked up by combination and column."""

    def __init__(self, cells: Sequence[Cell], rows: Mapping[str, Row], spec: GridOf) -> None:
        self._cells, self._rows, self._spec = cells, rows, spec

    def _cell(self, combination: Combination, column: ColumnOf) -> Cell | None:
        topology, said = combination
        given = {**topology.given, **said, **column.given}
        return next(
            (
                cell
                for cell in self._cells
                if cell.case.pattern == topology.pattern and holds(given, cell.case.workload) and _is_usual(cell, given)
            ),
            None,
        )

    def line(self, combination: Combination) -> TableLine:
        found = [self._cell(combination, column) for column in self._spec.columns]
        values = tuple(
            _value(cell, self._rows.get(cell.point_id) if cell else None, column)
            for cell, column in zip(found, self._spec.columns, strict=True)
        )
        reasons = {value.reason for value in values}
        bare = len(reasons) == 1 and reasons != {""}
        names = map(row_name, _labels(combination, self._spec))
        return TableLine(cells=(*names, reason_cell(next(iter(reasons)))) if bare else (*names, *values))


def _known(published: Publication, spec: GridOf) -> Iterator[TableLine]:
    for row in spec.known:
        cells = []
        for column in spec.columns:
            name = row.cells.get(column.name)
            figure = published.figures[name] if name else None
            before = row.said.get(column.name, "")
            cells.append(published_value(figure, before) if figure else Value(text=units.MISSING, reason="not found"))
        yield TableLine(cells=(row_name(row.name), *cells), role=PUBLISHED)


def _tables(comparison: Comparison, layers: str, spec: GridOf) -> Iterator[tuple[Where, tuple[TableLine, ...]]]:
    rows = {row.cell.point_id: row for row in comparison.rows}
    patterns = {topology.pattern for topology in spec.topologies}
    groups: dict[Where, list[Cell]] = defaultdict(list)
    for cell in comparison.data.cells:
        series = cell.series
        if series.kind == "layer" and fnmatchcase(series.layer, layers) and cell.case.pattern in patterns:
            groups[series, cell.case.place, cell.case.wait].append(cell)
    for where in sorted(groups, key=lambda one: (words.PLACE_ORDER.index(one[1]), one[2], one[0])):
        table = _LayerCells(groups[where], rows, spec)
        yield where, tuple(map(table.line, _combinations(spec)))


def _where_text(where: Where) -> str:
    series, place, wait = where
    return f"{series.label} {words.PLACES[place]}, {words.WAITS[wait]}"


def grid(comparison: Comparison, published: Publication, spec: GridOf) -> Region | None:
    """Return the published table and those of a campaign\u2019s layers; None where no layer has a number."""
    made = [
        (where, lines, any(cell.raw for line in lines for cell in line.cells))
        for where, lines in _tables(comparison, published.layers, spec)
    ]
    if not any(has for _, _, has in made):
        return None
    heads = ("topology", *(name.replace("_", " ") for name in spec.by))
    blocks: list[Block] = [plain(spec.note)]
    if spec.known:
        blocks += _laid_out(
            f"{published.system}, {published.year}", ("published",), tuple(_known(published, spec)), spec
        )
    for where, lines, has in made:
        if has:
            blocks += _laid_out(_where_text(where), heads, lines, spec)
    missing: dict[str, list[str]] = defaultdict(list)
    for where, lines, has in made:
        if not has:
            whys = dict.fromkeys(why for line in lines for cell in line.cells if (why := _why(cell)))
            missing["; ".join(whys)].append(_where_text(where))
    if missing:
        facts = tuple(Fact(name="; ".join(names), text=why) for why, names in missing.items())
        blocks += [plain("Without any number:", "dim"), Facts(facts)]
    return Region(id="grid", title=spec.title, blocks=tuple(blocks))


def _laid_out(title: str, heads: Sequence[str], lines: tuple[TableLine, ...], spec: GridOf) -> tuple[Block, Block]:
    columns = (*map(words_column, heads), *number_columns(column.name for column in spec.columns))
    return Heading(3, title), Table(label=title, role="plain grid", columns=columns, lines=lines)


def _why(cell: Value | TableCell) -> str:
    if isinstance(cell, Value):
        return cell.reason
    return cell.spans[0].text if cell.is_rest else ""
