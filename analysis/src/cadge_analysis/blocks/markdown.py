# SPDX-License-Identifier: BSD-3-Clause
"""The Markdown edition of a page, in the dialect of GitHub and GitLab (GFM): tables with pipes, no HTML of its own.

Names from a campaign are text: what Markdown would read as markup, a link or a mention stands behind a backslash or as
a character reference, inside tables as well (GFM 0.29, 2.4, 2.5, 4.10, 6.9).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cadge_analysis.blocks.lines import Drawing, FlatTable, ItemList, Lines, Paragraph, filled
from cadge_analysis.blocks.model import Command, Heading
from cadge_analysis.blocks.plain import harmless

_MARKUP = re.compile(r"[\\`*_\[\]<>#~!{}$]")
_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;"}
_LINKS = re.compile(r"(?i)\bwww\.|://|\bmailto:|\bxmpp:")
_BEGINS = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])")


def markdown(lines: Iterable[Lines]) -> str:
    """Return lines as an edition."""
    return "".join(f"{line}\n" for line in _spaced(filled(lines)))


def escaped(text: str) -> str:
    """Return a text from data that Markdown shows as it is, wherever in a line it stands."""
    made = "".join(
        _REFERENCES.get(one) or (f"\\{one}" if _MARKUP.match(one) else one) for one in harmless(text).strip()
    )
    made = _LINKS.sub(lambda found: found[0].replace(":", "&#58;").replace(".", "&#46;"), made)
    return _BEGINS.sub(lambda found: f"\\{found[3]}" if found[3] else f"{found[1]}\\{found[2]}", made)


def _spaced(blocks: Iterable[Lines]) -> Iterator[str]:
    for number, block in enumerate(blocks):
        if number:
            yield ""
        yield from _lines(block)


def _lines(block: Lines) -> Iterator[str]:
    match block:
        case Heading(level, text):
            yield f"{'#' * level} {escaped(text)}"
        case Paragraph(text):
            yield escaped(text)
        case ItemList(items):
            yield from (f"- {escaped(item)}" for item in items)
        case Command(text):
            yield f"    {harmless(text)}"
        case Drawing(lines):
            yield from (f"    {line}" for line in lines)
        case FlatTable():
            if block.caption:
                yield f"**{escaped(block.caption)}**"
                yield ""
            yield f"| {' | '.join(map(escaped, block.heads))} |"
            yield f"|{'---|' * len(block.heads)}"
            yield from (f"| {' | '.join(map(escaped, row))} |" for row in block.rows)
