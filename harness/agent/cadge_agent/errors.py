# SPDX-License-Identifier: BSD-3-Clause
"""What ends a launch, a block or the agent before its time."""

from __future__ import annotations


class EndedError(Exception):
    """The lease, the deadline or a signal ended the block now."""


class HostLostError(Exception):
    """Another host of the block does not answer any more."""


class BadBlockError(Exception):
    """The block or the arguments cannot be used; the message says why."""


class LaunchFailedError(Exception):
    """A launch that could not be started or ended badly, with a code for the store."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
