# SPDX-License-Identifier: BSD-3-Clause
"""The launch result: what the measuring driver wrote, unchanged (`cadge.result/2`).

Times are integer nanoseconds, sizes bytes; round trips are whole. Lists with one entry an endpoint are in the order of
the endpoints.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, JsonValue, NonNegativeInt

from cadge_results.formats.base import Document, Frozen, Kind, Place, Utc, Wait
from cadge_results.formats.point import POINT_ID, Workload
from cadge_results.formats.reason import Reason

if TYPE_CHECKING:
    from cadge_results.formats.histogram import Histogram

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
    iov_max: NonNegativeInt | None = None
    """Of floors."""


NOT_READ_BACK = "not read back: "
"""How `used` begins where the library does not say what it uses; the reason follows (layers/include/cadge/path.h)."""


class PathFacts(Frozen):
    """What the library really used for one channel, read back from it."""

    endpoint: NonNegativeInt = 0
    peer: NonNegativeInt = 0
    medium: str
    as_asked: bool
    asked: str = ""
    used: str = ""
    device: str = ""
    note: str = ""

    @property
    def read_back(self) -> bool:
        """Tell whether the library said what it uses: only then does `as_asked` say anything."""
        return not self.used.startswith(NOT_READ_BACK)


class ClockFacts(Frozen):
    """Which clock timed this endpoint, and how well it kept step."""

    source: str
    hz: NonNegativeInt
    read_cost_ns: float
    drift_ppm: float
    bracket_ns: float
    ok: bool
    step_ns: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """Readings differ by multiples of it; None in older records."""


class PinFacts(Frozen):
    """The processor asked for (one a thread where there are several) and those read back."""

    asked: int | tuple[int, ...]
    actual: tuple[int, ...]
    ok: bool


class ObjectFacts(Frozen):
    """A program or library that was mapped into endpoints, by its build id, or by a hash where it has none.

    how: `needed` is a dependency of another one; `preloaded` of none, and there before the driver began; `loaded` came
    later, as layers and components of libraries do; `mapped` came without the loader.
    """

    file: str
    how: Literal["program", "needed", "preloaded", "loaded", "mapped"]
    build_id: str | None = None
    sha256: str | None = None


class Scheduling(Frozen):
    """How the kernel schedules a thread: `other` with nice 0 unless somebody asked for something else."""

    policy: str
    priority: int
    nice: int


COUNTED_ELSEWHERE = "not in this launch"
NEVER_COUNTED = "not to be had"
"""How `counted` begins where nothing was counted: another launch does it, or the machine cannot."""


class EndpointFacts(Frozen):
    """The process that ran this endpoint."""

    host: str
    pid: int
    kernel: str
    role: str = ""
    counted: dict[str, str] = Field(default_factory=dict)
    """How system calls (`system_calls`) and cycles and instructions (`cycles`) were counted, or why not."""
    scheduling: Scheduling | None = Field(default=None, exclude_if=lambda value: value is None)
    objects: tuple[NonNegativeInt, ...] | None = Field(default=None, exclude_if=lambda value: value is None)
    """What was mapped into it: places in the result's `objects`. None in older records."""


class ThreadFacts(Frozen):
    """The processors on which an endpoint's threads, its library's included, were allowed to run at the end."""

    endpoint: NonNegativeInt
    cpus: tuple[JsonValue, ...]


class ResidentMemory(Frozen):
    """Resident memory of one endpoint's process at one moment, in bytes. What the kernel holds for it is in none."""

    private: NonNegativeInt
    """Heap, stacks, data that was written: this process's alone."""
    shared: NonNegativeInt
    """Mappings made to be shared, whole, as far as this process had touched them."""
    shared_part: NonNegativeInt
    """The same, each page divided by the processes that had touched it: of all processes together, what there was."""
    file: NonNegativeInt
    """Programs and libraries as they stand in their files, of which the machine has one copy."""

    @property
    def memory(self) -> int:
        """What the process had in memory without its files: what is shared counts whole in each that touched it."""
        return self.private + self.shared


class ResidentFacts(Frozen):
    """Resident memory of one endpoint's process outside of all measuring; None where the kernel does not tell."""

    before: ResidentMemory | None
    """The endpoints had met; nothing of the layer was loaded."""
    opened: ResidentMemory | None
    connected: ResidentMemory | None
    """All channels of all endpoints were up; the driver had no buffers for messages yet."""


class Witness(Frozen):
    """What the machine was like at one moment of a launch, measured by one of two of its endpoints, without the layer.

    None: could not be had; of different hosts there is no line.
    """

    at: NonNegativeInt
    """Before the attempt of this order; their number: after the last."""
    endpoint: NonNegativeInt
    line_ns: float | None
    """A cache line goes to the other process and comes back; told by endpoint 0."""
    copy_ns: float | None
    """64 KiB are copied within a process, while the other does the same."""
    clock_ns: float | None
    """The clock is read."""


class Warmup(Frozen):
    """How warm-up went. steady: false where times still rose or fell at its time limit, or were too few to tell."""

    operations: NonNegativeInt
    ns: NonNegativeInt
    steady: bool
    rule: str


class Executions(Frozen):
    """Operations that those who act expect the others to have carried out, and what these counted."""

    expected: NonNegativeInt
    server: NonNegativeInt


class PayloadCheck(Frozen):
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
    wall_ns: NonNegativeInt | None = None
    """Length of the stretch that these counters cover."""
    run_wait_ns: NonNegativeInt | None = None
    """How long the measuring threads were ready to run and did not, together; None where the kernel does not tell."""
    stolen_ns: NonNegativeInt | None = None
    """What the host took of the processors that they may run on, in ticks; None where the kernel does not tell."""
    system_calls: NonNegativeInt | None = None
    """Of the attempt's `counted_operations`; None where they were not counted."""
    cycles: NonNegativeInt | None = None
    instructions: NonNegativeInt | None = None
    """None where they were not counted."""


class Samples(Frozen):
    """A histogram that one endpoint recorded, with its exact sums and its first samples."""

    endpoint: NonNegativeInt
    histogram: str
    count: NonNegativeInt
    sum_ns: NonNegativeInt
    min_ns: NonNegativeInt
    max_ns: NonNegativeInt
    sum_sq_ns2: str = Field(pattern=r"^[0-9]{1,39}$")
    first_ns: tuple[NonNegativeInt, ...] = Field(default=(), max_length=1000)

    @property
    def deviation_ns(self) -> float | None:
        """The standard deviation of what was recorded, of exact sums; None of fewer than two."""
        if self.count < 2:
            return None
        squares = self.count * int(self.sum_sq_ns2) - self.sum_ns**2  # integers: the difference of floats has no digits
        return math.sqrt(max(squares, 0) / (self.count * (self.count - 1)))

    @cached_property
    def buckets(self) -> Histogram:
        """The histogram, decoded. Raises FormatError where it is damaged."""
        from cadge_results.formats.histogram import decode  # numpy takes time to import, and most commands need none

        return decode(self.histogram)


class Rate(Frozen):
    """An amount that one endpoint counted, and the time that it took."""

    endpoint: NonNegativeInt
    amount: NonNegativeInt
    elapsed_ns: NonNegativeInt


class Number(Frozen):
    """A number that one endpoint found: of kind count, or fit."""

    endpoint: NonNegativeInt
    value: int | float


Reading = Samples | Rate | Number


class Attempt(Frozen):
    """One measurement of one point. Where status is refused or failed, the measured fields may be null."""

    attempt_id: str
    point_id: str = Field(pattern=POINT_ID)
    workload: Workload
    order: NonNegativeInt
    status: AttemptStatus
    reason: str | None = None
    reason_code: Reason | None = None
    started_ns_since_launch: NonNegativeInt | None = None
    counted_operations: NonNegativeInt = 0
    """Operations of the loop in which system calls were counted, before the warm-up; 0 where they were not."""
    warmup: Warmup | None = None
    elapsed_ns: NonNegativeInt | None = None
    operations: NonNegativeInt | None = None
    bytes: NonNegativeInt | None = None
    lost: NonNegativeInt | None = None
    late: NonNegativeInt | None = None
    quantities: dict[str, tuple[Reading, ...]] = Field(default_factory=dict)
    """What was measured, by the quantity's name in its pattern; one that does not exist for the point is absent."""
    executions: Executions | None = None
    verified: PayloadCheck | None = None
    cpu: tuple[CpuUse, ...] | None = None
    counters: tuple[dict[str, NonNegativeInt], ...] = Field(default=(), exclude_if=lambda value: not value)
    """What the layer of each endpoint counted over the measured region, by the layer's own names; only what grew."""
    checks: tuple[Check, ...] = ()

    def samples(self, quantity: str) -> tuple[Samples, ...]:
        """Return the histograms of a quantity, one an endpoint that recorded it."""
        return tuple(one for one in self.quantities.get(quantity, ()) if isinstance(one, Samples))

    def rates(self, quantity: str) -> tuple[Rate, ...]:
        """Return the amounts of a quantity, one an endpoint that counted."""
        return tuple(one for one in self.quantities.get(quantity, ()) if isinstance(one, Rate))

    def numbers(self, quantity: str) -> tuple[Number, ...]:
        """Return the numbers of a quantity, one an endpoint that found one."""
        return tuple(one for one in self.quantities.get(quantity, ()) if isinstance(one, Number))


class Result(Document):
    """Everything that one launch found out."""

    NAME: ClassVar[str] = "cadge.result"
    MAJOR: ClassVar[int] = 2

    launch_id: str
    kind: Kind
    layer: str
    place: Place
    wait: Wait
    seed: NonNegativeInt
    status: LaunchStatus
    reason: str | None = None
    reason_code: Reason | None = None
    driver: DriverFacts
    started_utc: Utc
    wall_ns: NonNegativeInt
    phases_ns: dict[str, NonNegativeInt] = Field(default_factory=dict)
    library: LibraryFacts | None = None
    adapter: AdapterFacts | None = None
    limits: LimitFacts | None = None
    path: tuple[PathFacts, ...] = ()
    clock: tuple[ClockFacts, ...] = ()
    pinning: tuple[PinFacts, ...] = ()
    endpoints: tuple[EndpointFacts, ...] = ()
    objects: tuple[ObjectFacts, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Programs and libraries that were mapped into any endpoint. () in older records."""
    threads: tuple[ThreadFacts, ...] = ()
    checks: tuple[Check, ...] = ()
    witness: tuple[Witness, ...] = ()
    control_bytes: tuple[NonNegativeInt, ...] = Field(default=(), exclude_if=lambda value: not value)
    """By endpoint: what it said and heard out of band, without headers; the first, with all. () in older records."""
    resident_bytes: tuple[ResidentFacts, ...] = Field(default=(), exclude_if=lambda value: not value)
    """By endpoint. () in older records, and where the channels did not come up."""
    attempts: tuple[Attempt, ...] = ()
