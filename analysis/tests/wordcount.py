# SPDX-License-Identifier: BSD-3-Clause
"""Counts the words of a page that a reader can reach, open or folded, section by section.

A word begins with a letter; `8`, `64KiB` and `3 %` are numbers. Texts of pictures, labels and tool tips count. Cells
of tables are numbers, and their words are counted apart; of a cell, a tool tip is a part.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from pagereader import Node, read

MOST = {"report": 6000, "first screen": 250, "page of a pattern": 3000, "all pages": 20_000}
"""Words that the report of the default sweep may have."""
TOP = "(top)"
_SPOKEN = ("aria-label", "title", "alt", "aria-description", "placeholder")
_UNSEEN = ("script", "style")
_WORD = re.compile(r"[^\w\s]*[^\W\d_]")


@dataclass
class Words:
    """Words by section; `screen`: those that a reader sees first; `cells`: words in cells of tables."""

    sections: Counter[str] = field(default_factory=Counter)
    cells: Counter[str] = field(default_factory=Counter)
    screen: int = 0
    part_of: str = ""

    @property
    def total(self) -> int:
        """Words of the page, without those in cells."""
        return self.sections.total()


def words_of(text: str) -> int:
    """Return how many words a text has."""
    return sum(_WORD.match(one) is not None for one in text.split())


def counted(text: str) -> Words:
    """Return the words of an HTML page."""
    found = Words()
    root = read(text)
    found.part_of = next((one.attrs["content"] for one in root.all("meta", name="part-of")), "")
    _count(root, found, section=TOP, is_cell=False, is_first=True)
    return found


def _count(node: Node, found: Words, *, section: str, is_cell: bool, is_first: bool) -> None:
    if node.tag in _UNSEEN:
        return
    if node.tag in ("nav", "footer"):
        section = f"({node.tag})"
    elif node.tag == "section" and node.attrs.get("id"):
        section = node.attrs["id"]
    is_cell = is_cell or node.tag in ("td", "th")
    is_first = is_first and section in (TOP, "answer")
    texts = [node.attrs[name] for name in _SPOKEN if name in node.attrs]
    texts += [child for child in node.children if isinstance(child, str)]
    often = sum(map(words_of, texts))
    (found.cells if is_cell else found.sections)[section] += often
    found.screen += often if is_first and not is_cell else 0
    is_folded = node.tag == "details" and "open" not in node.attrs
    for child in node.children:
        if isinstance(child, Node):
            is_seen = is_first and (not is_folded or child.tag == "summary")
            _count(child, found, section=section, is_cell=is_cell, is_first=is_seen)
