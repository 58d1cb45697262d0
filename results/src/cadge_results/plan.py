# SPDX-License-Identifier: BSD-3-Clause
"""The plan: every point, launch and block of a campaign, before anything runs (`cadge.plan/1`)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, JsonValue, NonNegativeInt, PositiveInt

from cadge_results.base import (
    Document,
    Frozen,
    Kind,
    Launcher,
    Operation,
    Pattern,
    Place,
    Target,
    Wait,
    digest,
)


class PlanPoint(Frozen):
    """One measurement to make. The id covers everything but durations and state."""

    point_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    kind: Kind = "layer"
    layer: str
    shims: tuple[str, ...] = ()
    place: Place
    wait: Wait
    pattern: Pattern
    request_bytes: NonNegativeInt
    reply_bytes: NonNegativeInt
    depth: PositiveInt
    operation: Operation | None = None
    target: Target | None = None
    settings: dict[str, str] = Field(default_factory=dict)
    duration_ms: PositiveInt
    state: Literal["planned", "refused"]
    reason: str | None = None
    reason_code: str | None = None


class PlanLaunch(Frozen):
    """One launch: a fresh driver pair that attempts each of its points once, in the order given."""

    launch_id: str
    block: str
    layer: str
    kind: Kind
    shims: tuple[str, ...] = ()
    launcher: Launcher = "direct"
    place: Place
    wait: Wait
    settings: dict[str, str] = Field(default_factory=dict)
    round: NonNegativeInt
    seed: int = Field(ge=0, lt=2**63)
    point_ids: tuple[str, ...]
    wall_ms: NonNegativeInt
    """Estimated wall time."""
    deadline_ms: PositiveInt


class PlanBlock(Frozen):
    """Launches that share node state and hosts; `launch_ids` in the order in which they run."""

    block_id: str
    place: Place
    hosts: PositiveInt
    """How many hosts it takes."""
    launch_ids: tuple[str, ...]
    wall_ms: NonNegativeInt


class Estimate(Frozen):
    """What carrying out the plan will take."""

    wall_s: float
    disk_bytes: NonNegativeInt
    measure_s: float = 0.0
    """Part of wall_s that is spent in measured loops."""
    ports: tuple[int, int] | None = None
    basis: str | None = None
    """What the times were taken from."""


class Plan(Document):
    """A whole plan. `plan_hash` is the SHA-256 of the rest."""

    NAME: ClassVar[str] = "cadge.plan"

    plan_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    sweep: dict[str, JsonValue]
    seed: int = Field(ge=0, lt=2**63)
    points: tuple[PlanPoint, ...]
    launches: tuple[PlanLaunch, ...]
    blocks: tuple[PlanBlock, ...]
    estimate: Estimate
    notices: tuple[str, ...] = ()
    """What a reader should know: shortened points, oversubscribed cores."""

    def expected_hash(self) -> str:
        """Return the hash that the content asks for."""
        content = self.to_object()
        del content["plan_hash"]
        return digest(content)
