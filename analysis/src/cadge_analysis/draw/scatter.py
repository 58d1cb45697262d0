# SPDX-License-Identifier: BSD-3-Clause
"""Two costs of each series against each other, both on logarithms; a line joins what is one series in two modes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cadge_analysis.draw.axes import EDGE_PX, TICK, below_px, horizontal, left_px, names_px, ticks_px, vertical
from cadge_analysis.draw.chart import GIVEN, TEXT_PX, Line, config, marker
from cadge_analysis.draw.curves import INKED
from cadge_analysis.draw.scales import LABEL_PX, Axis, log_axis
from cadge_analysis.draw.svg import Spec, framed
from cadge_analysis.draw.textwidth import shortened

WIDTH, HEIGHT = 620, 340
NAME_PX = 200
GAP_PX, MARK_PX, HALF_PX = 8, 5, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One series in one mode; the second mode has a ring around its marker."""

    label: str
    x: float
    y: float
    ringed: bool


def _texts(axis: Axis) -> dict[float, str]:
    return {math.log10(tick): f"{tick:,.12g}".replace(",", "\u202f") for tick in axis.ticks}


def _places(width: float) -> Iterator[tuple[float, float]]:
    """Yield where a name so wide may stand, left end and middle, in px from its mark: the nearest and usual first."""
    for down in (0.0, -LABEL_PX, LABEL_PX):
        yield GAP_PX, down
        yield -GAP_PX - width, down
    yield -width / 2, -1.4 * LABEL_PX
    yield -width / 2, 1.4 * LABEL_PX


def named(spots: Sequence[Spot], lines: Sequence[Line], x: Axis, y: Axis) -> list[dict[str, object]]:
    """Return names beside their marks, each once, where they touch neither another name nor a mark.

    One that has no such place has no name: its marker is in the key.
    """
    looks = {line.label: line.look for line in lines}
    at = [(spot, x.share(spot.x) * WIDTH, (1 - y.share(spot.y)) * HEIGHT) for spot in spots]
    taken = [(across - MARK_PX, across + MARK_PX, down - MARK_PX, down + MARK_PX) for _, across, down in at]
    found: dict[str, dict[str, object]] = {}
    for spot, across, down in sorted(at, key=lambda one: (-one[1], one[2], one[0].label)):
        if spot.label in found:
            continue
        text = shortened(spot.label, TEXT_PX, NAME_PX)
        for left, below in _places(names_px([text])):
            box = (across + left, across + left + names_px([text]), down + below - HALF_PX, down + below + HALF_PX)
            inside = box[0] >= 0 and box[2] >= 0 and box[3] <= HEIGHT
            if inside and not any(_touch(box, other) for other in taken):
                taken.append(box)
                found[spot.label] = {
                    "t": text,
                    "i": looks[spot.label].ink_token,
                    "x": round(math.log10(x.value(box[0] / WIDTH)), 4),
                    "y": y.value(1 - (down + below) / HEIGHT),
                }
                break
    return list(found.values())


def _touch(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def figure(spots: Sequence[Spot], lines: Sequence[Line], *, x_title: str, y_title: str) -> Spec:
    """Return the figure of at least one spot."""
    across, up = log_axis([spot.x for spot in spots]), log_axis([spot.y for spot in spots])
    room_px = ticks_px(up)
    x = horizontal(_texts(across), math.log10(across.low), math.log10(across.high), title=x_title)
    y = vertical(up, y_title, TICK, room_px=room_px)
    tokens = {line.label: line.token for line in lines}
    rows = [
        {"s": spot.label, "c": tokens[spot.label], "x": round(math.log10(spot.x), 4), "y": spot.y, "r": spot.ringed}
        for spot in spots
    ]
    layers: list[Spec] = [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 1.2, "strokeOpacity": 0.7},
            "encoding": {"x": x, "y": y, "color": GIVEN, "detail": {"field": "s"}, "order": {"field": "r"}},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "size": 40, "opacity": 1, "strokeWidth": 1.3},
            "encoding": {"x": x, "y": y, **marker(lines)},
        },
        {
            "data": {"values": [row for row in rows if row["r"]]},
            "mark": {"type": "point", "shape": "circle", "size": 170, "strokeWidth": 1.2, "filled": False},
            "encoding": {"x": x, "y": y, "color": GIVEN},
        },
        {
            "data": {"values": named(spots, lines, across, up)},
            "mark": {"type": "text", "align": "left", "baseline": "middle", "fontSize": TEXT_PX},
            "encoding": {"x": x, "y": y, "text": {"field": "t"}, "color": INKED},
        },
    ]
    return framed(
        {"width": WIDTH, "height": HEIGHT, "layer": layers, "config": config()},
        left=left_px(room_px, titled=True),
        top=EDGE_PX * 2,
        right=names_px(shortened(line.label, TEXT_PX, NAME_PX) for line in lines) + 2 * GAP_PX,
        bottom=below_px(titled=True),
    )
