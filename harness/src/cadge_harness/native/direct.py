# SPDX-License-Identifier: BSD-3-Clause
"""Our own plain programs (harness/native), where no tool is packaged that does what a pattern does.

Each is written as its library's manual writes it, calls nothing of Cadge, and prints one number: the median round trip
in ns, or messages a second.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words, messages, positive
from cadge_results.formats.base import Wait

_BUILT = "Cadge's own build has it where its library's headers are"
_TIMES = {"echo": 1, "window": 4, "oneway": 8}
"""So many times the usual messages: several are under way at a time."""
_MPI_TIMES = 4
"""And over MPI: it begins and ends for longer than the usual ones take, and waits for processors then."""
Test = Literal["echo", "window", "oneway"]
SocketKind = Literal["tcp", "udp", "unix"]


def _mpi(test: Test, ask: Ask) -> Commands:
    count = messages(ask, "memory") * _TIMES[test] * _MPI_TIMES
    return Commands(client=("native-mpi", test, str(ask.bytes), str(ask.window), str(count)), ranks=True)


def _sockets(kind: SocketKind, test: Test, wait: Wait, ask: Ask) -> Commands:
    how = "poll" if wait == "poll" else "sleep"
    count = messages(ask, "sockets") * _TIMES[test]
    command = ("native-sockets", kind, test, how, str(ask.bytes), str(ask.window), str(count))
    where = (ask.address, str(ask.port))
    return Commands(server=(*command, "listen", *where), client=(*command, "connect", *where), listens=kind)


def read(test: Test, text: str, ask: Ask) -> float:
    """Return the number that a program printed: of a stream in bytes a second. Raises ToolError."""
    try:
        value = float(text.split()[-1])
    except (IndexError, ValueError) as error:
        raise ToolError(f"no number: {last_words(text)}") from error
    return positive(value * ask.bytes if test == "oneway" else value, text)


def _of_mpi(test: Test) -> Tool:
    return Tool(
        name=f"native-mpi {test}",
        program="native-mpi",
        package="",
        source=_BUILT,
        statistic="p50" if test == "echo" else "rate",
        clocked=test == "echo",
        commands=partial(_mpi, test),
        read=partial(read, test),
        min_bytes=0 if test == "echo" else 1,
        one_by_one=True,
    )


def _of_sockets(kind: SocketKind, test: Test, wait: Wait) -> Tool:
    return Tool(
        name=f"native-sockets {kind} {test}{' sleep' if wait == 'block' else ''}",
        program="native-sockets",
        package="",
        source=_BUILT,
        statistic="p50" if test == "echo" else "rate",
        clocked=test == "echo",
        commands=partial(_sockets, kind, test, wait),
        read=partial(read, test),
        wait=wait,
        min_bytes=1,
        max_bytes=65507 if kind == "udp" else 1 << 30,
        one_by_one=True,
    )


_TESTS: tuple[Test, ...] = ("echo", "window", "oneway")
_KINDS: tuple[SocketKind, ...] = ("tcp", "udp", "unix")
_STREAMS: tuple[SocketKind, ...] = ("tcp", "unix")
_WAITS: tuple[Wait, ...] = ("poll", "block")
TOOLS = (
    *map(_of_mpi, _TESTS),
    *(_of_sockets(kind, "echo", wait) for kind in _KINDS for wait in _WAITS),
    *(_of_sockets(kind, test, "poll") for kind in _STREAMS for test in _TESTS if test != "echo"),
)
