# SPDX-License-Identifier: BSD-3-Clause
"""fi_pingpong of libfabric, and fabtests' fi_rdm_pingpong where the user has it. Both poll and print means alone.

A line: bytes, messages sent, acknowledged, total bytes (with a unit), time (with a unit), MB/s, us of half a round
trip, millions of transfers a second. fi_pingpong has no warm-up, so that it is told to run long.
"""

from __future__ import annotations

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words, messages, positive

_FIELDS = 8


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


def _fabtests(ask: Ask) -> Commands:
    command = ("fi_rdm_pingpong", "-p", _provider(ask), "-I", str(messages(ask, "memory")), "-S", str(ask.bytes))
    return Commands(
        server=(*command, "-b", str(ask.port)),
        client=(*command, "-b", str(ask.port), ask.address),
        variables={"FI_TCP_IFACE": ask.device},
    )


def read(text: str, _ask: Ask) -> float:
    """Return the whole mean round trip, in ns."""
    for line in reversed(text.splitlines()):
        words = line.split()
        if len(words) < _FIELDS or words[0] == "bytes":
            continue
        try:
            return positive(float(words[-2]) * 2e3, text)
        except ValueError:
            continue
    raise ToolError(f"no line of {_FIELDS} columns: {last_words(text)}")


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
        source="fabtests, from libfabric's sources",
        statistic="mean",
        commands=_fabtests,
        read=read,
    ),
)
