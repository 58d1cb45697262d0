# SPDX-License-Identifier: BSD-3-Clause
"""The sweep file: what a campaign has to measure, as people write it (`cadge.sweep/2`).

A pattern's parameters are keys of its entries, by their names in the pattern's file, which alone says what they are;
what is written there is kept as it is until the planner reads it with that file. Where several parameters have several
values, every combination is made (a matrix); parameters named together in `zip` advance together instead. A list of
sizes that is used more than once gets a name under `vectors`. Places, wait modes and layers of a pattern's
entry go before those of the sweep.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

import yaml
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

from cadge_results.formats.base import Document, Frozen, Place, Wait
from cadge_results.formats.point import WORD, label_of
from cadge_results.units import Bytes, Millis, Percent

POINT_MS_MIN = 20
"""No point is ever measured for less."""

LAUNCHES_MAX = 1000
"""More would tell nothing further: what launches differ by is known long before."""

EPOCHS_MAX = 30
"""More would take days."""

EMULATED_HOSTS_MAX = 16

REPEATS_MAX = 9
"""A machine on which launches are still disturbed then is not fit to measure on."""

TWIN_BY_SEED, TWIN_ALL, TWIN_NONE = "by seed", "all", "none"
"""Values of `twin` that are not a layer's name."""

ALL_LAYERS = "all"
"""Stands for every layer, in a sweep and on the command line."""

SAME = "same"
"""The value of a parameter that follows another: that one's."""


LOOKS_MAX = 20

Topic = Literal["overview", "traffic", "costs", "models", "libraries", "studies", "checks", "own"]
"""Which kind of question a sweep asks."""


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


def check_epochs(epochs: int, looks: Sequence[int] | None) -> None:
    """Raise ValueError where a sweep names both."""
    if epochs > 1 and looks is not None:
        raise ValueError(
            "epochs and looks exclude each other: each epoch makes all launches, so write launches instead of looks"
        )


EXAMPLE_SWEEP = """
schema: cadge.sweep/2
title: Which of two layers answers faster, and how large messages change that
layers: [sockets-tcp, {layer: native-ucx}]
baseline: sockets-tcp
places: within
waits: poll
vectors: {sizes: [8B, 4KiB, 64KiB]}
patterns: [{pattern: rpc, request_bytes: sizes}]
launches: 9
budget: 2min
duration: {default: 100ms, least: 25ms, focus: [{pattern: rpc, request_bytes: 8B, duration: 200ms}]}
"""
"""A whole sweep as somebody may begin with one; the keys that it has are those that `cadge sweeps example` fills in."""


def _first_look(given: dict[str, Any]) -> int:
    """Return the launches of a sweep that names looks in their place; 0 where it names none, or none that are right."""
    return next(iter(given.get("looks") or ()), 0)


def _launches_or_looks(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema what `_first_look` does: looks may stand in the place of launches."""
    schema["anyOf"] = [{"required": ["launches"]}, {"required": ["looks"]}]
    schema["examples"] = [yaml.safe_load(EXAMPLE_SWEEP)]


def _as_written(line: str) -> list[JsonValue]:
    """Return the value of a line as users write it, for the examples of a key."""
    return list(yaml.safe_load(line).values())


def plain_name(value: object) -> object:
    """Return the name of a pattern as its file has it: '-' is as good as '_'."""
    return value.replace("-", "_") if isinstance(value, str) else value


def _one_listed(value: object) -> object:
    """Return a group of keys that stands alone as a list of one."""
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, dict) else value


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _groups(value: object) -> object:
    if not isinstance(value, list | tuple):
        return value
    if value and all(isinstance(name, str) for name in value):
        return (tuple(value),)
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
Pairs = Literal["first", "neighbours", "all"] | Annotated[int, Field(gt=0)]
"""Which pairs of hosts; a number: each host with so many others."""
Waits = Annotated[
    tuple[Wait, ...], Field(min_length=1), BeforeValidator(_listed), _one_or_more({"enum": ["poll", "block"]})
]
PatternName = Annotated[str, Field(pattern=WORD, examples=_as_written("pattern: rpc")), BeforeValidator(plain_name)]
"""In which '-' is as good as '_'."""

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

    layer: str = Field(
        description="A layer's name; with * every layer whose name matches.", examples=_as_written("layer: native-ucx")
    )
    shims: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        default=(), description="Shims around the layer, the outermost first.", examples=[["delay"]]
    )
    settings: Annotated[dict[str, str], BeforeValidator(_settings)] = Field(
        default_factory=dict,
        description="Options of the layer. env.NAME sets a variable of its library, SHIM.NAME an option of a shim. "
        "link.rate, e.g. 100Mbit, limits the link between emulated hosts. kernel.NAME (a sysctl), sys.NAME (a file of "
        "/sys) and device.NAME (of the data device) are values of the kernel, set for each launch and then restored.",
        examples=[{"env.UCX_RNDV_THRESH": "8k"}],
    )
    places: Places | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Where this layer is measured, in place of the sweep's places.",
        examples=["within"],
    )

    @property
    def label(self) -> str:
        """Name for people, as the subjects that are made of it have it."""
        return label_of(self.layer, self.shims, sorted(self.settings.items()))


def _layers(value: object) -> object:
    if value == ALL_LAYERS:
        return ()
    if isinstance(value, str) and (several := re.split(r"[\s,]+", value.strip()))[1:]:
        raise ValueError(f"several layers must be a list, like [{', '.join(several)}]")
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise ValueError(
            "names no layer; leave the key out for every layer, or write a list like [sockets-tcp, native-ucx]"
        )
    if ALL_LAYERS in values:
        raise ValueError("'all' is written without a list; for example: layers: all")
    return tuple({"layer": item} if isinstance(item, str) else item for item in values)


class _LayersSchema:
    """How the entries look in a schema. Worked out when a schema is asked for, which no command does."""

    def __get_pydantic_json_schema__(self, _core: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        entry = {"anyOf": [{"type": "string"}, LayerEntry.model_json_schema()]}
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": entry, "minItems": 1}]}


Layers = Annotated[tuple[LayerEntry, ...], BeforeValidator(_layers), _LayersSchema()]


class PatternEntry(_WithParameters):
    """One pattern and the values that it is measured with; further keys are its parameters."""

    pattern: PatternName = Field(description="What is done and timed; `cadge patterns` lists them.")
    zip: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_groups)] = Field(
        default=(),
        description="Parameters whose values go in pairs, in place of every combination.",
        examples=[[["request_bytes", "reply_bytes"]]],
    )
    places: Places | None = Field(
        default=None, description="Where, in place of the sweep's places.", examples=["within"]
    )
    waits: Waits | None = Field(default=None, description="How, in place of the sweep's waits.", examples=["poll"])
    layers: Layers | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Over which layers, in place of the sweep's layers.",
        examples=_as_written("layers: [sockets-tcp]"),
    )

    @model_validator(mode="after")
    def _zip_fits(self) -> Self:
        zipped = [name for group in self.zip for name in group]
        if len(zipped) != len(set(zipped)) or not set(zipped) <= self.parameters.keys():
            raise ValueError(
                "zip names parameters that have values here, each once, like [[request_bytes, reply_bytes]]"
            )
        return self


class Focus(_WithParameters):
    """Points that get a duration of their own: all given keys have to match."""

    pattern: PatternName = Field(description="Points of this pattern; further keys are values of its parameters.")
    place: Place | None = Field(default=None, description="Only at this place.", examples=["within"])
    wait: Wait | None = Field(default=None, description="Only in this wait mode.", examples=["poll"])
    duration: Millis = Field(description="How long each of these points is measured.", examples=["500ms"])


class Durations(Frozen):
    """How long points are measured.

    The planner shortens to `least` where the budget asks for it, and at the utmost to 20 ms.
    """

    default: Millis = Field(description="How long a point is measured, in each launch.", examples=["100ms"])
    least: Millis | None = Field(
        default=None, description="Down to this it is shortened to keep the budget.", examples=["25ms"]
    )
    focus: Annotated[tuple[Focus, ...], BeforeValidator(_one_listed)] = Field(
        default=(),
        description="Points with another duration: all keys have to match.",
        examples=_as_written("focus: [{pattern: rpc, request_bytes: 8B, duration: 500ms}]"),
    )

    @model_validator(mode="before")
    @classmethod
    def _default_alone(cls, raw: object) -> object:
        return {"default": raw} if isinstance(raw, str) else raw

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        shortest = min([self.default, self.least or self.default, *(item.duration for item in self.focus)])
        if shortest < POINT_MS_MIN:
            raise ValueError(
                f"{shortest}ms is too short; a point is measured for at least {POINT_MS_MIN}ms, like 100ms"
            )
        if self.least is not None and self.least > self.default:
            raise ValueError("least is longer than default; for example: duration: {default: 100ms, least: 25ms}")
        return self


class _OrMillis:
    """A duration alone stands for a group with that default; an editor that reads the schema has to know."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        alone = handler.resolve_ref_schema(handler(core))["properties"]["default"]
        kept = {key: value for key, value in alone.items() if key in {"type", "pattern"}}
        return {"anyOf": [handler(core), kept]}


class SweepFile(Document):
    """A sweep. `layers` is empty for all layers."""

    NAME: ClassVar[str] = "cadge.sweep"
    MAJOR: ClassVar[int] = 2

    title: str = Field(
        min_length=1, description="What the sweep asks, in one line.", examples=["Which of three layers is faster"]
    )
    topic: Topic = Field(
        default="own",
        exclude_if=lambda value: value == "own",
        description="Under which heading `cadge sweeps` lists it.",
        examples=["own"],
    )
    layers: Layers = Field(
        default=(),
        description="The layers, or `all`. `cadge layers` lists them. An entry may be a group of keys, with settings.",
        examples=_as_written("layers: [sockets-tcp, {layer: native-ucx}]"),
    )
    without: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        default=(),
        description="With all layers: those that are left out unless --layers names them.",
        examples=_as_written("without: [native-dgram]"),
    )
    baseline: str | None = Field(
        default=None,
        min_length=1,
        exclude_if=lambda value: value is None,
        description="The layer that each other one is compared with, with shims and settings as a report names it.",
        examples=_as_written("baseline: sockets-tcp"),
    )
    same_within: Percent | None = Field(
        default=None,
        gt=0,
        exclude_if=lambda value: value is None,
        description="Layers that surely differ by less than this are called the same.",
        examples=["5%"],
    )
    places: Places = Field(
        default=("within", "between"),
        description="within: both ends on one host. between: on two hosts. self: both in one process.",
        examples=[["within", "between"], "within"],
    )
    waits: Waits = Field(
        default=("poll",),
        description="poll: endpoints spin while they wait. block: they sleep.",
        examples=["poll", ["poll", "block"]],
    )
    vectors: dict[str, Annotated[tuple[Bytes, ...], Field(min_length=1), BeforeValidator(_listed)]] = Field(
        default_factory=dict,
        description="Lists of sizes with a name, which patterns use below.",
        examples=[{"sizes": ["8B", "4KiB", "64KiB"]}],
    )
    patterns: Annotated[tuple[PatternEntry, ...], BeforeValidator(_one_listed)] = Field(
        min_length=1,
        description="What is measured. Further keys of an entry are parameters of its pattern (`cadge patterns NAME`); "
        "of several lists every combination is measured.",
        examples=_as_written("patterns: [{pattern: rpc, request_bytes: [8B, 4KiB]}]"),
    )
    hosts: int = Field(
        default=2,
        ge=2,
        le=EMULATED_HOSTS_MAX,
        description="How many hosts are emulated on this machine. Three or more share a bridge, two have a link.",
        examples=[2],
    )
    pairs: Pairs = Field(
        default="first",
        exclude_if=lambda value: value == "first",
        description="Over which pairs of hosts patterns of two hosts run: the first two, neighbours (each host and the "
        "next one), all (each with every other, both ways), or a number: each with so many others, drawn by the seed.",
        examples=["all"],
    )
    looks: tuple[int, ...] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Instead of launches: after each of these numbers, Cadge stops measuring what is decided.",
        examples=[[9, 12, 18, 30]],
    )
    launches: int = Field(
        default_factory=_first_look,
        gt=0,
        le=LAUNCHES_MAX,
        description="How often each point is measured, by new processes each time. Verdicts need 6 or more.",
        examples=[9],
    )
    epochs: int = Field(
        default=1,
        ge=1,
        le=EPOCHS_MAX,
        exclude_if=lambda value: value == 1,
        description="How often the testbed is rebuilt, with all its processes. Each epoch makes all launches. Two or "
        "three show whether verdicts survive that; with four or more, verdicts are over epochs.",
        examples=[4],
    )
    seed: int = Field(
        default=1, ge=0, lt=2**63, description="Decides the random order of launches and points.", examples=[1]
    )
    budget: Millis | None = Field(
        default=None,
        description="How long the whole may take. Durations are shortened to keep it, then points are left out. "
        "In time that is left further rounds are measured, at most as many again.",
        examples=["5min"],
    )
    duration: Annotated[Durations, _OrMillis()] = Field(
        description="How long points are measured.", examples=["100ms", {"default": "100ms", "least": "25ms"}]
    )
    floors: bool = Field(
        default=True, description="Whether the machine's own limits are measured beside the layers.", examples=[True]
    )
    natives: Annotated[tuple[Bytes, ...], BeforeValidator(_listed)] = Field(
        default=(),
        exclude_if=lambda value: not value,
        description="Sizes at which programs written directly for a layer's library run beside it, in the same rounds, "
        "where they are installed: beside points with data untouched (touch: none) and one buffer (buffers: same).",
        examples=_as_written("natives: [8B, 64KiB]"),
    )
    twin: str = Field(
        default=TWIN_BY_SEED,
        min_length=1,
        exclude_if=lambda value: value == TWIN_BY_SEED,
        description="Which layer is measured twice as an A/A control: by seed, a layer's name, all or none.",
        examples=["by seed"],
    )
    """By the seed: for each place and wait mode one that has not few of the points there, where there are two layers or
    more and six launches or more; with fewer launches no test of pairs at 5 % ever speaks, so that its twin could not
    either.
    """
    repeat_disturbed: int = Field(
        default=0,
        ge=0,
        le=REPEATS_MAX,
        description="How often launches are repeated that other work on the machine disturbed.",
        examples=[2],
    )

    model_config = ConfigDict(json_schema_extra=_launches_or_looks)

    @model_validator(mode="after")
    def _looks_rise(self) -> Self:
        if self.looks is None and not self.launches:
            raise ValueError("launches is missing, or looks in its place; for example: launches: 9")
        if self.looks is not None and check_looks(self.looks)[0] != self.launches:
            raise ValueError(
                f"launches: {self.launches} and looks, of which the first is {self.looks[0]}: leave launches out"
            )
        return self

    @model_validator(mode="after")
    def _epochs_without_looks(self) -> Self:
        check_epochs(self.epochs, self.looks)
        return self

    @property
    def rounds(self) -> int:
        """How many launches each point has, in all epochs together."""
        return self.epochs * self.launches

    @model_validator(mode="after")
    def _without_some_of_all(self) -> Self:
        if self.without and self.layers:
            raise ValueError(
                "without leaves out some of all layers; where layers are named it says nothing: leave it out"
            )
        return self

    @model_validator(mode="after")
    def _vectors_named(self) -> Self:
        if SAME in self.vectors:
            raise ValueError(f"a vector cannot be called {SAME}")
        return self
