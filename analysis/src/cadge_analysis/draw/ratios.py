# SPDX-License-Identifier: BSD-3-Clause
"""Small charts of ratios between two sides: against size, and percentile by percentile, around a grey stripe.

The stripe is what counts as the same, the rule in it 1x. Ratios are logarithmic, so that half and twice stand equally
far away, and all charts of a page share one scale. What lies beyond it is a triangle at the edge with its value beside
it, never a point at the edge. Only what is separated has a colour, its own marker and an interval; the rest is grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

from cadge_analysis import units
from cadge_analysis.draw.axes import EDGE_PX, TIMES_TICK, below_px, horizontal, left_px, ticks_px, vertical
from cadge_analysis.draw.chart import TEXT_PX, config
from cadge_analysis.draw.palette import GRID, INK, MUTED, Identity
from cadge_analysis.draw.scales import Axis, labelled
from cadge_analysis.draw.svg import Spec, framed
from cadge_analysis.draw.textwidth import width_px

WIDTH, HEIGHT = 300, 176
FARTHEST = 2.0
"""Beyond so many times, or so small a part, a ratio is a triangle at the edge."""
LEAST = 1.08
"""A scale reaches at least so far, so that noise does not fill it."""
LABEL_PX = 46
NAME_PX = 6
"""From a triangle to the value beside it."""
RIGHT_PX = 38
"""Room for the value of a ratio beyond the scale at the right end; fixed, so that all charts have one size."""
_STEPS = (
    (1.13, (0.9, 0.95, 1.0, 1.05, 1.1)),
    (1.4, (0.75, 0.8, 0.9, 1.0, 1.1, 1.25)),
    (FARTHEST * 1.1, (0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioMark:
    """The ratio at one place of the axis, and its interval where it has one."""

    at: float
    ratio: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioLine:
    """One series; one that is `told` is drawn in its own look, the others in grey."""

    label: str
    look: Identity
    marks: tuple[RatioMark, ...]
    told: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioPanel:
    """One chart. `names`: each place of the axis, in the order of places. `margin`: half of the stripe, a share.

    `reach`: how many times as much its scale ends at; see `reach_of`.
    """

    title: str
    along: str
    names: Mapping[float, str]
    lines: tuple[RatioLine, ...]
    margin: float
    reach: float


def reach_of(lines: Iterable[RatioLine], margin: float) -> float:
    """Return how far a scale has to reach for these lines, up to FARTHEST."""
    ends = [
        abs(log(value))
        for line in lines
        for mark in line.marks
        for value in ((mark.ratio, mark.low, mark.high) if line.told else (mark.ratio,))
        if value is not None
    ]
    return min(FARTHEST, max(exp(max(ends, default=0.0)), LEAST, 1 + 1.5 * margin)) * 1.03


def ratio_panel(panel: RatioPanel) -> Spec:
    """Return the chart."""
    spots = sorted(panel.names)
    edge = (spots[-1] - spots[0] or 1.0) * 8 / WIDTH
    domain = [spots[0] - edge, spots[-1] + edge]
    shown = labelled({place: float(spot) for place, spot in enumerate(spots)}, WIDTH, LABEL_PX)
    texts = {spot: panel.names[spot] if place in shown else "" for place, spot in enumerate(spots)}
    axis = _axis(panel.reach)
    room_px = ticks_px(axis, units.TIMES)
    x = horizontal(texts, domain[0], domain[1], title=panel.along)
    y = vertical(axis, panel.title, TIMES_TICK, room_px=room_px)
    told = [line for line in panel.lines if line.told]
    others = [row for line in panel.lines if not line.told for row in _rows(line, panel.reach)]
    stripe = {"x": domain[0], "x2": domain[1], "lo": 1 / (1 + panel.margin), "hi": 1 + panel.margin}
    layers: list[Spec] = [
        {
            "data": {"values": [stripe]},
            "mark": {"type": "rect", "color": GRID},
            "encoding": {"x": x, "x2": {"field": "x2"}, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}},
        },
        {
            "data": {"values": [{"x": domain[0], "x2": domain[1], "y": 1.0}]},
            "mark": {"type": "rule", "color": MUTED, "strokeWidth": 1},
            "encoding": {"x": x, "x2": {"field": "x2"}, "y": y},
        },
        {
            "data": {"values": [row for row in others if row["inside"]]},
            "mark": {"type": "line", "strokeWidth": 1, "color": MUTED, "opacity": 0.45},
            "encoding": {"x": x, "y": y, "detail": {"field": "s"}},
        },
        {
            "data": {"values": [row for row in others if row["inside"]]},
            "mark": {"type": "point", "filled": True, "size": 7, "opacity": 0.45, "color": MUTED},
            "encoding": {"x": x, "y": y},
        },
        *(layer for line in told for layer in _separated_layers(line, panel.reach, x, y)),
        *_beyond(panel, x, y, domain),
    ]
    return framed(
        {"width": WIDTH, "height": HEIGHT, "layer": layers, "config": config()},
        left=left_px(room_px, titled=True),
        top=2 * EDGE_PX,
        right=RIGHT_PX,
        bottom=below_px(titled=True),
    )


def _holds(panel: RatioPanel, mark: RatioMark) -> bool:
    """Tell whether a mark lies on the scale."""
    return 1 / panel.reach <= mark.ratio <= panel.reach


def _rows(line: RatioLine, reach: float) -> list[dict[str, object]]:
    """Return the marks of a line; of an interval what lies on the scale."""

    def held(value: float | None, otherwise: float) -> float:
        return min(max(otherwise if value is None else value, 1 / reach), reach)

    return [
        {
            "s": line.label,
            "x": round(mark.at, 4),
            "y": held(mark.ratio, mark.ratio),
            "lo": held(mark.low, mark.ratio),
            "hi": held(mark.high, mark.ratio),
            "inside": 1 / reach <= mark.ratio <= reach,
        }
        for mark in line.marks
    ]


def _separated_layers(line: RatioLine, reach: float, x: Spec, y: Spec) -> list[Spec]:
    """Return band, bars, line and markers of a series that is separated."""
    rows = _rows(line, reach)
    inside = [row for row in rows if row["inside"]]
    colour, ends = line.look.token, {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}}
    return [
        {"data": {"values": rows}, "mark": {"type": "area", "opacity": 0.18, "color": colour}, "encoding": ends},
        {
            "data": {"values": [row for row in rows if row["lo"] != row["hi"]]},
            "mark": {"type": "rule", "strokeWidth": 2.6, "opacity": 0.4, "color": colour},
            "encoding": ends,
        },
        {
            "data": {"values": inside},
            "mark": {"type": "line", "strokeWidth": 1.7, "color": colour, "strokeDash": list(line.look.dash) or [1, 0]},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": inside},
            "mark": {
                "type": "point",
                "filled": not line.look.hollow,
                "size": 30,
                "opacity": 1,
                "strokeWidth": 1.3,
                "color": colour,
                "shape": line.look.shape,
            },
            "encoding": {"x": x, "y": y},
        },
    ]


def _beyond(panel: RatioPanel, x: Spec, y: Spec, domain: Sequence[float]) -> list[Spec]:
    """Return triangles at the edges with the values that lie beyond them; nothing where none does."""
    rows: list[dict[str, Any]] = [
        {
            "x": round(mark.at, 4),
            "y": panel.reach if mark.ratio > 1 else 1 / panel.reach,
            "t": units.times(mark.ratio),
            "up": mark.ratio > 1,
        }
        for line in panel.lines
        for mark in line.marks
        if not _holds(panel, mark)
    ]
    low, high = domain
    made: list[Spec] = []
    for up in (True, False):
        here = [row for row in rows if row["up"] is up]
        if not here:
            continue
        shape, away = ("triangle-up", 5) if up else ("triangle-down", -5)
        made.append(
            {
                "data": {"values": here},
                "mark": {"type": "point", "shape": shape, "filled": True, "size": 40, "color": INK, "opacity": 1},
                "encoding": {"x": x, "y": y},
            }
        )
        for number, line in enumerate(lines_of([(WIDTH * (row["x"] - low) / (high - low), row["t"]) for row in here])):
            dy = away * (1 + 2.4 * number)
            made.append(
                {
                    "data": {"values": [here[place] for place in line]},
                    "mark": {
                        "type": "text",
                        "align": "left",
                        "dx": NAME_PX,
                        "dy": dy,
                        "fontSize": TEXT_PX,
                        "color": INK,
                    },
                    "encoding": {"x": x, "y": y, "text": {"field": "t"}},
                }
            )
    return made


def lines_of(texts: Sequence[tuple[float, str]]) -> list[list[int]]:
    """Return places of texts, line by line, so that none runs into the next of its line; the first is the triangles'.

    texts: where each one's triangle stands in px, and itself.
    """
    made: list[list[int]] = [[]]
    ends = [-inf]
    for place, (at, text) in sorted(enumerate(texts), key=lambda one: one[1]):
        end = at + NAME_PX + width_px(text, TEXT_PX)
        covers = any(at < other < end + NAME_PX for other, _ in texts)
        free = (number for number, taken in enumerate(ends) if taken + NAME_PX <= at and not (covers and number == 0))
        number = next(free, len(ends))
        if number == len(ends):
            made.append([])
            ends.append(-inf)
        made[number].append(place)
        ends[number] = end
    return made


def _axis(reach: float) -> Axis:
    steps = next((found for limit, found in _STEPS if reach <= limit), _STEPS[-1][1])
    return Axis(1 / reach, reach, tuple(tick for tick in steps if 1 / reach <= tick <= reach), log=True)
