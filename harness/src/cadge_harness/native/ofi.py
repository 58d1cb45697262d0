# SPDX-License-Identifier: BSD-3-Clause
"""fi_pingpong of libfabric, and fabtests' programs where the user has them. All poll and print means alone.

fi_pingpong has no warm-up, so that it is told to run
long. On one machine fabtests need a port of their own on each side, beside the one for addresses.
"""

from __future__ import annotations

from functools import partial

from cadge_harness.native.tool import Ask, Commands, Tool, messages, value_of
from cadge_harness.printed import fabtests
from cadge_harness.printed.text import ToolHints
from cadge_results.formats.imported import Kind


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


def _read(program: str, text: str, ask: Ask) -> float:
    """Return the mean that a program prints, in ns: of a whole round trip, or of a whole operation."""
    what: tuple[str, Kind, str] = (program.partition(" ")[0], "time", "mean")
    return value_of(partial(fabtests.read, told=ToolHints(test=program)), text, ask.bytes, what)


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
        read=partial(_read, "fi_pingpong"),
        note="the tool does not warm up, and resolves a round trip to 20 ns",
    ),
    Tool(
        name="fi_rdm_pingpong",
        program="fi_rdm_pingpong",
        package="",
        source=_SOURCE,
        statistic="mean",
        commands=partial(_fabtests, ("fi_rdm_pingpong",)),
        read=partial(_read, "fi_rdm_pingpong"),
    ),
    Tool(
        name="fi_rma_bw -o read -W 1",
        program="fi_rma_bw",
        package="",
        source=_SOURCE,
        statistic="mean",
        commands=partial(_fabtests, ("fi_rma_bw", "-e", "rdm", "-o", "read", "-W", "1")),
        read=partial(_read, "fi_rma_bw -W 1"),
        min_bytes=1,
        note="in the tool both sides read at once, each one at a time",
    ),
)
