# SPDX-License-Identifier: BSD-3-Clause
"""A published range of several systems above the spread of ours: how far the best and the worst lie apart.

Absolute values of machines decades apart say nothing of the software; their ratio does, and ours have a floor as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, number_columns, plain, row_name, words_column
from cadge_analysis.blocks.model import PUBLISHED, Block, Heading, Table, TableLine
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.study.distance import belongs, is_plain, published_value
from cadge_analysis.study.published import Publication, RangeOf

say = partial(messages.say, "study")


def _rows(comparison: Comparison, spec: RangeOf, place: str, wait: str) -> list[Row]:
    found = [
        row
        for row in comparison.rows
        if belongs(row.cell, "*")
        and any(fnmatchcase(row.cell.series.layer, layers) for layers in spec.layers)
        and (row.cell.case.place, row.cell.case.wait) == (place, wait)
        and is_plain(row.cell.case, spec.pattern, spec.bytes)
    ]
    return sorted(found, key=lambda row: row.numbers.central.value)


def _end(row: Row) -> Value:
    value = estimate_value(row.numbers.central, scale=words.shown(row.numbers.quantity).scale, reason="")
    floor = f"; {units.times(row.ratio.value)} floor" if row.ratio is not None else ""
    return Value(text=value.text, detail=f"{row.cell.series.label}{floor}", raw=value.raw)


def _ours(comparison: Comparison, spec: RangeOf) -> Iterator[TableLine]:
    for place in words.PLACE_ORDER:
        for wait in words.WAIT_ORDER:
            rows = _rows(comparison, spec, place, wait)
            if len(rows) < 2 or comparison.why_not(spec.pattern, place, wait):
                continue
            low, high = rows[0], rows[-1]
            spread = intervals.ratio(high.numbers.by_round, low.numbers.by_round)
            yield line_of(
                row_name(
                    f"{words.PLACES[place]}, {words.WAITS[wait]}",
                    f"{units.count_of(len(rows), 'layer')}, {words.shown(low.numbers.quantity).unit}",
                ),
                (_end(low), _end(high), estimate_value(spread, scale=1.0, reason="", sign=units.TIMES)),
            )


def _missing(comparison: Comparison, spec: RangeOf) -> str:
    """Return why no two layers of ours stand here."""
    if comparison.withheld:
        return f"Ours is withheld: {comparison.withheld}."
    return say("ranges.ours_blank_campaign_no", layers=list(spec.layers), what=spec.what, bytes=units.size(spec.bytes))


def _range(comparison: Comparison, published: Publication, spec: RangeOf) -> Iterator[Block]:
    low, high = published.figures[spec.low], published.figures[spec.high]
    ours = tuple(_ours(comparison, spec))
    yield Heading(3, spec.title)
    if spec.note:
        yield plain(spec.note)
    yield Table(
        label=spec.title,
        role="plain range",
        columns=(words_column("systems"), *number_columns(("lowest", "highest", "apart"))),
        lines=(
            line_of(
                row_name(f"{published.system}, {published.year}", "published"),
                (
                    published_value(low),
                    published_value(high),
                    Value(text=units.times(high.value / low.value), detail="derived"),
                ),
                role=PUBLISHED,
            ),
            *ours,
        ),
    )
    if not ours:
        yield plain(_missing(comparison, spec), "dim")


def ranges(comparison: Comparison, published: Publication) -> tuple[Block, ...]:
    """Return every range of the study, in its order."""
    return tuple(block for one in published.ranges for block in _range(comparison, published, one))
