# SPDX-License-Identifier: BSD-3-Clause
"""The launch result: what the measuring driver wrote, unchanged (`cadge.result/1`).

Times are integer nanoseconds, sizes bytes; round trips are whole. Lists with one entry an endpoint
start with the client's.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, JsonValue, NonNegativeInt, PositiveInt

from cadge_results.base import Document, Frozen, Kind, Operation, Pattern, Place, Target, Wait

LaunchStatus = Literal["done", "refused", "failed"]
AttemptStatus = Literal["done", "refused", "failed", "unsound"]


class Check(Frozen):
    """A soundness check and its outcome."""

    name: str
    ok: bool
    detail: str = ""


class DriverFacts(Frozen):
    """Which driver binary wrote the result."""

    version: str
    abi: int
    revision: str
    compiler: str


class LibraryFacts(Frozen):
    """Which library served the layer, as loaded."""

    name: str
    stated_version: str
    file: str | None = None
    build_id: str | None = None


class AdapterFacts(Frozen):
    """What the adapter says of itself in this context."""

    name: str
    style: str
    substrate: str
    file: str | None = None
    build_id: str | None = None
    rpc: Literal["native", "emulated"] | None = None
    caps: tuple[str, ...] = ()
    traits: dict[str, JsonValue] = Field(default_factory=dict)
    semantics: dict[str, str] = Field(default_factory=dict)


class LimitFacts(Frozen):
    """What the context granted."""

    message_bytes_max: NonNegativeInt
    depth_max: NonNegativeInt
    short_bytes_max: NonNegativeInt = 0
    short_path: str = ""
    long_path: str = ""
    wire_overhead_bytes: NonNegativeInt = 0
    rma_bytes_max: NonNegativeInt | None = None
    iov_max: NonNegativeInt | None = None
    token_bytes: NonNegativeInt | None = None


class PathFacts(Frozen):
    """What the library really used, read back from it."""

    medium: str
    as_asked: bool
    asked: str = ""
    used: str = ""
    device: str = ""
    note: str = ""


class ClockFacts(Frozen):
    """Which clock timed this endpoint, and how well it kept step."""

    source: str
    hz: NonNegativeInt
    read_cost_ns: float
    drift_ppm: float
    bracket_ns: float
    ok: bool


class PinFacts(Frozen):
    """The CPU asked for and the CPUs read back."""

    asked: int
    actual: tuple[int, ...]
    ok: bool


class EndpointFacts(Frozen):
    """The process that ran this endpoint."""

    host: str
    pid: int
    kernel: str


class Warmup(Frozen):
    """How warm-up went: ended by its rule (`steady`) or by its time limit."""

    operations: NonNegativeInt
    ns: NonNegativeInt
    steady: bool
    rule: str


class Executions(Frozen):
    """Operations that the client expects the server to have carried out, and what the server counted."""

    expected: NonNegativeInt
    server: NonNegativeInt


class Verified(Frozen):
    """Messages whose payload was compared, and how many differed."""

    in_loop: NonNegativeInt
    full_before: NonNegativeInt
    full_after: NonNegativeInt
    mismatches: NonNegativeInt


class CpuUse(Frozen):
    """Resource use of one endpoint's process over the measured region."""

    user_ns: NonNegativeInt
    system_ns: NonNegativeInt
    voluntary_switches: NonNegativeInt
    involuntary_switches: NonNegativeInt
    minor_faults: NonNegativeInt
    major_faults: NonNegativeInt


class Attempt(Frozen):
    """One measurement of one point. Where status is refused or failed, the measured fields may be null."""

    attempt_id: str
    point_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    pattern: Pattern
    request_bytes: NonNegativeInt
    reply_bytes: NonNegativeInt
    depth: PositiveInt
    operation: Operation | None = None
    target: Target | None = None
    order: NonNegativeInt
    status: AttemptStatus
    reason: str | None = None
    reason_code: str | None = None
    started_ns_since_launch: NonNegativeInt | None = None
    warmup: Warmup | None = None
    elapsed_ns: NonNegativeInt | None = None
    operations: NonNegativeInt | None = None
    bytes: NonNegativeInt | None = None
    lost: NonNegativeInt | None = None
    late: NonNegativeInt | None = None
    histogram: str | None = None
    count: NonNegativeInt | None = None
    sum_ns: NonNegativeInt | None = None
    min_ns: NonNegativeInt | None = None
    max_ns: NonNegativeInt | None = None
    sum_sq_ns2: str | None = Field(default=None, pattern=r"^[0-9]+$")
    first_ns: tuple[NonNegativeInt, ...] | None = Field(default=None, max_length=1000)
    histogram_remote: str | None = None
    executions: Executions | None = None
    verified: Verified | None = None
    cpu: tuple[CpuUse, ...] | None = None
    checks: tuple[Check, ...] = ()


class Result(Document):
    """Everything that one launch found out."""

    NAME: ClassVar[str] = "cadge.result"

    launch_id: str
    kind: Kind
    layer: str
    place: Place
    wait: Wait
    seed: NonNegativeInt
    status: LaunchStatus
    reason: str | None = None
    reason_code: str | None = None
    driver: DriverFacts
    started_utc: str
    wall_ns: NonNegativeInt
    phases_ns: dict[str, NonNegativeInt] = Field(default_factory=dict)
    library: LibraryFacts | None = None
    adapter: AdapterFacts | None = None
    limits: LimitFacts | None = None
    path: tuple[PathFacts, ...] = ()
    clock: tuple[ClockFacts, ...] = ()
    pinning: tuple[PinFacts, ...] = ()
    endpoints: tuple[EndpointFacts, ...] = ()
    checks: tuple[Check, ...] = ()
    attempts: tuple[Attempt, ...] = ()
