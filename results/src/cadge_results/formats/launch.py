# SPDX-License-Identifier: BSD-3-Clause
"""The launch file: what the drivers of one launch have to do (`cadge.launch/2`)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, PositiveInt, model_validator

from cadge_results.formats.base import Document, FileName, Frozen, Kind, Launcher, Place, Right, Wait
from cadge_results.formats.point import POINT_ID, Settings, Subject, Workload
from cadge_results.formats.trace import SHA256
from cadge_results.plugins.parameter import Declared
from cadge_results.plugins.pattern_problems import ENDPOINTS_MAX


class Endpoint(Frozen):
    """Where one driver process runs, and to whom it has channels. Endpoint 0 coordinates and writes.

    A channel's number is its place in `peers`.
    """

    role: str
    host: str
    cpus: tuple[Annotated[int, Field(ge=-1)], ...] = ()
    """One processor a thread; none, or -1: not pinned."""
    hands: tuple[Annotated[int, Field(ge=-1)], ...] = Field(default=(), exclude_if=lambda value: not value)
    """One processor for each thread beside those that has no context of its own, or -1."""
    device: str
    address: str
    raw_device: str = ""
    management_address: str = Field(default="", exclude_if=lambda value: not value)
    """Where a pattern's own processes speak beside the layer, given where the data network's rate is limited."""
    peers: tuple[Annotated[int, Field(ge=0, lt=ENDPOINTS_MAX)], ...]


class LaunchPoint(Frozen):
    """One attempt to make."""

    attempt_id: str
    point_id: str = Field(pattern=POINT_ID)
    workload: Workload
    duration_ms: PositiveInt
    deadline_ms: PositiveInt


class LaunchTrace(Frozen):
    """The trace that points of a launch replay (`trace.bin`, see cadge_results.formats.trace)."""

    file: str = Field(pattern=r"^[a-z][a-z0-9.]*$")
    """Its name in the folder of the launch file."""
    sha256: str = Field(pattern=SHA256)


class LaunchFile(Document):
    """Input of cadge-driver."""

    NAME: ClassVar[str] = "cadge.launch"
    MAJOR: ClassVar[int] = 2

    launch_id: FileName
    campaign_id: str
    kind: Kind
    layer: str
    shims: tuple[str, ...] = ()
    launcher: Launcher
    place: Place
    wait: Wait
    settings: Settings = ()
    epoch: int = Field(default=0, ge=0, exclude_if=lambda value: value == 0)
    """Which making of the testbed it was planned for."""
    seed: int = Field(ge=0, lt=2**63)
    deadline_ms: PositiveInt
    ports: tuple[int, int]
    endpoints: tuple[Endpoint, ...] = Field(min_length=1, max_length=ENDPOINTS_MAX)
    system_calls: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether it counts system calls before it warms up, which takes each attempt a tenth of a second."""
    operations: PositiveInt | None = Field(default=None, exclude_if=lambda value: value is None)
    """For tests: each warm-up and measurement of a thread ends after so many operations, whatever the time."""
    rights: tuple[Right, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What a host lends its processes to be opened, where they would not have it (FloorFile.rights)."""
    trace: LaunchTrace | None = Field(default=None, exclude_if=lambda value: value is None)
    """Only where some of its points replay one."""
    patterns: dict[str, dict[str, Declared]]
    """Type and limits of every parameter of the patterns used, as planned; the driver's are those it was built with."""
    digests: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Of each of these (see cadge_results.parameter_tables): a driver that was built with another version refuses."""
    points: tuple[LaunchPoint, ...]

    @property
    def subject(self) -> Subject:
        """What the launch measures."""
        return Subject(
            kind=self.kind,
            layer=self.layer,
            shims=self.shims,
            settings=self.settings,
            place=self.place,
            wait=self.wait,
        )

    @property
    def roles(self) -> tuple[str, ...]:
        """The role of each endpoint, in order."""
        return tuple(endpoint.role for endpoint in self.endpoints)

    @model_validator(mode="after")
    def _peers_known(self) -> Self:
        count = len(self.endpoints)
        for number, endpoint in enumerate(self.endpoints):
            for peer in endpoint.peers:
                if peer >= count or number not in self.endpoints[peer].peers:
                    raise ValueError(f"endpoint {number} has a channel to {peer}, which has none back")
        return self
