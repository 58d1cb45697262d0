# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest of UCX: ping-pongs and streams over its own calls.

It polls, and reads its time-stamp counter in every round. `-f -v` prints one line of comma-separated values:
iterations, 50 % quantile, average, overall latency in us of half a round trip; average and overall bandwidth in MiB/s;
average and overall messages a second. The quantile is that of its last 2,048 rounds.
"""

from __future__ import annotations

from functools import partial

from cadge_harness.native.tool import MIB, Ask, Commands, Tool, messages, numbers_of, positive

_COLUMNS = 8


def _commands(test: str, ask: Ask) -> Commands:
    rounds = messages(ask, "memory")
    command = ["ucx_perftest", "-t", test, "-s", str(ask.bytes), "-n", str(rounds), "-w", str(max(rounds // 10, 10))]
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


def _tool(test: str) -> Tool:
    latency = test.endswith("_lat")
    return Tool(
        name=f"ucx_perftest {test}",
        program="ucx_perftest",
        package="ucx-utils",
        statistic="p50" if latency else "rate",
        clocked=True,
        commands=partial(_commands, test),
        read=read_latency if latency else read_bandwidth,
    )


TOOLS = tuple(map(_tool, ("ucp_am_lat", "ucp_put_lat", "tag_lat", "ucp_am_bw", "ucp_put_bw", "tag_bw")))
