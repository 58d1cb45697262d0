# SPDX-License-Identifier: BSD-3-Clause
"""Ratios as dots on one logarithm around 1x: a row a series, under its name and a text that says them.

Nothing is told by colour: what a dot is of its shape says, and the text names the shapes' values in their order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cadge_analysis.draw.axes import EDGE_PX, below_px, horizontal, names_px
from cadge_analysis.draw.chart import GIVEN, TEXT_PX, config
from cadge_analysis.draw.palette import FLOOR, MUTED
from cadge_analysis.draw.scales import log_axis
from cadge_analysis.draw.svg import Spec, framed
from cadge_analysis.draw.textwidth import shortened

WIDTH, ROW_PX, NAME_PX = 680, 34, 180
BOLD = 1.15
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
NEAR = 1.25
"""The axis reaches at least so far either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One ratio with its interval; `shape` is its place among SHAPES."""

    shape: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DotSeries:
    """One series: `token` is its colour, `ink` that of its name."""

    name: str
    text: str
    token: str
    ink: str
    dots: tuple[Dot, ...]


def figure(rows: Sequence[DotSeries], *, title: str) -> Spec:
    """Return the chart of at least one dot."""
    every = [dot for row in rows for dot in row.dots]
    ends = [value for dot in every for value in (dot.low, dot.value, dot.high) if value]
    axis = log_axis([*ends, NEAR, 1 / NEAR], wide=2)
    texts = {math.log10(tick): f"{tick:,.12g}\u00d7".replace(",", "\u202f") for tick in axis.ticks}
    x = horizontal(texts, math.log10(axis.low), math.log10(axis.high), title=title)
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "scale": {"domain": [len(rows), 0], "nice": False, "zero": False},
        "axis": None,
    }
    names = [
        {"x": math.log10(axis.low), "y": number + 0.3, "n": shortened(row.name, TEXT_PX, NAME_PX), "t": row.text,
         "i": row.ink}
        for number, row in enumerate(rows)
    ]  # fmt: skip
    marks = [
        {
            "x": _log(dot.value),
            "lo": _log(dot.low or dot.value),
            "hi": _log(dot.high or dot.value),
            "y": round(number + 0.74 + _beside(dot.shape, len(row.dots)), 4),
            "c": row.token,
            "h": SHAPES[dot.shape % len(SHAPES)],
        }
        for number, row in enumerate(rows)
        for dot in row.dots
    ]
    text: Spec = {"type": "text", "align": "left", "baseline": "middle", "fontSize": TEXT_PX}
    beside = round(BOLD * names_px(str(one["n"]) for one in names) + 2 * EDGE_PX)
    layers: list[Spec] = [
        {
            "data": {"values": [{"x": 0, "y": 0}, {"x": 0, "y": len(rows)}]},
            "mark": {"type": "line", "strokeWidth": 1, "strokeDash": [2, 3], "color": FLOOR},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": [mark for mark in marks if mark["lo"] != mark["hi"]]},
            "mark": {"type": "rule", "strokeWidth": 3.2, "strokeOpacity": 0.35},
            "encoding": {"x": {**x, "field": "lo"}, "x2": {"field": "hi"}, "y": y, "color": GIVEN},
        },
        {
            "data": {"values": marks},
            "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
            "encoding": {
                "x": x,
                "y": y,
                "color": GIVEN,
                "shape": {"field": "h", "type": "nominal", "scale": None},
            },
        },
        {
            "data": {"values": names},
            "mark": {**text, "fontWeight": "bold"},
            "encoding": {"x": x, "y": y, "text": {"field": "n"}, "color": {**GIVEN, "field": "i"}},
        },
        {
            "data": {"values": names},
            "mark": {**text, "dx": beside, "color": MUTED},
            "encoding": {"x": x, "y": y, "text": {"field": "t"}},
        },
    ]
    return framed(
        {"width": WIDTH, "height": len(rows) * ROW_PX, "layer": layers, "config": config()},
        left=EDGE_PX * 4,
        top=EDGE_PX * 2,
        right=EDGE_PX * 6,
        bottom=below_px(titled=True),
    )


def _beside(place: int, count: int) -> float:
    """Return how much lower a dot stands than the middle of several, in rows, so that their bars do not overlap."""
    return min(0.13, 0.4 / count) * (min(place, count - 1) - (count - 1) / 2)


def _log(value: float) -> float:
    return round(math.log10(value), 4)
