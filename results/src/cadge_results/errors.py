# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the store, one tree.

ResultsError
├── FormatError              a document does not fit its format (key, value, or damaged file)
│   ├── SchemaTooNewError    a document was written by a newer cadge
│   └── SchemaTooOldError    a document was written by an older cadge
├── NotFoundError            no such campaign or launch
├── DuplicateLaunchError     the launch is in the campaign already
├── StoreBusyError           another process is writing to the campaign
├── OutputError              a file that the user named for output cannot be written
│   └── OutputLostError      it could be opened, and then took nothing: no room, nobody who reads
└── StoreUnwritableError     the folder cannot be written
    └── StoreFullError       no room left; nothing half written was kept
"""

from __future__ import annotations


class ResultsError(Exception):
    """Anything that the store refuses, with a sentence for the user."""


class FormatError(ResultsError):
    """A document does not fit its format."""


class SchemaTooNewError(FormatError):
    """A document was written in a larger major version than this program reads."""


class SchemaTooOldError(FormatError):
    """A document was written in a smaller major version than this program reads."""


class NotFoundError(ResultsError):
    """The campaign or launch that was asked for is not there."""


class DuplicateLaunchError(ResultsError):
    """A launch that is stored already was offered again."""


class StoreBusyError(ResultsError):
    """Another process holds the campaign for writing."""


class OutputError(ResultsError):
    """A file that the user named for output cannot be written."""


class OutputLostError(OutputError):
    """What the user named for output is there, and takes nothing: no room is left, or nobody reads it."""


class StoreUnwritableError(ResultsError):
    """The folder of the store cannot be written."""


class StoreFullError(StoreUnwritableError):
    """The disk or a file-size limit is exhausted."""
