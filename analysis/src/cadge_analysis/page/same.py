# SPDX-License-Identifier: BSD-3-Clause
"""What all layers of a workload have in common is said once above its second table, not in each of that table's rows.

Such are the floor and the references of a size, and counts that are zero everywhere. A column is said once where it has
one value among all rows, or one among those of each way of waiting; each such value is of two rows or more, and is not
marked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from cadge_analysis import words
from cadge_analysis.blocks.model import Column
from cadge_analysis.cells.shown import Value
from cadge_analysis.page.viewmodel import CaseTable, Same

_KEPT = ("p999",)
"""Columns that the short tables' choice of a percentile takes its numbers from, row by row."""
Sets = tuple[tuple[Column, ...], ...]


def said_once(tables: Sequence[CaseTable], more: Sequence[Column]) -> tuple[tuple[CaseTable, ...], Sets]:
    """Return tables without the columns that say the same in every row, and the sets of columns that are left.

    more: the columns of their second tables, until then the same ones for all.
    """
    sets: dict[tuple[Column, ...], int] = {}
    made = []
    for table in tables:
        found = {at: same for at, column in enumerate(more) if (same := _same(table, column, at)) is not None}
        left = [at for at in range(len(more)) if at not in found]
        columns = tuple(more[at] for at in left)
        made.append(
            replace(
                table,
                same=tuple(found.values()),
                more=tuple(replace(row, cells=tuple(row.cells[at] for at in left)) for row in table.more if left),
                more_set=sets.setdefault(columns, len(sets)),
            )
        )
    return tuple(made), tuple(sets)


def _same(table: CaseTable, column: Column, at: int) -> Same | None:
    by_wait: dict[str, list[Value]] = defaultdict(list)
    for row in table.more:
        by_wait[row.wait].append(row.cells[at])
    every = by_wait.values()
    if column.key in _KEPT or not every or any(len(some) < 2 or len(set(some)) > 1 or some[0].flag for some in every):
        return None
    values = {wait: several[0] for wait, several in by_wait.items()}
    if len(set(values.values())) == 1:
        values = {"": next(iter(values.values()))}
    return Same(
        column=column, values=tuple((words.WAITS[wait] if wait else "", value) for wait, value in values.items())
    )
