# SPDX-License-Identifier: BSD-3-Clause
"""What all layers of a workload have in common is said once above its second table, not in each of that table's rows.

Such are the floor and the references of a size, and counts that are zero everywhere. A column is said once where it has
one value among all rows, or one among those of each way of waiting; each such value is of two rows or more, and is not
marked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cadge_analysis import words
from cadge_analysis.blocks.model import Column, Fact, Span, TableCell
from cadge_analysis.cells.shown import Value

_KEPT = ("p999",)
"""Columns that the short tables' choice of a percentile takes its numbers from, row by row."""


def said_once(rows: Sequence[tuple[str, Sequence[Value]]], columns: Sequence[Column]) -> dict[str, Fact]:
    """Return what the columns have in common that say the same in every row, by their keys.

    rows: how each waits, and its values of the columns.
    """
    found = ((column, _same(rows, column, at)) for at, column in enumerate(columns))
    return {column.key: fact for column, fact in found if fact is not None}


def _same(rows: Sequence[tuple[str, Sequence[Value]]], column: Column, at: int) -> Fact | None:
    by_wait: dict[str, list[Value]] = defaultdict(list)
    for wait, cells in rows:
        by_wait[wait].append(cells[at])
    every = by_wait.values()
    if column.key in _KEPT or not every or any(len(some) < 2 or len(set(some)) > 1 or some[0].flag for some in every):
        return None
    values = {wait: several[0] for wait, several in by_wait.items()}
    if len(set(values.values())) == 1:
        values = {"": next(iter(values.values()))}
    made = tuple(_cell(words.WAITS[wait] if wait else "", value) for wait, value in values.items())
    return Fact(name=column.spoken, key=column.key, cells=made)


def _cell(wait: str, value: Value) -> TableCell:
    small = (("", value.detail), ("why", value.reason))
    text = f"{wait}: {value.text}" if wait else value.text
    return TableCell(spans=(Span(text),), small=tuple(one for one in small if one[1]), raw=value.raw)
