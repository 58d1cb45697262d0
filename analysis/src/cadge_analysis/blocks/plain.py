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
