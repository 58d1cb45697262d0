# SPDX-License-Identifier: BSD-3-Clause
"""The layer file: what is known of a layer before anything of it is built (`cadge.layer/1`)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cadge_results.formats.base import Document, Frozen, Launcher, Place, Right, Wait
from cadge_results.formats.point import Value, Workload
from cadge_results.formats.reason import Reason


class LimitWhen(Frozen):
    """Which points a limit refuses: all given keys have to match."""

    place: Place | None = None
    wait: Wait | None = None
    pattern: str | None = None
    parameters: dict[str, Value] = Field(default_factory=dict)
    """Values that a workload must have, by the name of the parameter; one without it does not match."""
    min_bytes: NonNegativeInt | None = None
    """Matches where a message has at least that many bytes."""


class Limit(Frozen):
    """A reason, found by test, for which points are refused without trying."""

    when: LimitWhen
    reason: str = Field(min_length=1)
    reason_code: Reason | None = None


class Contexts(Frozen):
    """How many contexts of a layer a host bears, where its devices or its kernel have no more of something."""

    a_host: PositiveInt
    reason: str = Field(min_length=1)


class KnownFault(Frozen):
    """A conformance test that a library itself fails, now and then or always, with what it does then.

    The reason is shown wherever the test would fail; nothing else of the layer is excused.
    """

    test: str = Field(pattern=r"^[a-z_]+$")
    place: Place | None = Field(default=None, exclude_if=lambda value: value is None)
    over: Literal["verbs"] | None = Field(default=None, exclude_if=lambda value: value is None)
    """In the place of a place: over this transport alone, which a setting asks for (`ci/rdma/run`)."""
    reason: str = Field(min_length=1)
    provider: str = Field(default="", pattern=r"^[a-z]*$")
    """The library whose fault it is, as providers name it: only layers on its providers have it. "": all have it."""

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        if (self.place is None) == (self.over is None):
            raise ValueError("a known fault has a place, or the transport that it is over")
        return self


class Packages(Frozen):
    """Debian packages that the layer needs; `build` includes what `run` needs."""

    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()


class Native(Frozen):
    """A native tool that `cadge crosscheck` runs beside a layer, and the pattern that does the same."""

    tool: str = Field(min_length=1)
    """The tool with its test, as cadge_harness.native calls it."""
    pattern: str
    parameters: dict[str, Value] = Field(default_factory=dict)
    """Values of the pattern's parameters, where its usual ones do something else."""
    places: tuple[Place, ...] = ("within", "between")
    usual: bool = True
    """Whether it is run unless tools are chosen: one tool a pattern and way to wait will do."""
    more: str = ""
    """What Cadge does more than the tool here, where it is not the same."""
    note: str = ""
    """What else a reader has to know of this pair."""


class BesideNative(Frozen):
    """What share of a plain program's figure over the same library a layer has, where `cadge crosscheck` found one.

    Ranked points of these workloads are marked with it: of a rate a ratio below 1 is a tax, of a time one above 1.
    """

    pattern: str
    parameters: dict[str, Value] = Field(default_factory=dict)
    """Values that a workload must have, by the name of the parameter; one without it does not match."""
    places: tuple[Place, ...] = ("within", "between")
    bytes_max: NonNegativeInt
    """Of messages up to this size."""
    ratio: tuple[float, float]
    """Cadge's figure divided by the plain program's: the lowest and the highest that was found."""
    command: str = Field(pattern=r"^cadge crosscheck\b", examples=["cadge crosscheck --layers mpi-p2p"])
    """What measures it on the reader's machine."""
    measured: str = Field(min_length=1)
    """When, and with which versions."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.ratio[0] <= self.ratio[1]:
            raise ValueError("ratio: 0 < low <= high does not hold")
        return self

    def matches(self, workload: Workload, place: str, moved: tuple[int, ...]) -> bool:
        """Tell whether it is known of such a point. moved: the bytes of each message of an operation."""
        return (
            workload.pattern == self.pattern
            and place in self.places
            and max(moved, default=0) <= self.bytes_max
            and all(workload.values.get(name) == value for name, value in self.parameters.items())
        )


class LayerFile(Document):
    """One layer: `layers/<style>/<substrate>.layer.yml`."""

    NAME: ClassVar[str] = "cadge.layer"

    title: str
    style: str = Field(pattern=r"^[a-z0-9]+$")
    substrate: str = Field(pattern=r"^[a-z0-9]+$")
    library: str
    licence: str
    rpc: Literal["native", "emulated"]
    launcher: Launcher = "direct"
    reliable: bool = True
    places: tuple[Place, ...]
    packages: Packages = Field(default_factory=Packages)
    limits: tuple[Limit, ...] = ()
    contexts: Contexts | None = Field(default=None, exclude_if=lambda value: value is None)
    """Each thread of each endpoint has a context; points that need more of them on a host are refused."""
    rights: tuple[Right, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What its processes need to be opened, beside what any user may do, in the words of setpriv(1)."""
    ipv4_only: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether it cannot reach another host by an IPv6 address; points between such hosts are refused."""
    known_faults: tuple[KnownFault, ...] = Field(
        default=(), examples=[[{"test": "peer_dies", "place": "within", "reason": "it hangs in foo_send"}]]
    )
    variables: tuple[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_$")], ...] = ()
    """How the names of the environment variables begin that steer its library, and that a sweep may set."""
    natives: tuple[Native, ...] = Field(default=(), exclude_if=lambda value: not value)
    beside_native: tuple[BesideNative, ...] = Field(default=(), exclude_if=lambda value: not value)
    """By how much it is known to lie off a plain program over the same library."""
    publish: bool = Field(default=True, exclude_if=lambda value: value)
    """Whether its figures may be published; `publish_reason` says why not, as its licence has it."""
    publish_reason: str = Field(default="", exclude_if=lambda value: not value)
    notes: str = ""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.publish == bool(self.publish_reason):
            raise ValueError("publish: no needs a publish_reason, and no other layer has one")
        return self

    @property
    def name(self) -> str:
        """The layer's name, `style-substrate`."""
        return f"{self.style}-{self.substrate}"
