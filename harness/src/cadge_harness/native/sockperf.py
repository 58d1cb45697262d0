# SPDX-License-Identifier: BSD-3-Clause
"""sockperf: ping-pong over TCP and UDP sockets, polling (--nonblocked) or sleeping; quantiles of whole round trips.

It reads its time-stamp counter for each message, and takes no message of less than 14 bytes or more than 65,507.
`--full-rtt` has it print whole round trips, in us.
"""

from __future__ import annotations

import re
from functools import partial

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words, positive

_MEDIAN = re.compile(r"percentile 50\.0+ *= *([0-9.]+)")
MIN_BYTES = 14
MAX_BYTES = 65507


def _commands(tcp: bool, poll: bool, ask: Ask) -> Commands:
    where = ["-i", ask.address, "-p", str(ask.port), *(["--tcp"] if tcp else []), *(["--nonblocked"] if poll else [])]
    client = ["sockperf", "ping-pong", *where, "-m", str(ask.bytes), "-t", "1", "--full-rtt"]
    return Commands(server=("sockperf", "server", *where), client=tuple(client), listens="tcp" if tcp else "udp")


def read(text: str, _ask: Ask) -> float:
    """Return the whole median round trip, in ns."""
    found = _MEDIAN.search(text)
    if found is None:
        raise ToolError(f"no median: {last_words(text)}")
    try:
        return positive(float(found[1]) * 1e3, text)
    except ValueError as error:
        raise ToolError(f"{found[1]} is no median") from error


def _tool(kind: str, *, poll: bool) -> Tool:
    tcp = kind == "tcp"
    return Tool(
        name=f"sockperf {kind}{' --nonblocked' if poll else ''}",
        program="sockperf",
        package="sockperf",
        statistic="p50",
        clocked=True,
        min_bytes=MIN_BYTES,
        max_bytes=MAX_BYTES,
        commands=partial(_commands, tcp, poll),
        read=read,
        wait="poll" if poll else "block",
    )


TOOLS = (
    _tool("tcp", poll=True),
    _tool("udp", poll=True),
    _tool("tcp", poll=False),
    _tool("udp", poll=False),
)
