# SPDX-License-Identifier: BSD-3-Clause
"""The course of a number through campaigns: a marker with its interval each, where it changed, and what else did.

Campaigns stand side by side in the order of time, as far apart as they are many: days do not count. The value is on a
logarithmic scale, of no less than LEAST_SPAN, so that noise does not fill the picture. A dashed rule is a change, the
bars beside it are the medians before and after. Triangles below the axis are events, with the numbers that a table
gives them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from cadge_analysis.draw.axes import BELOW_PX, EDGE_PX, TICK, horizontal, left_px, ticks_px, vertical
from cadge_analysis.draw.chart import TEXT_PX, config
from cadge_analysis.draw.palette import FLOOR, INK, MUTED, Identity
from cadge_analysis.draw.scales import Axis, labelled
from cadge_analysis.draw.svg import Spec, framed

WIDTH, HEIGHT, EVENTS_PX = 300, 128, 20
LEFT_PX, RIGHT_PX = 62, 26
LEAST_SPAN = 1.2
LABEL_PX = 54


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseMark:
    """One campaign's value."""

    at: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A stretch between changes, and its median."""

    begin: float
    end: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseChart:
    """One chart. `names`: every campaign's date. `turns`: before which campaigns; `events`: number of each campaign's.

    `look` is None of what is no series.
    """

    title: str
    look: Identity | None
    names: Sequence[str]
    marks: tuple[CourseMark, ...]
    levels: tuple[Level, ...]
    turns: tuple[int, ...]
    events: Mapping[int, str]


def course_chart(chart: CourseChart) -> Spec:
    """Return the chart."""
    ends = [value for mark in chart.marks for value in (mark.value, mark.low, mark.high) if value]
    axis = _axis(min(ends), max(ends))
    room_px = ticks_px(axis)
    low, high = -0.6, len(chart.names) - 0.4
    shown = labelled({at: float(at) for at in range(len(chart.names))}, WIDTH, LABEL_PX)
    texts = {float(at): name if at in shown else "" for at, name in enumerate(chart.names)}
    x = horizontal(texts, low, high, title=None, grid=False)
    y = vertical(axis, chart.title, TICK, room_px=room_px)
    below: Spec = {**x, "axis": None}
    events = [{"x": at - 0.5, "t": text} for at, text in sorted(chart.events.items())]
    upper: Spec = {"width": WIDTH, "height": HEIGHT, "layer": _layers(chart, x, y)}
    lower: Spec = {
        "width": WIDTH,
        "height": EVENTS_PX,
        "layer": [
            {
                "data": {"values": events or [{"x": -9, "t": ""}]},
                "mark": {
                    "type": "point",
                    "shape": "triangle-up",
                    "filled": True,
                    "size": 34,
                    "color": INK,
                    "clip": True,
                },
                "encoding": {"x": below, "y": {"value": 6}},
            },
            {
                "data": {"values": events},
                "mark": {
                    "type": "text",
                    "fontSize": TEXT_PX,
                    "color": INK,
                    "baseline": "middle",
                    "align": "left",
                    "dx": 6,
                },
                "encoding": {"x": below, "y": {"value": 7}, "text": {"field": "t"}},
            },
        ],
    }
    return framed(
        {"vconcat": [upper, lower], "spacing": BELOW_PX + EDGE_PX, "config": config()},
        left=max(LEFT_PX, left_px(room_px, titled=True)),
        top=2 * EDGE_PX,
        right=RIGHT_PX,
        bottom=EDGE_PX,
    )


def _layers(chart: CourseChart, x: Spec, y: Spec) -> list[Spec]:
    colour, shape = (chart.look.token, chart.look.shape) if chart.look else (FLOOR, "circle")
    rows = [
        {"x": one.at, "y": one.value, "lo": one.low or one.value, "hi": one.high or one.value} for one in chart.marks
    ]
    levels = [{"x": one.begin, "x2": one.end, "y": one.value} for one in chart.levels]
    return [
        {
            "data": {"values": [{"x": at - 0.5} for at in chart.turns]},
            "mark": {"type": "rule", "strokeWidth": 1.4, "strokeDash": [4, 3], "color": INK},
            "encoding": {"x": x},
        },
        {
            "data": {"values": levels},
            "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.28, "color": MUTED},
            "encoding": {"x": x, "x2": {"field": "x2"}, "y": y},
        },
        {
            "data": {"values": [row for row in rows if row["lo"] != row["hi"]]},
            "mark": {"type": "rule", "strokeWidth": 2.6, "opacity": 0.4, "color": colour},
            "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}},
        },
        {
            "data": {"values": rows},
            "mark": {
                "type": "point",
                "filled": not (chart.look and chart.look.hollow),
                "size": 30,
                "opacity": 1,
                "strokeWidth": 1.3,
                "color": colour,
                "shape": shape,
            },
            "encoding": {"x": x, "y": y},
        },
    ]


def _axis(low: float, high: float) -> Axis:
    """Return a logarithmic axis with three to six round ticks."""
    wider = max(1.0, LEAST_SPAN / (high / low)) ** 0.5 * 1.03
    low, high = low / wider, high * wider
    step = 10.0 ** floor(log10((high - low) / 3))
    if high / low > 20:  # ticks at powers of ten, or at 1, 2 and 5 of them
        powers = range(floor(log10(low)), floor(log10(high)) + 1)
        ticks = [digit * 10.0**power for power in powers for digit in ((1,) if high / low > 2000 else (1, 2, 5))]
    else:
        step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
        ticks = [number * step for number in range(int(low / step), int(high / step) + 1)]
    return Axis(low, high, tuple(float(f"{tick:.12g}") for tick in ticks if low <= tick <= high), log=True)
