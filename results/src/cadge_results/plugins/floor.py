# SPDX-License-Identifier: BSD-3-Clause
"""The floor file: one of the machine's own limits as a plug-in (`harness/floors/NAME.floor.yml`, `cadge.floor/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import Field, NonNegativeInt, model_validator

from cadge_results.formats.base import Document, Frozen, Place, Right, Wait
from cadge_results.formats.point import WORD

PREFIX = "floor-"
"""Before a floor's name wherever it stands in the place of a layer."""


class ByteLimit(Frozen):
    """A bound of the bytes that it carries, and why."""

    bytes: NonNegativeInt
    reason: str = Field(min_length=1)


class FloorFile(Document):
    """One floor: where it can be measured, and what it can carry."""

    NAME: ClassVar[str] = "cadge.floor"
    READ_BY: ClassVar[Mapping[int, str]] = {}

    title: str = Field(min_length=1)
    title_on_veth: str = ""
    """Its title where the link between the hosts is virtual, if that is another."""
    substrate: str = Field(pattern=r"^[a-z0-9]+$")
    places: tuple[Place, ...] = Field(min_length=1)
    waits: tuple[Wait, ...] = Field(min_length=1)
    forms: tuple[Annotated[str, Field(pattern=WORD)], ...] = Field(min_length=1)
    bytes_min: ByteLimit | None = None
    bytes_max: ByteLimit | None = None
    needs_raw_link: bool = False
    rights: tuple[Right, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What its processes need to be opened, beside what any user may do, in the words of setpriv(1)."""
    reference: bool = False
    """A bare exchange that is not the best possible: shown beside, and nothing is divided by it."""
    copies: bool | None = Field(default=None, exclude_if=lambda value: value is None)
    """Its bytes are copied in memory: the best rate that such floors reach stands for all large messages."""

    @property
    def name(self) -> str:
        """Its name in the place of a layer's."""
        return f"{PREFIX}{self.substrate}"

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.bytes_min and self.bytes_max and self.bytes_min.bytes > self.bytes_max.bytes:
            raise ValueError("bytes_min is more than bytes_max")
        return self
