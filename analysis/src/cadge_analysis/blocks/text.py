# SPDX-License-Identifier: BSD-3-Clause
"""The text edition of a page: no line is wider than 100 columns of a terminal.

A table that fits stands in columns. One that is wider stands in several, below each other, each with the rows' names
and as many of the columns as fit; a cell that is too long for a column goes on below itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from cadge_analysis.blocks.lines import Drawing, FlatTable, ItemList, Lines, Paragraph, filled
from cadge_analysis.blocks.model import Command, Heading
from cadge_analysis.blocks.plain import cells_wide, harmless, wrapped

WIDE = 100
CELL_SHARE = 0.34
"""Of a table's columns of a terminal, for one cell; a longer one is wrapped."""
_GAP = "  "
_UNDER = {1: "=", 2: "-"}


def text(lines: Iterable[Lines], tables_wide: int = WIDE) -> str:
    """Return lines as an edition. tables_wide: how many columns of a terminal a table may take."""
    return "".join(f"{line}\n" for line in _spaced(filled(lines), tables_wide))


def _spaced(blocks: Iterable[Lines], tables_wide: int) -> Iterator[str]:
    for number, block in enumerate(blocks):
        if number:
            yield ""
        yield from _lines(block, tables_wide)


def _lines(block: Lines, tables_wide: int) -> Iterator[str]:
    match block:
        case Heading(level, said):
            lines = wrapped(harmless(said), WIDE)
            yield from lines
            if level in _UNDER:
                yield _UNDER[level] * max(map(cells_wide, lines))
        case Paragraph(said):
            yield from wrapped(harmless(said), WIDE)
        case ItemList(items):
            for item in items:
                yield from wrapped(f"- {harmless(item)}", WIDE, "  ")
        case Command(said):
            yield from _command(harmless(said))
        case Drawing(lines):
            yield from lines
        case FlatTable():
            yield from _table(block, tables_wide)


def _command(said: str) -> Iterator[str]:
    """Yield a command so that it can be copied: its lines end between two words, with the shell's backslash."""
    line = " "
    for word in map(shlex.quote, shlex.split(said)):
        if cells_wide(f"{line} {word} \\") > WIDE and line.strip():
            yield f"{line} \\"
            line = "   "
        line = f"{line} {word}"
    yield line


def _table(table: FlatTable, wide: int) -> Iterator[str]:
    if table.caption:
        yield from wrapped(f"[{harmless(table.caption)}]", WIDE, " ")
    most = round(wide * CELL_SHARE)
    grid = [[wrapped(harmless(cell), most) for cell in row] for row in (table.heads, *table.rows)]
    widths = [max(cells_wide(line) for row in grid for line in row[column]) for column in range(len(table.heads))]
    for number, columns in enumerate(_parts(widths, wide)):
        if number:
            yield ""
        yield from _grid(grid, columns, widths)


def _parts(widths: Sequence[int], wide: int) -> Iterator[list[int]]:
    """Yield which columns stand beside each other: always the first one, then as many as fit."""
    part = [0]
    for column in range(1, len(widths)):
        taken = sum(widths[one] for one in (*part, column)) + len(_GAP) * len(part)
        if taken > wide and len(part) > 1:
            yield part
            part = [0]
        part.append(column)
    yield part


def _grid(grid: Sequence[Sequence[Sequence[str]]], columns: Sequence[int], widths: Sequence[int]) -> Iterator[str]:
    for number, row in enumerate(grid):
        for line in range(max(len(row[column]) for column in columns)):
            cells = [row[column][line] if line < len(row[column]) else "" for column in columns]
            padded = (
                cell + " " * (widths[column] - cells_wide(cell)) for cell, column in zip(cells, columns, strict=True)
            )
            yield _GAP.join(padded).rstrip(" ")
        if number == 0:
            yield _GAP.join("-" * widths[column] for column in columns)
