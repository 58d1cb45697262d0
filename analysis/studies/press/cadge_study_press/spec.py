# SPDX-License-Identifier: BSD-3-Clause
"""What a study says of an application on the layers: which parameters and quantities of its pattern mean what.

Names of parameters and quantities are those of the pattern's file. A parameter that the pattern of a campaign does not
have yet, or no longer, has the first value that is named here.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import Field, PositiveInt, model_validator

from cadge_analysis import messages
from cadge_analysis.study.plugin import Frozen

MESSAGES = Path(__file__).with_name("messages.yml")
"""The sentences of this study's code."""
say = partial(messages.say, MESSAGES)


class FilesOf(Frozen):
    """The means of a set of files: of a file, and of what is asked for."""

    file_bytes: PositiveInt
    reply_bytes: PositiveInt


class ParametersOf(Frozen):
    """Which parameter says what."""

    nodes: str
    cache_kib: str
    working_percent: str
    alpha_percent: str
    files: str
    disk_ns: str
    connections: str
    load: str
    """The share of what a closed loop reached, in percent, which is offered where no rate is given."""
    rate: str
    """The rate that is offered, in 1/s, the same to all; 0 where the share says how much."""


class QuantitiesOf(Frozen):
    """Which quantity says what; shares in percent, messages and bytes a request."""

    hits: str
    forwarded: str
    offered: str
    answered: str
    """Requests a second: what was offered, and what was answered."""
    files: str
    """Messages with files."""
    told: str
    """Messages that only say what is cached."""
    messages: tuple[str, ...] = Field(min_length=1)
    """All messages, by type."""
    bytes: str
    sleeps: str
    notified: str = ""
    """Those of the messages that only wake the receiver; a pattern need not have them."""
    steps: tuple[str, ...] = ()
    """What stands, before and after, with the gain of a version."""
    counts: tuple[str, ...]
    """What the table of counts shows, in its order."""


class VersionsOf(Frozen):
    """The parameter that says how the application uses a layer, and what its values are, in their order."""

    parameter: str
    values: dict[str, str] = Field(min_length=2)


class OutsideOf(Frozen):
    """The parameter that says whose servers run; ours is the value that is `own`, all others are an outside base."""

    parameter: str
    own: str


class MicroOf(Frozen):
    """The microbenchmark: calls whose request is the head of a message and whose reply is a file with its head."""

    pattern: str
    request: str
    reply: str
    head_bytes: PositiveInt
    apart: float = Field(gt=0)
    """A single size of reply stands for one that is not further away than this part of it."""


class ScaleOf(Frozen):
    """What is predicted: numbers of nodes, at which values of other parameters."""

    nodes: tuple[PositiveInt, ...] = Field(min_length=1)
    given: dict[str, int | str]
    processors: PositiveInt
    """Of each node, for itself."""
    faster: PositiveInt
    memory: PositiveInt
    """How many times as fast the processors of the next generation are, and how many times as large its memory."""


class FactorOf(Frozen):
    """One of the factors of a study: by versions, or by a setting: of a shim, or of the hosts' link."""

    name: str = Field(min_length=1)
    note: str = ""
    version_on: str = ""
    version_off: str = ""
    shim: str = ""
    setting: str = ""
    absent: str = Field(min_length=1)
    """What is said where no campaign has it."""


class SaidOf(Frozen):
    """The claims, and what was published of each."""

    ranking: str
    versions: str
    far_below: str


Sections = Literal[
    "answer", "ground", "processors", "price", "hits", "counts", "versions", "factors", "model", "further"
]


class SectionOf(Frozen):
    """What a section is called, and what stands under its heading."""

    title: str = Field(min_length=1)
    note: str = ""


class ApplicationOf(Frozen):
    """An application whose processes speak to each other over a layer, and what its sections are made of."""

    pattern: str
    parameters: ParametersOf
    quantities: QuantitiesOf
    role: str
    """Whose processors' time is a request's: all endpoints of this role together."""
    asker: str
    """Who asks, and shares the processors where there are not enough."""
    at: int
    """The value of the axis at which layers are ranked."""
    disks: PositiveInt
    """Of a node."""
    files: dict[str, FilesOf]
    versions: VersionsOf
    outside: OutsideOf
    base: str
    """The layer of the kernel that all others are compared with."""
    micro: MicroOf
    one_load: float = Field(gt=0)
    """Points are compared where their rates lie no further apart than this part of the lower one."""
    fit: tuple[dict[str, int], ...] = Field(min_length=1)
    """Points that the model is fitted to, at the usual load: everything else is as usual."""
    fit_loads: tuple[dict[str, int], ...] = ()
    """And those that it is fitted to at all other loads."""
    scale: ScaleOf
    factors: tuple[FactorOf, ...] = ()
    said: SaidOf
    sections: dict[Sections, SectionOf]

    @model_validator(mode="after")
    def _all_known(self) -> Self:
        if missing := sorted(set(get_args(Sections)) - set(self.sections)):
            raise ValueError(f"sections: {missing[0]} is missing")
        for factor in self.factors:
            for name in (factor.version_on, factor.version_off):
                if name and name not in self.versions.values:
                    raise ValueError(say("spec.no_version", factor=factor.name, version=name))
        return self
