# SPDX-License-Identifier: BSD-3-Clause
"""Every text of a document stands in each of its editions: HTML, Markdown and text print one list of blocks."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from markupsafe import Markup

from cadge_analysis.blocks.lines import FlatTable, lines_of_page
from cadge_analysis.blocks.model import CHOSEN, DRAWN, ONSCREEN, Column, PageDocument, Span, Text
from cadge_analysis.blocks.plain import harmless, wrapped
from cadge_analysis.blocks.text import CELL_SHARE, WIDE

_LOOKS = "how it looks"
_PROGRAMS = "for programs"
_LINKED = "where a link leads, or a list of links"
_DRAWN = "belongs to a picture"
NEVER = {
    **dict.fromkeys(("Column.key", "Column.role", "Item.kind", "Item.role", "Remark.kind"), _PROGRAMS),
    **dict.fromkeys(("Table.data", "TableLine.data", "TableCell.data", "Column.data"), _PROGRAMS),
    **dict.fromkeys(("TableCell.raw", "Value.raw", "Reply.raw", "Reply.question", "Remark.key"), _PROGRAMS),
    **dict.fromkeys(("Span.role", "Text.role", "Items.role", "Facts.role", "Table.role", "TableLine.role"), _LOOKS),
    **dict.fromkeys(("TableCell.role", "Fold.role", "Region.role", "Value.flag", "Table.caption_role"), _LOOKS),
    **dict.fromkeys(("Table.heads", "TableCell.bar", "Reply.bar", "PageDocument.styles"), _LOOKS),
    **dict.fromkeys(("Span.href", "Region.id", "Region.short", "Region.part", "Remark.anchor"), _LINKED),
    **dict.fromkeys(("Figure.name", "StackedFigure.name", "PanelFigure.name", "PageDocument.part_of"), _LINKED),
    **dict.fromkeys(("Bar.point_id", "PicturedQuestion.wait", "PicturedQuestion.better"), _PROGRAMS),
    "Chooser.name": _LINKED,
    "PanelNote.drawn": _LOOKS,
    "PageDocument.sheet": "the section on provenance tells it",
}
"""Fields that no reader reads in any edition, and why."""
IN_HTML_ALONE = {
    **dict.fromkeys(
        ("Figure.keys", "Figure.drawn", "Figure.small_title", "Figure.small", "PanelFigure.key", "PanelFigure.keys"),
        _DRAWN,
    ),
    "Chooser.keys": _DRAWN,
    **dict.fromkeys(("StackedFigure.parts", "StackedFigure.label", "StackedFigure.caption"), _DRAWN),
    **dict.fromkeys(("PageDocument.kicker", "PageDocument.sections"), _LINKED),
    **dict.fromkeys(("Table.label", "Region.label", "Command.label", "Reply.spoken"), "for who hears the page"),
    "PageDocument.carried": "an edition carries nothing for programs",
}
"""Fields that HTML alone tells, and why."""
IN_EDITIONS_ALONE = {"Column.joined": "an edition has two columns in one"}


def lacking(page: PageDocument, editions: Mapping[str, str]) -> list[str]:
    """Return which texts of a document are in none of the places for it in an edition: "KIND: FIELD: TEXT"."""
    found = []
    for kind, said in editions.items():
        plain = _letters(_READ[kind](said))
        without = NEVER | (IN_EDITIONS_ALONE if kind == "html" else IN_HTML_ALONE)
        cells = _cells(page) if kind == "text" else set()
        joined = "\n".join(cells)
        wanted = dict.fromkeys(_texts(page, without, is_html=kind == "html"))
        found += [
            f"{kind}: {field}: {text}"
            for field, text in wanted
            if not all(_letters(piece) in plain for piece in _pieces(text, cells, joined))
        ]
    return found


def _texts(node: object, without: Mapping[str, str], *, is_html: bool, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text below a node, with its field."""
    if isinstance(node, str):
        if not isinstance(node, Markup) and node.strip():
            yield field, node if is_html else harmless(node.replace(CHOSEN, ""))
    elif isinstance(node, tuple):
        for one in node:
            yield from _texts(one, without, is_html=is_html, field=field)
    elif is_dataclass(node):
        if isinstance(node, Text | Span) and {ONSCREEN, DRAWN} & {*node.role.split()} and not is_html:
            return
        for one in fields(node):
            name = f"{type(node).__name__}.{one.name}"
            is_joined = isinstance(node, Column) and node.joined and one.name == "head" and not is_html
            if name not in without and not is_joined:
                value = getattr(node, one.name)
                below = tuple(text for _, text in value) if name == "TableCell.small" else value  # each has a look
                yield from _texts(below, without, is_html=is_html, field=name)


def _cells(page: PageDocument) -> set[str]:
    """Return the cells of tables that the text edition may wrap, each in its own column."""
    tables = (one for one in lines_of_page(page) if isinstance(one, FlatTable))
    return {harmless(cell) for table in tables for row in (table.heads, *table.rows) for cell in row}


def _pieces(text: str, cells: set[str], joined: str) -> list[str]:
    """Return a text in the pieces in which it stands: a whole cell as wrapped, and a part of one word by word.

    joined: the cells, a line each.
    """
    if text in cells:
        return wrapped(text, round(WIDE * CELL_SHARE))
    return text.split(" ") if text in joined else [text]


def _letters(text: str) -> str:
    return re.sub(r"[\s\u202f\u00a0]+", "", text)


def _of_html(text: str) -> str:
    """Return words and attributes of a page."""
    return html.unescape(re.sub(r"<[^>]*>", "", text)) + html.unescape(text)


def _of_markdown(text: str) -> str:
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text))


def _of_text(text: str) -> str:
    """Return it with commands in one line each."""
    return text.replace(" \\\n", " ")


_READ = {"html": _of_html, "markdown": _of_markdown, "text": _of_text}
