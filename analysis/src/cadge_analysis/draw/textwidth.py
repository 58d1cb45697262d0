# SPDX-License-Identifier: BSD-3-Clause
"""How wide a text is at most, from a fixed table: the same on every machine, whatever fonts it has.

Nothing in a chart may rest on a measured text: who measures it uses the fonts of that machine, and a line moves. The
table holds the advances of a wide common face (DejaVu Sans, in hundredths of an em), so that a narrower one fits as
well. Characters beyond it count by their kind: wide East Asian ones an em, combining ones nothing, others as capitals.
"""

from __future__ import annotations

import unicodedata

_BY_WIDTH = {
    20: "\u202f\u2009",
    28: "'ijl",
    32: "IJ ,.f\u00a0",
    36: "-/:;\\|",
    40: "()[]t!r",
    50: '"*_`sz\u2013',
    57: "?cLFkvxyP",
    62: "TYaoe",
    64: "ESbdghnpqu$0123456789{}\u00b5",
    70: "KAVBRXZC",
    78: "UHNDGOQ&\u25b2\u25bc",
    86: "w#+<=>^~M\u00d7\u2248\u2212\u00f7",
    100: "%mW@\u2026",
}
_ADVANCE = {character: width / 100 for width, characters in _BY_WIDTH.items() for character in characters}
_CAPITAL = 0.78


def advance_em(character: str) -> float:
    """Return how far a character moves the next one, in em."""
    known = _ADVANCE.get(character)
    if known is not None:
        return known
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(character) in ("W", "F") else _CAPITAL


def width_px(text: str, font_px: float) -> float:
    """Return how wide a text is at most."""
    return font_px * sum(map(advance_em, text))


def shortened(text: str, font_px: float, room_px: float) -> str:
    """Return a text that fits; of a longer one its beginning and its end, which tell names apart."""
    if width_px(text, font_px) <= room_px:
        return text
    middle = len(text) // 2
    head, tail = list(text[:middle]), list(text[middle:])
    while (len(head) > 1 or tail) and width_px("".join((*head, "\u2026", *tail)), font_px) > room_px:
        if len(tail) > len(head):
            tail.pop(0)
        else:
            head.pop()
    return "".join((*head, "\u2026", *tail))
