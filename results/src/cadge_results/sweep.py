# SPDX-License-Identifier: BSD-3-Clause
"""The sweep file: what a campaign has to measure, as people write it (`cadge.sweep/1`).

Sizes and durations carry units. Where a pattern gives several values for several fields, every
combination is made (a matrix); fields named together in `zip` advance together instead. A list of
sizes that is used more than once gets a name under `vectors`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PositiveInt, WithJsonSchema, model_validator

from cadge_results.base import Document, Frozen, Operation, Pattern, Place, Target, Wait
from cadge_results.units import Bytes, Millis, parse_bytes

POINT_MS_MIN = 20
"""No point is ever measured for less."""

SIZE_BYTES_MAX = 1024**3


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _settings(value: object) -> object:
    """Write whole numbers as text, as the layers take them."""
    if not isinstance(value, dict):
        return value
    return {key: str(item) if type(item) is int else item for key, item in value.items()}


def _sizes(value: object) -> object:
    """Keep names of vectors and the word `same` as they are, and read everything else as sizes."""
    if isinstance(value, str) and value.isalpha():
        return value
    values = value if isinstance(value, list | tuple) else [value]
    return tuple(parse_bytes(item) for item in values)


_SIZE_SCHEMA = {"type": "string", "pattern": "^([0-9]+ ?(B|KiB|MiB|GiB|kB|MB|GB)|[A-Za-z]+)$"}
_ONE_OR_MORE_SIZES = {"anyOf": [_SIZE_SCHEMA, {"type": "array", "items": _SIZE_SCHEMA, "minItems": 1}]}

Sizes = Annotated[
    str | tuple[Annotated[int, Field(le=SIZE_BYTES_MAX)], ...],
    BeforeValidator(_sizes),
    WithJsonSchema(_ONE_OR_MORE_SIZES),
]


def _one_or_more(item: dict[str, object]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]})


Depths = Annotated[
    tuple[Annotated[int, Field(ge=1, le=65536)], ...],
    BeforeValidator(_listed),
    _one_or_more({"type": "integer", "minimum": 1, "maximum": 65536}),
]
Operations = Annotated[
    tuple[Operation, ...], BeforeValidator(_listed), _one_or_more({"enum": ["put", "get", "fetch_add"]})
]
Targets = Annotated[tuple[Target, ...], BeforeValidator(_listed), _one_or_more({"enum": ["active", "passive"]})]
Places = Annotated[tuple[Place, ...], BeforeValidator(_listed), _one_or_more({"enum": ["self", "within", "between"]})]
Waits = Annotated[tuple[Wait, ...], BeforeValidator(_listed), _one_or_more({"enum": ["poll", "block"]})]

FieldName = Literal["request", "reply", "bytes", "depth", "operation", "target"]

FIELDS_BY_PATTERN: dict[str, frozenset[str]] = {
    "pingpong": frozenset({"bytes"}),
    "rpc": frozenset({"request", "reply", "depth"}),
    "stream": frozenset({"bytes", "depth"}),
    "onesided": frozenset({"bytes", "depth", "operation", "target"}),
}


class PatternEntry(Frozen):
    """One workload and the values that it is measured with."""

    pattern: Pattern
    request: Sizes | None = None
    reply: Sizes | None = None
    """For rpc; `same` (the default) answers with as many bytes as were asked with."""
    bytes: Sizes | None = None
    depth: Depths = (1,)
    """Operations outstanding; for stream the window in messages."""
    operation: Operations | None = None
    target: Targets | None = None
    zip: tuple[tuple[FieldName, ...], ...] = ()
    places: Places | None = None
    waits: Waits | None = None

    @model_validator(mode="after")
    def _fields_fit(self) -> Self:
        allowed = FIELDS_BY_PATTERN[self.pattern]
        given = {name for name in self.model_fields_set if name not in {"pattern", "zip", "places", "waits"}}
        wrong = sorted(given - allowed)
        if wrong:
            raise ValueError(
                f"{', '.join(wrong)} does not belong to {self.pattern}; it takes {', '.join(sorted(allowed))}"
            )
        size = "request" if self.pattern == "rpc" else "bytes"
        if getattr(self, size) is None:
            raise ValueError(f"{self.pattern} needs {size}")
        if self.bytes == "same" or self.request == "same":
            raise ValueError("only reply can be `same`")
        if self.pattern == "onesided" and self.operation is None:
            raise ValueError("onesided needs operation: put, get or fetch_add")
        zipped = [name for group in self.zip for name in group]
        if len(zipped) != len(set(zipped)) or not set(zipped) <= given:
            raise ValueError("zip names fields of this pattern that have values, each once")
        return self


class LayerEntry(Frozen):
    """A layer under other than default conditions: wrapped in shims, or with settings of its own."""

    layer: str
    """A name, or a pattern with `*` that stands for every layer whose name matches."""
    shims: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Outermost first."""
    settings: Annotated[dict[str, str], BeforeValidator(_settings)] = Field(default_factory=dict)
    """Open-time options; those of a shim carry its name and a dot in front."""


class Focus(Frozen):
    """Points that get a duration of their own: all given keys have to match."""

    pattern: Pattern
    request: Bytes | None = None
    reply: Bytes | None = None
    depth: PositiveInt | None = None
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


def _layers(value: object) -> object:
    if value == "all":
        return ()
    values = value if isinstance(value, list | tuple) else [value]
    return tuple({"layer": item} if isinstance(item, str) else item for item in values)


Layers = Annotated[
    tuple[LayerEntry, ...],
    BeforeValidator(_layers),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"anyOf": [{"type": "string"}, LayerEntry.model_json_schema()]}},
            ]
        }
    ),
]


class SweepFile(Document):
    """A sweep. `layers` is empty for all layers."""

    NAME: ClassVar[str] = "cadge.sweep"

    title: str = Field(min_length=1)
    layers: Layers = ()
    places: Places = ("within", "between")
    waits: Waits = ("poll",)
    vectors: dict[str, Annotated[tuple[Bytes, ...], Field(min_length=1)]] = Field(default_factory=dict)
    patterns: tuple[PatternEntry, ...] = Field(min_length=1)
    launches: PositiveInt
    seed: int = Field(default=1, ge=0, lt=2**63)
    budget: Millis | None = None
    duration: Durations
    floors: bool = True
    """Whether the machine's own limits are measured beside the layers."""

    @model_validator(mode="after")
    def _vectors_known(self) -> Self:
        for entry in self.patterns:
            for name in (entry.request, entry.reply, entry.bytes):
                if isinstance(name, str) and name != "same" and name not in self.vectors:
                    known = ", ".join(sorted(self.vectors)) or "none"
                    raise ValueError(f"no vector is called {name!r}; vectors here: {known}")
        return self
