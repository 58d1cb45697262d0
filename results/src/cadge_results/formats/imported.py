# SPDX-License-Identifier: BSD-3-Clause
"""What a user's own runs of other tools printed, set beside a campaign (`cadge.imported/1`): one file an import.

    imported/<imported_id>.json

Nobody knows how many runs stand behind such a number, or on which machine, in which hour it was measured: it has no
interval, gets no verdict and is never ranked. A value is in Cadge's units (nanoseconds, bytes or messages a second);
what the tool printed, and in which line of the user's file, stands beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import ClassVar, Literal, get_args

from pydantic import Field, NonNegativeInt, PositiveInt

from cadge_results.formats.base import Document, Frozen, Place, Utc

Format = Literal["osu", "ucx_perftest", "fabtests", "imb"]
FORMATS: tuple[Format, ...] = get_args(Format)

Kind = Literal["time", "bandwidth", "rate"]
UNITS: dict[Kind, str] = {"time": "ns", "bandwidth": "bytes/s", "rate": "messages/s"}

Moves = Literal["half round trip", "operation", "both at once", "one way", "both ways"]
"""What a number is of.

half round trip: a message there and back, of which the tool prints half and `value` is the whole. operation: a
one-sided operation until it is complete at its origin. both at once: each side sends and receives at the same time. one
way, both ways: rates of what goes from one side to the other, or of both directions together.
"""

STATISTIC = r"^(mean|min|max|overall|p[0-9]{1,2}(\.[0-9]{1,4})?)$"
"""The mean of all, the least, the greatest, a quantile; overall: all the work over all the time."""

IMPORTED_ID = r"^[0-9a-f]{12}$"
DIGEST = r"^[0-9a-f]{64}$"
TEXT_MAX = 300
"""Characters of what a user says of an import."""


class ImportedValue(Frozen):
    """One number."""

    bytes: NonNegativeInt
    value: float = Field(ge=0, allow_inf_nan=False)
    """In the unit of its kind (`UNITS`); of half a round trip the whole one."""
    printed: str = Field(min_length=1)
    """As the tool printed it, in the series' own unit."""
    line: PositiveInt
    """Of the user's file."""


class ImportedSeries(Frozen):
    """A column of one test."""

    test: str = Field(min_length=1)
    """As its tool calls it."""
    column: str = Field(min_length=1)
    """Its heading, as printed or as the tool's manual has it."""
    unit: str = Field(min_length=1)
    """As printed."""
    kind: Kind
    moves: Moves
    statistic: str = Field(pattern=STATISTIC)
    about: str = ""
    """What else the file says of it: processes, window, how it synchronises, what is rounded."""
    patterns: tuple[str, ...] = ()
    """The patterns that it does the same as; a figure of one of them may show it."""
    values: tuple[ImportedValue, ...] = Field(min_length=1)


class ImportedFile(Document):
    """One file of a user."""

    NAME: ClassVar[str] = "cadge.imported"
    MAJOR: ClassVar[int] = 1

    imported_id: str = Field(pattern=IMPORTED_ID)
    imported_utc: Utc
    format: Format
    file: str
    """The file's name, without its folders."""
    sha256: str = Field(pattern=DIGEST)
    """Of what the user's file held."""
    size_bytes: NonNegativeInt
    version: str
    """The tool and its version as it printed them; "" where it prints none."""
    label: str = Field(min_length=1, max_length=TEXT_MAX)
    host: str = Field(default="", max_length=TEXT_MAX)
    """Where it was measured, as the user says."""
    place: Place | None = None
    """Within one host or between two, as the user says; a figure may show it only where that is known."""
    note: str = Field(default="", max_length=TEXT_MAX)
    series: tuple[ImportedSeries, ...] = Field(min_length=1)


def imported_id(sha256: str, told: Iterable[str]) -> str:
    """Return the name of an import: of the file's content and of what had to be told to read it, and nothing else."""
    return hashlib.sha256("\0".join((sha256, *told)).encode()).hexdigest()[:12]
