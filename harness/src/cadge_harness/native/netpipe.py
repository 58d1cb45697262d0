# SPDX-License-Identifier: BSD-3-Clause
"""NetPIPE 3.7 over MPI and over TCP: ping-pong, the best of three trials' means.

Its file has bytes, Mbps and seconds of half a round trip in a line. Mbps are 2^20 bits a second, and have more digits
than the seconds, so the time is computed from them. NPopenmpi polls, as Open MPI does; NPtcp sleeps in the kernel.
"""

from __future__ import annotations

import re

from cadge_harness.native.tool import MIB, Ask, Commands, Tool, ToolError, last_words, messages, positive

_LINE = re.compile(r"(?<![0-9.])([0-9]+) +([0-9]+\.[0-9]{6}) +([0-9]+\.[0-9]{8})")
"""Found anywhere: what the tool says on its standard error may stand in the same line."""
_TRIALS = 3
_BEST = "the tool prints the best mean of three trials, Cadge its median"
_ECHO = (
    "it sends the very buffer that it received into, which each time comes out of the other processor's cache; Cadge's "
    "two buffers, untouched, stay in both (with two buffers the tool takes as long as Cadge)"
)


_MPI_TIMES = 8
"""So many times the usual messages: MPI begins and ends for longer than these take, and waits for processors then."""


def _options(ask: Ask, medium: str) -> tuple[str, ...]:
    count = messages(ask, "memory") * _MPI_TIMES if medium == "memory" else messages(ask, "sockets")
    count //= _TRIALS
    return ("-l", str(ask.bytes), "-u", str(ask.bytes), "-p", "0", "-n", str(count), "-o", "/dev/stdout")


def _mpi(ask: Ask) -> Commands:
    return Commands(client=("NPopenmpi", "-a", *_options(ask, "memory")), ranks=True)


def _tcp(ask: Ask) -> Commands:
    options = (*_options(ask, "sockets"), "-P", str(ask.port))
    return Commands(server=("NPtcp", *options), client=("NPtcp", "-h", ask.address, *options))


def read(text: str, ask: Ask) -> float:
    """Return the whole round trip of the best trial, in ns."""
    for size, rate, _ in _LINE.findall(text):
        if int(size) == ask.bytes and float(rate) > 0:
            return positive(2 * 8 * ask.bytes / (float(rate) * MIB) * 1e9, text)
    raise ToolError(f"no line for {ask.bytes} bytes: {last_words(text)}")


TOOLS = (
    Tool(
        name="NPopenmpi -a",
        program="NPopenmpi",
        package="netpipe-openmpi",
        statistic="best",
        commands=_mpi,
        read=read,
        min_bytes=1,
        note=f"{_BEST}; {_ECHO}",
    ),
    Tool(
        name="NPtcp",
        program="NPtcp",
        package="netpipe-tcp",
        statistic="best",
        commands=_tcp,
        read=read,
        min_bytes=1,
        wait="block",
        note=_BEST,
    ),
)
