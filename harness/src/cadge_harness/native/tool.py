# SPDX-License-Identifier: BSD-3-Clause
"""What a native tool is: data, how its two ends are started, and what is read from what it prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cadge_harness.printed.text import MIB as MIB
from cadge_harness.printed.text import PrintedError, ToolOutput
from cadge_results.formats.base import Place, Wait
from cadge_results.formats.imported import Kind
from cadge_results.formats.native import Statistic

TARGET_MS = 250
"""How long a tool measures, where it can be told by a number of messages."""


class ToolError(Exception):
    """A native tool failed, or printed something else than expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One run: messages of how many bytes, how many of a stream under way, and where."""

    bytes: int
    window: int
    place: Place
    address: str
    """The server's."""
    device: str
    port: int
    cpus: tuple[int, ...]
    """The clients', then as many servers': a pair unless the point asks for more."""
    measure_ms: int = TARGET_MS
    """How long the tool is to measure, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What is started: the server first, where there is one, then the client, whose output is read."""

    client: tuple[str, ...]
    server: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    listens: Literal["tcp", "udp", "unix"] = "tcp"
    """How the server listens on the port that it was given: the client begins when it does."""
    ranks: bool = False
    """The client is a launcher of ranks, one for each of Ask.cpus; `client` is a rank's command, the first prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A native tool with one of its tests."""

    name: str
    program: str
    package: str
    """Debian's; "" where there is none, and `source` says where it comes from."""
    statistic: Statistic
    commands: Callable[[Ask], Commands]
    read: Callable[[str, Ask], float]
    """What it printed, as nanoseconds of a whole round trip, or bytes or messages a second. Raises ToolError."""
    wait: Wait = "poll"
    """How it waits for a message; Cadge does so beside it."""
    clocked: bool = False
    """Whether it reads its clock in every round trip."""
    min_bytes: int = 0
    max_bytes: int = 1 << 30
    source: str = ""
    note: str = ""
    """What a reader has to know of its numbers."""
    rdma: bool = False
    """Whether it needs a verbs device."""
    one_by_one: bool = False
    """Whether it hands each message of a stream over by itself, as Cadge does: then short ones are compared too."""

    @property
    def remedy(self) -> str:
        """How to get it."""
        return f"apt install {self.package}" if self.package else self.source


_STEP_NS: Mapping[tuple[str, Place], float] = {
    ("memory", "within"): 900.0,
    ("memory", "between"): 9000.0,
    ("sockets", "within"): 9000.0,
    ("sockets", "between"): 12000.0,
}
_BYTE_NS = 0.35


def messages(ask: Ask, medium: Literal["memory", "sockets"], *, least: int = 300, most: int = 150_000) -> int:
    """Return how many round trips, or messages of a stream, take about `measure_ms`: an estimate from readings here."""
    each_ns = _STEP_NS[medium, ask.place] + 2 * ask.bytes * _BYTE_NS
    return max(least, min(most, round(ask.measure_ms * 1e6 / each_ns)))


def numbers_of(text: str, least: int) -> list[float]:
    """Return the numbers of the last line that is made of at least so many. Raises ToolError."""
    for line in reversed(text.splitlines()):
        try:
            found = [float(word) for word in line.replace(",", " ").split()]
        except ValueError:
            continue
        if len(found) >= least:
            return found
    raise ToolError(f"no line of {least} numbers: {last_words(text)}")


def value_of(read: Callable[[str], ToolOutput], text: str, size: int, what: tuple[str, Kind, str]) -> float:
    """Return what a tool printed last for a size, in Cadge's units. Raises ToolError.

    `what`: test, kind and statistic.
    """
    try:
        every = read(text).series
    except PrintedError as error:
        raise ToolError(f"{error}: {last_words(text)}") from error
    for one in reversed(every):
        for found in reversed(one.values):
            if (one.test, one.kind, one.statistic) == what and found.bytes == size:
                return positive(found.value, text)
    raise ToolError(f"no line for {size} bytes: {last_words(text)}")


def positive(value: float, text: str) -> float:
    """Return a reading that can be one. Raises ToolError for zero, infinity and nothing."""
    if 0 < value < float("inf"):
        return value
    raise ToolError(f"{value} is no reading: {last_words(text)}")


def last_words(text: str) -> str:
    """Return the end of what a tool printed, on one line."""
    return " ".join(text.split())[-200:] or "it printed nothing"
