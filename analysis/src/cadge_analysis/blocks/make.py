# SPDX-License-Identifier: BSD-3-Clause
"""Blocks that pages need often, made of texts, and what a list of blocks holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from cadge_analysis import messages
from cadge_analysis.blocks.model import (
    Block,
    Column,
    Either,
    Fold,
    Item,
    Items,
    NavLink,
    Region,
    Span,
    Table,
    TableCell,
    TableLine,
    Text,
)
from cadge_analysis.cells.shown import Value

say = partial(messages.say, "figures")


def plain(text: str, role: str = "") -> Text:
    """Return sentences without anything that stands out."""
    return Text((Span(text),), role)


def lede(text: str, more: str = "") -> Either:
    """Return what opens a section on a page, and goes on less loud; editions do without."""
    return Either(html=(Text((Span(text), *((Span(" "), Span(more, role="dim")) if more else ())), "lede"),))


def listed(texts: Iterable[str], role: str = "") -> Items:
    """Return a list of plain sentences."""
    return Items(tuple(Item(spans=(Span(text),)) for text in texts), role)


def words_column(head: str, role: str = "") -> Column:
    """Return a column of words."""
    return Column(head=head, number=False, role=role)


def number_columns(heads: Iterable[str]) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(head=head, role="num") for head in heads)


def row_name(label: str, *small: str) -> TableCell:
    """Return what a row is called, and what stands below it."""
    return TableCell(spans=(Span(label),), small=tuple(("", text) for text in small if text), is_name=True)


def words_cell(text: str) -> TableCell:
    """Return a cell of words."""
    return TableCell(spans=(Span(text),))


def reason_cell(reason: str) -> TableCell:
    """Return why there is nothing in all cells that would follow."""
    return TableCell(spans=(Span(reason),), role="reason", is_rest=True)


def line_of(name: TableCell, cells: Iterable[Value | TableCell], reason: str = "", role: str = "") -> TableLine:
    """Return a line with its cells, or with the one reason why it has none."""
    return TableLine(cells=(name, reason_cell(reason)) if reason else (name, *cells), role=role)


def titled_spans(title: str, gist: str) -> tuple[Span, ...]:
    """Return what the line of a fold says: a title, and in short what is below it."""
    return Span(title, role="b"), Span(" "), Span(gist, role="dim")


def caption(title: str, note: str = "") -> tuple[Span, ...]:
    """Return a table's caption, and what is to be known of the table."""
    return (Span(title, role="span"), *((Span(" "), Span(note, role="dim")) if note else ()))


def plain_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table of words that gives way on a narrow page."""
    return Table(
        label=title,
        role="plain",
        columns=tuple(map(words_column, columns)),
        lines=tuple(TableLine(cells=tuple(map(words_cell, row))) for row in rows),
        caption=caption(title),
        fits=True,
    )


def sections_of(blocks: Iterable[Block]) -> tuple[NavLink, ...]:
    """Return the list of a page's sections."""
    regions = [one for one in blocks if isinstance(one, Region) and one.id]
    return tuple(link_to(one) for one in regions)


def link_to(region: Region, text: str = "") -> NavLink:
    """Return an entry of the list of sections."""
    return NavLink(href=f"#{region.id}", text=text or region.short or region.title)


def made_of_records(generated: str, carried: str = "") -> tuple[Span, ...]:
    """Return what the foot of a page says: what it is made of, and what it carries for programs."""
    said = (say("embedded", carried=carried or say("carried")), say("embedded_data"), say("embedded_end"))
    return (
        Span(say("made", generated=generated)),
        Span(" "),
        Span(said[0]),
        Span(" "),
        Span(said[1], role="code"),
        Span(said[2]),
    )


def every(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks and all that is in them, in the page's order."""
    for block in blocks:
        yield block
        match block:
            case Fold() | Region():
                yield from every(block.blocks)
            case Either():
                yield from every(block.html)


def tables_of(blocks: Iterable[Block]) -> Iterator[Table]:
    """Yield every table of a page, in order."""
    return (one for one in every(blocks) if isinstance(one, Table))
