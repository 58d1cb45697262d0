# SPDX-License-Identifier: BSD-3-Clause
"""Strips of launches in the order in which they ran, panels above each other on one axis of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.draw.axes import (
    BELOW_PX,
    EDGE_PX,
    TIMES_TICK,
    below_px,
    horizontal,
    left_px,
    ticks_px,
    vertical,
)
from cadge_analysis.draw.chart import Line as Look
from cadge_analysis.draw.chart import config, marker
from cadge_analysis.draw.palette import FLOOR, GHOST, INK, MUTED
from cadge_analysis.draw.scales import Axis, log_axis
from cadge_analysis.draw.svg import Spec, framed

say = partial(messages.say, "draw")

WIDTH, HEIGHT, PROBE_HEIGHT = 760, 150, 84
REJECTED = "M-.8,-.8L.8,.8M-.8,.8L.8,-.8"
EDGE = 0.012
LEAST = 1.25
"""An axis reaches at least from 1/LEAST to LEAST, so that small effects look small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchDot:
    """One launch: minutes since the first one, and a ratio (None: it has none)."""

    label: str
    minutes: float
    ratio: float | None
    tagged: bool = False
    rejected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Launches in one panel; one of a machine probe is grey, and lower.

    drift: where its line begins and ends, as (minutes, ratio).
    """

    title: str
    dots: tuple[LaunchDot, ...]
    drift: tuple[tuple[float, float], ...] = ()
    of_probe: bool = False


def _axis(strips: Sequence[Strip]) -> Axis:
    found = [dot.ratio for strip in strips for dot in strip.dots if dot.ratio]
    return log_axis([*found, LEAST, 1 / LEAST], wide=1)


def ticked(axis: Axis) -> Axis:
    """Return the axis with ticks as far above one as below: halves and doubles, or quarters of a small range."""
    step = 2.0 if axis.high / axis.low > 4 else LEAST
    while axis.high / axis.low > step**8:
        step *= step
    found = [step**n for n in range(-8, 9) if axis.low <= step**n <= axis.high]
    ticks = tuple(round(tick, 2) for tick in found) if step == LEAST else tuple(found)
    return Axis(axis.low, axis.high, ticks, axis.log)


def _discs(spots: Sequence[Mapping[str, object]], width_px: float, colour: str, x: Spec, y: Spec) -> Spec:
    """Return round spots of one look as one stroke: thousands take a tenth of the bytes of as many marks."""
    broken = [row for spot in spots for row in (spot, {"x": spot["x"], "y": None})]
    mark = {"type": "line", "strokeWidth": width_px, "strokeCap": "round", "color": colour}
    return {"data": {"values": broken}, "mark": mark, "encoding": {"x": x, "y": y, "order": {"value": None}}}


def _panel(strip: Strip, axis: Axis, looks: Sequence[Look], last: float, *, room_px: float, titled: bool) -> Spec:
    span = last or 1.0
    step = next(step for step in (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 240, 480, 1440, 10_000_000) if span / step <= 8)
    spots = {n * step: f"{n * step:g}" for n in range(int(span / step) + 1)}
    x = horizontal(
        spots,
        -EDGE * span,
        span * (1 + EDGE),
        title=say("strips.minutes") if titled else None,
        grid=False,
    )
    y = vertical(axis, strip.title, TIMES_TICK, room_px=room_px)
    tokens = {look.label: look.token for look in looks}
    rows = [
        {"s": dot.label, "c": tokens[dot.label], "x": round(dot.minutes, 4), "y": dot.ratio}
        for dot in strip.dots
        if dot.ratio
    ]
    tagged = [{"x": round(dot.minutes, 4), "y": dot.ratio} for dot in strip.dots if dot.ratio and dot.tagged]
    rejected = [{"x": round(dot.minutes, 4), "y": axis.low} for dot in strip.dots if dot.rejected]
    ends = [{"x": 0, "y": 1.0}, {"x": span, "y": 1.0}]
    layers: list[Spec] = [
        {
            "data": {"values": ends},
            "mark": {"type": "line", "strokeWidth": 1, "strokeDash": [2, 3], "color": FLOOR},
            "encoding": {"x": x, "y": y},
        },
        _discs(tagged, 9, GHOST, x, y),
        _discs([{"x": row["x"], "y": row["y"]} for row in rows], 4, MUTED, x, y)
        if strip.of_probe
        else {
            "data": {"values": rows},
            "mark": {"type": "point", "size": 24, "opacity": 1, "strokeWidth": 1},
            "encoding": {"x": x, "y": y, **marker(looks)},
        },
        {
            "data": {"values": rejected},
            "mark": {"type": "point", "shape": REJECTED, "size": 50, "strokeWidth": 1.3, "color": INK, "yOffset": -5},
            "encoding": {"x": x, "y": y},
        },
    ]
    if strip.drift:
        layers.append(
            {
                "data": {"values": [{"x": at, "y": value} for at, value in strip.drift]},
                "mark": {"type": "line", "strokeWidth": 1.6, "color": INK},
                "encoding": {"x": x, "y": y},
            }
        )
    return {"width": WIDTH, "height": PROBE_HEIGHT if strip.of_probe else HEIGHT, "layer": layers}


def figure(strips: Sequence[Strip], looks: Sequence[Look]) -> Spec:
    """Return the figure: strips of launches share one vertical axis, those of machine probes another."""
    axes = {
        kind: ticked(_axis([strip for strip in strips if strip.of_probe is kind]))
        for kind in {strip.of_probe for strip in strips}
    }
    room_px = max(ticks_px(axis, units.TIMES) for axis in axes.values())
    last = max(dot.minutes for strip in strips for dot in strip.dots)
    return framed(
        {
            "vconcat": [
                _panel(strip, axes[strip.of_probe], looks, last, room_px=room_px, titled=strip is strips[-1])
                for strip in strips
            ],
            "spacing": BELOW_PX + 12,
            "config": config(),
        },
        left=left_px(room_px, titled=True),
        top=EDGE_PX * 2,
        right=EDGE_PX * 4,
        bottom=below_px(titled=True),
    )
