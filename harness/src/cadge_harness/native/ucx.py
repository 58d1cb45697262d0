# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest of UCX: ping-pongs and streams over its own calls.

It polls, and reads its time-stamp counter in every round. `-f -v` prints one line of comma-separated values. One-sided
operations go one way: with `-O 1` one at a time, whose quantile is that of whole operations, until each is complete
here.
"""

from __future__ import annotations

from functools import partial

from cadge_harness.native.tool import Ask, Commands, Tool, messages, numbers_of, positive, value_of
from cadge_harness.printed import ucx
from cadge_harness.printed.text import ToolHints
from cadge_results.formats.imported import Kind

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


def _read(test: str, kind: Kind, statistic: str, text: str, ask: Ask) -> float:
    """Return what a test prints: ns of the whole round trip or operation, or bytes a second over the whole run."""
    return value_of(
        partial(ucx.read, told=ToolHints(test=test, bytes=ask.bytes)), text, ask.bytes, (test, kind, statistic)
    )


def read_operation(text: str, _ask: Ask) -> float:
    """Return the whole median operation of a test that goes one way, in ns: one at a time its time is that."""
    return positive(numbers_of(text, _COLUMNS)[1] * 1e3, text)


def _tool(test: str) -> Tool:
    name = test.removesuffix(_ALONE)
    is_rate = test.endswith("_bw")
    read = partial(_read, name, "bandwidth", "overall") if is_rate else partial(_read, name, "time", "p50")
    alone = test.endswith(_ALONE)
    return Tool(
        name=f"ucx_perftest {test}",
        program="ucx_perftest",
        package="ucx-utils",
        statistic="rate" if is_rate else "p50",
        clocked=True,
        commands=partial(_commands, test),
        read=read_operation if alone else read,
        min_bytes=1 if alone else 0,
        one_by_one=is_rate,
    )


_TESTS = (
    "ucp_am_lat", "ucp_put_lat", "tag_lat", "ucp_am_bw", "ucp_put_bw", "tag_bw", "ucp_get -O 1", "ucp_put_bw -O 1",
)  # fmt: skip
TOOLS = tuple(map(_tool, _TESTS))
