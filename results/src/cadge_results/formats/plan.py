# SPDX-License-Identifier: BSD-3-Clause
"""The plan: every point, launch and block of a campaign, before anything runs (`cadge.plan/2`).

It keeps the pattern and floor files that it was made with, so that a campaign can be read by itself, years later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field, JsonValue, NonNegativeInt, PositiveInt

from cadge_results.formats.base import Document, FileName, Frozen, Launcher, Place, digest
from cadge_results.formats.point import POINT_ID, Subject, Workload
from cadge_results.formats.reason import Reason
from cadge_results.formats.trace import TraceFacts
from cadge_results.plugins.build import Build, is_variant, on_variant
from cadge_results.plugins.floor import FloorFile
from cadge_results.plugins.layerfile import BesideNative
from cadge_results.plugins.parameter import holds
from cadge_results.plugins.pattern import PatternFile


class PlanPoint(Frozen):
    """One measurement to make. The id covers subject and workload, not durations and state."""

    point_id: str = Field(pattern=POINT_ID)
    subject: Subject
    workload: Workload
    duration_ms: PositiveInt
    state: Literal["planned", "refused"]
    reason: str | None = None
    reason_code: Reason | None = None


class PlanEndpoint(Frozen):
    """One process of a launch: its part, its host, the endpoints that it has channels to, and how many threads.

    `hands` are threads beside those which have no context of their own.
    """

    role: str
    host: str
    peers: tuple[NonNegativeInt, ...]
    threads: PositiveInt = 1
    hands: NonNegativeInt = Field(default=0, exclude_if=lambda value: value == 0)


class PlanLaunch(Frozen):
    """One launch: fresh drivers that attempt each of its points once, in the order given."""

    launch_id: FileName
    block: str
    subject: Subject
    launcher: Launcher = "direct"
    endpoints: tuple[PlanEndpoint, ...] = Field(min_length=1)
    round: NonNegativeInt
    epoch: NonNegativeInt = Field(default=0, exclude_if=lambda value: value == 0)
    """Which making of the testbed it belongs to."""
    seed: int = Field(ge=0, lt=2**63)
    point_ids: tuple[str, ...]
    wall_ms: NonNegativeInt
    """Estimated wall time."""
    deadline_ms: PositiveInt


class PlanBlock(Frozen):
    """Launches that share node state and hosts; `launch_ids` in the order in which they run."""

    block_id: FileName
    place: Place
    hosts: tuple[str, ...] = Field(min_length=1)
    """The hosts that it uses, by name; the first one leads."""
    launch_ids: tuple[str, ...]
    wall_ms: NonNegativeInt


class PlanEstimate(Frozen):
    """What carrying out the plan will take."""

    wall_s: float
    disk_bytes: NonNegativeInt
    measure_s: float = 0.0
    """Part of wall_s that is spent in measured loops."""
    ports: tuple[int, int] | None = None
    basis: str | None = None
    """What the times were taken from."""


class PlanLook(Frozen):
    """A look after the first one: up to how many launches it goes, and what it takes where nothing is decided yet.

    Where the sweep names no looks: the rounds that may be added in time that is left of the budget.
    """

    launches: PositiveInt
    wall_s: float
    disk_bytes: NonNegativeInt


class PredictedComparison(Frozen):
    """A comparison of a stored campaign: by how much it differs as a logarithm, and how its paired log ratios scatter.

    `apart`, `upper`: how far two levels of a side lie apart, and which share of its launches is on the upper one.
    """

    shift: float = Field(ge=0)
    spread: float = Field(gt=0)
    apart: float = Field(default=0.0, ge=0, exclude_if=lambda value: value == 0)
    upper: float = Field(default=0.0, ge=0, le=1, exclude_if=lambda value: value == 0)


class PlanPrediction(Frozen):
    """What a stored campaign says of a family: one pattern at one place in a wait mode.

    `spreads`: standard deviations of its comparisons' paired log ratios, as quantiles; `two_levels`: the share of them
    whose launches switch between two levels; `like`: some of its comparisons, as campaigns are simulated from; `level`:
    the one at which its comparisons are judged, if as many are found as there.
    """

    pattern: str
    place: str
    wait: str
    comparisons: PositiveInt
    launches: PositiveInt
    level: float = Field(gt=0, le=1)
    spreads: tuple[float, ...] = Field(min_length=1)
    two_levels: float = Field(ge=0, le=1)
    like: tuple[PredictedComparison, ...] = Field(default=(), exclude_if=lambda value: not value)
    campaign_id: str
    disturbed: bool = Field(default=False, exclude_if=lambda value: not value)
    """Other work had too many of that campaign's attempts."""


class Plan(Document):
    """A whole plan. `plan_hash` is the SHA-256 of the rest."""

    NAME: ClassVar[str] = "cadge.plan"
    MAJOR: ClassVar[int] = 2

    plan_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    sweep: dict[str, JsonValue]
    seed: int = Field(ge=0, lt=2**63)
    points: tuple[PlanPoint, ...]
    launches: tuple[PlanLaunch, ...]
    blocks: tuple[PlanBlock, ...]
    patterns: dict[str, PatternFile]
    """Every pattern, and every form of floors, that a point has."""
    floors: dict[str, FloorFile] = Field(default_factory=dict)
    """Every floor that a point has, by its name in the place of a layer's."""
    providers: dict[str, Build] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Whose build of its library serves a layer, by the layer's name, where the build did not find it by itself."""
    beside_native: dict[str, tuple[BesideNative, ...]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """What is known of layers beside plain programs over the same library, by the layer's name."""
    trace: TraceFacts | None = Field(default=None, exclude_if=lambda value: value is None)
    """The log that some points replay, where one was given."""
    estimate: PlanEstimate
    """Where the sweep names looks, of what is measured up to the first one, which is all that is planned here."""
    later: tuple[PlanLook, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What each further look takes at most, or what is added where time is left."""
    predicted: tuple[PlanPrediction, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What is known beforehand of the families of which this machine has stored campaigns."""
    notices: tuple[str, ...] = ()
    """What a reader should know: shortened points, oversubscribed cores."""

    @cached_property
    def by_id(self) -> Mapping[str, PlanPoint]:
        """Every point by its id."""
        return {point.point_id: point for point in self.points}

    def hosts_used(self, testbed: Sequence[str]) -> tuple[str, ...]:
        """Return those of a testbed's hosts on which a launch has an endpoint, in the testbed's order."""
        used = {end.host for launch in self.launches for end in launch.endpoints}
        return tuple(name for name in testbed if name in used)

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return 1 + max((launch.round for launch in self.launches), default=-1)

    @property
    def epochs(self) -> int:
        """How often the testbed is made."""
        return 1 + max((launch.epoch for launch in self.launches), default=0)

    @property
    def title(self) -> str:
        """What the sweep asks, in one line; empty where the stored sweep does not say."""
        return str(self.sweep.get("title", ""))

    @property
    def baseline(self) -> str | None:
        """What the sweep declares that layers are judged against, by its label; None where it declares nothing."""
        found = self.sweep.get("baseline")
        return found if isinstance(found, str) else None

    def baseline_of(self, label: str) -> str | None:
        """Return what a layer is judged against, by its label.

        Where the baseline is a variant, as `@cadge-1a2b3c4d5e` or `(off=gather)`, that is the same layer in it.
        """
        base = self.baseline
        return on_variant(label, base) if base is not None and is_variant(base) else base

    @property
    def layers(self) -> frozenset[str]:
        """The layers that it measures, by name, floors among them."""
        return frozenset(point.subject.layer for point in self.points if point.state == "planned")

    def builds_said(self) -> dict[str, JsonValue]:
        """Return `builds`, by layer, where builds were chosen: what an answer says of them for programs."""
        return {"builds": {name: build.to_object() for name, build in self.providers.items()}} if self.providers else {}

    @property
    def same_within(self) -> float | None:
        """Per cent within which the sweep calls two layers the same; None where it does not say."""
        found = self.sweep.get("same_within")
        return float(found) if isinstance(found, int | float) else None

    def pattern_of(self, point: PlanPoint) -> PatternFile:
        """Return the file of a point's pattern."""
        return self.patterns[point.workload.pattern]

    @property
    def programs(self) -> tuple[str, ...]:
        """Programs beside the build that hosts need for some of the points, by name."""
        needed = {
            one.program
            for point in self.points
            for one in self.pattern_of(point).programs
            if holds(one.when, point.workload)
        }
        return tuple(sorted(needed))

    def replays(self, point: PlanPoint) -> bool:
        """Tell whether a point replays a trace."""
        return self.pattern_of(point).does_replay(point.workload)

    def expected_hash(self) -> str:
        """Return the hash that the content asks for."""
        content = self.to_object()
        del content["plan_hash"]
        return digest(content)

    def up_to(self, rounds: int) -> Plan:
        """Return the plan of its first rounds alone; the hash stays that of the whole."""
        launches = tuple(launch for launch in self.launches if launch.round < rounds)
        names = {launch.launch_id for launch in launches}
        blocks = (
            block.model_copy(update={"launch_ids": tuple(name for name in block.launch_ids if name in names)})
            for block in self.blocks
        )
        return self.model_copy(update={"launches": launches, "blocks": tuple(b for b in blocks if b.launch_ids)})

    def with_notices(self, more: Sequence[str]) -> Plan:
        """Return the plan with further notices, and the hash that it has then."""
        noted = self.model_copy(update={"notices": (*self.notices, *more)})
        return noted.model_copy(update={"plan_hash": noted.expected_hash()}) if more else self

    def with_predicted(self, predicted: Sequence[PlanPrediction]) -> Plan:
        """Return the plan with what is known beforehand, and the hash that it has then."""
        known = self.model_copy(update={"predicted": tuple(predicted)})
        return known.model_copy(update={"plan_hash": known.expected_hash()}) if predicted else self
