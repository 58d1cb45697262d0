# SPDX-License-Identifier: BSD-3-Clause
"""What a pattern file is made of first: parameters with their limits, roles of endpoints, and quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from cadge_results.formats.base import Frozen
from cadge_results.formats.point import Value, Workload
from cadge_results.formats.trace import trace_text

NEIGHBOURS = "neighbours"
CHOICE = r"^[a-z][a-z0-9_+]*$"
"""A word of a choice."""
Kind = Literal["histogram", "rate", "count", "fit"]
Unit = Literal["bytes", "operations", "ns", "percent", "count", "trace"]
"""trace: the number that stands for one (see cadge_results.formats.trace)."""
Better = Literal["low", "high"]
RATE_UNITS = ("MB/s", "1/s")


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


class DeclaredInteger(Frozen):
    """A number's limits, as a launch file declares them."""

    type: Literal["integer"]
    min: int
    max: int


class DeclaredChoice(Frozen):
    """The words of a choice, as a launch file declares them."""

    type: Literal["choice"]
    values: tuple[str, ...]


Declared = Annotated[DeclaredInteger | DeclaredChoice, Field(discriminator="type")]


class Parameter(Frozen):
    """One value that a workload is measured with. Its limits stand here and nowhere else.

    Without `default` and `follows` a sweep has to give it.
    """

    title: str = Field(min_length=1)
    type: Literal["integer", "choice"] = "integer"
    unit: Unit | None = None
    min: int | None = None
    max: int | None = None
    values: tuple[Annotated[str, Field(pattern=CHOICE)], ...] = ()
    """The words of a choice."""
    default: Value | None = None
    follows: str | None = None
    """The parameter whose value it has unless a sweep gives another; `same` in a sweep."""
    ranks: Value | None = None
    """The value by which layers are ranked: points with another are shown beside, and rank nothing."""
    unless: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The parameter that replaces this one: where that one is not at its default, this one is, and says nothing."""
    of: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The rate, measured in the same attempt, of which this is a share."""
    say: str = "{title} {value}"
    """How a sentence names the value."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.type == "integer":
            if self.unit is None or self.min is None or self.max is None or self.values:
                raise ValueError("an integer has unit, min and max, and no values")
            if not 0 <= self.min <= self.max < 2**63:
                raise ValueError("0 <= min <= max < 2^63 does not hold")
        elif not self.values or self.unit is not None or self.min is not None or self.max is not None:
            raise ValueError("a choice has values, and no unit, min or max")
        if len(set(self.values)) != len(self.values):
            raise ValueError("a value is given twice")
        if self.default is not None and self.follows is not None:
            raise ValueError("either default or follows can be given")
        for name, value in (("default", self.default), ("ranks", self.ranks)):
            if value is not None and (why := self.refuse(value)):
                raise ValueError(f"{name}: {why}")
        return self

    @property
    def is_required(self) -> bool:
        """True where a sweep has to give a value."""
        return self.default is None and self.follows is None

    def refuse(self, value: Value) -> str | None:
        """Return why a value is not allowed, or None."""
        if self.type == "choice":
            return None if value in self.values else f"{value!r} is not one of {', '.join(self.values)}"
        if not isinstance(value, int) or self.min is None or self.max is None:
            return f"{value!r} is not a number"
        unit = "" if self.unit == "count" else f" {self.unit}"
        if value > self.max:
            return f"{value} is more than the maximum of {self.max}{unit}"
        return f"{value} is less than the minimum of {self.min}{unit}" if value < self.min else None

    def limits(self) -> DeclaredInteger | DeclaredChoice:
        """Return type and limits as a launch file declares them."""
        if self.min is None or self.max is None:
            return DeclaredChoice(type="choice", values=self.values)
        return DeclaredInteger(type="integer", min=self.min, max=self.max)


LESS_ONE = " - 1"
Number = NonNegativeInt | str
"""A number, the name of an integer parameter, or `NAME - 1`."""
ByOne = dict[str, dict[str, Number]]
ByChoice = dict[str, dict[str, Number | ByOne]]
"""A number that depends on a choice: {choice: {word: number}}, with every word of that one choice.

One of these may depend on another choice in the same way.
"""

When = dict[str, Value]


class Role(Frozen):
    """A part that endpoints play. Numbers are given in the order of the roles."""

    count: PositiveInt | str = 1
    """How many endpoints, or the name of the integer parameter that says so."""
    when: dict[str, Value] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The role is there only where these values hold."""
    peers: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Roles to whose endpoints it has channels, or `neighbours`: the previous and the next of its own, in a ring.

    One that stands there twice has two channels to each of this role's endpoints, and has to list it twice as well.
    """
    paired: bool = False
    """It has channels only to the endpoint of the same number in each of those roles, which are paired as well."""
    hosts: Literal["first", "others", "all", "spread"] = "all"
    """On the first host, on the others in turn (the first where it is the only one), or on all in turn.

    `spread`: on all in turn, the first at last, so that it is shared with whoever is there only where hosts are few.
    """
    acts: bool | When
    """It runs the measuring loop, always or where the parameters are these; others serve until told to stop."""
    threads: PositiveInt | str | ByChoice = 1
    """Threads, each with a context and a processor of its own, or the name of the parameter that says so.

    Or either by a choice: `threads: {step: {one_for_all: 1, one_each: clients}}`.
    """
    hands: NonNegativeInt | str | ByChoice = Field(default=0, exclude_if=lambda value: value == 0)
    """Threads beside those, which have no context of their own; also by the name of a parameter, or by a choice.

    In poll mode each spins on a processor of its own; in block mode they sleep, and the layer has to have a descriptor
    (EVENT_FD).
    """
    own_loop: bool = Field(default=False, exclude_if=lambda value: not value)
    """It has an event loop of its own, which holds the layer; in block mode that takes its descriptor (EVENT_FD)."""


class Quantity(Frozen):
    """Something measured.

    histogram: samples in ns, shown as quantiles, one p50 a launch. rate: an amount and the time that it took; `MB/s` is
    of bytes, `1/s` of anything counted; several endpoints' rates are added. count: a whole number an attempt, added
    over endpoints. fit: a real number an attempt; of several endpoints the median.
    """

    title: str = Field(min_length=1)
    kind: Kind
    unit: str = Field(min_length=1)
    better: Better
    per: Literal["launch"] = Field(default="launch", exclude=True)
    """Said by patterns of older campaigns; launches are the unit of replication in all."""
    head: str = ""
    """Heading of its column; p50 for a histogram and the title otherwise where it is not given."""
    caveat: str = Field(default="", exclude_if=lambda value: not value)
    """Of a count: what the figures of an attempt do not say in which it is not 0.

    Such attempts are counted, row by row and in the notes; it has no column.
    """

    absent: str = Field(default="", exclude_if=lambda value: not value)
    """Why a row may have no value of it."""
    detail: bool = Field(default=False, exclude_if=lambda value: not value)
    """It stands in a second table, which a reader opens, with what else is not looked at first."""

    @model_validator(mode="after")
    def _unit_fits(self) -> Self:
        if self.kind == "histogram" and self.unit != "ns":
            raise ValueError("a histogram is in ns")
        if self.kind == "rate" and self.unit not in RATE_UNITS:
            raise ValueError(f"a rate is in {' or '.join(RATE_UNITS)}")
        if self.caveat and self.kind != "count":
            raise ValueError("a caveat is of a count")
        return self

    @property
    def heading(self) -> str:
        """The heading of its column."""
        return self.head or ("p50" if self.kind == "histogram" else self.title)


def leaves(number: Number | ByOne | ByChoice) -> Iterator[int | str]:
    """Return every number that one by a choice may be."""
    if not isinstance(number, dict):
        yield number
        return
    for words in number.values():
        for one in words.values():
            yield from leaves(one)


def holds(when: Mapping[str, Value], workload: Workload) -> bool:
    """Tell whether a workload has all of these values."""
    return all(workload.values.get(name) == value for name, value in when.items())


def plain(parameter: Parameter, value: Value) -> str:
    """Return a value for a line of text: a number with its unit, a word with blanks."""
    if isinstance(value, str):
        return value.replace("_", "-")
    if parameter.unit == "trace":
        return trace_text(value)
    signs = {"bytes": " B", "ns": " ns", "percent": " %"}
    return f"{value}{signs.get(parameter.unit or '', '')}"
