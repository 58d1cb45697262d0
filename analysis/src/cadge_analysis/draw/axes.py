# SPDX-License-Identifier: BSD-3-Clause
"""Axes of charts as Vega-Lite encodings, and the room that they take: fixed numbers, whatever fonts a machine has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from cadge_analysis.draw.chart import TEXT_PX
from cadge_analysis.draw.scales import Axis
from cadge_analysis.draw.svg import Spec
from cadge_analysis.draw.textwidth import width_px

TICK = "replace(format(datum.value,',~r'),regexp(',','g'),'\u202f')"
TIMES_TICK = f"{TICK}+'\\u00d7'"
_TICK_PX, _TITLE_GAP_PX = 8, 7
BELOW_PX, BELOW_TITLED_PX = 22, 42
TITLE_Y_PX = 24
EDGE_PX = 4


def names_px(texts: Iterable[str]) -> float:
    """Return how wide the widest of some texts of a chart is."""
    return max((width_px(text, TEXT_PX) for text in texts), default=0.0)


def ticks_px(axis: Axis, sign: str = "") -> float:
    """Return how much room the tick labels of a vertical axis take, the ticks included."""
    return _TICK_PX + names_px(f"{tick:,.12g}{sign}" for tick in axis.ticks)


def left_px(room_px: float, *, titled: bool) -> float:
    """Return the room left of a panel whose tick labels take so much."""
    return room_px + (_TITLE_GAP_PX + TEXT_PX if titled else 0) + EDGE_PX


def below_px(*, titled: bool) -> float:
    """Return the room below a panel for its horizontal axis."""
    return BELOW_TITLED_PX if titled else BELOW_PX


def vertical(axis: Axis, title: str | None, expr: str, *, room_px: float) -> Spec:
    """Return the encoding of a vertical axis of the field `y`, whose tick labels take so much room."""
    scale: Spec = {"domain": [axis.low, axis.high], "nice": False, "zero": False, "clamp": False}
    if axis.log:
        scale["type"] = "log"
    return {
        "field": "y",
        "type": "quantitative",
        "scale": scale,
        "axis": {
            "title": title,
            "titleX": -(round(room_px) + _TITLE_GAP_PX),
            "values": list(axis.ticks),
            "labelExpr": expr,
        },
    }


def horizontal(spots: Mapping[float, str], low: float, high: float, *, title: str | None, grid: bool = True) -> Spec:
    """Return the encoding of a horizontal axis of the field `x`, with a text at each of its ticks; "" for none."""
    table = ",".join(f"'{round(spot * 1e4)}':{json.dumps(text)}" for spot, text in sorted(spots.items()) if text)
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": [low, high], "nice": False, "zero": False},
        "axis": {
            "title": title,
            "titleY": TITLE_Y_PX,
            "values": sorted(round(spot, 4) for spot in spots),
            "labelExpr": f"({{{table}}})[''+round(datum.value*10000)]||''",
            "labelOverlap": False,
            "grid": grid,
        },
    }
