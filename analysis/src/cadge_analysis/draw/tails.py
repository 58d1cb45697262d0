# SPDX-License-Identifier: BSD-3-Clause
"""Tails by percentile: a panel a size, time on a logarithm that all panels share, against 1/(1-p) on another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cadge_analysis.draw.axes import BELOW_PX, EDGE_PX, TICK, below_px, horizontal, left_px, ticks_px, vertical
from cadge_analysis.draw.chart import Line, config
from cadge_analysis.draw.curves import LABEL_AT_PX, curves, right_px
from cadge_analysis.draw.plots import WIDTH
from cadge_analysis.draw.scales import LABEL_PX, Axis, log_axis
from cadge_analysis.draw.svg import Spec, framed

HEIGHT = 200
PERCENTS = {2: "50\u202f%", 10: "90\u202f%", 100: "99\u202f%", 1000: "99.9\u202f%", 10_000: "99.99\u202f%"}
EDGE = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class TailSpot:
    """One sample in so many exceeds `value`; of single launches' own, the lowest and the highest, in the unit."""

    one_in: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TailPanel:
    """The tails at one size: `spots` by the label of their line."""

    title: str
    spots: Mapping[str, Sequence[TailSpot]]


def _rows(lines: Sequence[Line], panel: TailPanel) -> list[dict[str, object]]:
    """Return the marks; launches are shown at the percentiles that the axis names, lest bars hide the curves."""
    rows: list[dict[str, object]] = []
    for line in lines:
        for spot in panel.spots.get(line.label, ()):
            shown = spot.one_in in PERCENTS
            rows.append(
                {
                    "s": line.label,
                    "c": line.token,
                    "x": round(math.log10(spot.one_in), 4),
                    "y": spot.value,
                    "lo": spot.low if shown else spot.value,
                    "hi": spot.high if shown else spot.value,
                    "g": 1,
                    **({} if shown else {"bare": True}),
                }
            )
    return rows


def _drawn(lines: Sequence[Line], panels: Sequence[TailPanel]) -> list[float]:
    """Return every value that is seen: of launches those that have a bar, which lines that stand back have not."""
    found: list[float] = []
    for line in lines:
        rows = [row for panel in panels for row in _rows([line], panel)]
        found += [float(str(row[key])) for row in rows for key in (("y",) if line.faint else ("y", "lo", "hi"))]
    return found


def _panel(lines: Sequence[Line], panel: TailPanel, axis: Axis, last: float, *, room_px: float, titled: bool) -> Spec:
    kept, faint = [one for one in lines if not one.faint], [one for one in lines if one.faint]
    first = math.log10(2)
    spots = {math.log10(one_in): text for one_in, text in PERCENTS.items() if math.log10(one_in) <= last + EDGE}
    x = horizontal(spots, first - EDGE, last + EDGE, title="percentile" if titled else None)
    y = vertical(axis, panel.title, TICK, room_px=room_px)
    label_at = last + EDGE + LABEL_AT_PX * (last - first + 2 * EDGE) / WIDTH
    layers = curves(kept, _rows(kept, panel), axis, x, y, height=HEIGHT, label_at=label_at, behind=_rows(faint, panel))
    return {"width": WIDTH, "height": HEIGHT, "layer": layers}


def figure(lines: Sequence[Line], panels: Sequence[TailPanel]) -> Spec:
    """Return the figure of at least one panel with at least one curve."""
    every = [spot for panel in panels for spots in panel.spots.values() for spot in spots]
    axis = log_axis(_drawn(lines, panels))
    last = math.log10(max(10, *(spot.one_in for spot in every)))
    room_px = ticks_px(axis)
    return framed(
        {
            "vconcat": [
                _panel(lines, panel, axis, last, room_px=room_px, titled=panel is panels[-1]) for panel in panels
            ],
            "spacing": BELOW_PX + 16,
            "config": config(),
        },
        left=left_px(room_px, titled=True),
        top=LABEL_PX + EDGE_PX,
        right=right_px([line.label for line in lines if not line.faint]),
        bottom=below_px(titled=True),
    )
