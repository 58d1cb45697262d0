# SPDX-License-Identifier: BSD-3-Clause
"""How a table gives way where its columns do not fit: what style sheets have to know of it, and cannot find out.

A row becomes a block of its cells, each below its column's head. Style sheets print that head before the cell, from a
custom property of the table: the head stands once in the page, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from cadge_analysis.blocks.make import tables_of
from cadge_analysis.blocks.model import Block

FEW = 8
"""So many columns fit beside each other on a page of 1,280 pixels; a table of more has blocks at every width."""

MOST = 96
"""Columns for which the style sheet has rules: of more, cells stand without their heads."""


def css_string(text: str) -> str:
    """Return text as a string of a style sheet; what could end it stands by its code point (CSS Syntax 3, 4.3.7)."""
    return '"' + "".join(c if c.isalnum() or c in " .,:;()%/+-" else f"\\{ord(c):x} " for c in text) + '"'


def heads(heads_of: Iterable[str]) -> Markup:
    """Return the attributes of a table with these heads, the first being that of the rows."""
    texts = list(heads_of)
    return Markup('data-heads="{}" style="{}"').format(how_many(texts), _properties(texts))


def how_many(heads_of: Iterable[object]) -> str:
    """Return whether a table's columns fit beside each other: "few", or "many"."""
    return "many" if len(list(heads_of)) > FEW else "few"


def heads_rules(blocks: Iterable[Block]) -> Markup:
    """Return the rules that tell tables of equal columns the heads that they all have, one a name."""
    columns = {table.heads: table.columns for table in tables_of(blocks) if table.heads}
    rules = (f".h-{name}{{{_properties([one.spoken for one in some])}}}" for name, some in columns.items())
    return Markup("\n".join(rules))  # noqa: S704 - strings are escaped by css_string


def _properties(texts: Sequence[str]) -> str:
    return ";".join(f"--h{at}:{css_string(text)}" for at, text in enumerate(texts[:MOST], 1))
