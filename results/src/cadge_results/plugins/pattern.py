# SPDX-License-Identifier: BSD-3-Clause
"""The pattern file: a workload as a plug-in (`harness/patterns/NAME/NAME.pattern.yml`, `cadge.pattern/1`).

It holds what people read and what every other part needs: parameters with their limits, quantities, roles, axis, floor
and words. Planner, store, export, tables, charts and sentences read it; none of them knows a pattern by name. The forms
of floors (`harness/floors/FORM.pattern.yml`) are described in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from cadge_results.formats.base import Document, Frozen, Place, Wait
from cadge_results.formats.point import WORD, Value, Workload
from cadge_results.formats.reason import Reason
from cadge_results.formats.trace import trace_text

ENDPOINTS_MAX = 64
RESERVED = frozenset({"pattern", "zip", "places", "waits", "layers", "place", "wait", "duration"})
"""Keys of a sweep's entries, which no parameter may have as its name."""

NEIGHBOURS = "neighbours"
FOLLOWS = "follows"

Name = Annotated[str, Field(pattern=WORD)]
Capability = Annotated[str, Field(pattern=r"^[A-Z][A-Z_]*$")]
"""A capability of the contract, without its prefix."""
CHOICE = r"^[a-z][a-z0-9_+]*$"
"""A word of a choice."""
Kind = Literal["histogram", "rate", "count", "fit"]
Unit = Literal["bytes", "operations", "ns", "percent", "count", "trace"]
"""trace: the number that stands for one (see cadge_results.formats.trace)."""
Better = Literal["low", "high"]
RATE_UNITS = ("MB/s", "1/s")
Say = Callable[["Parameter", Value], str]


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


class Constraint(Frozen):
    """Combinations that exist: where `when` holds, `then` has to hold; all others are left out of a matrix."""

    when: When
    then: When


class Need(Frozen):
    """What a layer has to have (capabilities of the contract, without their prefix) where `when` holds."""

    when: When = Field(default_factory=dict)
    caps: tuple[Capability, ...] = Field(min_length=1)


class PointLimit(Frozen):
    """What points have to be where `when` holds; all others are refused without trying, with this reason.

    Only over these layers, in these wait modes, with a number of at most so much: what is not given is not asked.
    """

    when: When
    layers: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    most: dict[str, NonNegativeInt] = Field(default_factory=dict)
    reason: str = Field(min_length=1)
    reason_code: Reason = Reason.NO_CAP

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not (self.layers or self.waits or self.most):
            raise ValueError("a limit has layers, waits or most")
        return self

    def allows(self, layer: str, wait: Wait, workload: Workload) -> bool:
        """Tell whether such a point is as it has to be."""
        return not holds(self.when, workload) or (
            (not self.layers or layer in self.layers)
            and (not self.waits or wait in self.waits)
            and all(workload.integer(name) <= most for name, most in self.most.items())
        )


class Replays(Frozen):
    """Points that replay a trace, which `cadge run --trace` makes from the log of a web server."""

    when: When = Field(min_length=1, max_length=1)
    """The word of a choice that asks for it. Where a sweep gives no word, and the user a log, it is taken."""
    by: Name
    """The parameter that says which trace; the planner fills it in."""
    decides: tuple[Name, ...] = ()
    """Parameters that mean nothing where a trace is replayed; constraints keep them at their defaults."""
    files_max: PositiveInt
    min_bytes: PositiveInt
    max_bytes: PositiveInt
    """Of a file: shorter ones are lengthened, longer ones shortened, and both counted."""


class Program(Frozen):
    """A program beside the build that hosts have to have where `when` holds, and the package that brings it.

    A host without it refuses such points.
    """

    when: When
    program: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._+-]*$")]
    package: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")]


class Alike(Frozen):
    """A value that a point must have to be compared with its floor, and what is said of one that has another."""

    is_: Value = Field(alias="is")
    """`follows`: the value of the parameter that it follows."""
    otherwise: str = Field(min_length=1)


class FloorRule(Frozen):
    """Which of the machine's limits belongs beside a point.

    A floor of `form` is measured for each value of the parameters in `sizes`, with the values of those in `carry`; a
    point is divided by the one at its first size, of the same choices, where it is `alike`. `none` says why there is
    nothing to divide by.
    """

    form: Name | None = None
    sizes: tuple[Name, ...] = ()
    carry: tuple[Name, ...] = ()
    alike: dict[str, Alike] = Field(default_factory=dict)
    none: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.form is None) != (not self.sizes):
            raise ValueError("form and sizes belong together")
        if self.form is None and self.none is None:
            raise ValueError("give form and sizes, or say in none why there is no floor")
        return self


class Copied(Frozen):
    """Of a form of floors: above a size, where a floor copies, an operation is so many bounced lines and its bytes.

    The bytes are taken at the best rate that any floor which copies reached in that place and wait mode.
    """

    above_bytes: PositiveInt
    lines: NonNegativeInt
    """Bounced lines that an operation waits for; 0 where operations follow one another without waiting."""


class FitsOf(Frozen):
    """A model that the pattern's points are measured for: which one, and what its inputs are called here.

    The first three are parameters: size of a message, how many a burst has, and the delay between them in percent of a
    single round trip. The others are quantities, histograms of times: of a burst until its answer; of a single message
    until its answer, in the same attempt; of a burst less its delays; of taking a message that is there. Points without
    a delay give the first two, points with one all four.
    """

    # cadge: another loggp, the model
    model: Literal["loggp"]
    bytes: Name
    messages: Name
    delay: Name
    burst: Name
    single: Name
    undelayed: Name
    receive: Name

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.bytes, self.messages, self.delay

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return self.burst, self.single, self.undelayed, self.receive


class Baseline(Frozen):
    """A value of a choice: points with another are also divided by the point that has this one and is alike."""

    parameter: Name
    value: Value


class KneeRule(Frozen):
    """Of a pattern whose axis is a load: what the highest load is that a layer bears, its knee.

    That is the highest value of the axis at which the p99 of the main quantity, a histogram, is at most `times` the one
    at `rest`, and the rate `achieved` is at least the `share` of the rate `offered`.
    """

    rest: PositiveInt
    times: PositiveInt
    offered: Name
    achieved: Name
    share: float = Field(gt=0, le=1)
    generator: Name
    """The style of the layer that does nothing: what is achieved over it at most is what can be offered at most."""
    marked: float = Field(gt=0, le=1)
    """Offered rates above this share of that limit are marked."""


class LoadRule(Frozen):
    """Of a pattern that is offered a load: its points are compared at one load alone.

    That is so where the rate `offered` of no launch is above that of another one by more than `within`, a share; or
    where the parameter `given`, which replaces a share of what the layer itself can do, says how much is offered.
    """

    offered: Name
    given: Name
    within: float = Field(gt=0, lt=1)


class Unclocked(Frozen):
    """This pattern is the bare loop of another one: the same messages, timed by the batch, and nothing else.

    `parameter` says whether each message is looked at, as the other pattern does: the values `bare` and `looking`.
    """

    of: Name
    batch: PositiveInt
    """So many round trips are one sample."""
    parameter: Name
    bare: Value
    looking: Value


class Behind(Frozen):
    """Messages that an operation has to wait for, each of so many bytes."""

    bytes: Name
    messages: Name


class Modelled(Frozen):
    """An operation as a model of messages has it, where `when` holds.

    `messages` are the parameters that say how large each is, one after the other. What else takes time: `works`, the
    parameter that says how long a handler works; `clients`, the one that says how many ask one server, which answers
    one after the other; `all_to_all`, the one that says how many send a message to each other one; `behind`, what is on
    the way before it. To the model the numbers in `apart` make no difference.
    """

    when: When = Field(default_factory=dict)
    messages: tuple[Name, ...] = Field(min_length=1)
    works: Name | None = None
    clients: Name | None = None
    all_to_all: Name | None = None
    behind: Behind | None = None
    apart: tuple[Name, ...] = ()

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the parameters that are sizes."""
        return (*self.messages, *((self.behind.bytes,) if self.behind else ()))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters that the model knows of."""
        named = (
            self.works,
            self.clients,
            self.all_to_all,
            *((self.behind.bytes, self.behind.messages) if self.behind else ()),
        )
        return (*self.when, *self.messages, *(name for name in named if name is not None), *self.apart)


class Measures(Frozen):
    """The page that `cadge patterns NAME` prints: what is measured, and how."""

    clock: str = Field(min_length=1)
    side: str = Field(min_length=1)
    synchronised: str = Field(min_length=1)
    reduced: str = Field(min_length=1)


class FirstScreen(Frozen):
    """Whether a report answers for this pattern at its top, and at which value of the axis (or the nearest).

    Patterns of rank 1 stand in where none of rank 0 with the same better direction was measured.
    """

    at: int = 0
    rank: Literal[0, 1] = 1
    waits: tuple[Literal["poll", "block"], ...] = ("poll", "block")


class Words(Frozen):
    """Sentences. {name} stands for a parameter's value; [...] is left out where all in it are at their defaults.

    Where a trace is replayed, both [...] and [!...] are left out where it decides all in it.
    """

    workload: str = ""
    """A point in words; the axis and what is not at its default where it is not given."""
    figure: str = ""
    """Title of a figure."""
    axis: str = ""
    """Title of the vertical axis."""
    unit: str = ""
    """What stands in the short table."""
    marker: str = ""
    """What a marker of a figure is."""
    best: str = ""
    """What the best layer does: has the lowest median, is fastest."""
    timed: str = ""
    """What is timed, for the section on method."""
    operations: str = "operations/s"
    work: str = "message"
    """Under which of the layer's operations `done by` is looked up: its name, or {parameter}."""

    @property
    def names_work(self) -> bool:
        """Tell whether the operation depends on the workload, and so says more than the pattern's title."""
        return bool(_PLACEHOLDER.search(self.work))


_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_SECTION = re.compile(r"\[(!?)([^\[\]]*)\]")


class PatternFile(Document):
    """One pattern, or one form of floors."""

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
    copied: Copied | None = Field(default=None, exclude_if=lambda value: value is None)
    fits: FitsOf | None = Field(default=None, exclude_if=lambda value: value is None)
    modelled_as: tuple[Modelled, ...] = Field(default=(), exclude_if=lambda value: not value)
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
    unclocked: Unclocked | None = Field(default=None, exclude_if=lambda value: value is None)
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
    def takes(self) -> float:
        """How much time a point takes for each second for which it is measured."""
        return 1 + self.warmup_percent / 100

    @property
    def main(self) -> str:
        """Name of the main quantity."""
        return next(iter(self.quantities))

    @property
    def main_quantity(self) -> Quantity:
        """The quantity that is drawn and compared."""
        return self.quantities[self.main]

    @cached_property
    def byte_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that are sizes."""
        return tuple(name for name, one in self.parameters.items() if one.unit == "bytes")

    @cached_property
    def size_parameter(self) -> str | None:
        """The parameter that says how long a message is: the axis, or where that is no size, what is moved first."""
        sizes = self.byte_parameters
        moved = [name for name in self.moves if name in sizes]
        return next((name for name in (self.axis, *moved) if name in sizes), None)

    @cached_property
    def reading_order(self) -> tuple[str, ...]:
        """Names of the parameters as rows are sorted by them.

        Choices, other numbers, the axis, what follows it; last what has a value that ranks, so that points with another
        stand beside those with that one.
        """

        def rank(name: str) -> int:
            one = self.parameters[name]
            if one.ranks is not None:
                return 4
            if one.type == "choice":
                return 0
            if name == self.axis:
                return 2
            return 3 if one.follows == self.axis else 1

        return tuple(sorted(self.parameters, key=rank))

    def workload(self, name: str, given: Mapping[str, Value]) -> Workload:
        """Return a workload of this pattern, called `name`, defaults filled in. Raises ValueError."""
        values: dict[str, Value] = {}
        unknown = sorted(set(given) - set(self.parameters))
        if unknown:
            raise ValueError(f"{name} has no parameter {unknown[0]}; it has {', '.join(self.parameters)}")
        for key, one in self.parameters.items():
            value = given.get(key, one.default)
            if value is None and one.follows is not None:
                leader = self.parameters[one.follows]
                value = given.get(one.follows, leader.default)
            if value is None:
                raise ValueError(f"{name} needs {key}")
            values[key] = value
        self.check(name, values)
        return Workload(pattern=name, parameters=tuple(sorted(values.items())))

    def check(self, name: str, values: Mapping[str, Value]) -> None:
        """Raise ValueError where names or values are not those that this pattern, called `name`, has."""
        for key in [*self.parameters, *values]:
            if key not in values:
                raise ValueError(f"{name}: {key} is missing")
            if key not in self.parameters:
                raise ValueError(f"{name} has no parameter {key}")
            if why := self.parameters[key].refuse(values[key]):
                raise ValueError(f"{name}: {key}: {why}")

    def exists(self, workload: Workload) -> bool:
        """Tell whether a combination of values is one that the pattern has."""
        kept = all(self.is_usual(name, workload) for name in self.replaced(workload))
        return kept and all(holds(one.then, workload) for one in self.constraints if holds(one.when, workload))

    def replaced(self, workload: Workload) -> tuple[str, ...]:
        """Return the parameters that another one replaces here."""
        return tuple(
            name for name, one in self.parameters.items() if one.unless and not self.is_usual(one.unless, workload)
        )

    def calls_are_native(self, caps: Collection[str]) -> bool:
        """Tell whether a layer that grants these capabilities carries out the operations with calls of its own."""
        return {"RPC", *self.call_caps} <= set(caps)

    def baseline_of(self, workload: Workload) -> Workload | None:
        """Return the workload that one is divided by; None where it is such a one itself, or there is none.

        It is alike but for what a constraint asks for where the baseline's value holds.
        """
        if self.baseline is None or workload[self.baseline.parameter] == self.baseline.value:
            return None
        own = {self.baseline.parameter: self.baseline.value}
        values = {**workload.values, **own}
        for one in self.constraints:
            if one.when == own:
                values |= one.then
        made = Workload(pattern=workload.pattern, parameters=tuple(sorted(values.items())))
        return made if self.exists(made) else None

    def does_replay(self, workload: Workload) -> bool:
        """Tell whether a workload replays a trace."""
        return self.replays is not None and holds(self.replays.when, workload)

    def caps_needed(self, workload: Workload) -> tuple[str, ...]:
        """Return the capabilities that a layer needs for a workload."""
        return tuple(cap for need in self.needs if holds(need.when, workload) for cap in need.caps)

    def number(self, value: int | str | ByOne | ByChoice, workload: Workload) -> int:
        """Return a number that is given as it is, by a parameter's name, or either by a choice."""
        if isinstance(value, dict):
            [(choice, words)] = value.items()
            return self.number(words[str(workload[choice])], workload)
        if isinstance(value, int):
            return value
        return workload.integer(value.removesuffix(LESS_ONE)) - value.endswith(LESS_ONE)

    def count_of(self, name: str, workload: Workload) -> int:
        """Return how many endpoints play a role; none where it is not there."""
        role = self.roles[name]
        return self.number(role.count, workload) if holds(role.when, workload) else 0

    def roles_of(self, workload: Workload) -> tuple[str, ...]:
        """Return the roles that are there."""
        return tuple(name for name, role in self.roles.items() if holds(role.when, workload))

    def is_usual(self, name: str, workload: Workload) -> bool:
        """Tell whether a parameter is at its default, or has the value of the one that it follows."""
        one = self.parameters[name]
        if one.follows is not None:
            return workload[name] == workload[one.follows]
        return one.default is not None and workload[name] == one.default

    def does_rank(self, workload: Workload) -> bool:
        """Tell whether layers are ranked by such a point, or it only stands beside."""
        return all(one.ranks is None or workload[name] == one.ranks for name, one in self.parameters.items())

    def moved_bytes(self, workload: Workload) -> tuple[int, ...]:
        """Return the bytes of each message of an operation."""
        return tuple(workload.integer(name) for name in self.moves or self.byte_parameters)

    def deep(self, workload: Workload) -> int:
        """Return how many operations are under way at a time."""
        return workload.integer(self.outstanding) if self.outstanding else 1

    def fill(self, template: str, workload: Workload, say: Say) -> str:
        """Return a template with the values of a workload; what is usual in [...] is left out.

        So is what a trace decides, where one is replayed, and what another parameter replaces; in [!...] only that is.
        """
        decided = self.replaced(workload)
        if self.replays is not None and self.does_replay(workload):
            decided += self.replays.decides

        def section(match: re.Match[str]) -> str:
            always, text = match[1], match[2]
            names = _PLACEHOLDER.findall(text)
            goes = (name in decided or (not always and self.is_usual(name, workload)) for name in names)
            return "" if all(goes) else text

        def value(match: re.Match[str]) -> str:
            return say(self.parameters[match[1]], workload[match[1]])

        return _PLACEHOLDER.sub(value, _SECTION.sub(section, template))

    @cached_property
    def workload_words(self) -> str:
        """The template of a point in words."""
        if self.words.workload:
            return self.words.workload
        said = []
        for name, one in self.parameters.items():
            if name == self.axis:
                continue
            text = one.say.replace("{title}", one.title).replace("{value}", f"{{{name}}}")
            said.append(f", {text}" if one.is_required else f"[, {text}]")
        return f"{{{self.axis}}}{''.join(said)}"

    @model_validator(mode="after")
    def _names_known(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        yield from self._parameter_problems()
        yield from self._role_problems()
        sizes = (*self.floor.sizes, *self.moves)
        for what, names in (
            ("axis", (self.axis,)),
            ("family", self.family),
            ("floor", (*self.floor.sizes, *self.floor.carry, *self.floor.alike)),
            ("moves", self.moves),
            ("outstanding", (self.outstanding,) if self.outstanding else ()),
            ("fits", self.fits.parameters if self.fits else ()),
            ("modelled_as", tuple(name for one in self.modelled_as for name in one.parameters)),
        ):
            yield from (f"{what}: there is no parameter {name}" for name in names if name not in self.parameters)
        numbers = (self.axis, *self.family, *((self.outstanding,) if self.outstanding else ()))
        for name in numbers:
            if self.parameters[name].type != "integer":
                yield f"{name} is a choice, and a number was expected"
        yield from self._fit_problems()
        yield from self._modelled_problems()
        for name in sizes:
            if self.parameters[name].unit != "bytes":
                yield f"{name} is no size in bytes"
        for name, alike in self.floor.alike.items():
            if alike.is_ == FOLLOWS and self.parameters[name].follows is None:
                yield f"floor: {name} follows nothing"
        if self.baseline is not None:
            one = self.parameters.get(self.baseline.parameter)
            if one is None or one.type != "choice":
                yield f"baseline: there is no choice {self.baseline.parameter}"
            elif why := one.refuse(self.baseline.value):
                yield f"baseline: {self.baseline.parameter}: {why}"
        if self.knee is not None:
            yield from self._knee_problems(self.knee)
        if self.one_load is not None:
            yield from self._load_problems(self.one_load)
        if self.unclocked is not None:
            yield from self._unclocked_problems(self.unclocked)
        if self.replays is not None:
            yield from self._replay_problems(self.replays)
        if self.main_quantity.caveat or self.main_quantity.detail:
            yield f"quantities: {self.main} is the main one, and cannot be a caveat or a detail"
        for text in (self.words.workload, self.words.figure, self.words.work):
            for name in _PLACEHOLDER.findall(text):
                if name not in self.parameters:
                    yield f"words: there is no parameter {name}"

    def _unclocked_problems(self, rule: Unclocked) -> Iterator[str]:
        if self.main_quantity.kind != "histogram":
            yield f"unclocked: {self.main} is the main quantity, and has no samples"
        parameter = self.parameters.get(rule.parameter)
        if parameter is None:
            yield f"unclocked: there is no parameter {rule.parameter}"
            return
        for value in (rule.bare, rule.looking):
            if why := parameter.refuse(value):
                yield f"unclocked: {rule.parameter}: {why}"

    def _modelled_problems(self) -> Iterator[str]:
        for one in self.modelled_as:
            wanted = {**dict.fromkeys(one.sizes, "bytes"), **({one.works: "ns"} if one.works else {})}
            for name, unit in wanted.items():
                if name in self.parameters and self.parameters[name].unit != unit:
                    yield f"modelled_as: {name} is not in {unit}"

    def _fit_problems(self) -> Iterator[str]:
        if self.fits is None:
            return
        for name in self.fits.quantities:
            if name not in self.quantities:
                yield f"fits: there is no quantity {name}"
            elif self.quantities[name].kind != "histogram":
                yield f"fits: {name} is no histogram"
        for name, unit in zip(self.fits.parameters, ("bytes", "count", "percent"), strict=True):
            if name in self.parameters and self.parameters[name].unit != unit:
                yield f"fits: {name} is not in {unit}"

    def _replay_problems(self, rule: Replays) -> Iterator[str]:
        for name, word in rule.when.items():
            one = self.parameters.get(name)
            if one is None or one.type != "choice":
                yield f"replays: there is no choice {name}"
            elif why := one.refuse(word):
                yield f"replays: {name}: {why}"
        number = self.parameters.get(rule.by)
        if number is None or number.unit != "trace" or number.default != 0:
            yield f"replays: {rule.by} is no parameter with the unit trace whose default is 0"
        for name in rule.decides:
            given = self.parameters.get(name)
            if given is None or given.default is None:
                yield f"replays: there is no parameter {name} that has a default"
            elif not any(one.when == rule.when and one.then.get(name) == given.default for one in self.constraints):
                yield f"replays: no constraint keeps {name} at its default"

    def _knee_problems(self, rule: KneeRule) -> Iterator[str]:
        if self.main_quantity.kind != "histogram":
            yield f"knee: {self.main} is the main quantity, and has no p99"
        for name in (rule.offered, rule.achieved):
            if name not in self.quantities or self.quantities[name].kind != "rate":
                yield f"knee: there is no rate {name}"
        if why := self.parameters[self.axis].refuse(rule.rest):
            yield f"knee: rest: {why}"

    def _load_problems(self, rule: LoadRule) -> Iterator[str]:
        if rule.offered not in self.quantities or self.quantities[rule.offered].kind != "rate":
            yield f"one_load: there is no rate {rule.offered}"
        if not any(one.of is not None and one.unless == rule.given for one in self.parameters.values()):
            yield f"one_load: {rule.given} replaces no share of a rate"

    def _parameter_problems(self) -> Iterator[str]:
        for name, one in self.parameters.items():
            if name in RESERVED:
                yield f"parameters: {name} is a key of the sweep and cannot be a parameter"
            instead = self.parameters.get(one.unless) if one.unless is not None else None
            if one.unless is not None and (one.default is None or instead is None or instead.default is None):
                yield f"parameters: {name} and what replaces it, {one.unless}, have to have defaults"
            rate = self.quantities.get(one.of) if one.of is not None else None
            if one.of is not None and (one.unless is None or rate is None or rate.kind != "rate"):
                yield f"parameters: {name} is a share of {one.of}, which is no rate here, or nothing replaces it"
            leader = self.parameters.get(one.follows) if one.follows is not None else None
            if one.follows is not None and (leader is None or leader.follows or leader.type != one.type):
                yield f"parameters: {name} follows {one.follows}, which has no values of its own, or none of its type"
        conditions = [(one.when, one.then) for one in self.constraints]
        conditions += [(one.when, {}) for one in self.needs] + [(one.when, {}) for one in self.roles.values()]
        conditions += [(one.when, {}) for one in self.limits] + [(one.when, {}) for one in self.programs]
        conditions += [(role.acts, {}) for role in self.roles.values() if isinstance(role.acts, dict)]
        for part in conditions:
            for values in part:
                for name, value in values.items():
                    if name not in self.parameters:
                        yield f"there is no parameter {name}"
                    elif why := self.parameters[name].refuse(value):
                        yield f"{name}: {why}"

        for name in (name for one in self.limits for name in one.most):
            if getattr(self.parameters.get(name), "type", "") != "integer":
                yield f"limits: there is no number {name} among the parameters"

    def _role_problems(self) -> Iterator[str]:
        names = list(self.roles)
        if not any(role.acts for role in self.roles.values()):
            yield "roles: one of them has to act"
        given: list[int | str] = [self.self_channels]
        for role in self.roles.values():
            given.append(role.count)
            threads = list(_leaves(role.threads))
            if 0 in threads or any(isinstance(one, str) and one.endswith(LESS_ONE) for one in threads):
                yield "roles: a role has one thread at least"
            for number in (role.threads, role.hands):
                yield from self._by_choice_problems(number)
                given += _leaves(number)
        for value in given:
            if (
                isinstance(value, str)
                and getattr(self.parameters.get(value.removesuffix(LESS_ONE)), "type", "") != "integer"
            ):
                yield f"roles: there is no number {value} among the parameters"
            elif isinstance(value, int) and value > ENDPOINTS_MAX:
                yield f"roles: {value} is more than {ENDPOINTS_MAX}"
        for name, role in self.roles.items():
            for peer in role.peers:
                if peer == NEIGHBOURS:
                    continue
                if peer not in names:
                    yield f"roles: {name} has peers {peer}, which is no role; there are {', '.join(names)}"
                elif name not in self.roles[peer].peers:
                    yield f"roles: {name} has channels to {peer}, but {peer} has none to {name}"
                elif role.peers.count(peer) != self.roles[peer].peers.count(name):
                    yield f"roles: {name} lists {peer} more often, or less, than {peer} lists {name}"
                elif role.paired and (not self.roles[peer].paired or role.count != self.roles[peer].count):
                    yield f"roles: {name} is paired with {peer}, which has to be paired, and as many"

    def _by_choice_problems(self, number: Number | ByOne | ByChoice) -> Iterator[str]:
        if not isinstance(number, dict):
            return
        if len(number) != 1:
            yield "roles: a number depends on one choice"
        for choice, words in number.items():
            parameter = self.parameters.get(choice)
            if parameter is None or parameter.type != "choice":
                yield f"roles: there is no choice {choice} among the parameters"
            elif set(words) != set(parameter.values):
                yield f"roles: a number by {choice} has to be given for each of {', '.join(parameter.values)}"
            for one in words.values():
                yield from self._by_choice_problems(one)


def _leaves(number: Number | ByOne | ByChoice) -> Iterator[int | str]:
    """Return every number that one by a choice may be."""
    if not isinstance(number, dict):
        yield number
        return
    for words in number.values():
        for one in words.values():
            yield from _leaves(one)


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


def declared(files: Mapping[str, PatternFile]) -> dict[str, dict[str, DeclaredInteger | DeclaredChoice]]:
    """Return types and limits of every parameter of some patterns, as a launch file declares them."""
    return {
        pattern: {name: parameter.limits() for name, parameter in file.parameters.items()}
        for pattern, file in files.items()
    }
