# SPDX-License-Identifier: BSD-3-Clause
"""The fields of a pattern file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from cadge_results.formats.base import Document, Place
from cadge_results.plugins.parameter import Parameter, Quantity, Role
from cadge_results.plugins.rules import (
    BareLoop,
    Baseline,
    Capability,
    Constraint,
    CopyRule,
    FirstScreen,
    FitsOf,
    FloorRule,
    KneeRule,
    LoadRule,
    Measures,
    Name,
    Need,
    OperationModel,
    PointLimit,
    Program,
    Replays,
    Words,
)


class PatternFields(Document):
    """What a pattern file holds."""

    NAME: ClassVar[str] = "cadge.pattern"
    READ_BY: ClassVar[Mapping[int, str]] = {}

    title: str = Field(min_length=1)
    summary: str = Field(min_length=1)
    """The sentence under the heading of its section."""
    order: int = 100
    """Its place among the patterns of a report."""
    measures: Measures
    roles: dict[Name, Role] = Field(min_length=1)
    places: tuple[Place, ...] = ("self", "within", "between")
    hosts_between: int = Field(default=2, ge=2, exclude_if=lambda value: value == 2)
    """How many hosts it needs at place between, so that a role shares none with another that it has channels to."""
    self_channels: PositiveInt | str = 1
    """At place self one endpoint plays every role, over so many channels to itself."""
    parameters: dict[Name, Parameter] = Field(min_length=1)
    constraints: tuple[Constraint, ...] = ()
    needs: tuple[Need, ...] = ()
    limits: tuple[PointLimit, ...] = Field(default=(), exclude_if=lambda value: not value)
    programs: tuple[Program, ...] = Field(default=(), exclude_if=lambda value: not value)
    quantities: dict[Name, Quantity] = Field(min_length=1)
    """The first is the main one, which is drawn and compared."""
    axis: Name
    family: dict[str, Literal["lowest", "highest"]] = Field(default_factory=dict)
    """Which value of another number a figure shows where several have as many sizes; the lowest where not given."""
    floor: FloorRule
    copied: CopyRule | None = Field(default=None, exclude_if=lambda value: value is None)
    fits: FitsOf | None = Field(default=None, exclude_if=lambda value: value is None)
    modelled_as: tuple[OperationModel, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What a model of messages takes an operation for, where one is under way at a time; the first that holds counts.

    Such patterns show what a fitted model is worth.
    """
    baseline: Baseline | None = Field(default=None, exclude_if=lambda value: value is None)
    """With what points are compared inside the pattern."""
    knee: KneeRule | None = Field(default=None, exclude_if=lambda value: value is None)
    one_load: LoadRule | None = Field(default=None, exclude_if=lambda value: value is None)
    """At which load points are compared; any where it is not given."""
    replays: Replays | None = Field(default=None, exclude_if=lambda value: value is None)
    """Which of its points replay a trace."""
    unclocked: BareLoop | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of which pattern it is the bare loop, which stands beside native tools."""
    moves: tuple[Name, ...] = ()
    """Parameters whose bytes an operation moves, in both directions; all in bytes where not given."""
    outstanding: Name | None = None
    """The parameter that says how many operations are under way at a time."""
    loop: Literal["closed", "open"] = "closed"
    own_traffic: bool = Field(default=False, exclude_if=lambda value: not value)
    """Its processes speak over the data network beside the layer, so that what is seen there is not all the layer's."""
    warmup_percent: NonNegativeInt = Field(default=0, exclude_if=lambda value: not value)
    """How long a point of it warms up, in percent of its duration, where that is long; for the planner."""
    calls: bool = False
    """Whether its operations are the layer's RPC, native or emulated."""
    call_caps: tuple[Capability, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What a layer has to grant beside RPC for these calls to be its own; else they are emulated."""
    first_screen: FirstScreen = Field(default_factory=FirstScreen)
    words: Words = Field(default_factory=Words)

    @property
    def main(self) -> str:
        """Name of the main quantity."""
        return next(iter(self.quantities))

    @property
    def main_quantity(self) -> Quantity:
        """The quantity that is drawn and compared."""
        return self.quantities[self.main]
