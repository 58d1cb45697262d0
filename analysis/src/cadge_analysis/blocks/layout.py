# SPDX-License-Identifier: BSD-3-Clause
"""How a table gives way where its columns do not fit: what style sheets have to know of it, and cannot find out.

A row becomes a block of its cells, each below its column's head. Style sheets print that head before the cell, from a
custom property of the table: the head stands once in the page, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from cadge_analysis.blocks.model import Column

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


def how_many(heads_of: Iterable[str]) -> str:
    """Return whether a table's columns fit beside each other: "few", or "many"."""
    return "many" if len(list(heads_of)) > FEW else "few"


def heads_rule(heads_of: Iterable[str], name: str) -> Markup:
    """Return the rule that tells many tables of the class h-`name` the heads that they all have."""
    return Markup(f".h-{name}{{{_properties(list(heads_of))}}}")  # noqa: S704 - strings are escaped by css_string


def _properties(texts: Sequence[str]) -> str:
    return ";".join(f"--h{at}:{css_string(text)}" for at, text in enumerate(texts[:MOST], 1))


def column_heads(columns: Sequence[Column]) -> list[str]:
    """Return the heads of a table of rows, one for the row's own name first."""
    return ["", *(f"{one.head}, {one.unit}" if one.unit else one.head for one in columns)]


def summary_heads(sizes: Sequence[str], *, has_ratios: bool) -> list[str]:
    """Return the heads of a section's summary."""
    return ["", *(head for size in sizes for head in ((size, "") if has_ratios else (size,)))]
