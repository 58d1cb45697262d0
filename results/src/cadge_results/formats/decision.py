# SPDX-License-Identifier: BSD-3-Clause
"""What was decided at a look, and what was planned after the plan was made (`cadge.decision/1`, `cadge.look/1`).

A sweep may name looks: after so many launches its campaign is looked at, and only what is undecided then gets more. The
analysis writes the decision, from the records of the launches so far; the planner makes the next look's blocks from the
plan and the decision alone. Both are stored before anything of the next look runs and never change, so that a campaign
that was broken off goes on by what it had decided.

A sweep without looks may get rounds that were not planned: as many as fit into what its budget has left. The clock says
so, and no result: there is no decision, and the store keeps why no more were added.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from cadge_results.formats.base import Document, Frozen, Place, Wait
from cadge_results.formats.plan import PlanBlock, PlanLaunch
from cadge_results.formats.point import POINT_ID

SHA256 = r"^[0-9a-f]{64}$"
BY_SIGNS = "signs"
"""The rule of decisions that name none."""
PointId = str
Says = Literal["faster", "slower", "same", "cannot tell"]


class PointComparison(Frozen):
    """A point beside the point of the baseline, and what is said of it."""

    point_id: PointId = Field(pattern=POINT_ID)
    baseline_id: PointId = Field(pattern=POINT_ID)
    says: Says
    level: PositiveFloat
    """The error at which it is said, over all looks: what its family leaves for one comparison."""


class JudgedFamily(Frozen):
    """The comparisons that were corrected for together."""

    pattern: str
    place: Place
    wait: Wait
    quantity: str
    baseline: str | None
    """The label of what all others are compared with; None where nothing is, and there are leading groups alone."""
    correlation: NonNegativeFloat
    """That of neighbouring rounds' differences, as far as it was allowed for."""
    withheld: bool = False
    """Whether it was too large for any verdict."""
    decided: tuple[PointComparison, ...] = ()
    undecided: tuple[PointComparison, ...] = ()
    unmeasured: tuple[PointComparison, ...] = ()
    """Undecided as well, but no launch gave a number of one side, so that more are not made for it."""


class Decision(Document):
    """What the launches up to one look decide."""

    NAME: ClassVar[str] = "cadge.decision"

    campaign_id: str
    plan_hash: str = Field(pattern=SHA256)
    look: PositiveInt
    """Which one, counted from 1."""
    launches: PositiveInt
    """How many rounds it has seen."""
    looks: tuple[PositiveInt, ...] = Field(min_length=1)
    levels: tuple[PositiveFloat, ...]
    """How the error is shared among the looks, each in relation to the others."""
    error: PositiveFloat
    same_within: NonNegativeFloat
    """Two layers are the same where they surely differ by less than this; 0.05 is 5 %."""
    seed: NonNegativeInt
    records: NonNegativeInt
    """How many records it was made from."""
    records_sha256: str = Field(pattern=SHA256)
    """A digest of them."""
    families: tuple[JudgedFamily, ...]
    leading: tuple[tuple[PointId, ...], ...] = ()
    """By case, the points of layers that may each be the best: only where that are several, which are not all alike."""
    pace: PositiveFloat = 1.0
    """How many times the planned time the campaign took so far; the next look is expected to take as much longer."""
    tool_version: str
    rule: str = Field(default=BY_SIGNS, exclude_if=lambda rule: rule == BY_SIGNS)
    """By which rule: another one may decide otherwise."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.levels) != len(self.looks) or self.look > len(self.looks):
            raise ValueError("it has one level for each of its looks, and is of one of them")
        if self.launches != self.looks[self.look - 1]:
            raise ValueError(f"look {self.look} is after {self.looks[self.look - 1]} launches, not {self.launches}")
        return self

    @property
    def is_last(self) -> bool:
        """Whether no look follows."""
        return self.look == len(self.looks)

    @property
    def goes_on(self) -> frozenset[PointId]:
        """The points that need more launches: both sides of what is undecided, and leaders that are not separated."""
        pairs = [one for family in self.families for one in family.undecided]
        sides = {name for one in pairs for name in (one.point_id, one.baseline_id)}
        return frozenset(sides.union(*self.leading))

    def counts(self) -> tuple[int, int]:
        """Return how many comparisons are decided, and how many are not."""
        decided = sum(len(family.decided) for family in self.families)
        return decided, sum(len(family.undecided) + len(family.unmeasured) for family in self.families)


class LaterLook(Document):
    """What is measured for a look after the first one, or because time is left; nothing, where `ended` says why not."""

    NAME: ClassVar[str] = "cadge.look"

    plan_hash: str = Field(pattern=SHA256)
    look: int = Field(ge=2)
    launches_before: PositiveInt
    launches_after: PositiveInt
    """The rounds up to the look before, and up to this one."""
    decision_sha256: str | None = Field(default=None, pattern=SHA256, exclude_if=lambda value: value is None)
    """Of the stored decision that it was planned from; None where time was left, and nothing was looked at."""
    blocks: tuple[PlanBlock, ...] = ()
    launches: tuple[PlanLaunch, ...] = ()
    wall_s: NonNegativeFloat = 0.0
    disk_bytes: NonNegativeInt = 0
    ended: str | None = None
    """Why the campaign ends before this look, or before further rounds."""

    @model_validator(mode="after")
    def _some_or_ended(self) -> Self:
        if (self.ended is None) != bool(self.launches):
            raise ValueError("a look has launches, or says why the campaign ends before it")
        return self
