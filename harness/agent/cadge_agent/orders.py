# SPDX-License-Identifier: BSD-3-Clause
"""What agents and the controller say to each other while a block or a look runs: none of it is stored."""

from __future__ import annotations

from typing import Literal, TypedDict, Union

from cadge_agent.formats import (
    BlockHost,
    HostCounters,
    HostEnvironment,
    HostKernel,
    HostLink,
    HostLoad,
    HostSharedMemory,
    Launch,
)

# ---- from the controller ----


class SurveyTargets(TypedDict):
    """The hosts of an inventory, of which each looks for itself by its name."""

    hosts: list[BlockHost]
    ports: list[int]
    programs: list[str]
    """Beside the build, which some points need."""
    ssh: list[str]
    """The command by which mpirun reaches hosts, as a block has it."""


class Target(TypedDict):
    """Where a host is to be reached, and the variable of the inventory that says so."""

    host: str
    variable: str
    address: str
    port: int


class Login(TypedDict):
    """A host to log in to as a launcher does, and its address for where nothing knows its name."""

    host: str
    address: str


class FromController(TypedDict, total=False):
    """A line of the lease.

    stop: end the block after the launch that runs (why). ack: the record of this launch is stored.
    ping: say that you live. To `look` alone: clock: say what time it is, and this number. reach: try to reach others,
    and to log in to those of `login`.
    """

    stop: str
    ack: str
    ping: int
    clock: int
    reach: list[Target]
    login: list[Login]


# ---- leader to follower, and back ----


class Prepare(TypedDict):
    """Get ready for a launch. boot: of the leader, which sets values of the kernel for all hosts that share it."""

    do: Literal["prepare"]
    launch: Launch
    boot: str


class Start(TypedDict):
    """Start this host's endpoints of the launch that was prepared."""

    do: Literal["start"]
    oob: str


class Finish(TypedDict):
    """End the launch, after giving the endpoints `grace_s` to end by themselves."""

    do: Literal["finish"]
    grace_s: float


class Bye(TypedDict):
    """The block is over."""

    do: Literal["bye"]


Order = Union[Prepare, Start, Finish, Bye]


class OfProvider(TypedDict):
    """What a launch takes of its layer's build: what starts ranks, its driver, and what its library needs around it."""

    launcher: str | None
    driver: str | None
    environment: dict[str, str]


class Programs(TypedDict):
    """What makes an endpoint's command on a host, and what is around it; before: words that go before the program."""

    before: list[str]
    program: str
    launch_file: str
    modules: str
    token_file: str
    environment: dict[str, str]
    folder: str


class Report(TypedDict):
    """What a host has to say of a launch that is over."""

    counters: HostCounters
    link: HostLink
    load: HostLoad
    shared_memory: HostSharedMemory
    environment: HostEnvironment
    kernel: HostKernel
    removed: list[str]
    problems: list[str]
    exit_codes: dict[str, int | None]
    logs: dict[str, str]


class FollowerAnswer(TypedDict, total=False):
    """What a follower answers: to which order, and what that order asks for, or why it could not be done.

    code: of a launch that it refuses, for the store.
    """

    answer: str
    programs: Programs
    report: Report
    error: str
    code: str


class EndpointExit(TypedDict):
    """What a follower says by itself: an endpoint ended otherwise than well."""

    exited: int
    code: int
