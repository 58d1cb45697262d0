# SPDX-License-Identifier: BSD-3-Clause
"""The rules that a pattern file may have: what exists, what it needs, what it is held against, how it is said."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cadge_results.formats.base import Frozen, Wait
from cadge_results.formats.point import WORD, Value, Workload
from cadge_results.formats.reason import Reason
from cadge_results.plugins.parameter import When, holds

Name = Annotated[str, Field(pattern=WORD)]
Capability = Annotated[str, Field(pattern=r"^[A-Z][A-Z_]*$")]
"""A capability of the contract, without its prefix."""
FOLLOWS = "follows"
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


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


class FloorCondition(Frozen):
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
    alike: dict[str, FloorCondition] = Field(default_factory=dict)
    none: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.form is None) != (not self.sizes):
            raise ValueError("form and sizes belong together")
        if self.form is None and self.none is None:
            raise ValueError("give form and sizes, or say in none why there is no floor")
        return self


class CopyRule(Frozen):
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


class BareLoop(Frozen):
    """This pattern is the bare loop of another one: the same messages, timed by the batch, and nothing else.

    `parameter` says whether each message is looked at, as the other pattern does: the values `bare` and `looking`.
    """

    of: Name
    batch: PositiveInt
    """So many round trips are one sample."""
    parameter: Name
    bare: Value
    looking: Value


class MessagesAhead(Frozen):
    """Messages that an operation has to wait for, each of so many bytes."""

    bytes: Name
    messages: Name


class OperationModel(Frozen):
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
    behind: MessagesAhead | None = None
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
        return bool(PLACEHOLDER.search(self.work))
