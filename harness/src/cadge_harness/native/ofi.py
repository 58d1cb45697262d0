# SPDX-License-Identifier: BSD-3-Clause
"""fi_pingpong of libfabric, and fabtests' programs where the user has them. All poll and print means alone.

A line of fi_pingpong: bytes, messages sent, acknowledged, total bytes (with a unit), time (with a unit), MB/s, us of
half a round trip, millions of transfers a second. One of fabtests has transfers in the place of sent and acknowledged;
where a program goes one way, us are those of a whole operation. fi_pingpong has no warm-up, so that it is told to run
long. On one machine fabtests need a port of their own on each side, beside the one for addresses.
"""

from __future__ import annotations

from functools import partial

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words, messages, positive

_FIELDS = 8
_FABTESTS_FIELDS = 7


def _provider(ask: Ask) -> str:
    return "shm" if ask.place == "within" else "tcp;ofi_rxm"


def _pingpong(ask: Ask) -> Commands:
    count = str(messages(ask, "memory"))
    command = ("fi_pingpong", "-p", _provider(ask), "-e", "rdm", "-I", count, "-S", str(ask.bytes))
    return Commands(
        server=(*command, "-B", str(ask.port)),
        client=(*command, "-P", str(ask.port), ask.address),
        variables={"FI_TCP_IFACE": ask.device},
    )


def _fabtests(options: tuple[str, ...], ask: Ask) -> Commands:
    count = ("-I", str(messages(ask, "memory")), "-S", str(ask.bytes))
    command = (*options, "-p", _provider(ask), *count, f"-b={ask.port}", "-B")
    return Commands(
        server=(*command, str(ask.port + _SERVERS)),
        client=(*command, str(ask.port + _CLIENTS), ask.address),
        variables={"FI_TCP_IFACE": ask.device},
    )


def _mean_us(text: str, columns: int) -> float:
    for line in reversed(text.splitlines()):
        words = line.split()
        if len(words) != columns or words[0] == "bytes":
            continue
        try:
            return positive(float(words[-2]), text)
        except ValueError:
            continue
    raise ToolError(f"no line of {columns} columns: {last_words(text)}")


def read(text: str, _ask: Ask) -> float:
    """Return the whole mean round trip, in ns."""
    return _mean_us(text, _FIELDS) * 2e3


def read_fabtests(text: str, _ask: Ask) -> float:
    """Return the whole mean round trip, in ns."""
    return _mean_us(text, _FABTESTS_FIELDS) * 2e3


def read_operation(text: str, _ask: Ask) -> float:
    """Return the whole mean operation, in ns."""
    return _mean_us(text, _FABTESTS_FIELDS) * 1e3


_SOURCE = "fabtests, from libfabric's sources"
_SERVERS, _CLIENTS = 2000, 3000
"""So far above the tool's port are those of the two sides, which no other tool is given."""


TOOLS = (
    Tool(
        name="fi_pingpong",
        program="fi_pingpong",
        package="libfabric-bin",
        statistic="mean",
        commands=_pingpong,
        read=read,
        note="the tool does not warm up, and tells 20 ns of a round trip at the finest",
    ),
    Tool(
        name="fi_rdm_pingpong",
        program="fi_rdm_pingpong",
        package="",
        source=_SOURCE,
        statistic="mean",
        commands=partial(_fabtests, ("fi_rdm_pingpong",)),
        read=read_fabtests,
    ),
    Tool(
        name="fi_rma_bw -o read -W 1",
        program="fi_rma_bw",
        package="",
        source=_SOURCE,
        statistic="mean",
        commands=partial(_fabtests, ("fi_rma_bw", "-e", "rdm", "-o", "read", "-W", "1")),
        read=read_operation,
        min_bytes=1,
        note="in the tool both sides read at once, each one at a time",
    ),
)
