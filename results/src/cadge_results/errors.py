# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the store, one tree.

ResultsError
├── FormatError              a document does not fit its format (key or value)
│   ├── SchemaTooNewError    a document was written by a newer cadge
│   ├── SchemaTooOldError    a document was written by an older cadge
│   └── DamagedError         a stored file is not what was stored
├── NotFoundError            no such campaign or launch
├── DuplicateLaunchError     the launch is in the campaign already
├── StoreBusyError           another process is writing to the campaign
├── OutputError              a file that the user named for output cannot be written
│   └── OutputLostError      it could be opened, and then took nothing: no room, nobody who reads
└── StoreUnwritableError     the folder cannot be written
    └── StoreFullError       no room left; nothing half written was kept
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class ResultsError(Exception):
    """Anything that the store refuses, with a sentence for the user.

    `commands` are what the user can run to get further, one each. `exit_code`: what the command ends with.
    """

    exit_code = 2

    def __init__(self, message: str, *, commands: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.commands = commands


class FormatError(ResultsError):
    """A document does not fit its format."""


class SchemaTooNewError(FormatError):
    """A document was written in a larger major version than this program reads."""


class SchemaTooOldError(FormatError):
    """A document was written in a smaller major version than this program reads."""


class DamageKind(StrEnum):
    """In which way a stored file is damaged."""

    MISSING = "missing"
    TRUNCATED = "truncated"
    CHANGED = "changed"
    SWAPPED = "swapped"
    UNKNOWN = "unknown"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged file; `detail` says more, of "it"."""

    path: Path
    kind: DamageKind
    detail: str

    def __str__(self) -> str:
        return f"{self.path} is {'missing' if self.kind is DamageKind.MISSING else 'damaged'}: {self.detail}"


class DamagedError(FormatError):
    """A stored file is not what was stored, or not where it belongs."""

    exit_code = 7

    def __init__(self, damage: Damage, *, commands: tuple[str, ...] = ()) -> None:
        super().__init__(str(damage), commands=commands)
        self.damage = damage


class NotFoundError(ResultsError):
    """The campaign or launch that was asked for is not there."""

    exit_code = 5


class DuplicateLaunchError(ResultsError):
    """A launch that is stored already was offered again."""


class StoreBusyError(ResultsError):
    """Another process holds the campaign for writing."""

    exit_code = 3


class OutputError(ResultsError):
    """A file that the user named for output cannot be written."""

    exit_code = 3


class OutputLostError(OutputError):
    """What the user named for output is there, and takes nothing: no room is left, or nobody reads it."""


class StoreUnwritableError(ResultsError):
    """The folder of the store cannot be written."""

    exit_code = 3


class StoreFullError(StoreUnwritableError):
    """The disk or a file-size limit is exhausted."""
