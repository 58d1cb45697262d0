# SPDX-License-Identifier: BSD-3-Clause
"""The launch record: a launch, its result, and what surrounded it (`cadge.launch-record/2`)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, JsonValue, NonNegativeInt

from cadge_results.formats.base import Document, Frozen
from cadge_results.formats.launch import LaunchFile
from cadge_results.formats.reason import Reason
from cadge_results.formats.result import Check, LaunchStatus, Result


class InterfaceCount(Frozen):
    """Counters of one network interface."""

    rx_bytes: NonNegativeInt
    tx_bytes: NonNegativeInt
    rx_packets: NonNegativeInt
    tx_packets: NonNegativeInt


class HostCounters(Frozen):
    """One host's interface counters around the launch, by interface name.

    uncounted: what should have been counted and could not be, with the reason.
    """

    host: str
    before: dict[str, InterfaceCount] = Field(default_factory=dict)
    after: dict[str, InterfaceCount] = Field(default_factory=dict)
    uncounted: tuple[str, ...] = ()


class LinkState(Frozen):
    """State of the data link: an attached XDP program, the offloads that are switched on or off, and a rate.

    rate_bits: a second, of what its host may send; 0: as much as it can; None: nobody knows.
    """

    xdp: bool | None = None
    offloads: dict[str, JsonValue] = Field(default_factory=dict)
    rate_bits: NonNegativeInt | None = None


class HostLink(Frozen):
    """One host's data link around the launch."""

    host: str
    before: LinkState
    after: LinkState


class HostLoad(Frozen):
    """How busy the host was: 1-minute load average, and what a hypervisor and its control groups took in the launch.

    throttled_ns: how long a quota of a control group held processes up; None where that is not known.
    """

    host: str
    loadavg: float | None = None
    steal_ns: NonNegativeInt | None = None
    throttled_ns: NonNegativeInt | None = Field(default=None, exclude_if=lambda value: value is None)


class HostSharedMemory(Frozen):
    """Where one host's endpoints kept shared memory, and what their libraries were told so that they did.

    private: a mount of /dev/shm of the launch's own; folder: a folder of the launch's own, and `why` there was no
    mount; shared: /dev/shm as everybody uses it.
    """

    host: str
    kind: Literal["private", "folder", "shared"]
    why: str | None = None
    variables: dict[str, str] = Field(default_factory=dict)


class HostEnvironment(Frozen):
    """The variables that one host's endpoints were given, or their launcher, beside those for shared memory.

    They had no others, but for what a launcher sets for its ranks.
    """

    host: str
    variables: dict[str, str] = Field(default_factory=dict)


class HostKernel(Frozen):
    """Values of the kernel that one host was given for the launch, by the names of the settings.

    As they were before, as the kernel gave them back once they were set, and at the launch's end.
    """

    host: str
    before: dict[str, str] = Field(default_factory=dict)
    during: dict[str, str] = Field(default_factory=dict)
    after: dict[str, str] = Field(default_factory=dict)


class LaunchRecord(Document):
    """What is stored for a finished launch. `crosschecks` is added once, when the store takes it in."""

    NAME: ClassVar[str] = "cadge.launch-record"
    MAJOR: ClassVar[int] = 2
    INDENT: ClassVar[int | None] = None

    launch: LaunchFile
    result: Result | None = None
    status: LaunchStatus
    reason: str | None = None
    reason_code: Reason | None = None
    counters: tuple[HostCounters, ...] = ()
    link: tuple[HostLink, ...] = ()
    load: tuple[HostLoad, ...] = ()
    shared_memory: tuple[HostSharedMemory, ...] = ()
    environment: tuple[HostEnvironment, ...] = ()
    kernel: tuple[HostKernel, ...] = Field(default=(), exclude_if=lambda value: not value)
    started_by: str = Field(default="", exclude_if=lambda value: not value)
    """The launcher that started ranks: its name, its version, its program."""
    exit_codes: tuple[int | None, ...] = ()
    log_tail: tuple[str, ...] = ()
    agent_version: str = ""
    crosschecks: tuple[Check, ...] = ()

    @property
    def launch_id(self) -> str:
        """The launch's name, unique in its campaign."""
        return self.launch.launch_id
