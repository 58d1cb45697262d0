# SPDX-License-Identifier: BSD-3-Clause
"""What all rows of a table have in common is said once, and what differs anywhere stays in the rows."""

from __future__ import annotations

from cadge_analysis.blocks.model import Column
from cadge_analysis.cells.shown import Value
from cadge_analysis.page.parts.tables import said_once

COLUMNS = tuple(Column(key=key, head=key) for key in ("floor", "lost", "calls", "p999"))


def found(*rows: tuple[str, str, str, str, str]) -> dict[str, list[str]]:
    """Return what is said once of rows with these ways of waiting and texts, by its column."""
    made = said_once([(wait, [Value(text=one) for one in texts]) for wait, *texts in rows], COLUMNS)
    return {column.key: [f"{wait}: {one.text}" for wait, one in values.items()] for column, values in made.items()}


def test_one_value_in_all_rows_is_said_once_and_percentiles_stay_row_by_row() -> None:
    assert found(("poll", "1", "0", "a", "9"), ("poll", "1", "0", "b", "9")) == {
        "floor": ["poll: 1"],
        "lost": ["poll: 0"],
    }


def test_ways_of_waiting_are_told_apart() -> None:
    rows = [("poll", "1", "0", "a", "9"), ("poll", "1", "0", "b", "9")]
    rows += [("block", "5", "0", "a", "9"), ("block", "5", "0", "a", "9")]
    assert found(*rows) == {"floor": ["poll: 1", "block: 5"], "lost": ["poll: 0", "block: 0"]}


def test_one_row_alone_has_nothing_in_common_with_others() -> None:
    for rows in ([("poll", "1", "0", "a", "9")], [("poll", "1", "0", "a", "9")] * 2 + [("block", "1", "0", "a", "9")]):
        assert found(*rows) == {}


def test_a_marked_value_stays_in_its_row() -> None:
    rows = [("poll", [Value(text="1", flag="below")] * 4)] * 2
    assert said_once(rows, COLUMNS) == {}
