# SPDX-License-Identifier: BSD-3-Clause
"""Labelled curves as layers of a panel: intervals, lines, markers, and a name at each right end.

A row is a mark: `s` its series, `c` its colour, `x` and `y` its place, `lo` and `hi` its interval, `g` the unbroken
piece of its line; `ring` where it is set apart, `bare` where it has no marker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cadge_analysis.draw.axes import EDGE_PX, names_px
from cadge_analysis.draw.chart import FLOOR_LABEL, GIVEN, TEXT_PX, Line, dash_of, marker
from cadge_analysis.draw.palette import FLOOR, INK, MUTED
from cadge_analysis.draw.scales import Axis, spread
from cadge_analysis.draw.svg import Spec
from cadge_analysis.draw.textwidth import shortened

LABEL_AT_PX, LABEL_GAP_PX, LABEL_ROOM_PX = 30, 13, 240
DETAIL = [{"field": "s"}, {"field": "g"}]
CROSSED = "M-1,-1L1,1M-1,1L1,-1"
INKED: Spec = {**GIVEN, "field": "i"}
Rows = Sequence[Mapping[str, object]]


def right_px(names: Sequence[str]) -> float:
    """Return the room right of a panel for the names of its curves."""
    return LABEL_AT_PX + LABEL_GAP_PX + names_px([*map(_label, names), FLOOR_LABEL]) + EDGE_PX


def _label(name: str) -> str:
    return shortened(name, TEXT_PX, LABEL_ROOM_PX)


def _labels(
    ends: Sequence[tuple[str, float, float]], lines: Sequence[Line], axis: Axis, height: int, x_label: float
) -> list[dict[str, object]]:
    """Return one label a series, (name, x, y of its last marker) → where its text and its leader stand."""
    wanted = [(1 - axis.share(y)) * height for _, _, y in ends]
    of = {line.label: line for line in lines}
    return [
        {
            "s": name,
            "t": _label(name),
            "c": of[name].token if name in of else FLOOR,
            "i": of[name].ink_token if name in of else INK,
            "x": x,
            "y": y,
            "lx": x_label,
            "ly": axis.value(1 - place / height),
        }
        for (name, x, y), place in zip(ends, spread(wanted, height), strict=True)
    ]


def curves(
    lines: Sequence[Line],
    rows: Rows,
    axis: Axis,
    x: Spec,
    y: Spec,
    *,
    height: int,
    label_at: float,
    behind: Rows = (),
    behind_named: Sequence[Line] = (),
    floor: Rows = (),
    floor_ticks: Rows = (),
    foreign: Rows = (),
) -> list[Spec]:
    """Return the layers of curves in a panel so high, whose names stand at `label_at` on the horizontal axis.

    behind: rows of lines that stand back; behind_named: those that have a name at their end. floor: rows of a dotted
    line; floor_ticks: where it was measured.
    foreign: rows of thin dashed lines, which were not measured here.
    """
    ends: dict[str, tuple[str, float, float]] = {}
    names = {line.label for line in behind_named}
    for row in (*rows, *foreign, *(row for row in behind if row["s"] in names)):
        name, at, value = str(row["s"]), float(str(row["x"])), float(str(row["y"]))
        if name not in ends or at >= ends[name][1]:
            ends[name] = (name, at, value)
    if floor:
        tail = floor[-1]
        ends[FLOOR_LABEL] = (FLOOR_LABEL, float(str(tail["x"])), float(str(tail["y"])))
    looks = {line.label for line in lines}
    labels = _labels(list(ends.values()), (*lines, *behind_named), axis, height, label_at)
    text_x: Spec = {"field": "lx", "type": "quantitative"}
    layers: list[Spec] = [
        *_faint_lines(behind, x, y),
        *_foreign_lines(foreign, x, y),
        {
            "data": {"values": list(floor)},
            "mark": {"type": "line", "strokeWidth": 1.4, "strokeDash": [2, 3], "color": FLOOR},
            "encoding": {"x": x, "y": y, "detail": {"field": "g"}},
        },
        {
            "data": {"values": list(floor_ticks)},
            "mark": {"type": "tick", "thickness": 1.4, "size": 7, "color": FLOOR, "orient": "horizontal"},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": labels},
            "mark": {"type": "rule", "strokeWidth": 0.8, "strokeDash": [1, 3], "strokeOpacity": 0.7},
            "encoding": {"x": x, "y": y, "x2": text_x, "y2": {"field": "ly"}, "color": INKED},
        },
        {
            "data": {"values": [row for row in rows if row["lo"] != row["hi"]]},
            "mark": {"type": "rule", "strokeWidth": 3.2, "strokeOpacity": 0.35},
            "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}, "color": GIVEN},
        },
        {
            "data": {"values": list(rows)},
            "mark": {"type": "line", "strokeWidth": 1.7},
            "encoding": {"x": x, "y": y, "color": GIVEN, "strokeDash": dash_of(lines), "detail": DETAIL},
        },
        {
            "data": {"values": [row for row in rows if not row.get("bare")]},
            "mark": {"type": "point", "size": 34, "opacity": 1, "strokeWidth": 1.3},
            "encoding": {"x": x, "y": y, **marker(lines)},
        },
        *_rings(rows, x, y),
        {
            "data": {"values": [label for label in labels if label["s"] in looks]},
            "mark": {"type": "point", "size": 34, "opacity": 1, "strokeWidth": 1.3, "xOffset": 5},
            "encoding": {"x": {**x, "field": "lx"}, "y": {**y, "field": "ly"}, **marker(lines)},
        },
        {
            "data": {"values": labels},
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "middle",
                "dx": LABEL_GAP_PX,
                "fontSize": TEXT_PX,
            },
            "encoding": {
                "x": {**x, "field": "lx"},
                "y": {**y, "field": "ly"},
                "text": {"field": "t"},
                "color": INKED,
            },
        },
    ]
    return layers


def _foreign_lines(rows: Rows, x: Spec, y: Spec) -> list[Spec]:
    if not rows:
        return []
    encoding: Spec = {"x": x, "y": y, "detail": {"field": "s"}}
    data: Spec = {"values": list(rows)}
    return [
        {
            "data": data,
            "mark": {"type": "line", "strokeWidth": 1.1, "strokeDash": [6, 4], "color": MUTED},
            "encoding": encoding,
        },
        {
            "data": data,
            "mark": {"type": "point", "shape": CROSSED, "size": 16, "strokeWidth": 1, "color": MUTED, "opacity": 1},
            "encoding": encoding,
        },
    ]


def _faint_lines(rows: Rows, x: Spec, y: Spec) -> list[Spec]:
    """Return lines that stand back; one of a single mark is a dot."""
    if not rows:
        return []
    often = Counter((row["s"], row["g"]) for row in rows)
    alone = [row for row in rows if often[row["s"], row["g"]] == 1]
    return [
        {
            "data": {"values": list(rows)},
            "mark": {"type": "line", "strokeWidth": 1},
            "encoding": {"x": x, "y": y, "color": GIVEN, "detail": DETAIL},
        },
        {
            "data": {"values": alone},
            "mark": {"type": "point", "filled": True, "size": 12, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": GIVEN},
        },
    ]


def _rings(rows: Rows, x: Spec, y: Spec) -> list[Spec]:
    """Return circles around the markers that are set apart; nothing where none is."""
    ringed = [row for row in rows if row.get("ring")]
    if not ringed:
        return []
    return [
        {
            "data": {"values": ringed},
            "mark": {"type": "point", "shape": "circle", "size": 190, "strokeWidth": 1.3, "filled": False},
            "encoding": {"x": x, "y": y, "color": GIVEN},
        }
    ]
