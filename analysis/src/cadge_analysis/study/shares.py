# SPDX-License-Identifier: BSD-3-Clause
"""What calls keep of the rate of a layer\u2019s bare stream, size by size, below what was published of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, number_columns, plain, row_name, words_column
from cadge_analysis.blocks.model import PUBLISHED, Region, Table
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Cell, Series
from cadge_analysis.study.distance import published_value
from cadge_analysis.study.published import Publication, ShareOf
from cadge_results.plugins.parameter import holds

say = partial(messages.say, "study")

Where = tuple[Series, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One layer at one size: its share, or why there is none. `chosen`: the words that were preferred."""

    where: Where
    size: int
    ratio: Estimate | None
    why: str
    chosen: tuple[str, ...]


def _where(cell: Cell) -> Where:
    return cell.series, cell.case.place, cell.case.wait


def _is(cell: Cell, pattern: str, given: Mapping[str, int | str]) -> bool:
    return cell.case.pattern == pattern and cell.case.does_rank and holds(given, cell.case.workload)


def _best(cells: list[Cell], rows: Mapping[str, Row], spec: ShareOf) -> Cell:
    """Return the cell with the words that come first among those that have a number; without any, the first cell."""

    def place(cell: Cell) -> tuple[int, ...]:
        return (
            cell.point_id not in rows,
            *(said.index(str(cell.case.workload[name])) for name, said in spec.prefer.items()),
        )

    return min(cells, key=place)


def _share(cell: Cell, stream: Cell | None, rows: Mapping[str, Row], spec: ShareOf) -> Share:
    size = cell.case.workload.integer(spec.carries)
    chosen = tuple(str(cell.case.workload[name]) for name in spec.prefer)
    row, of = rows.get(cell.point_id), rows.get(stream.point_id) if stream else None
    if row is None or of is None or stream is None:
        bare = cell if row is None else stream
        why = reason(bare) if bare is not None else say("shares.no_planned", of=spec.of, size=units.size(size))
        return Share(where=_where(cell), size=size, ratio=None, why=why, chosen=chosen)
    ratio = intervals.ratio(by_round(cell, spec.carries), of.numbers.by_round)
    return Share(where=_where(cell), size=size, ratio=ratio, why=say("shares.no_launch_both"), chosen=chosen)


def found(comparison: Comparison, layers: str, spec: ShareOf) -> Iterator[Share]:
    """Yield the share of every layer at every published size, at each place and in each wait mode."""
    rows = {row.cell.point_id: row for row in comparison.rows}
    streams: dict[tuple[Where, int], Cell] = {}
    calls: dict[tuple[Where, int], list[Cell]] = {}
    for cell in comparison.data.cells:
        if cell.series.kind != "layer" or not fnmatchcase(cell.series.layer, layers):
            continue
        if _is(cell, spec.of, spec.of_given):
            streams[_where(cell), cell.case.size] = cell
        elif _is(cell, spec.pattern, spec.given) and all(
            cell.case.workload[name] in said for name, said in spec.prefer.items()
        ):
            calls.setdefault((_where(cell), cell.case.workload.integer(spec.carries)), []).append(cell)
    for key in sorted(calls, key=lambda one: (words.PLACE_ORDER.index(one[0][1]), one[0][2], one[0][0], one[1])):
        if key[1] in spec.figures:
            yield _share(_best(calls[key], rows, spec), streams.get(key), rows, spec)


def _value(share: Share | None) -> Value:
    if share is None:
        return Value(text=units.MISSING, reason="not planned")
    value = estimate_value(share.ratio, scale=100.0, reason=share.why, sign=f"{units.THIN}%")
    said = " ".join(part for part in (value.detail, ", ".join(share.chosen)) if part)
    return Value(text=value.text, detail=said, raw=value.raw, reason=value.reason)


def shares(comparison: Comparison, published: Publication, spec: ShareOf) -> Region | None:
    """Return the shares of a campaign below the published ones; None where no layer was to have one."""
    by_where: dict[Where, dict[int, Share]] = {}
    for share in found(comparison, published.layers, spec):
        by_where.setdefault(share.where, {})[share.size] = share
    if not by_where:
        return None
    figures = [published.figures[name] for name in spec.figures.values()]
    theirs = line_of(
        row_name(f"{published.system}, {published.year}", "published"),
        map(published_value, figures),
        role=PUBLISHED,
    )
    ours = [
        line_of(
            row_name(series.label, f"{words.PLACES[place]}, {words.WAITS[wait]}"),
            (_value(by_size.get(size)) for size in spec.figures),
        )
        for (series, place, wait), by_size in by_where.items()
    ]
    table = Table(
        label=spec.title,
        role="plain shares",
        columns=(words_column("system"), *number_columns(map(units.size, spec.figures))),
        lines=(theirs, *ours),
    )
    return Region(id="shares", title=spec.title, blocks=(plain(spec.note), table))


def by_round(cell: Cell, parameter: str) -> dict[RoundKey, float]:
    """Return MB/s of each launch: the bytes of a parameter, once an operation, by the time of all operations."""
    each = cell.case.workload.integer(parameter)
    return {
        sample.round: units.mb_per_s(sample.operations * each, sample.elapsed_ns)
        for sample in cell.samples
        if sample.elapsed_ns
    }
