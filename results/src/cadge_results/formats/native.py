# SPDX-License-Identifier: BSD-3-Clause
"""What native tools printed beside a campaign's launches (`cadge.native/1`), and with which point each one compares.

A reading is in the units of Cadge whatever the tool prints: whole round trips in nanoseconds, or bytes a second. What
the tool printed stands beside it, as it came.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from cadge_results.formats.base import Document, Frozen
from cadge_results.formats.point import POINT_ID

Statistic = Literal["p50", "mean", "best", "rate"]
"""What a tool prints: the median round trip, the mean of all, the best of several means, or a rate."""


class NativeCell(Frozen):
    """A point of the plan, and the native tool that does the same."""

    cell_id: str = Field(min_length=1)
    point_id: str = Field(pattern=POINT_ID)
    tool: str = Field(min_length=1)
    """The tool with its test, as people name it."""
    bytes: NonNegativeInt
    statistic: Statistic
    clocked: bool
    """Whether the tool reads its clock for every round trip, as Cadge does."""
    beside: dict[Literal["bare", "looking"], str] = Field(default_factory=dict)
    """Points of the same launch that run the bare loop: without looking at messages, and with a look at each."""
    batch: PositiveInt = 1
    """Round trips that a sample of the bare loop is of."""
    more: str = ""
    """What Cadge does here that the tool does not, where it is not the same."""
    note: str = ""
    """What a reader has to know of this pair."""


class NativeReading(Frozen):
    """One run of a tool."""

    cell_id: str
    round: NonNegativeInt
    after: str
    """The launch after which it ran; the next one began when it had ended."""
    value: float | None = Field(default=None, gt=0)
    """Nanoseconds of a whole round trip, or bytes a second; None where there is none, with the reason."""
    reason: str = ""
    command: str
    printed: str = ""
    """The end of what it printed."""
    wall_ns: tuple[NonNegativeInt, ...] = ()
    """How long its processes ran once they had started, the client's first."""
    run_wait_ns: tuple[NonNegativeInt | None, ...] = ()
    """How long their main threads were ready to run meanwhile and did not; None where the kernel does not tell."""
    voluntary_switches: tuple[NonNegativeInt, ...] = ()


class NativeAbsent(Frozen):
    """A tool that did not run at all, and why."""

    tool: str
    layers: tuple[str, ...]
    reason: str = Field(min_length=1)


class NativeFile(Document):
    """All of it. `versions` are what the tools' packages or the tools say of themselves."""

    NAME: ClassVar[str] = "cadge.native"
    MAJOR: ClassVar[int] = 1

    rounds: PositiveInt
    measure_ms: PositiveInt | None = Field(default=None, exclude_if=lambda value: value is None)
    """How long each tool is to measure, about, where it is not as long as in `cadge crosscheck`."""
    cells: tuple[NativeCell, ...]
    absent: tuple[NativeAbsent, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    readings: tuple[NativeReading, ...] = ()

    def by_run(self) -> dict[tuple[str, int], NativeReading]:
        """Return the reading of each cell in each round in which its tool ran: of several the last one."""
        return {(one.cell_id, one.round): one for one in self.readings}
