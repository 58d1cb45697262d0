# SPDX-License-Identifier: BSD-3-Clause
"""The stacked bill as a Vega-Lite specification: a bar a round trip, each as long as the other, cut by share.

Bars are shares because totals of unlike wires, and of machines thirty years apart, do not fit on one axis; the times
stand above each bar. The order of the parts is the same in all bars, so nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from cadge_analysis.draw.axes import EDGE_PX, TITLE_Y_PX, below_px
from cadge_analysis.draw.chart import TEXT_PX, config
from cadge_analysis.draw.palette import FLOOR as FLOOR_INK
from cadge_analysis.draw.palette import INK, LIGHT, MUTED
from cadge_analysis.draw.svg import Spec, framed
from cadge_analysis.study.bill import ENGINE, FLOOR, PARTS, REST, SOFTWARE, TOGETHER, Item, summary

WIDTH, ROW_PX = 680, 52
GAP = 0.002  # of the whole width, between parts
SLOTS = {SOFTWARE: 2, ENGINE: 0, REST: 1, TOGETHER: 9}
COLOURS = {FLOOR: FLOOR_INK} | {name: LIGHT[slot] for name, slot in SLOTS.items()}
VARIABLES = {FLOOR: "floor"} | {name: f"s{slot}" for name, slot in SLOTS.items()}


def _pieces(items: Sequence[Item]) -> list[dict[str, object]]:
    pieces: list[dict[str, object]] = []
    for number, item in enumerate(items):
        if item.total is None:
            continue
        at = 0.0
        for name in PARTS:
            part = item.parts.get(name)
            if part is None:
                continue
            share = part.value / item.total.value
            end = max(at, at + share - GAP)
            pieces.append({"part": name, "from": round(at, 5), "to": round(end, 5), "row": number})
            at += share
    return pieces


def figure(items: Sequence[Item]) -> Spec:
    """Return the chart of all bills that can be stacked."""
    count = max(1, len(items))
    x: Spec = {
        "field": "from",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "nice": False},
        "axis": {
            "title": "share of the round trip",
            "titleY": TITLE_Y_PX,
            "values": [0, 0.25, 0.5, 0.75, 1],
            "labelExpr": "format(datum.value*100,'d')+'\u202f%'",
        },
    }
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "scale": {"domain": [count, 0], "nice": False, "zero": False},
        "axis": None,
    }
    bars = [
        {**piece, "y": int(str(piece["row"])) + 0.56, "y2": int(str(piece["row"])) + 0.86} for piece in _pieces(items)
    ]
    texts = [
        {"y": number + 0.44, "from": 0, "name": f"{item.label}, {item.detail}", "text": summary(item)}
        for number, item in enumerate(items)
    ]
    layers: list[Spec] = [
        {
            "data": {"values": bars},
            "mark": {"type": "rect"},
            "encoding": {
                "x": x,
                "x2": {"field": "to"},
                "y": y,
                "y2": {"field": "y2"},
                "color": {
                    "field": "part",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
                },
            },
        },
        _text(texts, "name", x, y, dy=-15, colour=INK, weight="bold"),
        _text(texts, "text", x, y, dy=0, colour=MUTED, weight="normal"),
    ]
    return framed(
        {"width": WIDTH, "height": count * ROW_PX, "layer": layers, "config": config()},
        left=EDGE_PX * 4,
        top=EDGE_PX * 2,
        right=EDGE_PX * 6,
        bottom=below_px(titled=True),
    )


def _text(texts: list[dict[str, object]], name: str, x: Spec, y: Spec, *, dy: int, colour: str, weight: str) -> Spec:
    return {
        "data": {"values": texts},
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "middle",
            "dy": dy,
            "fontSize": TEXT_PX,
            "fontWeight": weight,
            "color": colour,
        },
        "encoding": {"x": x, "y": y, "text": {"field": name}},
    }
