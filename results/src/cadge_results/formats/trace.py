# SPDX-License-Identifier: BSD-3-Clause
"""A trace: lengths of files, and the order in which they were asked for, from the log of a web server.

It holds numbers alone. Names of files and addresses of clients stay in the log, of which a campaign keeps nothing.

`trace.bin` in a campaign's folder is what every host gets, and the driver reads (harness/driver/launch/trace.c); all
numbers are little endian:

    bytes  0-15   "cadge.trace/1", filled up with zeros
    bytes 16-19   how many files (32 bits)
    bytes 20-23   zeros
    bytes 24-31   how many requests (64 bits)
    then          the length of each file in bytes (32 bits each), the file that is asked for most often first
    then          the file of each request, in the log's order, numbered from 0 (32 bits each)

Its SHA-256 stands in the plan, in the launch files, and beside it.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field, NonNegativeInt, PositiveInt

from cadge_results.formats.base import Frozen

TRACE_FILE = "trace.bin"
MAGIC = b"cadge.trace/1"
HEAD = struct.Struct("<16sIIQ")
NUMBER_DIGITS = 12
"""Hexadecimal digits of a trace's SHA-256 that its points carry: 48 bits."""
SHA256 = r"^[0-9a-f]{64}$"


class Omission(Frozen):
    """Lines of a log that are not replayed, for one reason."""

    reason: str = Field(min_length=1)
    lines: PositiveInt
    first_line: PositiveInt


class TraceFacts(Frozen):
    """Where a trace comes from, and what it has."""

    name: str = Field(min_length=1)
    """What the log's file is called, without its folder."""
    log_sha256: str = Field(pattern=SHA256)
    """Of the log as the user gave it."""
    sha256: str = Field(pattern=SHA256)
    """Of `trace.bin`."""
    lines: PositiveInt
    requests: PositiveInt
    files: PositiveInt
    files_bytes: PositiveInt
    """All files together: the working set."""
    requested_bytes: PositiveInt
    """What all requests ask for together."""
    lengthened_files: NonNegativeInt = 0
    """Files that are shorter than the pattern can have them."""
    shortened_files: NonNegativeInt = 0
    """Files that are longer than the pattern can have them."""
    shortened_requests: NonNegativeInt = 0
    """Requests for those."""
    left_out: tuple[Omission, ...] = ()

    @property
    def number(self) -> int:
        """What the points that replay it carry: the beginning of its SHA-256."""
        return trace_number(self.sha256)

    @property
    def content_bytes(self) -> int:
        """The size of `trace.bin`."""
        return HEAD.size + 4 * (self.files + self.requests)

    def said(self) -> str:
        """Return it in words, in one sentence a fact."""
        text = (
            f"Trace {self.sha256[:NUMBER_DIGITS]} is {self.name}: {_count(self.requests, 'request')} for "
            f"{_count(self.files, 'file')} of {self.files_bytes:,} bytes together, "
            f"{self.requested_bytes:,} bytes asked for, from {_count(self.lines, 'line')}"
        )
        if self.left_out:
            text += f". Left out: {say_left_out(self.left_out)}"
        if self.shortened_files:
            text += (
                f". Shortened to the longest that can be served: {_count(self.shortened_files, 'file')}, which "
                f"{_count(self.shortened_requests, 'request asks', 'requests ask')} for"
            )
        if self.lengthened_files:
            text += f". Lengthened to the shortest: {_count(self.lengthened_files, 'file')}"
        return text


@dataclass(frozen=True)
class Trace:
    """A trace as it is sent to hosts. Files are numbered by how often they are asked for."""

    lengths: array[int]
    """32 bits each."""
    requests: array[int]
    """32 bits each."""

    @cached_property
    def content(self) -> bytes:
        """Return what is stored in `trace.bin`."""
        head = HEAD.pack(MAGIC, len(self.lengths), 0, len(self.requests))
        return head + _little(self.lengths) + _little(self.requests)

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the content, as 64 hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()


def trace_number(sha256: str) -> int:
    """Return the number that stands for a trace in its points."""
    return int(sha256[:NUMBER_DIGITS], 16)


def trace_text(number: int) -> str:
    """Return how that number is shown: the beginning of the SHA-256, or none."""
    return f"{number:0{NUMBER_DIGITS}x}" if number else "none"


def say_left_out(left_out: Iterable[Omission]) -> str:
    """Return in words which lines are left out, and why."""
    return ", ".join(
        f"{one.lines:,} {one.reason} (line {one.first_line:,}{' is the first' if one.lines > 1 else ''})"
        for one in left_out
    )


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
