# SPDX-License-Identifier: BSD-3-Clause
"""LogGP parameters as they are stored (`cadge.loggp/1`), and what they predict.

LogGP (Alexandrov and others, SPAA 1995) describes a message by the time that it keeps its sender (o_s) and its receiver
(o_r), by the time L that it is under way, by the gap g from one message to the next, and by the gap G from one byte to
the next. Here o_s, o_r and g may grow with the size, as they do where processors copy, and all change where the layer
changes its protocol: so they are straight lines, piece by piece. A number that could not be had is an object
`{"refused": why}` in its place.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cadge_results.formats.base import Document, Frozen, Place, Wait
from cadge_results.formats.point import Value, label_of


class ModelNumber(Frozen):
    """A number and its bootstrap interval over launches (95 %); no interval where there is one launch."""

    value: float
    low: float | None = None
    high: float | None = None


class MissingNumber(Frozen):
    """Why there is no number."""

    refused: str
    known: int | None = Field(default=None, exclude_if=lambda value: value is None)
    """At how many sizes there was a value, where those were too few."""


class ModelLine(Frozen):
    """start_ns + per_byte_ns x (bytes - 1) within a piece."""

    start_ns: ModelNumber
    per_byte_ns: ModelNumber
    off: float
    """How far the worst size is from it, in parts of the value there."""

    def at(self, size: int) -> float:
        """Return the time at a size in bytes."""
        return self.start_ns.value + self.per_byte_ns.value * (size - 1)


class Piece(Frozen):
    """Sizes that one protocol serves, both ends included.

    gap: from one message to the next where many leave without a pause; its start is g, its slope G. one_way: half of a
    round trip of one message each way, o_s + L + o_r and what the bytes take. send and receive: o_s and o_r.
    """

    from_bytes: int
    to_bytes: int
    gap: ModelLine
    one_way: ModelLine
    send: ModelLine | MissingNumber
    receive: ModelLine | MissingNumber


class Parameters(Frozen):
    """Of one layer at one place in one wait mode. `latency_ns` is L, of the smallest size; pieces are in order."""

    latency_ns: ModelNumber | MissingNumber
    pieces: tuple[Piece, ...]

    def piece(self, size: int) -> Piece:
        """Return the piece that a size belongs to; between two of them that of the smaller sizes."""
        return next((one for one in reversed(self.pieces) if one.from_bytes <= size), self.pieces[0])

    def one_way_ns(self, size: int) -> float:
        """Return how long one message takes from its sender's hands to its receiver's."""
        return self.piece(size).one_way.at(size)

    def gap_ns(self, size: int) -> float:
        """Return the time from one message to the next where many leave without a pause."""
        return self.piece(size).gap.at(size)

    def prtt_ns(self, messages: int, size: int) -> float:
        """Return PRTT(n, 0, s): n messages without a delay between them, of which the last one is answered."""
        return 2 * self.one_way_ns(size) + (messages - 1) * self.gap_ns(size)


class HeldOut(Frozen):
    """Points that the fit did not see, and what it predicted of them: predicted ÷ measured - 1."""

    what: str
    points: int
    median_error: float
    """Of the errors without their sign."""
    worst_error: float
    """With its sign."""
    worst_at: str


class LayerFit(Frozen):
    """One layer as it was opened, at one place, in one wait mode, and with one choice of the pattern's other values."""

    pattern: str
    layer: str
    shims: tuple[str, ...]
    settings: dict[str, str]
    place: Place
    wait: Wait
    choices: dict[str, Value]
    launches: int
    messages: int
    """How many were in a burst."""
    sizes_bytes: tuple[int, ...]
    model: Parameters | MissingNumber
    held_out: tuple[HeldOut, ...] = ()

    @property
    def label(self) -> str:
        """What the layer as it was opened is called."""
        return label_of(self.layer, self.shims, self.settings.items())


class Fits(Document):
    """All fits of a campaign."""

    NAME: ClassVar[str] = "cadge.loggp"

    campaign_id: str
    fits: tuple[LayerFit, ...]
