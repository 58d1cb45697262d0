# SPDX-License-Identifier: BSD-3-Clause
"""Stacked bars, one below the other, each under its name and a text that says its parts in their order.

Nothing is told by colour alone: all bars have their parts in the same order, with a gap between them, and the text
above each says them. A bar that is longer than the axis is cut at its end, and an arrow says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cadge_analysis.draw.axes import EDGE_PX, TITLE_Y_PX, below_px, names_px
from cadge_analysis.draw.chart import GIVEN, TEXT_PX, config
from cadge_analysis.draw.palette import INK, MUTED
from cadge_analysis.draw.svg import Spec, framed
from cadge_analysis.draw.textwidth import shortened

WIDTH, ROW_PX, LINE_PX = 680, 36, 16
BAR_PX = 15
BOLD = 1.15
"""How much wider bold names are at most."""
ARROW = "M0,-.8L1,0L0,.8Z"
GAP = 0.002
"""Between parts, of the whole width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedBar:
    """One bar: its name, what it says of its parts, and how long each is; `ink` is the name's colour."""

    name: str
    text: str
    parts: Mapping[str, float]
    ink: str = INK


def figure(
    bars: Sequence[StackedBar],
    colours: Mapping[str, str],
    *,
    end: float,
    title: str,
    ticks: Sequence[float],
    tick_expr: str,
) -> Spec:
    """Return the chart. `colours` has the parts in their order; the axis reaches from 0 to `end`."""
    count = max(1, len(bars))
    names = BOLD * names_px(shortened(bar.name, TEXT_PX, WIDTH / 3) for bar in bars) + 2 * EDGE_PX
    beside = all(names + names_px([bar.text]) <= WIDTH for bar in bars)
    row_px = ROW_PX if beside else ROW_PX + LINE_PX
    above_px = row_px - BAR_PX - EDGE_PX
    x: Spec = {
        "field": "from",
        "type": "quantitative",
        "scale": {"domain": [0, end], "nice": False},
        "axis": {"title": title, "titleY": TITLE_Y_PX, "values": list(ticks), "labelExpr": tick_expr},
    }
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "scale": {"domain": [count, 0], "nice": False, "zero": False},
        "axis": None,
    }
    texts = [
        {
            "y": number + above_px / row_px,
            "from": 0,
            "name": shortened(bar.name, TEXT_PX, WIDTH / 3 if beside else WIDTH),
            "text": shortened(bar.text, TEXT_PX, WIDTH),
            "c": bar.ink,
        }
        for number, bar in enumerate(bars)
    ]
    layers: list[Spec] = [
        {
            "data": {"values": _pieces(bars, colours, end, above_px / row_px, (above_px + BAR_PX) / row_px)},
            "mark": {"type": "rect"},
            "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"field": "y2"}, "color": GIVEN},
        },
        _text(texts, "name", x, y, at=(0, -9 if beside else -9 - LINE_PX), colour=GIVEN, weight="bold"),
        _text(texts, "text", x, y, at=(names if beside else 0, -9), colour={"value": MUTED}, weight="normal"),
        {
            "data": {"values": _arrows(bars, end, (above_px + BAR_PX / 2) / row_px)},
            "mark": {"type": "point", "shape": ARROW, "size": 110, "filled": True, "color": INK, "opacity": 1},
            "encoding": {"x": x, "y": y},
        },
    ]
    return framed(
        {"width": WIDTH, "height": count * row_px, "layer": layers, "config": config()},
        left=EDGE_PX * 4,
        top=EDGE_PX * 2,
        right=EDGE_PX * 6,  # where an arrow has its room as well
        bottom=below_px(titled=True),
    )


def _arrows(bars: Sequence[StackedBar], end: float, y: float) -> list[dict[str, object]]:
    return [
        {"from": end, "y": number + y} for number, bar in enumerate(bars) if sum(bar.parts.values()) > end * (1 + GAP)
    ]


def _pieces(
    bars: Sequence[StackedBar], colours: Mapping[str, str], end: float, top: float, bottom: float
) -> list[dict[str, object]]:
    """Return what is seen of the parts; `top` and `bottom` of a bar are shares of its row."""
    pieces: list[dict[str, object]] = []
    for number, bar in enumerate(bars):
        at = 0.0
        for name, colour in colours.items():
            length = bar.parts.get(name)
            if length is None or at >= end:
                continue
            upto = min(end, max(at, at + length - GAP * end))
            place = {"from": round(at, 5), "to": round(upto, 5), "y": number + top, "y2": number + bottom}
            pieces.append({**place, "c": colour})
            at += length
    return pieces


def _text(
    texts: list[dict[str, object]], name: str, x: Spec, y: Spec, *, at: tuple[float, float], colour: Spec, weight: str
) -> Spec:
    """Return the texts of one kind, so many px right of, and below, the upper left end of their bars."""
    return {
        "data": {"values": texts},
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "middle",
            "dx": round(at[0]),
            "dy": at[1],
            "fontSize": TEXT_PX,
            "fontWeight": weight,
        },
        "encoding": {"x": x, "y": y, "text": {"field": name}, "color": colour},
    }
