# SPDX-License-Identifier: BSD-3-Clause
"""What happens while a campaign runs: one typed union, from the agent and from Ansible to the progress display.

A line that arrives is read once, by `read_event`, and is an object from there on.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, NonNegativeInt, TypeAdapter, ValidationError

from cadge_results.errors import FormatError
from cadge_results.formats.base import Frozen
from cadge_results.formats.complaint import explain_json
from cadge_results.formats.reason import Reason
from cadge_results.formats.result import LaunchStatus


class Ready(Frozen):
    """An agent has its block. `node` is what the host is, where it was asked (a node document)."""

    event: Literal["ready"] = "ready"
    host: str
    leader: bool
    todo: NonNegativeInt
    """Launches to make."""
    agent_version: str
    realtime_ns: NonNegativeInt = 0
    """What time it is there; 0 where it was not said."""
    node: dict[str, JsonValue] | None = None


class LaunchStarted(Frozen):
    """The leader starts the drivers of a launch."""

    event: Literal["launch_started"] = "launch_started"
    launch_id: str
    number: NonNegativeInt
    of: NonNegativeInt


class LaunchFinished(Frozen):
    """A launch is over. kept: it had been made before."""

    event: Literal["launch_finished"] = "launch_finished"
    launch_id: str
    status: LaunchStatus
    reason: str | None = None
    reason_code: Reason | None = None
    wall_ns: NonNegativeInt = 0
    kept: bool = False


class LaunchRecorded(Frozen):
    """The record of a launch, to be read and stored, then acknowledged."""

    event: Literal["launch_record"] = "launch_record"
    launch_id: str
    record: dict[str, JsonValue]


class BlockFinished(Frozen):
    """The agent of a host has done all of its block, or was stopped."""

    event: Literal["block_finished"] = "block_finished"
    host: str
    made: NonNegativeInt = 0
    kept: NonNegativeInt = 0
    stopped: bool = False


class Problem(Frozen):
    """Something went wrong on a host."""

    event: Literal["problem"] = "problem"
    host: str = ""
    reason: str


class Note(Frozen):
    """Something that a user may want to know."""

    event: Literal["note"] = "note"
    host: str = ""
    text: str


class Alive(Frozen):
    """An agent's answer to the controller's question whether it lives."""

    event: Literal["alive"] = "alive"
    host: str


class Fault(Frozen):
    """What is wrong with a host: what was looked at, how bad it is, what and where, and what to do."""

    about: str
    level: Literal["warn", "fail"] = "fail"
    text: str
    fix: str


class LayerReport(Frozen):
    """What a layer of a host's build says of itself; trouble: why it cannot be loaded there."""

    trouble: str | None = None
    library: str | None = None
    version: str | None = None


class HostReport(Frozen):
    """What a host is (`node`, a node document) and what is wrong with it.

    greets: ports at which it tells its name, by the variable of the inventory that states the address.
    shm_free_bytes: free shared memory; None where it does not say.
    """

    event: Literal["looked"] = "looked"
    host: str
    node: dict[str, JsonValue]
    build: str
    driver: dict[str, JsonValue] | None = None
    """What the build's driver says of itself; None where it does not start."""
    layers: dict[str, LayerReport]
    taken_ports: list[int]
    greets: dict[str, int]
    shm_free_bytes: NonNegativeInt | None = None
    faults: list[Fault]


class Clock(Frozen):
    """What time it is on a host: the answer to the question of this number."""

    event: Literal["clock"] = "clock"
    host: str
    number: NonNegativeInt
    realtime_ns: NonNegativeInt


class ReachReport(Frozen):
    """A host has tried to reach the others; reached: those that it reaches at every address.

    no_login: those that it was asked to log in to and cannot, each with the reason.
    """

    event: Literal["reached"] = "reached"
    host: str
    reached: list[str]
    no_login: dict[str, str] = Field(default_factory=dict)
    faults: list[Fault]


class Stage(Frozen):
    """Ansible begins a task."""

    event: Literal["task"] = "task"
    name: str
    role: str = ""


class TaskFailed(Frozen):
    """A task of Ansible's failed on a host, or the host does not answer. rc: exit status of what it ran."""

    event: Literal["failed", "unreachable"]
    host: str
    task: str = ""
    message: str
    rc: int | None = None


class PlaybookStart(Frozen):
    """ansible-playbook runs."""

    event: Literal["begin"] = "begin"
    pid: int


class Stats(Frozen):
    """Ansible's totals, by host."""

    event: Literal["stats"] = "stats"
    hosts: dict[str, dict[str, int]]


Event = (
    Ready
    | LaunchStarted
    | LaunchFinished
    | LaunchRecorded
    | BlockFinished
    | Problem
    | Note
    | Alive
    | HostReport
    | Clock
    | ReachReport
    | Stage
    | TaskFailed
    | PlaybookStart
    | Stats
)

_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def read_event(line: str | bytes, *, source: str) -> Event:
    """Read one line of JSON; `source` names its sender. Raises FormatError."""
    try:
        return _EVENT.validate_json(line)
    except ValidationError as error:
        raise FormatError(f"{source}: {explain_json(error, _EVENT, line)}") from error
