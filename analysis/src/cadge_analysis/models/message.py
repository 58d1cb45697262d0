# SPDX-License-Identifier: BSD-3-Clause
"""What messages of one size take, of whom: LogGP's parameters at that size.

A message keeps the sender's processor busy for `send_ns`, is on its way for `latency_ns` and, where it has the way for
itself, another `byte_ns` for each byte after the first, and keeps the receiver's processor busy for `receive_ns`. An
interface lets no message follow another before `gap_ns` have passed since the last byte of that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages
from cadge_analysis.models.loggp import MissingNumber, Parameters

say = partial(messages.say, "models")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Times of a message of `size` bytes, in ns. `notes` say what was refused, and what stands in its place."""

    size: int
    send_ns: float
    receive_ns: float
    latency_ns: float
    byte_ns: float
    gap_ns: float
    notes: tuple[str, ...] = ()

    @property
    def bytes_ns(self) -> float:
        """What its bytes take where they have the way for themselves."""
        return self.byte_ns * (self.size - 1)

    @property
    def one_way_ns(self) -> float:
        """From the sender's first instruction to the receiver's last."""
        return self.send_ns + self.latency_ns + self.bytes_ns + self.receive_ns

    @property
    def sends_every_ns(self) -> float:
        """How soon another one of that size can follow out of an endpoint."""
        return max(self.send_ns, self.gap_ns + self.bytes_ns)

    @property
    def receives_every_ns(self) -> float:
        """How soon an endpoint can have taken the next of many."""
        return max(self.receive_ns, self.gap_ns + self.bytes_ns)


def message(parameters: Parameters, size: int) -> Message:
    """Return what a fit says of messages of a size.

    A processor's time that was refused is taken for none, and so for a part of the way: what one message takes, and how
    soon another follows, is as measured all the same.
    """
    piece = parameters.piece(size)
    notes = []
    own = {}
    for name, line in (("o_s", piece.send), ("o_r", piece.receive)):
        if isinstance(line, MissingNumber):
            notes.append(say("message.part_of_latency", name=name, refused=line.refused))
        own[name] = 0.0 if isinstance(line, MissingNumber) else line.at(size)
    byte_ns = piece.gap.per_byte_ns.value
    way_ns = parameters.one_way_ns(size) - own["o_s"] - own["o_r"]
    if way_ns < byte_ns * (size - 1):
        notes.append(say("message.parts_of_latency"))
        own = {"o_s": 0.0, "o_r": 0.0}
        way_ns = parameters.one_way_ns(size)
    byte_ns = min(byte_ns, way_ns / max(size - 1, 1))
    return Message(
        size=size,
        send_ns=own["o_s"],
        receive_ns=own["o_r"],
        latency_ns=max(way_ns - byte_ns * (size - 1), 0.0),
        byte_ns=byte_ns,
        gap_ns=max(parameters.gap_ns(size) - byte_ns * (size - 1), 0.0),
        notes=tuple(notes),
    )
