# SPDX-License-Identifier: BSD-3-Clause
"""LogGP from bursts of messages: the method of PRTT(n, d, s).

Hoefler, Lichei and Rehm, Low-Overhead LogGP Parameter Assessment for Modern Interconnection Networks, IPDPS 2007. A
burst is n messages of s bytes with a delay d between them, of which the last is answered by one as large.

    gap      g + G (s - 1) = (PRTT(n, 0, s) - PRTT(1, 0, s)) / (n - 1)
    o_s(s)   = (PRTT(n, d, s) - PRTT(1, 0, s)) / (n - 1) - d, with a delay no shorter than the gap
    o_r(s)   of a message that lies there when the receiver begins to look for it
    L        = PRTT(1, 0, s) / 2 - o_s(s) - o_r(s), at the smallest size

Each launch gives one reading a size. Numbers are medians over launches; intervals are those of a bootstrap that draws
launches, with the pieces held fixed. A fit that is bad gives its reason instead of a number.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.models.loggp import MissingNumber, ModelLine, ModelNumber, Parameters, Piece
from cadge_analysis.models.pieces import SIZES_LEAST, Curve, PoorFit, pieces, straight
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import median

say = partial(messages.say, "models")

TOLERANCE = 0.2
"""A line may miss the value at a size by so much of it."""
PIECES_MOST = 4
DRAWS = 200
SEED = 1
OWN_SHARE = 0.1
"""o_s and o_r may be nearly nothing: they may be missed by what their line may miss this part of the time one way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchReading:
    """What one launch gave at one size; a time that was not measured, or cannot be used, is None."""

    launch: RoundKey
    size: int
    one_way_ns: float
    gap_ns: float
    send_ns: float | None = None
    receive_ns: float | None = None


NAMES: Mapping[str, Callable[[LaunchReading], float | None]] = {
    "gap": lambda one: one.gap_ns,
    "one_way": lambda one: one.one_way_ns,
    "send": lambda one: one.send_ns,
    "receive": lambda one: one.receive_ns,
    "latency": lambda one: (
        None if one.send_ns is None or one.receive_ns is None else one.one_way_ns - one.send_ns - one.receive_ns
    ),
}

Draw = Sequence[int]
"""Numbers of launches, each as often as it was drawn."""


class LaunchReadings:
    """Readings by what they are of, by size and by launch; None where a launch has none."""

    def __init__(self, readings: Iterable[LaunchReading]) -> None:
        by_size: dict[int, dict[RoundKey, LaunchReading]] = defaultdict(dict)
        for one in readings:
            by_size[one.size][one.launch] = one
        self.sizes = tuple(sorted(by_size))
        launches = sorted({launch for found in by_size.values() for launch in found})
        self.every: Draw = range(len(launches))
        self._values = {
            name: {
                size: tuple(read(found[launch]) if launch in found else None for launch in launches)
                for size, found in by_size.items()
            }
            for name, read in NAMES.items()
        }

    def median(self, name: str, size: int, draw: Draw) -> float | None:
        """Return the median over the launches that were drawn and have a value."""
        values = self._values[name][size]
        found = [value for value in (values[launch] for launch in draw) if value is not None]
        return median(found) if found else None

    def curve(self, name: str, sizes: Sequence[int], draw: Draw | None = None) -> Curve:
        """Return medians size by size; sizes without any are left out."""
        launches = self.every if draw is None else draw
        kept, values, scales = [], [], []
        for size in sizes:
            value = self.median(name, size, launches)
            if value is None:
                continue
            scale = abs(value) or 1.0
            if name in ("send", "receive"):
                scale = max(scale, OWN_SHARE * (self.median("one_way", size, launches) or 0.0))
            kept.append(size)
            values.append(value)
            scales.append(scale)
        return Curve(tuple(kept), tuple(values), tuple(scales))

    def draws(self) -> list[Draw]:
        """Return launches drawn with replacement, again and again; nothing where there is one launch."""
        if len(self.every) < 2:
            return []
        rng = random.Random(SEED)  # noqa: S311 - the same numbers give the same intervals
        return [rng.choices(self.every, k=len(self.every)) for _ in range(DRAWS)]


def fit(readings: Iterable[LaunchReading]) -> Parameters | MissingNumber:
    """Return the parameters of one layer at one place in one wait mode, or why there are none."""
    table = LaunchReadings(readings)
    sizes = table.sizes
    if len(sizes) < SIZES_LEAST:
        return MissingNumber(refused=say("fit.few_sizes", least=SIZES_LEAST, n=len(sizes)))
    curves = [table.curve(name, sizes) for name in ("gap", "one_way")]
    if why := _backwards(curves):
        return MissingNumber(refused=why)
    found = pieces(curves, tolerance=TOLERANCE, most=PIECES_MOST)
    if isinstance(found, PoorFit):
        most = min(PIECES_MOST, len(sizes) // SIZES_LEAST)
        drawn = "no straight piece" if most == 1 else f"no {units.grouped(most)} straight pieces"
        come = "comes" if most == 1 else "come"
        return MissingNumber(
            refused=say(
                "fit.none_within",
                lines=drawn,
                least=SIZES_LEAST,
                come=come,
                tolerance=TOLERANCE,
                size=units.size(found.size),
                off=units.percent_beyond(found.off, TOLERANCE),
            )
        )
    draws = table.draws()
    return Parameters(
        latency_ns=_latency(table, draws),
        pieces=tuple(_piece(table, sizes[first:end], draws) for first, end in found),
    )


def _backwards(curves: Sequence[Curve]) -> str:
    """Return why times that have to be positive make no sense, or nothing."""
    gaps, ways = curves
    for size, gap_ns, way_ns in zip(gaps.sizes, gaps.values, ways.values, strict=True):
        if gap_ns <= 0 or way_ns <= 0:
            return say("fit.no_gap", size=units.size(size))
    return ""


def _number(value: float, drawn: Sequence[float]) -> ModelNumber:
    """Return a value between the 2.5th and the 97.5th percentile of what was drawn, both widened to hold it."""
    if not drawn:
        return ModelNumber(value=value)
    ordered = sorted(drawn)
    aside = len(ordered) // 40
    return ModelNumber(value=value, low=min(value, ordered[aside]), high=max(value, ordered[-1 - aside]))


def _line(table: LaunchReadings, sizes: Sequence[int], draws: Sequence[Draw], name: str) -> ModelLine:
    curve = table.curve(name, sizes)
    own = straight(curve)
    again = (table.curve(name, sizes, draw) for draw in draws)
    lines = [straight(drawn) for drawn in again if len(drawn.sizes) >= SIZES_LEAST]
    return ModelLine(
        start_ns=_number(own.start, [one.start for one in lines]),
        per_byte_ns=_number(own.slope, [one.slope for one in lines]),
        off=max(curve.off(own)),
    )


def _piece(table: LaunchReadings, sizes: Sequence[int], draws: Sequence[Draw]) -> Piece:
    return Piece(
        from_bytes=sizes[0],
        to_bytes=sizes[-1],
        gap=_line(table, sizes, draws, "gap"),
        one_way=_line(table, sizes, draws, "one_way"),
        send=_own(table, sizes, draws, "send", "o_s"),
        receive=_own(table, sizes, draws, "receive", "o_r"),
    )


def _own(
    table: LaunchReadings, sizes: Sequence[int], draws: Sequence[Draw], name: str, sign: str
) -> ModelLine | MissingNumber:
    """Return the line of o_s or o_r within a piece, or why there is none."""
    curve = table.curve(name, sizes)
    if len(curve.sizes) < SIZES_LEAST:
        known = len(curve.sizes)
        return MissingNumber(refused=say("fit.few_known", sign=sign, n=known, every=len(sizes)), known=known)
    for size, value in zip(curve.sizes, curve.values, strict=True):
        if value < 0:
            return MissingNumber(refused=say("fit.below_zero", sign=sign, size=units.size(size), value=value))
    off = curve.off(straight(curve))
    worst = max(range(len(off)), key=lambda number: off[number])
    if off[worst] > TOLERANCE:
        return MissingNumber(
            refused=say(
                "fit.no_line",
                tolerance=TOLERANCE,
                sign=sign,
                size=units.size(curve.sizes[worst]),
                off=units.percent_beyond(off[worst], TOLERANCE),
            )
        )
    return _line(table, sizes, draws, name)


def _latency(table: LaunchReadings, draws: Sequence[Draw]) -> ModelNumber | MissingNumber:
    size = table.sizes[0]
    value = table.median("latency", size, table.every)
    if value is None:
        return MissingNumber(refused=say("fit.overhead_unknown"))
    if value <= 0:
        return MissingNumber(refused=say("fit.overlap", value=value))
    drawn = (table.median("latency", size, draw) for draw in draws)
    return _number(value, [one for one in drawn if one is not None])
