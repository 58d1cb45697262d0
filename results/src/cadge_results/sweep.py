# SPDX-License-Identifier: BSD-3-Clause
"""The sweep file: what a campaign has to measure, as people write it (`cadge.sweep/2`).

A pattern's parameters are keys of its entries, by their names in the pattern's file, which alone says what they are;
what is written there is kept as it is until the planner reads it with that file. Where several parameters have several
values, every combination is made (a matrix); parameters named together in `zip` advance together instead. A list of
sizes that is used more than once gets a name under `vectors`. Places, wait modes and layers of a pattern's
entry go before those of the sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from cadge_results.base import Document, Frozen, Place, Wait
from cadge_results.point import WORD, label_of
from cadge_results.units import Bytes, Millis, Percent

POINT_MS_MIN = 20
"""No point is ever measured for less."""

LAUNCHES_MAX = 1000
"""More would tell nothing further: what launches differ by is known long before."""

EMULATED_HOSTS_MAX = 16

REPEATS_MAX = 9
"""A machine on which launches are still hindered then is not fit to measure on."""

TWIN_BY_SEED, TWIN_ALL, TWIN_NONE = "by seed", "all", "none"
"""Values of `twin` that are not a layer's name."""

ALL_LAYERS = "all"
"""Stands for every layer, in a sweep and on the command line."""

SAME = "same"
"""The value of a parameter that follows another: that one's."""


LOOKS_MAX = 20


def check_looks(looks: Sequence[int]) -> tuple[int, ...]:
    """Return numbers of launches after which a campaign can be looked at. Raises ValueError with what is wrong."""
    found = tuple(looks)
    if len(found) < 2:
        raise ValueError("one look is no sequence: name several, as in [9, 12, 18, 30], or launches alone")
    if any(after <= before for before, after in pairwise(found)):
        raise ValueError("looks are numbers of launches that rise, as in [9, 12, 18, 30]")
    if found[0] < 1 or found[-1] > LAUNCHES_MAX or len(found) > LOOKS_MAX:
        raise ValueError(f"looks are at most {LOOKS_MAX} numbers of launches from 1 to {LAUNCHES_MAX}")
    return found


def _first_look(given: dict[str, Any]) -> int:
    """Return the launches of a sweep that names looks in their place; 0 where it names none, or none that are right."""
    return next(iter(given.get("looks") or ()), 0)


def _launches_or_looks(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema what `_first_look` does: looks may stand in the place of launches."""
    schema["anyOf"] = [{"required": ["launches"]}, {"required": ["looks"]}]


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _groups(value: object) -> object:
    if not isinstance(value, list | tuple):
        return value
    return tuple(tuple(group) if isinstance(group, list) else group for group in value)


def _settings(value: object) -> object:
    """Write whole numbers as text, as the layers take them."""
    if not isinstance(value, dict):
        return value
    return {key: str(item) if type(item) is int else item for key, item in value.items()}


def _one_or_more(item: dict[str, object]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]})


Places = Annotated[
    tuple[Place, ...],
    Field(min_length=1),
    BeforeValidator(_listed),
    _one_or_more({"enum": ["self", "within", "between"]}),
]
Waits = Annotated[
    tuple[Wait, ...], Field(min_length=1), BeforeValidator(_listed), _one_or_more({"enum": ["poll", "block"]})
]

_VALUE: dict[str, object] = {"type": ["integer", "string"]}
_VALUES: dict[str, object] = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE, "minItems": 1}]}


def _parameters_are_keys(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema what `_gathered` does: any further key is a parameter."""
    del schema["properties"]["parameters"]
    schema["additionalProperties"] = _VALUES


class _WithParameters(Frozen):
    """An entry whose further keys are parameters of its pattern."""

    model_config = ConfigDict(json_schema_extra=_parameters_are_keys)

    parameters: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, raw: object) -> object:
        if not isinstance(raw, dict) or "parameters" in raw:
            return raw
        own = cls.model_fields.keys()
        return {key: value for key, value in raw.items() if key in own} | {
            "parameters": {key: value for key, value in raw.items() if key not in own}
        }


class LayerEntry(Frozen):
    """A layer under other than default conditions: wrapped in shims, or with settings of its own."""

    layer: str
    """A name, or a pattern with `*` that stands for every layer whose name matches."""
    shims: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Outermost first."""
    settings: Annotated[dict[str, str], BeforeValidator(_settings)] = Field(default_factory=dict)
    """Open-time options; those of a shim carry its name and a dot in front, environment variables `env.`.

    `link.rate`, written like 100Mbit, is the rate that the link between emulated hosts is given meanwhile.
    """
    places: Places | None = Field(default=None, exclude_if=lambda value: value is None)
    """Where it is measured, if not where the sweep says."""

    @property
    def label(self) -> str:
        """Name for people, as the subjects that are made of it have it."""
        return label_of(self.layer, self.shims, sorted(self.settings.items()))


def _layers(value: object) -> object:
    if value == ALL_LAYERS:
        return ()
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise ValueError("names no layer; leave the key out for every layer")
    if ALL_LAYERS in values:
        raise ValueError("'all' stands alone, without a list: write `layers: all`, or name the layers")
    return tuple({"layer": item} if isinstance(item, str) else item for item in values)


class _LayersSchema:
    """How the entries look in a schema. Worked out when a schema is asked for, which no command does."""

    def __get_pydantic_json_schema__(self, _core: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        entry = {"anyOf": [{"type": "string"}, LayerEntry.model_json_schema()]}
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": entry, "minItems": 1}]}


Layers = Annotated[tuple[LayerEntry, ...], BeforeValidator(_layers), _LayersSchema()]


class PatternEntry(_WithParameters):
    """One pattern and the values that it is measured with; further keys are its parameters."""

    pattern: str = Field(pattern=WORD)
    zip: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_groups)] = ()
    places: Places | None = None
    waits: Waits | None = None
    layers: Layers | None = Field(default=None, exclude_if=lambda value: value is None)
    """What it is measured over, if not over the layers of the sweep; written as there."""

    @model_validator(mode="after")
    def _zip_fits(self) -> Self:
        zipped = [name for group in self.zip for name in group]
        if len(zipped) != len(set(zipped)) or not set(zipped) <= self.parameters.keys():
            raise ValueError("zip names parameters that have values here, each once")
        return self


class Focus(_WithParameters):
    """Points that get a duration of their own: all given keys have to match."""

    pattern: str = Field(pattern=WORD)
    place: Place | None = None
    wait: Wait | None = None
    duration: Millis


class Durations(Frozen):
    """How long points are measured.

    The planner shortens to `least` where the budget asks for it, and at the utmost to 20 ms.
    """

    default: Millis
    least: Millis | None = None
    focus: tuple[Focus, ...] = ()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        shortest = min([self.default, self.least or self.default, *(item.duration for item in self.focus)])
        if shortest < POINT_MS_MIN:
            raise ValueError(f"{shortest}ms is too short; a point is measured for at least {POINT_MS_MIN}ms")
        if self.least is not None and self.least > self.default:
            raise ValueError("least is longer than default")
        return self


class SweepFile(Document):
    """A sweep. `layers` is empty for all layers."""

    NAME: ClassVar[str] = "cadge.sweep"
    MAJOR: ClassVar[int] = 2

    title: str = Field(min_length=1)
    layers: Layers = ()
    without: tuple[str, ...] = ()
    """Of all layers, those that are left out unless they are asked for by name; a layer that comes anew is in."""
    baseline: str | None = Field(default=None, min_length=1, exclude_if=lambda value: value is None)
    """The layer that each other one is judged against: its name, with shims and settings as a report writes them."""
    same_within: Percent | None = Field(default=None, gt=0, exclude_if=lambda value: value is None)
    """Two layers are the same where they surely differ by less than this; a report says what it is without it."""
    places: Places = ("within", "between")
    waits: Waits = ("poll",)
    vectors: dict[str, Annotated[tuple[Bytes, ...], Field(min_length=1)]] = Field(default_factory=dict)
    patterns: tuple[PatternEntry, ...] = Field(min_length=1)
    hosts: int = Field(default=2, ge=2, le=EMULATED_HOSTS_MAX)
    """How many hosts are emulated where a testbed is made for it. Three or more share a bridge, two have a link."""
    looks: tuple[int, ...] | None = Field(default=None, exclude_if=lambda value: value is None)
    """After how many launches the campaign is looked at; only what is undecided then is measured up to the next look.

    `launches` is left out beside it, or is the first of them.
    """
    launches: int = Field(default_factory=_first_look, gt=0, le=LAUNCHES_MAX)
    seed: int = Field(default=1, ge=0, lt=2**63)
    budget: Millis | None = None
    duration: Durations
    floors: bool = True
    """Whether the machine's own limits are measured beside the layers."""
    twin: str = Field(default=TWIN_BY_SEED, min_length=1, exclude_if=lambda value: value == TWIN_BY_SEED)
    """Which layer is measured a second time, as a series of its own: `by seed`, a name, `all` or `none`.

    By the seed: one that runs at all places and has not few of the points, where there are two layers or more and six
    launches or more; with fewer launches a sign test at 5 % never speaks, so that its twin could not either.
    """
    repeat_hindered: int = Field(default=0, ge=0, le=REPEATS_MAX)
    """How often launches are made again in which something else on the machine hindered an attempt."""

    model_config = ConfigDict(json_schema_extra=_launches_or_looks)

    @model_validator(mode="after")
    def _looks_rise(self) -> Self:
        if self.looks is None and not self.launches:
            raise ValueError("launches is missing, or looks in its place")
        if self.looks is not None and check_looks(self.looks)[0] != self.launches:
            raise ValueError(
                f"launches: {self.launches} beside looks, of which the first is {self.looks[0]}: leave launches out"
            )
        return self

    @model_validator(mode="after")
    def _without_some_of_all(self) -> Self:
        if self.without and self.layers:
            raise ValueError("without leaves out some of all layers; where layers are named it says nothing")
        return self

    @model_validator(mode="after")
    def _vectors_named(self) -> Self:
        if SAME in self.vectors:
            raise ValueError(f"a vector cannot be called {SAME}")
        return self
