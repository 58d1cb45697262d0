# SPDX-License-Identifier: BSD-3-Clause
"""Rows as CSV or JSON Lines, line by line, so that a whole table never stands in memory as text.

A program of spreadsheets runs a text that begins with one of `= + - @`, a tab or a return as a formula. Text of a
campaign may come from anybody (a host's name, an error of a library), so in CSV such a text gets an apostrophe before
it (CWE-1236). Numbers never do. JSON Lines and Parquet, which no such program runs, hold every text as it is.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

FlatKind = Literal["csv", "jsonl"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class _Last:
    """Holds the line that a csv writer wrote last."""

    line = ""

    def write(self, text: str) -> int:
        """Take a line."""
        self.line = text
        return len(text)


def harmless(value: object) -> object:
    """Return a value as CSV may have it: text that would be a formula with an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def lines(kind: FlatKind, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yield a table's lines, each with its end; in CSV the names of its columns first. A row has every column."""
    if kind == "jsonl":
        for row in rows:
            yield json.dumps({name: row[name] for name in columns}, ensure_ascii=True, allow_nan=False) + "\n"
        return
    last = _Last()
    writer = csv.writer(last, lineterminator="\n")
    writer.writerow([harmless(name) for name in columns])
    yield last.line
    for row in rows:
        writer.writerow([harmless(row[name]) for name in columns])
        yield last.line
