# SPDX-License-Identifier: BSD-3-Clause
"""ib_send_lat and ib_send_bw of perftest, over a verbs device.

Its typical latency is the median of half round trips, in us; its bandwidth is in MiB/s.
"""

from __future__ import annotations

from functools import partial

from cadge_harness.native.tool import MIB, Ask, Commands, Tool, messages, numbers_of, positive

_LATENCY_COLUMNS, _TYPICAL = 6, 4
_BANDWIDTH_COLUMNS, _AVERAGE = 5, 3


def _commands(program: str, ask: Ask) -> Commands:
    rounds = messages(ask, "memory", least=1000, most=20_000)
    command = (program, "-F", "-s", str(ask.bytes), "-n", str(rounds), "-p", str(ask.port))
    return Commands(server=command, client=(*command, ask.address))


def read_latency(text: str, _ask: Ask) -> float:
    """Return the whole median round trip, in ns."""
    return positive(numbers_of(text, _LATENCY_COLUMNS)[_TYPICAL] * 2e3, text)


def read_bandwidth(text: str, _ask: Ask) -> float:
    """Return bytes a second, on average."""
    return positive(numbers_of(text, _BANDWIDTH_COLUMNS)[_AVERAGE] * MIB, text)


_PATH = "only where the layer's own path is the same verbs device"
TOOLS = (
    Tool(
        name="ib_send_lat",
        program="ib_send_lat",
        package="perftest",
        statistic="p50",
        clocked=True,
        rdma=True,
        min_bytes=2,
        commands=partial(_commands, "ib_send_lat"),
        read=read_latency,
        note=_PATH,
    ),
    Tool(
        name="ib_send_bw",
        program="ib_send_bw",
        package="perftest",
        statistic="rate",
        rdma=True,
        min_bytes=2,
        commands=partial(_commands, "ib_send_bw"),
        read=read_bandwidth,
        note=_PATH,
    ),
)
