# SPDX-License-Identifier: BSD-3-Clause
"""What is read of a shared library's file (ELF, 64 bits, little-endian): the name it is loaded by, and its build id."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_SCRIPT = re.compile(rb"INPUT\s*\(\s*(lib[A-Za-z0-9_+-]+\.so[.0-9]*)")
_SCRIPT_BYTES = 4096
_LOAD, _DYNAMIC, _NOTE = 1, 2, 4
_STRINGS, _SONAME = 5, 14
_BUILD_ID = 3


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    length: int


def _segments(data: bytes) -> Iterator[_Segment]:
    """Yield the segments of a file; none of what is no such file. Raises struct.error for one that is cut off."""
    if data[:6] != b"\x7fELF\x02\x01":
        return
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for number in range(count):
        yield _Segment(*struct.unpack_from("<IIQQQQ", data, offset + number * size))


def soname(path: Path) -> str | None:
    """Return the name by which the loader asks for a library; None where it has none.

    What is for the linker alone may be a script in the library's place, which names it.
    """
    try:
        data = path.read_bytes()
        segments = list(_segments(data))
        if not segments:
            named = _SCRIPT.search(data[:_SCRIPT_BYTES])
            return named[1].decode() if named else None
        (dynamic,) = [one for one in segments if one.kind == _DYNAMIC]
        listed = data[dynamic.offset : dynamic.offset + dynamic.length // 16 * 16]
        tags = dict(reversed(list(struct.iter_unpack("<QQ", listed))))
        strings = next(
            one.offset + tags[_STRINGS] - one.address
            for one in segments
            if one.kind == _LOAD and one.address <= tags[_STRINGS] < one.address + one.length
        )
        at = strings + tags[_SONAME]
        return data[at : data.index(b"\0", at)].decode()
    except (OSError, struct.error, ValueError, StopIteration, KeyError):
        return None


def build_id(path: Path) -> str | None:
    """Return the GNU build id in hexadecimal digits; None where it has none."""
    try:
        data = path.read_bytes()
        for one in _segments(data):
            at, end = one.offset, one.offset + one.length
            while one.kind == _NOTE and end - at >= 12:
                name_bytes, data_bytes, kind = struct.unpack_from("<III", data, at)
                text = at + 12 + (name_bytes + 3 & ~3)
                if kind == _BUILD_ID and data[at + 12 : at + 12 + name_bytes] == b"GNU\0":
                    return data[text : text + data_bytes].hex()
                at = text + (data_bytes + 3 & ~3)
    except (OSError, struct.error):
        return None
    return None
