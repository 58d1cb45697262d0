# SPDX-License-Identifier: BSD-3-Clause
"""What became of a launch, in a status, a sentence and a code of cadge_results.formats.reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cadge_agent.child import say_code
from cadge_agent.errors import LaunchFailedError
from cadge_agent.formats import Json, Record

REASONS = (
    "ARGUMENT",
    "BUILD_ABSENT",
    "DEADLINE",
    "LIBRARY",
    "NODE_LACKS",
    "PEER_LOST",
    "PERMISSION",
    "PORT",
    "SYSTEM",
)
"""What the agent says by itself."""
REFUSALS = ("BUILD_ABSENT", "NODE_LACKS", "PERMISSION")
WRONG_ARGUMENT = 2
"""Exit status of a driver that refuses its command line or its launch file."""
_BY_STATUS = {3: "LIBRARY", 4: "PEER_LOST"}


_WHY = re.compile(
    r"\bssh\b|\bORTE\b|\bPRTE\b|not found|no such|cannot|can't|could not|unable|denied|refused|unreachable|"
    r"unknown host|no route|timed out|\berror\b|fatal|fail|abort|terminate called|no resources|out of memory|assert",
    re.IGNORECASE,
)
_NO_ROOM = re.compile(
    r"no resources are available|not enough (?:memory|space)|out of memory|no space left|bus error"
    r"|mpi_win_allocate: mpi_err_win|in /dev/shm",
    re.IGNORECASE,
)
WHY_MOST = 200
"""Characters of a line of a log that go into a reason."""


def why_of(logs: Iterable[str]) -> str | None:
    """Return the first line of some logs that says why a process ended; None where none does."""
    for log in logs:
        for line in log.splitlines():
            text = line.strip(" *#=-")
            if text and _WHY.search(text):
                return text[:WHY_MOST]
    return None


def with_room(reason: str | None, logs: Iterable[str], room: str) -> str | None:
    """Return a reason of a launch that wanted shared memory and got none, with how much of it there is."""
    if reason is None or not any(_NO_ROOM.search(text) for text in (reason, *logs)):
        return reason
    return f"{reason} ({room})"


def outcome(
    result: Json | None,
    failure: LaunchFailedError | None,
    codes: Mapping[str, int | None],
    logs: Mapping[str, str],
) -> tuple[str, str | None, str | None]:
    """Return status, reason and reason code of a launch.

    What the driver says goes before what was seen from outside, but for an endpoint that refused what it was given:
    that is a fault of ours, and what the others saw is its consequence.
    """
    said = result if isinstance(result, dict) and result.get("status") in ("done", "refused", "failed") else None
    if said is not None and said["status"] == "done":
        return "done", said.get("reason"), said.get("reason_code")
    for number, code in codes.items():
        if code == WRONG_ARGUMENT:
            last = (logs.get(number, "").strip().splitlines() or ["no reason given"])[0]
            return "failed", f"a fault of cadge: endpoint {number} refused what it was given: {last}", "ARGUMENT"
    if said is not None:
        return said["status"], said.get("reason"), said.get("reason_code")
    if failure is not None:
        why = why_of(logs.values()) if failure.code == "PEER_LOST" else None
        said_so = f"{failure}{f': {why}' if why else ''}"
        return "refused" if failure.code in REFUSALS else "failed", said_so, failure.code
    code, why = codes.get("0"), why_of(logs.values())
    ended = f"endpoint 0 ended {say_code(code)} and left no result{f': {why}' if why else ''}"
    return "failed", ended, _BY_STATUS.get(code or 0, "LIBRARY")


def port_taken(record: Record) -> bool:
    """Whether a launch failed because somebody else has a port it wanted."""
    if record["status"] == "done":
        return False
    # a library may find it out by itself, and say it in its own words
    words = [record["reason"] or "", *(text[-500:] for text in record["log_tail"])]
    return record["reason_code"] == "PORT" or any("address already in use" in text.lower() for text in words)
