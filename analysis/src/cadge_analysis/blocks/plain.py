# SPDX-License-Identifier: BSD-3-Clause
"""Text from campaigns for editions without markup: whatever a name holds, a terminal or a reader obeys none of it."""

from __future__ import annotations

import unicodedata

_HARMLESS = frozenset("\u202f\u2009\u00a0")
"""Spaces within numbers."""


def harmless(text: str) -> str:
    """Return a text on one line, with what a terminal could obey, or would show nowhere, by its code point."""
    if text.isprintable():  # as nearly all are
        return text
    found = []
    for character in " ".join(text.split("\n")).replace("\r", " ").replace("\t", " "):
        kind = unicodedata.category(character)
        if character in _HARMLESS or not (kind.startswith("C") or kind in ("Zl", "Zp")):
            found.append(character)
        else:
            found.append(f"\\u{ord(character):04x}")
    return "".join(found)


def cells_wide(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_wide, text))


def _wide(character: str) -> int:
    """Return it of one character: wide East Asian ones take two columns, combining ones none."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def wrapped(said: str, width: int, hanging: str = "") -> list[str]:
    """Return a text in lines of at most `width` columns, each but the first behind `hanging`.

    A word that is wider than a line is cut.
    """
    lines: list[str] = []
    line = ""
    for word in said.split(" "):
        room = f"{line} {word}" if line else word
        if cells_wide(room) <= width:
            line = room
            continue
        if line:
            lines.append(line)
            word = f"{hanging}{word}"
        while cells_wide(word) > width:
            at = len(word)
            while cells_wide(word[:at]) > width:
                at -= 1
            lines.append(word[:at])
            word = f"{hanging}{word[at:]}"
        line = word
    return [*lines, line]
