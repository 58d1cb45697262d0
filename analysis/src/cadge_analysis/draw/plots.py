# SPDX-License-Identifier: BSD-3-Clause
"""Charts as Vega-Lite specifications (plain dicts): a quantity against size, above its ratio to the floor.

Sizes stand on a binary logarithm, 0 B apart on the left, and shares in percent in proportion; latency is logarithmic in
microseconds, anything else linear from zero, and logarithmic as well where it spans more than a decade. A marker is a
measured size with its interval over launches; a line only joins markers, and is broken where the layer changes its path
and beside 0 B. Series are labelled at their right end; nothing is told by colour alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from cadge_analysis import units
from cadge_analysis.draw.axes import (
    BELOW_PX,
    EDGE_PX,
    TICK,
    TIMES_TICK,
    below_px,
    horizontal,
    left_px,
    names_px,
    ticks_px,
    vertical,
)
from cadge_analysis.draw.chart import (
    FLOOR_LABEL,
    GIVEN,
    THE_FLOOR,
    Chart,
    FloorMark,
    Line,
    Mark,
    config,
    dash_of,
    marker,
)
from cadge_analysis.draw.curves import DETAIL, LABEL_AT_PX, curves, right_px
from cadge_analysis.draw.palette import FLOOR, GHOST
from cadge_analysis.draw.scales import LABEL_PX, Axis, labelled, linear_axis, log_axis, positions
from cadge_analysis.draw.svg import Spec, framed

WIDTH, HEIGHT, LINEAR_HEIGHT, RATIO_HEIGHT = 680, 310, 190, 210
SMALL_WIDTH, SMALL_HEIGHT = 164, 104
BESIDE_WIDTH, BESIDE_HEIGHT, BESIDE_RATIO_HEIGHT = 340, 230, 130
"""Of charts that stand side by side."""
LARGER = 1.16
"""A page sets the texts of such a chart so much larger on a phone."""
EDGE_MARKS_PX = 8
DECADE = 10.0
_BYTES = re.compile(r"(\S+) ([KM]i)B")
ROUND_MOST = 5
"""So many characters has the short name of a round size at most."""
NEAR = 1.25
"""An axis of ratios to a series reaches at least so far either way."""


def _spots(chart: Chart) -> dict[int, float]:
    sizes = [mark.size for line in chart.lines for mark in line.marks]
    return positions([*sizes, *(mark.size for mark in chart.floor)], proportional=chart.proportional)


def _ends(lines: Sequence[Line], pick: Callable[[Mark], Sequence[float | None]]) -> list[float]:
    return [value for line in lines for mark in line.marks for value in pick(mark) if value is not None]


def _values(chart: Chart) -> list[float]:
    values = _ends(chart.lines, lambda m: (m.value, m.low, m.high)) + [mark.value for mark in chart.floor]
    return values + [value for one in chart.foreign for _, value in one.marks]


def _main_axis(chart: Chart) -> Axis:
    values = _values(chart)
    return linear_axis(values) if chart.linear else log_axis(values)


def _log_axis(chart: Chart) -> Axis | None:
    """Return the logarithmic axis of a linear chart whose values span more than a decade; None of any other."""
    values = _values(chart)
    positive = [value for value in values if value > 0]
    if not chart.linear or chart.proportional or not positive or max(positive) < DECADE * min(positive):
        return None
    return log_axis(positive)


def _ratio_axis(chart: Chart) -> Axis:
    """Return a linear axis for shares of a floor, a logarithmic one where they span more than a decade.

    Ratios to a series are logarithmic, so that half and twice stand equally far from it.
    """
    values = [*_ends(chart.lines, lambda m: (m.ratio, m.ratio_low, m.ratio_high)), 1.0]
    if chart.base != THE_FLOOR:
        return log_axis([*values, NEAR, 1 / NEAR])
    if chart.more_is_better and (min(values) <= 0 or max(values) < DECADE * min(values)):
        return linear_axis(values)
    return log_axis(values, wide=2)


def _segment(line: Line, size: int) -> int:
    """Return which unbroken piece of a line a size belongs to."""
    if size == 0:
        return 0
    return 2 if line.short_bytes and size > line.short_bytes else 1


def _rows(lines: Sequence[Line], spots: dict[int, float], axis: Axis, *, ratio: bool) -> list[dict[str, object]]:
    """Return the marks that an axis can show: a logarithm has no place for zero."""
    rows: list[dict[str, object]] = []
    for line in lines:
        for mark in line.marks:
            value, low, high = (
                (mark.ratio, mark.ratio_low, mark.ratio_high) if ratio else (mark.value, mark.low, mark.high)
            )
            if value is None or (axis.log and value <= 0):
                continue
            rows.append(
                {
                    "s": line.label,
                    "c": line.token,
                    "x": round(spots[mark.size], 4),
                    "y": value,
                    "lo": value if low is None else max(low, axis.low),
                    "hi": value if high is None else high,
                    "g": _segment(line, mark.size),
                    **({"ring": True} if mark.ringed else {}),
                }
            )
    return rows


def _foreign(chart: Chart, spots: dict[int, float], axis: Axis) -> list[dict[str, object]]:
    return [
        {"x": round(spots[size], 4), "y": value, "s": one.label}
        for one in chart.foreign
        for size, value in one.marks
        if value > 0 or not axis.log
    ]


def _x(chart: Chart, spots: dict[int, float], *, title: str | None, width: int, room_px: float, edge_px: int) -> Spec:
    first, last = min(spots.values()), max(spots.values())
    edge = edge_px * (last - first or 1.0) / width
    named = _named(chart, spots, width, room_px)
    texts = {at: named.get(size, "") for size, at in spots.items()}
    return horizontal(texts, first - edge, last + edge, title=title)


def _named(chart: Chart, spots: dict[int, float], width: int, room_px: float) -> dict[int, str]:
    """Return which sizes are named, and how: in full where all have room, else as short as "64Ki", round ones first."""
    if len(full := labelled(spots, width, room_px)) == len(spots):
        return {size: chart.sizes[size] for size in full}
    short = {size: _BYTES.sub(r"\1\2", chart.sizes[size]) for size in spots}
    widest = sorted(names_px((text,)) for text in short.values() if len(text) <= ROUND_MOST)[-2:]
    room_px = sum(widest) / max(1, len(widest)) * LARGER + EDGE_PX
    scale = width / (max(spots.values()) - min(spots.values()))
    apart = {
        size: at
        for size, at in spots.items()
        if not any(
            abs(at - there) * scale < room_px and len(short[other]) < len(short[size]) for other, there in spots.items()
        )
    }
    return {size: short[size] for size in labelled(apart, width, room_px)}


def _panel(
    chart: Chart,
    spots: dict[int, float],
    axis: Axis,
    *,
    ratio: bool,
    height: int,
    title: str,
    x_title: str | None,
    room_px: float,
    width: int,
) -> Spec:
    """Return one labelled panel: floor, intervals, lines, markers, labels; lines that stand back lie behind."""
    lines = [line for line in chart.lines if not line.faint]
    x = _x(chart, spots, title=x_title, width=width, room_px=44, edge_px=EDGE_MARKS_PX)
    first, last = min(spots.values()), max(spots.values())
    unit = (last - first or 1.0) / width
    y = vertical(axis, title, TIMES_TICK if ratio else TICK, room_px=room_px)
    rows = _rows(lines, spots, axis, ratio=ratio)
    behind = [line for line in chart.lines if line.faint]
    to_floor = chart.base == THE_FLOOR
    floor_rows = (
        [{"x": x_at, "y": 1.0, "s": FLOOR_LABEL, "g": "1"} for x_at in (first - 8 * unit, last + 8 * unit) if to_floor]
        if ratio
        else [
            {"x": round(spots[mark.size], 4), "y": mark.value, "s": FLOOR_LABEL, "g": stretch}
            for mark, stretch in _stretches(chart)
        ]
    )
    layers = curves(
        lines,
        rows,
        axis,
        x,
        y,
        height=height,
        label_at=last + LABEL_AT_PX * unit,
        behind=_rows(behind, spots, axis, ratio=ratio),
        behind_named=_named_behind(chart, height),
        floor=floor_rows,
        floor_ticks=[] if ratio else floor_rows,
        foreign=[] if ratio else _foreign(chart, spots, axis),
    )
    return {"width": width, "height": height, "layer": layers}


def _named_behind(chart: Chart, height: int) -> Sequence[Line]:
    """Return the lines that stand back and have a name in a panel: all of them where every name has room."""
    names = len(chart.lines) + len(chart.foreign) + bool(chart.floor)
    behind = [line for line in chart.lines if line.faint]
    return behind if names * LABEL_PX <= height + 2 * LABEL_PX else []


def _stretches(chart: Chart) -> Iterator[tuple[FloorMark, str]]:
    """Yield the floor's marks with the stretch that each is on: neighbours by one program.

    A line between marks that are no neighbours would pass over another program's, and show a floor that is none.
    """
    number, before = 0, ""
    for mark in chart.floor:
        number += mark.name != before
        before = mark.name
        yield mark, str(number)


def main_figure(chart: Chart) -> Spec:
    """Return the figure: all series above their ratio to the floor; without floors the ratio panel is left out.

    What is not logarithmic, over sizes that are, stands on a logarithmic axis first: one from zero shows nothing of
    small sizes.
    """
    linear, log = _main_axis(chart), _log_axis(chart)
    parts = [(linear, False, HEIGHT, chart.title)]
    if log is not None:
        parts = [
            (log, False, HEIGHT, chart.title),
            (linear, False, LINEAR_HEIGHT, f"{chart.title}, from zero"),
        ]
    return _figure(chart, parts, RATIO_HEIGHT, WIDTH)


def beside_figure(chart: Chart) -> Spec:
    """Return the figure so narrow that two stand side by side, without the panel from zero."""
    axis = _log_axis(chart) or _main_axis(chart)
    return _figure(chart, [(axis, False, BESIDE_HEIGHT, chart.title)], BESIDE_RATIO_HEIGHT, BESIDE_WIDTH)


Part = tuple[Axis, bool, int, str]
"""A panel: its axis, whether it shows ratios, its height and its title."""


def _figure(chart: Chart, parts: Sequence[Part], ratio_height: int, width: int) -> Spec:
    spots = _spots(chart)
    if has_ratio(chart):
        parts = [*parts, (_ratio_axis(chart), True, ratio_height, f"ratio to {chart.base}")]
    room_px = max(ticks_px(axis, units.TIMES if ratio else "") for axis, ratio, _, _ in parts)
    panels = [
        _panel(
            chart,
            spots,
            axis,
            ratio=ratio,
            height=height,
            title=title,
            x_title=chart.along_title if number == len(parts) else None,
            room_px=room_px,
            width=width,
        )
        for number, (axis, ratio, height, title) in enumerate(parts, 1)
    ]
    behind = _named_behind(chart, max(height for _, _, height, _ in parts))
    named = [line.label for line in (*(line for line in chart.lines if not line.faint), *behind)]
    larger = LARGER if width == BESIDE_WIDTH else 1.0
    return framed(
        {"vconcat": panels, "spacing": BELOW_PX + 16, "config": config()},
        left=left_px(room_px, titled=True),
        top=(LABEL_PX + EDGE_PX) * larger,
        right=right_px([*named, *(x.label for x in chart.foreign)]) * larger,
        bottom=below_px(titled=True),
    )


def has_ratio(chart: Chart) -> bool:
    """Tell whether any mark of a chart has something to be divided by."""
    return any(mark.ratio is not None for line in chart.lines for mark in line.marks)


def _small(chart: Chart, layers: Sequence[Spec], axis: Axis) -> Spec:
    """Return a small picture on the axes that all small pictures of a chart share."""
    return framed(
        {"width": SMALL_WIDTH, "height": SMALL_HEIGHT, "layer": list(layers), "config": config()},
        left=left_px(ticks_px(axis, units.TIMES if has_ratio(chart) else ""), titled=False),
        top=EDGE_PX,
        right=names_px(chart.sizes.values()) / 2 + EDGE_PX,
        bottom=below_px(titled=False),
    )


def _small_axes(chart: Chart, *, drawn: bool) -> tuple[dict[int, float], Axis, Spec, Spec]:
    """Return places of sizes, the vertical axis, and both encodings; with their axes where they are `drawn`.

    They are of the ratio to the floor where there is one (absolute values of unlike layers lie on top of each other),
    else of the value itself.
    """
    spots, ratio = _spots(chart), has_ratio(chart)
    axis = _ratio_axis(chart) if ratio else _log_axis(chart) or _main_axis(chart)
    coarse = tuple(t for t in axis.ticks if not axis.log or abs(math.log10(t) - round(math.log10(t))) < 1e-9)
    axis = Axis(axis.low, axis.high, coarse if len(coarse) > 1 else axis.ticks, axis.log)
    x = _x(chart, spots, title=None, width=SMALL_WIDTH, room_px=46, edge_px=6)
    y = vertical(axis, None, TIMES_TICK if ratio else TICK, room_px=0)
    if not drawn:
        x, y = {**x, "axis": None}, {**y, "axis": None}
    return spots, axis, x, y


def small_backdrop(chart: Chart) -> Spec:
    """Return what all small pictures of a chart have behind them: axes, the floor, and every series in grey."""
    spots, axis, x, y = _small_axes(chart, drawn=True)
    ratio = has_ratio(chart)
    floor: list[dict[str, object]] = [
        {"x": round(spots[mark.size], 4), "y": 1.0 if ratio else mark.value, "g": "1" if ratio else stretch}
        for mark, stretch in _stretches(chart)
    ]
    layers: list[Spec] = [
        {
            "data": {"values": _rows(chart.lines, spots, axis, ratio=ratio)},
            "mark": {"type": "line", "strokeWidth": 1, "color": GHOST},
            "encoding": {"x": x, "y": y, "detail": DETAIL},
        },
        {
            "data": {"values": floor},
            "mark": {"type": "line", "strokeWidth": 1.2, "strokeDash": [2, 3], "color": FLOOR},
            "encoding": {"x": x, "y": y, "detail": {"field": "g"}},
        },
    ]
    return _small(chart, layers, axis)


def small_figure(chart: Chart, lines: Sequence[Line]) -> Spec:
    """Return a small picture of a few series before the backdrop, their intervals as bands."""
    spots, axis, x, y = _small_axes(chart, drawn=False)
    lines = [replace(line, faint=False) for line in lines]
    own = _rows(lines, spots, axis, ratio=has_ratio(chart))
    layers: list[Spec] = [
        {
            "data": {"values": own},
            "mark": {"type": "area", "fillOpacity": 0.25},
            "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}, "color": GIVEN, "detail": DETAIL},
        },
        {
            "data": {"values": own},
            "mark": {"type": "line", "strokeWidth": 1.9},
            "encoding": {"x": x, "y": y, "color": GIVEN, "strokeDash": dash_of(lines), "detail": DETAIL},
        },
        {
            "data": {"values": own},
            "mark": {"type": "point", "size": 22, "opacity": 1, "strokeWidth": 1.3},
            "encoding": {"x": x, "y": y, **marker(lines)},
        },
    ]
    return _small(chart, layers, axis)
