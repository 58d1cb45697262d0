# SPDX-License-Identifier: BSD-3-Clause
"""The documents and lines that the agent reads and writes, by the names of their keys.

Their models stand in cadge_results (block, launch, event, record, node); a test holds these names against them. What
only agents say to each other (orders and answers) is declared here alone.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

BLOCK_SCHEMA = "cadge.block/2"
RECORD_SCHEMA = "cadge.launch-record/2"
NODE_SCHEMA = "cadge.node/1"

Json = dict[str, Any]

# ------------------------------------------------------------------------------------------------ what is to be done


class Optional(TypedDict, total=False):
    """What not every endpoint has: threads that never touch a context, with their processors; a second address."""

    hands: list[int]
    management_address: str


class Endpoint(Optional):
    """Where one driver process runs, and to which other endpoints it has channels."""

    role: str
    host: str
    cpus: list[int]
    device: str
    address: str
    raw_device: str
    peers: list[int]


class Counting(TypedDict, total=False):
    """Only where system calls are counted."""

    system_calls: bool


class Replaying(TypedDict, total=False):
    """Only where a trace is replayed: its file beside the launch file, and its SHA-256."""

    trace: dict[str, str] | None


class Lent(TypedDict, total=False):
    """Only where its processes need rights to be opened: capabilities in the words of setpriv."""

    rights: list[str]


class Launch(Counting, Replaying, Lent):
    """cadge.launch/2, which the driver reads; of `patterns` and `points` the agent knows nothing."""

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
    """A host of the block: how other agents reach it, and what its endpoints are given."""

    name: str
    management_address: str
    device: str
    address: str
    raw_device: str
    cpus: list[int]
    ld_library_path: str
    opal_prefix: str


class Mpirun(TypedDict):
    """How ranks are started on the leader; ssh: the command that reaches hosts, empty for the launcher's own."""

    path: str
    options: list[str]
    ssh: list[str]


class Block(TypedDict):
    """cadge.block/2. The leader is the host of every launch's endpoint 0."""

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


class Surveyed(TypedDict):
    """The hosts of an inventory, of which each looks for itself by its name."""

    hosts: list[BlockHost]
    ports: list[int]
    programs: list[str]
    """Beside the build, which some points need."""


# ------------------------------------------------------------------------------------- from the controller, and to it


class Target(TypedDict):
    """Where a host is to be reached, and the variable of the inventory that says so."""

    host: str
    variable: str
    address: str
    port: int


class FromController(TypedDict, total=False):
    """A line of the lease.

    stop: end the block after the launch that runs (why). ack: the record of this launch is stored.
    ping: say that you live. To `look` alone: clock: say what time it is, and this number. reach: try to reach others.
    """

    stop: str
    ack: str
    ping: int
    clock: int
    reach: list[Target]


class Ready(TypedDict):
    """The agent has its block."""

    event: Literal["ready"]
    host: str
    leader: bool
    todo: int
    agent_version: str
    node: Json | None


class LaunchStarted(TypedDict):
    """The leader begins a launch."""

    event: Literal["launch_started"]
    launch_id: str
    number: int
    of: int


class LaunchFinished(TypedDict):
    """A launch is over; kept: it had been made before."""

    event: Literal["launch_finished"]
    launch_id: str
    status: str
    reason: str | None
    reason_code: str | None
    wall_ns: int
    kept: bool


class LaunchRecorded(TypedDict):
    """The record of a launch, to be acknowledged."""

    event: Literal["launch_record"]
    launch_id: str
    record: Record


class Problem(TypedDict):
    """Something went wrong on this host."""

    event: Literal["problem"]
    host: str
    reason: str


class Note(TypedDict):
    """What a user may want to know, and is no fault."""

    event: Literal["note"]
    host: str
    text: str


class BlockFinished(TypedDict):
    """The leader has made the block's launches, or was told to stop."""

    event: Literal["block_finished"]
    host: str
    made: int
    kept: int
    stopped: bool


class Alive(TypedDict):
    """The answer to a ping."""

    event: Literal["alive"]
    host: str


class Fault(TypedDict):
    """What is wrong with a host: what was looked at, how bad it is (fail, warn), what and where, and what to do."""

    about: str
    level: str
    text: str
    fix: str


class LayerSaid(TypedDict):
    """What a layer says of itself; trouble: why it cannot be loaded."""

    trouble: str | None
    library: str | None
    version: str | None


class Looked(TypedDict):
    """What a host is. greets: ports at which it tells its name, by the variable that states the address."""

    event: Literal["looked"]
    host: str
    node: Json
    build: str
    driver: Json | None
    layers: dict[str, LayerSaid]
    taken_ports: list[int]
    greets: dict[str, int]
    faults: list[Fault]


class Clock(TypedDict):
    """What time it is on a host: the answer to the question of this number."""

    event: Literal["clock"]
    host: str
    number: int
    realtime_ns: int


class Reached(TypedDict):
    """A host has tried to reach the others; reached: those that it reaches at every address."""

    event: Literal["reached"]
    host: str
    reached: list[str]
    faults: list[Fault]


Event = Union[
    Ready, LaunchStarted, LaunchFinished, LaunchRecorded, Problem, Note, Alive, BlockFinished, Looked, Clock, Reached
]


class HostCounters(TypedDict):
    """Counters of a host's interfaces around a launch, and what could not be counted, with the reason."""

    host: str
    before: Json
    after: Json
    uncounted: list[str]


class HostLink(TypedDict):
    """A host's data link around a launch."""

    host: str
    before: Json
    after: Json


class HostLoad(TypedDict):
    """How busy a host was during a launch."""

    host: str
    loadavg: float
    steal_ns: int


class HostSharedMemory(TypedDict):
    """Where a host's endpoints kept shared memory."""

    host: str
    kind: str
    why: str | None
    variables: dict[str, str]


class HostEnvironment(TypedDict):
    """The variables that a host's endpoints were given, or their launcher."""

    host: str
    variables: dict[str, str]


class Record(TypedDict):
    """cadge.launch-record/2; lists by endpoint have one entry an endpoint, in order."""

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


# -------------------------------------------------------------------------------------------- leader to follower, back


class Prepare(TypedDict):
    """Get ready for a launch."""

    do: Literal["prepare"]
    launch: Launch


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
    """What a launch takes of its layer's provider: what starts ranks, and what its library needs around it."""

    launcher: str | None
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
    removed: list[str]
    exit_codes: dict[str, int | None]
    logs: dict[str, str]


class Answer(TypedDict, total=False):
    """What a follower answers: to which order, and what that order asks for, or why it could not be done."""

    answer: str
    programs: Programs
    report: Report
    error: str


class Exited(TypedDict):
    """What a follower says by itself: an endpoint ended otherwise than well."""

    exited: int
    code: int
