# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest of UCX: ping-pongs and streams over its own calls.

It polls, and reads its time-stamp counter in every round. `-f -v` prints one line of comma-separated values:
iterations, 50 % quantile, average, overall latency in us of half a round trip; average and overall bandwidth in MiB/s;
average and overall messages a second. The quantile is that of its last 2,048 rounds. One-sided operations go one way:
with `-O 1` one at a time, whose quantile is that of whole operations, until each is complete here.
"""

from __future__ import annotations

from functools import partial

from cadge_harness.native.tool import MIB, Ask, Commands, Tool, messages, numbers_of, positive

_COLUMNS = 8
_ALONE = " -O 1"


_OPERATION_TIMES = 8
"""So many times the usual messages: within a host an operation is a copy, and far shorter than a message."""


def _commands(test: str, ask: Ask) -> Commands:
    times = _OPERATION_TIMES if test.endswith(_ALONE) and ask.place == "within" else 1
    rounds = messages(ask, "memory") * times
    count = ("-s", str(ask.bytes), "-n", str(rounds), "-w", str(max(rounds // 10, 10)))
    command = ["ucx_perftest", "-t", *test.split(), *count]
    command += [*(["-O", str(ask.window)] if ask.window > 1 else []), "-f", "-v", "-p", str(ask.port)]
    # Hosts of one machine would find out that they are.
    variables = {"UCX_NET_DEVICES": ask.device, **({"UCX_TLS": "tcp,self"} if ask.place == "between" else {})}
    return Commands(server=tuple(command), client=(*command, ask.address), variables=variables)


def read_latency(text: str, _ask: Ask) -> float:
    """Return the whole median round trip, in ns."""
    return positive(numbers_of(text, _COLUMNS)[1] * 2e3, text)


def read_bandwidth(text: str, _ask: Ask) -> float:
    """Return bytes a second over the whole run."""
    return positive(numbers_of(text, _COLUMNS)[5] * MIB, text)


def read_operation(text: str, _ask: Ask) -> float:
    """Return the whole median operation, in ns."""
    return positive(numbers_of(text, _COLUMNS)[1] * 1e3, text)


def _tool(test: str) -> Tool:
    read = next(read for end, read in _READS.items() if test.endswith(end))
    return Tool(
        name=f"ucx_perftest {test}",
        program="ucx_perftest",
        package="ucx-utils",
        statistic="rate" if read is read_bandwidth else "p50",
        clocked=True,
        commands=partial(_commands, test),
        read=read,
        min_bytes=1 if read is read_operation else 0,
    )


_READS = {"_lat": read_latency, "_bw": read_bandwidth, _ALONE: read_operation}
_TESTS = (
    "ucp_am_lat", "ucp_put_lat", "tag_lat", "ucp_am_bw", "ucp_put_bw", "tag_bw", "ucp_get -O 1", "ucp_put_bw -O 1",
)  # fmt: skip
TOOLS = tuple(map(_tool, _TESTS))
