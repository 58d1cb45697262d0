# SPDX-License-Identifier: BSD-3-Clause
"""Why something could not be done: one list of codes for the planner, the agent, the driver and the analysis.

The driver's codes stand in harness/driver/base/fail.h as well; a test compares both lists. The agent, which has only
Python's standard library, writes codes as text; a test holds them against this list.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Verdict = Literal["refused", "failed", "unsound", "error"]


class Reason(StrEnum):
    """A code for programs. The sentence for people stands beside it, wherever a code is stored."""

    ARGUMENT = "ARGUMENT"
    """Command line or launch file: a fault of ours, exit status 2 of the driver."""
    NO_CAP = "NO_CAP"
    """The layer does not have what the point needs."""
    NO_WAIT = "NO_WAIT"
    """The layer cannot wait as asked."""
    NO_POLL = "NO_POLL"
    """The layer cannot poll as asked."""
    PLACE = "PLACE"
    """The layer, or the pattern, does not run at this place."""
    NO_TRACE = "NO_TRACE"
    """The point replays the log of a web server, and none was given."""
    MSG_TOO_LARGE = "MSG_TOO_LARGE"
    """A message over the layer's limit."""
    DEPTH_TOO_DEEP = "DEPTH_TOO_DEEP"
    """More operations outstanding than the layer takes."""
    NODE_LACKS = "NODE_LACKS"
    """A host lacks a core, a link, a kernel feature or a part of a library."""
    BUILD_ABSENT = "BUILD_ABSENT"
    """Not in the build."""
    TRANSPORT = "TRANSPORT"
    """The transport or device asked for is not there."""
    PERMISSION = "PERMISSION"
    """The kernel forbids it."""
    MEMORY = "MEMORY"
    """Out of memory, locked memory or shared memory."""
    PORT = "PORT"
    """No free port."""
    PEER_LOST = "PEER_LOST"
    """Another endpoint is gone."""
    DEADLINE = "DEADLINE"
    """A step took too long."""
    LIBRARY = "LIBRARY"
    """The layer or its library broke."""
    VERSION_MISMATCH = "VERSION_MISMATCH"
    """The endpoints are different builds."""
    TOKEN = "TOKEN"  # noqa: S105 - a code
    """The endpoints hold different tokens."""
    PROTOCOL = "PROTOCOL"
    """The endpoints disagree, or an endpoint broke the protocol."""
    STOPPED = "STOPPED"
    """Told to stop by a signal or by another endpoint."""
    CHECK = "CHECK"
    """Measured, but a check of the driver did not hold."""
    SYSTEM = "SYSTEM"
    """A system call failed."""
    UNSOUND = "UNSOUND"
    """Measured, but a check of the launch or of the harness did not hold."""
    EMPTY = "EMPTY"
    """Measured, and no operation was completed."""

    @property
    def verdict(self) -> Verdict:
        """What became of a point for this reason."""
        if self in REFUSALS:
            return "refused"
        if self in UNSOUND:
            return "unsound"
        return "error" if self is Reason.ARGUMENT else "failed"


REFUSALS = frozenset(
    {
        Reason.NO_CAP,
        Reason.NO_WAIT,
        Reason.NO_POLL,
        Reason.PLACE,
        Reason.NO_TRACE,
        Reason.MSG_TOO_LARGE,
        Reason.DEPTH_TOO_DEEP,
        Reason.NODE_LACKS,
        Reason.BUILD_ABSENT,
        Reason.TRANSPORT,
        Reason.PERMISSION,
    }
)
"""Cannot be done here: nothing broke."""
UNSOUND = frozenset({Reason.CHECK, Reason.UNSOUND})
"""Measured, but not to be shown as a number."""
OF_THE_HARNESS = frozenset({Reason.NO_POLL, Reason.PLACE, Reason.NO_TRACE, Reason.UNSOUND, Reason.EMPTY})
"""Said by planner, agent or analysis alone."""
OF_THE_DRIVER = frozenset(Reason) - OF_THE_HARNESS
"""What the driver can say: the list in harness/driver/base/fail.h."""
