# SPDX-License-Identifier: BSD-3-Clause
"""iperf3: a stream over TCP, asleep in the kernel where there is nothing to do; bits a second at the receiver (-J)."""

from __future__ import annotations

import json

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words, positive


def _commands(ask: Ask) -> Commands:
    client = ("iperf3", "-c", ask.address, "-p", str(ask.port), "-t", "1", "-l", str(ask.bytes), "-J")
    return Commands(server=("iperf3", "-s", "-1", "-B", ask.address, "-p", str(ask.port)), client=client)


def read(text: str, _ask: Ask) -> float:
    """Return bytes a second at the receiver."""
    try:
        found = float(json.loads(text)["end"]["sum_received"]["bits_per_second"])
    except (ValueError, KeyError, TypeError) as error:
        raise ToolError(f"no sum of what was received: {last_words(text)}") from error
    return positive(found / 8, text)


TOOLS = (
    Tool(
        name="iperf3",
        program="iperf3",
        package="iperf3",
        statistic="rate",
        commands=_commands,
        read=read,
        min_bytes=1,
        max_bytes=1 << 20,
        wait="block",
    ),
)
