# SPDX-License-Identifier: BSD-3-Clause
"""Blocks that pages need often, made of texts, and what a list of blocks holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from cadge_analysis import messages
from cadge_analysis.blocks.model import (
    GIST,
    Block,
    Column,
    Fact,
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
from cadge_analysis.blocks.ranked import Picture, PicturedQuestion
from cadge_analysis.cells.shown import Value

say = partial(messages.say, "figures")


def plain(text: str, role: str = "") -> Text:
    """Return sentences without anything that stands out."""
    return Text((Span(text),), role)


def lede(text: str, more: str = "") -> Text:
    """Return what opens a section, and goes on less loud."""
    return Text((Span(text), *((Span(" "), Span(more, role="dim")) if more else ())), "lede")


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


def facts_of(texts: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return names with what is said of each, but those of which nothing is."""
    return tuple(Fact(name=name, text=text) for name, text in texts.items() if text)


def titled_spans(title: str, gist: str) -> tuple[Span, ...]:
    """Return what the line of a fold says: a title, and in short what is below it."""
    return Span(title, role="b"), Span(" "), Span(gist, role=GIST)


def caption(title: str, note: str = "") -> tuple[Span, ...]:
    """Return a table's caption, and what is to be known of the table."""
    return (Span(title, role="span"), *((Span(" "), Span(note, role="dim")) if note else ()))


def plain_table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[str] | TableLine], role: str = "plain", note: str = ""
) -> Table:
    """Return a table of words that gives way on a narrow page; `note` stands behind its title."""
    return Table(
        label=title,
        role=role,
        columns=tuple(map(words_column, columns)),
        lines=tuple(
            row if isinstance(row, TableLine) else TableLine(cells=tuple(map(words_cell, row))) for row in rows
        ),
        caption=caption(title, note),
        fits=True,
    )


def sections_of(blocks: Iterable[Block]) -> tuple[NavLink, ...]:
    """Return the list of a page's sections."""
    regions = [one for one in blocks if isinstance(one, Region) and one.id]
    return tuple(link_to(one) for one in regions)


def link_to(region: Region, text: str = "") -> NavLink:
    """Return an entry of the list of sections."""
    return NavLink(href=f"#{region.id}", text=text or region.short or region.title)


def made_of_records(generated: str) -> str:
    """Return what a page says of what it is made of."""
    return say("made", generated=generated)


def embedded(carried: str = "") -> tuple[Span, ...]:
    """Return what the foot of a page says of what it carries for programs."""
    return (
        Span(say("embedded", carried=carried or say("carried")) + " "),
        Span(say("embedded_data"), role="code"),
        Span(say("embedded_end")),
    )


def every(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks and all that is in them, in the page's order."""
    for block in blocks:
        yield block
        if isinstance(block, Fold | Region):
            yield from every(block.blocks)


def region_of(blocks: Iterable[Block], name: str) -> Region | None:
    """Return the first region of an id or a role."""
    regions = (one for one in every(blocks) if isinstance(one, Region))
    return next((one for one in regions if name in (one.id, one.role)), None)


def items_of(blocks: Iterable[Block], role: str) -> tuple[Item, ...]:
    """Return the items of the lists of a role."""
    return tuple(item for one in every(blocks) if isinstance(one, Items) and one.role == role for item in one.items)


def panels_of(blocks: Iterable[Block]) -> Iterator[PicturedQuestion]:
    """Yield every ranked panel of a page, in order."""
    return (question for one in every(blocks) if isinstance(one, Picture) for question in one.questions)


def tables_of(blocks: Iterable[Block]) -> Iterator[Table]:
    """Yield every table of a page, in order."""
    return (one for one in every(blocks) if isinstance(one, Table))
