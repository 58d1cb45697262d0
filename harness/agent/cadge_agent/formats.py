# SPDX-License-Identifier: BSD-3-Clause
"""The documents and lines that the agent reads and writes, by the names of their keys.

Made from the models of cadge_results by `python -m cadge_harness.run.agent_formats`: change those, and run it.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

BLOCK_SCHEMA = "cadge.block/2"
RECORD_SCHEMA = "cadge.launch-record/2"
NODE_SCHEMA = "cadge.node/1"

Json = dict[str, Any]


class EndpointOptional(TypedDict, total=False):
    """Keys of `Endpoint` that are left out where they say nothing."""

    hands: list[int]
    management_address: str


class Endpoint(EndpointOptional):
    """Where one driver process runs, and to whom it has channels. Endpoint 0 coordinates and writes."""

    role: str
    host: str
    cpus: list[int]
    device: str
    address: str
    raw_device: str
    peers: list[int]


class LaunchTrace(TypedDict):
    """The trace that points of a launch replay (`trace.bin`, see cadge_results.formats.trace)."""

    file: str
    sha256: str


class LaunchOptional(TypedDict, total=False):
    """Keys of `Launch` that are left out where they say nothing."""

    epoch: int
    system_calls: bool
    operations: int | None
    rights: list[str]
    trace: LaunchTrace | None
    digests: dict[str, str]


class Launch(LaunchOptional):
    """Input of cadge-driver."""

    schema: str
    launch_id: str
    campaign_id: str
    kind: str
    layer: str
    shims: list[str]
    launcher: str
    place: str
    wait: str
    settings: dict[str, str]
    seed: int
    deadline_ms: int
    ports: list[int]
    endpoints: list[Endpoint]
    patterns: Json
    points: list[Json]


class BlockHost(TypedDict):
    """A host that the block uses. `cpus` are for the endpoints, in the order of their use; none: not pinned."""

    name: str
    management_address: str
    device: str
    address: str
    raw_device: str
    cpus: list[int]
    ld_library_path: str
    opal_prefix: str


class Mpirun(TypedDict):
    """How ranks are started on the leader. A layer's provider may bring a launcher of its own."""

    path: str
    options: list[str]
    ssh: list[str]


class Block(TypedDict):
    """One block of a campaign. Only its hosts are prepared, deployed to and waited for; the leader starts launches."""

    schema: str
    block_id: str
    campaign_id: str
    place: str
    hosts: list[BlockHost]
    leader: str
    ports: list[int]
    mpirun: Mpirun
    deadline_s: int
    launches: list[Launch]


class HostCounters(TypedDict):
    """One host's interface counters around the launch, by interface name."""

    host: str
    before: Json
    after: Json
    uncounted: list[str]


class HostLink(TypedDict):
    """One host's data link around the launch."""

    host: str
    before: Json
    after: Json


class HostLoadOptional(TypedDict, total=False):
    """Keys of `HostLoad` that are left out where they say nothing."""

    throttled_ns: int | None


class HostLoad(HostLoadOptional):
    """How busy the host was: 1-minute load average, and what a hypervisor and its control groups took in the launch."""

    host: str
    loadavg: float | None
    steal_ns: int | None


class HostSharedMemory(TypedDict):
    """Where one host's endpoints kept shared memory, and what their libraries were told so that they did."""

    host: str
    kind: str
    why: str | None
    variables: dict[str, str]


class HostEnvironment(TypedDict):
    """The variables that one host's endpoints were given, or their launcher, beside those for shared memory."""

    host: str
    variables: dict[str, str]


class HostKernel(TypedDict):
    """Values of the kernel that one host was given for the launch, by the names of the settings."""

    host: str
    before: dict[str, str]
    during: dict[str, str]
    after: dict[str, str]


class RecordOptional(TypedDict, total=False):
    """Keys of `Record` that are left out where they say nothing."""

    kernel: list[HostKernel]
    started_by: str


class Record(RecordOptional):
    """What is stored for a finished launch. `crosschecks` is added once, when the store takes it in."""

    schema: str
    launch: Launch
    result: Json | None
    status: str
    reason: str | None
    reason_code: str | None
    counters: list[HostCounters]
    link: list[HostLink]
    load: list[HostLoad]
    shared_memory: list[HostSharedMemory]
    environment: list[HostEnvironment]
    exit_codes: list[int | None]
    log_tail: list[str]
    agent_version: str


class Fault(TypedDict):
    """What is wrong with a host: what was looked at, how bad it is, what and where, and what to do."""

    about: str
    level: str
    text: str
    fix: str


class LayerReport(TypedDict):
    """What a layer of a host's build says of itself; trouble: why it cannot be loaded there."""

    trouble: str | None
    library: str | None
    version: str | None


class Ready(TypedDict):
    """An agent has its block. `node` is what the host is, where it was asked (a node document)."""

    event: Literal["ready"]
    host: str
    leader: bool
    todo: int
    agent_version: str
    realtime_ns: int
    node: Json | None


class LaunchStarted(TypedDict):
    """The leader starts the drivers of a launch."""

    event: Literal["launch_started"]
    launch_id: str
    number: int
    of: int


class LaunchFinished(TypedDict):
    """A launch is over. kept: it had been made before."""

    event: Literal["launch_finished"]
    launch_id: str
    status: str
    reason: str | None
    reason_code: str | None
    wall_ns: int
    kept: bool


class LaunchRecorded(TypedDict):
    """The record of a launch, to be read and stored, then acknowledged."""

    event: Literal["launch_record"]
    launch_id: str
    record: Record


class Problem(TypedDict):
    """Something went wrong on a host."""

    event: Literal["problem"]
    host: str
    reason: str


class Note(TypedDict):
    """Something that a user may want to know."""

    event: Literal["note"]
    host: str
    text: str


class Alive(TypedDict):
    """An agent's answer to the controller's question whether it lives."""

    event: Literal["alive"]
    host: str


class BlockFinished(TypedDict):
    """The agent of a host has done all of its block, or was stopped."""

    event: Literal["block_finished"]
    host: str
    made: int
    kept: int
    stopped: bool


class HostReport(TypedDict):
    """What a host is (`node`, a node document) and what is wrong with it."""

    event: Literal["looked"]
    host: str
    node: Json
    build: str
    driver: Json | None
    layers: dict[str, LayerReport]
    taken_ports: list[int]
    greets: dict[str, int]
    shm_free_bytes: int | None
    faults: list[Fault]


class Clock(TypedDict):
    """What time it is on a host: the answer to the question of this number."""

    event: Literal["clock"]
    host: str
    number: int
    realtime_ns: int


class ReachReport(TypedDict):
    """A host has tried to reach the others; reached: those that it reaches at every address."""

    event: Literal["reached"]
    host: str
    reached: list[str]
    no_login: dict[str, str]
    faults: list[Fault]


Event = Union[
    Ready,
    LaunchStarted,
    LaunchFinished,
    LaunchRecorded,
    Problem,
    Note,
    Alive,
    BlockFinished,
    HostReport,
    Clock,
    ReachReport,
]
