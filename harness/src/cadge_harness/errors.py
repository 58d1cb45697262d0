# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the harness and the exit codes that they end in, one tree.

HarnessError
├── UsageError             2   the command line, a sweep or a layer file is wrong: the user fixes it
├── NothingSelectedError   5   the selection matched nothing, or there is no data
└── UnfitError             3   this machine or testbed cannot do it; nothing was measured
"""

from __future__ import annotations

import re

EXIT_OK = 0
EXIT_BAD_ANSWER = 1
EXIT_USAGE = 2
EXIT_UNFIT = 3
EXIT_UNREACHABLE = 4
EXIT_NOTHING = 5
EXIT_STOPPED = 6
EXIT_DAMAGED = 7
EXIT_CHANGED = 8
EXIT_UNTRUSTED = 9
EXIT_LEAK = 10
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130

EXIT_CODES = {
    EXIT_OK: "complete; no point failed or is unsound",
    EXIT_BAD_ANSWER: "complete, but points failed or are unsound, a part of `cadge selftest` could not be judged, or "
    "`cadge verify FILE` found a number that differs",
    EXIT_USAGE: "usage or configuration error",
    EXIT_UNFIT: "machine or testbed unfit, nothing was measured; or the output cannot be written",
    EXIT_UNREACHABLE: "a host is unreachable, lost or cannot take part; the others are measured",
    EXIT_NOTHING: "nothing matches the selection, or there is no data; or --fail-on has no answer because verdicts are "
    "withheld",
    EXIT_STOPPED: "stopped early, also by SIGTERM; results so far are complete and resumable",
    EXIT_DAMAGED: "a stored campaign is damaged; `cadge verify` names the files",
    EXIT_CHANGED: "`cadge compare` or `cadge ab` found what --fail-on names, `cadge crosscheck` found more than "
    "--threshold, or `cadge health` found a slow host or link",
    EXIT_UNTRUSTED: "`cadge selftest` failed: it missed a planted fault, or reported another one",
    EXIT_LEAK: "`cadge publish` found a name or a secret that it could not replace, and published nothing",
    EXIT_INTERNAL: "internal error; the traceback is in a file whose path is printed",
    EXIT_INTERRUPTED: "interrupted; results so far are complete and resumable",
}


_SHOWN_MOST = 60


class HarnessError(Exception):
    """Something the harness cannot do, in a sentence that says what to change.

    `commands` are what the user can run to get further, one each.
    """

    exit_code = EXIT_INTERNAL

    def __init__(self, message: str, *, commands: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.commands = commands


class UsageError(HarnessError):
    """The command line, a sweep file or a layer file is wrong."""

    exit_code = EXIT_USAGE


class NothingSelectedError(HarnessError):
    """The selection matched nothing, or there is no data."""

    exit_code = EXIT_NOTHING


class UnfitError(HarnessError):
    """This machine or testbed cannot do it; nothing was measured."""

    exit_code = EXIT_UNFIT


def shown(value: object) -> str:
    """Return a value from outside as a message may hold it: printable, on one line, short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MOST else f"{text[: _SHOWN_MOST - 3]}..."


def named(name: str) -> str:
    """Return a name from outside as a message may hold it: as it is where it is plain, else as `shown` does."""
    return name if re.fullmatch(r"[A-Za-z0-9_.-]{1,60}", name) else shown(name)


def printable(text: str) -> str:
    """Return a text from outside with everything escaped that a terminal could obey."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
