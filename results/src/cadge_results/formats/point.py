# SPDX-License-Identifier: BSD-3-Clause
"""A point, declared once: what is measured (a subject) times how (a workload).

The plan, the launch file, the result and the store hold the same two nested objects. A point's id is a part of the hash
of their canonical JSON, so that it depends on what is measured alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from cadge_results.formats.base import Frozen, Kind, Place, Wait, digest

Value = int | str
"""A parameter's value: a whole number, or a word of a choice."""

POINT_ID = r"^[0-9a-f]{16}$"
WORD = r"^[a-z][a-z0-9_]*$"
AGAIN = "(again)"
"""What the name of a twin ends in."""


def _pairs(value: object) -> object:
    """Turn an object into sorted pairs, which can be compared and hashed; leave the rest to the validator."""
    return tuple(sorted(value.items())) if isinstance(value, Mapping) else value


def _object(pairs: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return dict(pairs)


Settings = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_pairs),
    PlainSerializer(_object, return_type=dict[str, str]),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]
"""Open-time options by name, as sorted pairs; an object in JSON."""

Parameters = Annotated[
    tuple[tuple[str, Value], ...],
    BeforeValidator(_pairs),
    PlainSerializer(_object, return_type=dict[str, Value]),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["integer", "string"]}}),
]
"""Values by parameter name, as sorted pairs; an object in JSON."""


def label_of(layer: str, shims: Sequence[str], settings: Iterable[tuple[str, str]]) -> str:
    """Return a name for people: the layer, with shims and settings where there are any."""
    text, given = " + ".join((layer, *shims)), ", ".join(f"{key}={value}" for key, value in settings)
    return f"{text} ({given})" if given else text


class Subject(Frozen):
    """What is measured: a layer or floor with its shims and settings, at a place, in a wait mode."""

    kind: Kind = "layer"
    layer: str
    shims: tuple[str, ...] = ()
    """Outermost first."""
    settings: Settings = ()
    place: Place
    wait: Wait
    twin: bool = Field(default=False, exclude_if=lambda value: not value)
    """A second series of the very same thing: what differs between both is the machine's, and the method's.

    Known to the plan alone: no launch file says it, so whoever measures cannot tell which of both it is.
    """

    @property
    def label(self) -> str:
        """Name for people: the layer, with shims and settings where there are any."""
        named = label_of(self.layer, self.shims, self.settings)
        return f"{named} {AGAIN}" if self.twin else named

    def setting(self, name: str) -> str | None:
        """Return a setting's value, or None where it is left at its default."""
        return dict(self.settings).get(name)


class Workload(Frozen):
    """A pattern with the values of its parameters."""

    pattern: str = Field(pattern=WORD)
    parameters: Parameters = ()

    def __getitem__(self, name: str) -> Value:
        """Return a parameter's value. Raises KeyError."""
        return self.values[name]

    def integer(self, name: str) -> int:
        """Return the value of a parameter that is a number. Raises KeyError, TypeError."""
        value = self.values[name]
        if not isinstance(value, int):
            raise TypeError(f"{self.pattern}: {name} is {value!r}, not a number")
        return value

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Every parameter's value by its name."""
        return dict(self.parameters)

    def items(self) -> Iterator[tuple[str, Value]]:
        """Yield names and values."""
        return iter(self.parameters)


class Point(Frozen):
    """A subject and a workload: one thing to be measured."""

    subject: Subject
    workload: Workload

    @cached_property
    def point_id(self) -> str:
        """The stable id: 16 hex digits of the hash of the canonical JSON."""
        return digest(self.model_dump(mode="json", include={"subject", "workload"}))[:16]
