# SPDX-License-Identifier: BSD-3-Clause
"""A matrix of squares, a row for each first name and a column for each second: the further off, the larger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cadge_analysis.draw.axes import EDGE_PX, names_px
from cadge_analysis.draw.chart import GIVEN, TEXT_PX, config
from cadge_analysis.draw.svg import Spec, framed
from cadge_analysis.draw.textwidth import shortened

CELL_PX, SMALL_PX, MANY = 24, 14, 20
"""A side of a cell, and where names are many."""
NAME_PX = 110
TICK_PX = 8

Cell = tuple[float, str]
"""How much of its cell a square fills, a share of a side, and its colour."""


def figure(names: Sequence[str], cells: Mapping[tuple[int, int], Cell]) -> Spec:
    """Return the picture. cells: by row and column, from 0; one that is missing stays empty."""
    side, room_px = _side_px(names), _room_px(names)
    shown = _shown(names)
    rows = [
        {
            "x": round(column + (1 - fill) / 2, 3),
            "x2": round(column + (1 + fill) / 2, 3),
            "y": round(row + (1 - fill) / 2, 3),
            "y2": round(row + (1 + fill) / 2, 3),
            "c": colour,
        }
        for (row, column), (fill, colour) in cells.items()
    ]
    return framed(
        {
            "width": side * len(names),
            "height": side * len(names),
            "data": {"values": rows},
            "mark": {"type": "rect"},
            "encoding": {
                "x": _axis("x", shown, [0, len(names)], angle=-90),
                "x2": {"field": "x2"},
                "y": _axis("y", shown, [len(names), 0], angle=0),
                "y2": {"field": "y2"},
                "color": GIVEN,
            },
            "config": config(),
        },
        left=room_px,
        top=EDGE_PX,
        right=EDGE_PX,
        bottom=room_px,
    )


def width_px(names: Sequence[str]) -> int:
    """Return how wide the picture is where a page does not scale it."""
    return round(_room_px(names)) + _side_px(names) * len(names) + EDGE_PX


def _side_px(names: Sequence[str]) -> int:
    return CELL_PX if len(names) <= MANY else SMALL_PX


def _shown(names: Sequence[str]) -> list[str]:
    return [shortened(name, TEXT_PX, NAME_PX) for name in names]


def _room_px(names: Sequence[str]) -> float:
    """Return the room beside and below the cells, for names and ticks."""
    return names_px(_shown(names)) + TICK_PX + EDGE_PX


def _axis(field: str, names: Sequence[str], domain: Sequence[int], *, angle: int) -> Spec:
    """Return the encoding of one side: a name in the middle of each cell."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": {
            "title": None,
            "values": [number + 0.5 for number in range(len(names))],
            "labelExpr": f"{list(names)!r}[floor(datum.value)]",
            "labelAngle": angle,
            "labelOverlap": False,
            "grid": False,
        },
    }
