# SPDX-License-Identifier: BSD-3-Clause
"""Blocks as lines of an edition without pictures: headings, sentences, lists, commands and tables of plain text.

A figure is its caption and its numbers: without numbers it is left out, and so is what its lines and colours mean. A
section and a fold are what they hold, below a heading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages
from cadge_analysis.blocks import bars
from cadge_analysis.blocks.model import (
    CHOSEN,
    DRAWN,
    GIST,
    ONSCREEN,
    Block,
    Chooser,
    Column,
    Command,
    Fact,
    Facts,
    Figure,
    Fold,
    Heading,
    Item,
    Items,
    Matrix,
    PageDocument,
    PanelFigure,
    Region,
    Remark,
    Remarks,
    Reply,
    Span,
    StackedFigure,
    Table,
    TableCell,
    TableLine,
    Text,
)
from cadge_analysis.blocks.ranked import PanelNote, Picture
from cadge_analysis.cells.shown import Value

say = partial(messages.say, "figures")

DRAWN_WIDE = 96
"""Columns of a drawing; Markdown sets it in by four."""
IN_TEXT = {"shaded": "*", "bar": "[a, b]", "dashed": "floor"}
"""What stands in text for how a page draws it."""
DEEPEST = 6
"""Levels of headings that Markdown has."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class ItemList:
    """Items, each of its own."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlatTable:
    """Rows below heads; the first column names the row. `caption` may be empty."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines that stay as they are, of at most `WIDE` columns."""

    lines: tuple[str, ...]


Lines = Heading | Paragraph | ItemList | Command | FlatTable | Drawing


def lines_of(blocks: Iterable[Block], level: int = 2) -> Iterator[Lines]:
    """Yield what an edition says of blocks that stand below a heading of a level."""
    below = level
    for block in blocks:
        match block:
            case Heading():
                yield block
                below = block.level
            case Command():
                yield block
            case Text():
                if ONSCREEN not in block.role.split():
                    yield Paragraph(_span_text(block.spans))
            case Items():
                yield ItemList(tuple(map(_item, block.items)))
            case Remarks():
                yield ItemList(tuple(map(_remark, block.remarks)))
            case Facts():
                yield ItemList(tuple(map(_fact, block.facts)))
            case Table():
                yield _flat(block)
            case Matrix():
                yield _matrix(block)
            case Picture():
                yield from _panels(block)
            case Figure() | PanelFigure() if block.table.rows:
                yield Heading(3, block.title)
                yield Paragraph(block.caption.replace(CHOSEN, "") if isinstance(block, Figure) else block.note)
                yield FlatTable("", block.table.columns, block.table.rows)
            case Region():
                if block.title:
                    yield Heading(2, block.title)
                yield from lines_of(block.blocks, level)
            case Fold():
                inner = min(below + 1, DEEPEST)
                yield Heading(inner, _span_text(one for one in block.summary if one.role != GIST))
                yield Paragraph(_span_text(one for one in block.summary if one.role == GIST))
                yield from lines_of(block.blocks, inner)
            case Figure() | PanelFigure() | StackedFigure() | Chooser():
                pass  # a picture alone: its numbers are in a table beside it, or nowhere


def lines_of_page(page: PageDocument) -> Iterator[Lines]:
    """Yield what an edition says of a whole page."""
    yield Heading(1, page.title)
    yield Paragraph(page.deck)
    yield from lines_of((*page.head, *page.blocks))
    yield Paragraph(" ".join(filter(None, (page.made, say("pictures")))))


def filled(lines: Iterable[Lines]) -> Iterator[Lines]:
    """Leave out what says nothing: an empty sentence, a list or a table without a row."""
    for one in lines:
        match one:
            case Heading() | Command() | Drawing():
                yield one
            case Paragraph(text) if text:
                yield one
            case ItemList(items) if items:
                yield one
            case FlatTable() if one.rows:
                yield one


def _note(note: PanelNote) -> str:
    mark = IN_TEXT[note.drawn] if note.drawn else note.mark
    return f"{mark}: {note.text}" if mark else note.text


def _panels(picture: Picture) -> Iterator[Lines]:
    """Yield a picture's panels: the answer, what was asked, and the bars."""
    for question, (asked, drawn) in zip(picture.questions, bars.panels(picture, columns=DRAWN_WIDE), strict=True):
        yield Heading(3, question.headline)
        yield Paragraph(asked)
        yield Drawing(drawn)
    yield Paragraph(picture.conclusion)
    yield ItemList(tuple(map(_note, picture.notes)))


def _span_text(spans: Iterable[Span]) -> str:
    return "".join(one.text for one in spans if one.role not in (ONSCREEN, DRAWN)).strip()


def _item(one: Item) -> str:
    topic = f"{one.topic}: " if one.topic else ""
    return topic + " ".join(filter(None, (_span_text(one.spans), one.more)))


def _fact(one: Fact) -> str:
    return f"{one.name}: {one.text or '; '.join(map(_cell, one.cells))}"


def _remark(one: Remark) -> str:
    head = ", ".join(filter(None, (one.title, one.size)))
    return " ".join(filter(None, (f"{head}.", one.told)))


def _flat(table: Table) -> FlatTable:
    """Return it, with what spans all columns below it in the caption."""
    heads = (", ".join(filter(None, (one.head, *one.notes))) for one in table.columns if not one.joined)
    below = [line for line in table.foot if _is_rest(line.cells[0])]
    rows = (_row(line, table.columns) for line in (*table.lines, *table.foot) if line not in below)
    said = (_span_text(table.caption), *(_cell(line.cells[0]) for line in below))
    return FlatTable(" ".join(filter(None, said)), tuple(heads), tuple(rows))


def _matrix(matrix: Matrix) -> FlatTable:
    heads = (f"{one.head} ({'; '.join(filter(None, (one.of, one.floor)))})" for one in matrix.questions)
    rows = ((row.key.label, *map(_reply, row.cells)) for row in matrix.rows)
    return FlatTable(f"{matrix.title}, {matrix.sorted_by}", ("layer", *heads), tuple(rows))


def _reply(one: Reply) -> str:
    if one.reason:
        return f"{one.reason} ({one.why})" if one.why else one.reason
    rank = f"{one.rank}: " if one.rank else ""
    return rank + " ".join(filter(None, (one.text, one.detail, one.floor and f"({one.floor})")))


def _row(line: TableLine, columns: Sequence[Column]) -> tuple[str, ...]:
    found: list[str] = []
    rest = (TableCell(),) * (len(columns) - len(line.cells))
    for cell, column in zip((*line.cells, *rest), columns, strict=True):
        text = _cell(cell)
        if not column.joined:
            found.append(text)
        elif text:
            found[-1] += f" ({text} {column.joined})"
    return tuple(found)


def _is_rest(cell: Value | TableCell) -> bool:
    return isinstance(cell, TableCell) and cell.is_rest


def _cell(cell: Value | TableCell) -> str:
    if isinstance(cell, Value):
        return " ".join(filter(None, (cell.text, cell.detail, cell.reason)))
    label = cell.key.label if cell.key else ""
    named = "; ".join(f"{name}: {text}" for name, text in cell.named)
    return " ".join(filter(None, (label, _span_text(cell.spans), named, *(text for _, text in cell.small))))
