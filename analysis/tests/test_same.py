# SPDX-License-Identifier: BSD-3-Clause
"""What all rows of a table have in common is said once, and what differs anywhere stays in the rows."""

from __future__ import annotations

from cadge_analysis.blocks.model import Column, Key
from cadge_analysis.cells.shown import Value
from cadge_analysis.page.same import said_once
from cadge_analysis.page.viewmodel import CaseTable, TableRow

COLUMNS = tuple(Column(key=key, head=key) for key in ("floor", "lost", "calls", "p999"))


def table(*rows: tuple[str, str, str, str, str]) -> CaseTable:
    """A table with the ways of waiting and the texts of its rows."""
    made = tuple(
        TableRow(key=Key(label=str(n), number=n), point_id="", wait=wait, cells=tuple(Value(text=one) for one in texts))
        for n, (wait, *texts) in enumerate(rows)
    )
    return CaseTable(title="8 B", case="c", gist="", rows=made, more=made)


def test_one_value_in_all_rows_is_said_once_and_what_differs_stays() -> None:
    ((made,), sets) = said_once([table(("poll", "1", "0", "a", "9"), ("poll", "1", "0", "b", "9"))], COLUMNS)
    assert [(one.column.key, [(wait, value.text) for wait, value in one.values]) for one in made.same] == [
        ("floor", [("", "1")]),
        ("lost", [("", "0")]),
    ]
    assert [column.key for column in sets[made.more_set]] == ["calls", "p999"], "percentiles stay row by row"
    assert [[cell.text for cell in row.cells] for row in made.more] == [["a", "9"], ["b", "9"]]
    assert [[cell.text for cell in row.cells] for row in made.rows] == [["1", "0", "a", "9"], ["1", "0", "b", "9"]]


def test_ways_of_waiting_are_told_apart() -> None:
    rows = [("poll", "1", "0", "a", "9"), ("poll", "1", "0", "b", "9")]
    rows += [("block", "5", "0", "a", "9"), ("block", "5", "0", "a", "9")]
    ((made,), _) = said_once([table(*rows)], COLUMNS)
    found = {one.column.key: [(wait, value.text) for wait, value in one.values] for one in made.same}
    assert found == {"floor": [("polling", "1"), ("blocking", "5")], "lost": [("", "0")]}


def test_one_row_alone_has_nothing_in_common_with_others() -> None:
    for rows in ([("poll", "1", "0", "a", "9")], [("poll", "1", "0", "a", "9")] * 2 + [("block", "1", "0", "a", "9")]):
        ((made,), sets) = said_once([table(*rows)], COLUMNS)
        assert (made.same, sets) == ((), (COLUMNS,))


def test_tables_with_equal_columns_share_them() -> None:
    alike = table(("poll", "1", "0", "a", "9"), ("poll", "1", "0", "b", "9"))
    other = table(("poll", "1", "0", "a", "9"), ("poll", "2", "0", "b", "9"))
    made, sets = said_once([alike, other, alike], COLUMNS)
    assert [one.more_set for one in made] == [0, 1, 0]
    assert len(sets) == 2
