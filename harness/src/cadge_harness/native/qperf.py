# SPDX-License-Identifier: BSD-3-Clause
"""qperf over TCP and UDP: means alone, asleep in the kernel between messages.

`latency = 6.48 us` is half a round trip, `bw = 7.2 GB/sec` is in decimal units. `-e 6` asks for six digits.
"""

from __future__ import annotations

import re
from functools import partial

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words, positive

_LINE = re.compile(r"(latency|bw|recv_bw)\s*=\s*([0-9][0-9.,]*)\s*([A-Za-z/]+)")
_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "sec": 1e9, "bytes/sec": 1.0, "KB/sec": 1e3, "MB/sec": 1e6, "GB/sec": 1e9}
UDP_MAX_BYTES = 32768


def _commands(test: str, ask: Ask) -> Commands:
    port = ("-lp", str(ask.port))
    client = ("qperf", ask.address, *port, "-t", "1", "-e", "6", "-m", str(ask.bytes), test)
    return Commands(server=("qperf", *port), client=client)


def _read(text: str, wanted: tuple[str, ...]) -> float:
    for name, number, unit in _LINE.findall(text):
        if name in wanted and unit in _UNITS:
            try:
                return positive(float(number.replace(",", "")) * _UNITS[unit], text)
            except ValueError:
                continue
    raise ToolError(f"no {' or '.join(wanted)}: {last_words(text)}")


def read_latency(text: str, _ask: Ask) -> float:
    """Return the whole mean round trip, in ns."""
    return 2 * _read(text, ("latency",))


def read_bandwidth(text: str, _ask: Ask) -> float:
    """Return bytes a second."""
    return _read(text, ("bw", "recv_bw"))


def _latency(kind: str, most: int) -> Tool:
    return Tool(
        name=f"qperf {kind}_lat",
        program="qperf",
        package="qperf",
        statistic="mean",
        commands=partial(_commands, f"{kind}_lat"),
        read=read_latency,
        min_bytes=1,
        wait="block",
        max_bytes=most,
    )


TOOLS = (
    _latency("tcp", 1 << 20),
    _latency("udp", UDP_MAX_BYTES),
    Tool(
        name="qperf tcp_bw",
        program="qperf",
        package="qperf",
        statistic="rate",
        commands=partial(_commands, "tcp_bw"),
        read=read_bandwidth,
        min_bytes=1,
        wait="block",
    ),
)
