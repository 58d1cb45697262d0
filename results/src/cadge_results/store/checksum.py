# SPDX-License-Identifier: BSD-3-Clause
"""Checksums of stored files, in sha256sum's format: beside NAME lies NAME.sha256, with one line.

`sha256sum --check *.sha256` in a folder of the store checks it without Cadge.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cadge_results.errors import FormatError

SUFFIX = ".sha256"
_LINE = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<name>[^\\/\0\r\n]+)\n")
"""sha256sum writes names with a backslash or a line's end in another way; stored files have none of them."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """What a file held when it was stored."""

    digest: str
    name: str

    @classmethod
    def of(cls, content: bytes, name: str) -> Self:
        """Return the checksum of a file's content."""
        return cls(hashlib.sha256(content).hexdigest(), name)

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Read a checksum's file. Raises FormatError for everything but the one line that we write."""
        try:
            match = _LINE.fullmatch(content.decode())
        except UnicodeDecodeError:
            match = None
        if match is None:
            raise FormatError("not a line of sha256sum: 64 hexadecimal digits, two spaces, a name")
        return cls(match["digest"], match["name"])

    def line(self) -> str:
        """Return what is stored."""
        return f"{self.digest}  {self.name}\n"


def beside(path: Path) -> Path:
    """Return where the checksum of a file lies."""
    return path.with_name(path.name + SUFFIX)
