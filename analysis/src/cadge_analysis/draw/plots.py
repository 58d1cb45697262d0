# SPDX-License-Identifier: BSD-3-Clause
"""Charts as Vega-Lite specifications (plain dicts): a quantity against size, above its ratio to the floor.

Sizes stand on a binary logarithm, 0 B apart on the left, and shares in percent in proportion; latency is logarithmic in
microseconds, anything else linear from zero. A marker is a measured size with its interval over launches; a line only
joins markers, and is broken where the layer changes its path and beside 0 B. Series are labelled at their right end;
nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cadge_analysis.draw.chart import FLOOR_LABEL, TEXT_PX, Chart, Line, Mark, colour_of, config, dash_of, marker
from cadge_analysis.draw.palette import FLOOR, GHOST, INK, MUTED
from cadge_analysis.draw.scales import Axis, labelled, linear_axis, log_axis, positions, spread
from cadge_analysis.draw.svg import Spec

WIDTH, HEIGHT, RATIO_HEIGHT = 680, 310, 210
SMALL_WIDTH, SMALL_HEIGHT = 190, 112
RIGHT_PX = 26
WIDER_PX = 1.3
"""A character of a label, in the widest of the fonts that readers have, above what the renderer reckons with."""


def _spots(chart: Chart) -> dict[int, float]:
    sizes = [mark.size for line in chart.lines for mark in line.marks]
    return positions([*sizes, *(mark.size for mark in chart.floor)], proportional=chart.proportional)


def _ends(lines: Sequence[Line], pick: Callable[[Mark], Sequence[float | None]]) -> list[float]:
    return [value for line in lines for mark in line.marks for value in pick(mark) if value is not None]


def _main_axis(chart: Chart) -> Axis:
    values = _ends(chart.lines, lambda m: (m.value, m.low, m.high)) + [mark.value for mark in chart.floor]
    return linear_axis(values) if chart.linear else log_axis(values)


def _ratio_axis(chart: Chart) -> Axis:
    values = [*_ends(chart.lines, lambda m: (m.ratio, m.ratio_low, m.ratio_high)), 1.0]
    return linear_axis(values) if chart.more_is_better else log_axis(values, wide=2)


def _segment(line: Line, size: int) -> int:
    """Return which unbroken piece of a line a size belongs to."""
    if size == 0:
        return 0
    return 2 if line.short_bytes and size > line.short_bytes else 1


def _rows(lines: Sequence[Line], spots: dict[int, float], *, ratio: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for line in lines:
        for mark in line.marks:
            value, low, high = (
                (mark.ratio, mark.ratio_low, mark.ratio_high) if ratio else (mark.value, mark.low, mark.high)
            )
            if value is None:
                continue
            rows.append(
                {
                    "s": line.label,
                    "x": round(spots[mark.size], 4),
                    "y": value,
                    "lo": value if low is None else low,
                    "hi": value if high is None else high,
                    "g": _segment(line, mark.size),
                    **({"ring": True} if mark.ringed else {}),
                }
            )
    return rows


def _labels(
    ends: Sequence[tuple[str, float, float]], axis: Axis, height: int, x_label: float
) -> list[dict[str, object]]:
    """Return one label a series, (name, x, y of its last marker) → where its text and its leader stand."""
    wanted = [(1 - axis.share(y)) * height for _, _, y in ends]
    return [
        {"s": name, "x": x, "y": y, "lx": x_label, "ly": axis.value(1 - place / height)}
        for (name, x, y), place in zip(ends, spread(wanted, height), strict=True)
    ]


def _x_axis(chart: Chart, spots: dict[int, float], *, title: str | None, width: int, room_px: float) -> Spec:
    names = {f"{spots[size]:.4f}": chart.sizes[size] for size in labelled(spots, width, room_px)}
    table = ",".join(f"'{x}':'{name}'" for x, name in sorted(names.items()))
    return {
        "title": title,
        "values": [round(x, 4) for x in spots.values()],
        "labelExpr": f"({{{table}}})[format(datum.value,'.4f')]||''",
        "labelOverlap": False,
        "grid": True,
    }


def _y(axis: Axis, title: str | None, expr: str) -> Spec:
    scale: Spec = {"domain": [axis.low, axis.high], "nice": False, "zero": False, "clamp": False}
    if axis.log:
        scale["type"] = "log"
    return {
        "field": "y",
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": title, "values": list(axis.ticks), "labelExpr": expr, "titlePadding": 8},
    }


_TICK = "replace(format(datum.value,',~r'),',','\u202f')"
_RATIO_TICK = f"{_TICK}+'\\u00d7'"


def _panel(
    chart: Chart, spots: dict[int, float], axis: Axis, *, ratio: bool, height: int, title: str, x_title: str | None
) -> Spec:
    """Return one labelled panel: floor, intervals, lines, markers, labels."""
    lines = chart.lines
    last = max(spots.values())
    first = min(spots.values())
    unit = (last - first or 1.0) / WIDTH
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": [first - 8 * unit, last + 8 * unit], "nice": False, "zero": False},
        "axis": _x_axis(chart, spots, title=x_title, width=WIDTH, room_px=44),
    }
    y = _y(axis, title, _RATIO_TICK if ratio else _TICK)
    rows = _rows(lines, spots, ratio=ratio)
    floor_rows = (
        [{"x": x_at, "y": 1.0, "s": FLOOR_LABEL, "g": "1"} for x_at in (first - 8 * unit, last + 8 * unit)]
        if ratio
        else [
            {"x": round(spots[mark.size], 4), "y": mark.value, "s": FLOOR_LABEL, "g": mark.name} for mark in chart.floor
        ]
    )
    ends: dict[str, tuple[str, float, float]] = {}
    for row in rows:
        name, at, value = str(row["s"]), float(str(row["x"])), float(str(row["y"]))
        if name not in ends or at >= ends[name][1]:
            ends[name] = (name, at, value)
    if floor_rows:
        tail = floor_rows[-1]
        ends[FLOOR_LABEL] = (FLOOR_LABEL, float(str(tail["x"])), float(str(tail["y"])))
    labels = _labels(list(ends.values()), axis, height, last + 30 * unit)
    colour = colour_of(lines)
    text_x: Spec = {"field": "lx", "type": "quantitative"}
    layers: list[Spec] = [
        {
            "data": {"values": floor_rows},
            "mark": {"type": "line", "strokeWidth": 1.4, "strokeDash": [2, 3], "color": FLOOR},
            "encoding": {"x": x, "y": y, "detail": {"field": "g"}},
        },
        {
            "data": {"values": floor_rows if not ratio else []},
            "mark": {"type": "tick", "thickness": 1.4, "size": 7, "color": FLOOR, "orient": "horizontal"},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": labels},
            "mark": {"type": "rule", "strokeWidth": 0.8, "strokeDash": [1, 3], "color": MUTED},
            "encoding": {"x": x, "y": y, "x2": text_x, "y2": {"field": "ly"}},
        },
        {
            "data": {"values": [row for row in rows if row["lo"] != row["hi"]]},
            "mark": {"type": "rule", "strokeWidth": 3.2, "opacity": 0.35},
            "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}, "color": colour},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 1.7},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash_of(lines), "detail": {"field": "g"}},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "size": 34, "opacity": 1, "strokeWidth": 1.3},
            "encoding": {"x": x, "y": y, **marker(lines)},
        },
        *_rings(rows, x, y, colour),
        {
            "data": {"values": [label for label in labels if label["s"] != FLOOR_LABEL]},
            "mark": {"type": "point", "size": 34, "opacity": 1, "strokeWidth": 1.3, "xOffset": 5},
            "encoding": {"x": {**x, "field": "lx"}, "y": {**y, "field": "ly"}, **marker(lines)},
        },
        {
            "data": {"values": labels},
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "middle",
                "dx": 13,
                "fontSize": TEXT_PX,
                "color": INK,
            },
            "encoding": {"x": {**x, "field": "lx"}, "y": {**y, "field": "ly"}, "text": {"field": "s"}},
        },
    ]
    return {"width": WIDTH, "height": height, "layer": layers}


def _rings(rows: Sequence[dict[str, object]], x: Spec, y: Spec, colour: Spec) -> list[Spec]:
    """Return circles around the markers that are set apart; nothing where none is."""
    ringed = [row for row in rows if row.get("ring")]
    if not ringed:
        return []
    return [
        {
            "data": {"values": ringed},
            "mark": {"type": "point", "shape": "circle", "size": 190, "strokeWidth": 1.3, "filled": False},
            "encoding": {"x": x, "y": y, "color": colour},
        }
    ]


def main_figure(chart: Chart) -> Spec:
    """Return the figure: all series above their ratio to the floor; without floors the ratio panel is left out."""
    spots = _spots(chart)
    below = has_ratio(chart)
    panels = [
        _panel(
            chart,
            spots,
            _main_axis(chart),
            ratio=False,
            height=HEIGHT,
            title=chart.title,
            x_title=None if below else chart.along_title,
        )
    ]
    if below:
        panels.append(
            _panel(
                chart,
                spots,
                _ratio_axis(chart),
                ratio=True,
                height=RATIO_HEIGHT,
                title="ratio to the floor",
                x_title=chart.along_title,
            )
        )
    longest = max(len(line.label) for line in chart.lines)
    return {
        "vconcat": panels,
        "spacing": 18,
        "config": config(),
        "padding": {"left": 4, "top": 4, "bottom": 4, "right": max(RIGHT_PX, WIDER_PX * longest)},
    }


def has_ratio(chart: Chart) -> bool:
    """Tell whether any mark of a chart has a floor to be divided by."""
    return any(mark.ratio is not None for line in chart.lines for mark in line.marks)


def single_figure(chart: Chart, line: Line) -> Spec:
    """Return a small picture of one series, its interval as a band, the others behind it in grey.

    It shows the ratio to the floor where there is one (absolute values of unlike layers lie on top of each other), else
    the value itself.
    """
    spots = _spots(chart)
    ratio = has_ratio(chart)
    axis = _ratio_axis(chart) if ratio else _main_axis(chart)
    first, last = min(spots.values()), max(spots.values())
    margin = (last - first or 1.0) * 6 / SMALL_WIDTH
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": [first - margin, last + margin], "nice": False, "zero": False},
        "axis": _x_axis(chart, spots, title=None, width=SMALL_WIDTH, room_px=46),
    }
    coarse = tuple(t for t in axis.ticks if not axis.log or abs(math.log10(t) - round(math.log10(t))) < 1e-9)
    ticks = coarse if len(coarse) > 1 else axis.ticks
    y = _y(Axis(axis.low, axis.high, ticks, axis.log), None, _RATIO_TICK if ratio else _TICK)
    own = _rows([line], spots, ratio=ratio)
    others = _rows([other for other in chart.lines if other is not line], spots, ratio=ratio)
    floor: list[dict[str, object]] = [
        {"x": round(spots[m.size], 4), "y": 1.0 if ratio else m.value, "g": "1" if ratio else m.name}
        for m in chart.floor
    ]
    colour = line.look.token
    layers: list[Spec] = [
        {
            "data": {"values": others},
            "mark": {"type": "line", "strokeWidth": 1, "color": GHOST},
            "encoding": {"x": x, "y": y, "detail": [{"field": "s"}, {"field": "g"}]},
        },
        {
            "data": {"values": floor},
            "mark": {"type": "line", "strokeWidth": 1.2, "strokeDash": [2, 3], "color": FLOOR},
            "encoding": {"x": x, "y": y, "detail": {"field": "g"}},
        },
        {
            "data": {"values": own},
            "mark": {"type": "area", "opacity": 0.25, "color": colour},
            "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}, "detail": {"field": "g"}},
        },
        {
            "data": {"values": own},
            "mark": {"type": "line", "strokeWidth": 1.9, "color": colour, "strokeDash": list(line.look.dash) or [1, 0]},
            "encoding": {"x": x, "y": y, "detail": {"field": "g"}},
        },
        {
            "data": {"values": own},
            "mark": {
                "type": "point",
                "filled": not line.look.hollow,
                "size": 22,
                "opacity": 1,
                "color": colour,
                "shape": line.look.shape,
            },
            "encoding": {"x": x, "y": y},
        },
    ]
    return {
        "width": SMALL_WIDTH,
        "height": SMALL_HEIGHT,
        "layer": layers,
        "config": config(),
        "padding": {"left": 6, "top": 4, "bottom": 2, "right": 10},
    }
