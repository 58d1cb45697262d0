# SPDX-License-Identifier: BSD-3-Clause
"""Makes a font in which every character is three times as wide as any real one, under whatever name is wanted.

A renderer that lays a picture out by measured text gives another picture where such a font is installed.
"""

from __future__ import annotations

import struct
from pathlib import Path

EM, ADVANCE = 1000, 3000


def _name(family: str) -> bytes:
    texts = {1: family, 2: "Regular", 4: family, 6: family.replace(" ", "")}
    blobs = [(key, text.encode("utf-16-be")) for key, text in texts.items()]
    head, at = struct.pack(">HHH", 0, len(blobs), 6 + 12 * len(blobs)), 0
    for key, blob in blobs:
        head += struct.pack(">HHHHHH", 3, 1, 0x409, key, len(blob), at)
        at += len(blob)
    return head + b"".join(blob for _, blob in blobs)


def _cmap() -> bytes:
    """Map every character from U+0020 on to glyph 1 (format 13: many to one)."""
    table = struct.pack(">HHIIIIII", 13, 0, 28, 0, 1, 0x20, 0xFFFF, 1)
    return struct.pack(">HHHHI", 0, 1, 3, 10, 12) + table


def font(family: str) -> bytes:
    """Return a TrueType font of two glyphs."""
    glyph = struct.pack(">hhhhhHH", 1, 0, 0, ADVANCE, EM, 3, 0) + bytes([1, 1, 1, 1])
    glyph += struct.pack(">hhhh", 0, ADVANCE, 0, -ADVANCE) + struct.pack(">hhhh", 0, 0, EM, 0)
    glyph += b"\0" * (-len(glyph) % 4)
    tables = {
        b"OS/2": struct.pack(">HhHHH", 4, ADVANCE, 400, 5, 0) + b"\0" * 86,
        b"cmap": _cmap(),
        b"glyf": glyph * 2,
        b"head": struct.pack(
            ">IIIIHHQQhhhhHHhhh", 65536, 65536, 0, 0x5F0F3CF5, 3, EM, 0, 0, 0, 0, ADVANCE, EM, 0, 8, 2, 1, 0
        ),
        b"hhea": struct.pack(
            ">IhhhHhhhhhhhhhhhH", 65536, EM, -200, 0, ADVANCE, 0, 0, ADVANCE, 1, 0, 0, 0, 0, 0, 0, 0, 2
        ),
        b"hmtx": struct.pack(">HhHh", ADVANCE, 0, ADVANCE, 0),
        b"loca": struct.pack(">III", 0, len(glyph), 2 * len(glyph)),
        b"maxp": struct.pack(">IH", 65536, 2) + struct.pack(">13H", 4, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0),
        b"name": _name(family),
        b"post": struct.pack(">IIhhIIIII", 0x30000, 0, 0, 0, 0, 0, 0, 0, 0),
    }
    found, at = b"", 12 + 16 * len(tables)
    body = b""
    for tag, table in sorted(tables.items()):
        padded = table + b"\0" * (-len(table) % 4)
        found += struct.pack(">4sIII", tag, 0, at + len(body), len(table))
        body += padded
    return struct.pack(">IHHHH", 0x00010000, len(tables), 128, 3, 32) + found + body


FAMILIES = ("system-ui", "sans-serif", "Arial", "Helvetica", "Liberation Sans", "DejaVu Sans", "Verdana", "Noto Sans")


def write(folder: Path) -> None:
    """Write one font for each name that a renderer may ask for."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, family in enumerate(FAMILIES):
        (folder / f"loud{number}.ttf").write_bytes(font(family))
