# SPDX-License-Identifier: BSD-3-Clause
"""Time against processors: what is plotted, by hand, polling and blocking joined."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.draw import scatter
from cadge_analysis.draw.axes import names_px
from cadge_analysis.draw.chart import Line
from cadge_analysis.draw.palette import Identity
from cadge_analysis.draw.scales import log_axis
from cadge_analysis.draw.scatter import HEIGHT, WIDTH, Spot

TIME_NS = {"poll": 400, "block": 2000}
USED_NS = {"poll": (300, 100), "block": (200, 50)}
"""User and system time of each of two sides, an operation."""


def _set(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
    one = synthetic.flat(point)
    if one["kind"] != "layer":
        return
    synthetic.set_samples(attempt, [(TIME_NS[one["wait"]], 2000)])
    attempt["operations"] = 1000
    for use in attempt["cpu"]:
        use["user_ns"], use["system_ns"] = (1000 * ns for ns in USED_NS[one["wait"]])


def figures(folder: Path, waits: tuple[str, ...] = ("poll", "block")) -> list[pagereader.Node]:
    made = synthetic.Options(
        layers=("sockets-tcp",),
        sizes=(8, 64),
        places=("within",),
        launches=3,
        troubles=False,
        attempt_hook=_set,
        waits=waits,
    )
    report.build(synthetic.make(folder / "store", made).path, folder / "r.html")
    found = pagereader.read((folder / "r.html").read_text()).all("figure")
    return [one for one in found if one.attrs.get("id", "").endswith("-processors")]


def test_both_modes_stand_where_they_cost(tmp_path: Path) -> None:
    (figure,) = figures(tmp_path)
    rows = [[cell.text for cell in row.all("td")] for row in figure.one("tbody").all("tr")]
    assert [[cell.split(" ")[0] for cell in row] for row in rows] == [
        ["polling", "0.400", "0.800", "0.600", "0.200"],
        ["blocking", "2.00", "0.500", "0.400", "0.100"],
    ]
    picture = figure.all("svg", role="img")[0]
    line = next(
        node for node in picture.all("path") if node.attrs.get("stroke-width") == "1.2" and "L" in node.attrs["d"]
    )
    corners = [tuple(map(float, one.split(","))) for one in line.attrs["d"].removeprefix("M").split("L")]
    across, up = math.log(2.0 / 0.4 * 1.18**2), math.log(0.8 / 0.5 * 1.18**2)
    expected = [
        (WIDTH * math.log(1.18) / across, HEIGHT * math.log(1.18) / up),
        (WIDTH * math.log(2.0 / 0.4 * 1.18) / across, HEIGHT * (1 - math.log(1.18) / up)),
    ]
    assert [x for x, _ in corners] == pytest.approx([x for x, _ in expected], abs=0.1)
    assert [y for _, y in corners] == pytest.approx([y for _, y in expected], abs=0.1)
    assert "0.5" in {node.text for node in picture.all("text")}, "a tick below one, whose logarithm is negative"


def test_one_mode_alone_has_nothing_to_join(tmp_path: Path) -> None:
    assert figures(tmp_path, waits=("poll",)) == []


def test_names_lie_neither_on_marks_nor_on_each_other() -> None:
    """Twenty marks in one corner: who finds room has a name that touches nothing, and one far away has its own."""
    lines = [Line(label=f"layer-{n}", look=Identity(n % 10, n % 12), marks=(), short_bytes=0) for n in range(21)]
    spots = [Spot(label=f"layer-{n}", x=1 + n % 5 / 9, y=1 + n // 5 / 9, ringed=False) for n in range(20)]
    spots.append(Spot(label="layer-20", x=1000.0, y=900.0, ringed=False))
    axes = log_axis([spot.x for spot in spots]), log_axis([spot.y for spot in spots])
    named = scatter.named(spots, lines, *axes)
    boxes = [
        (left := axes[0].share(10 ** float(str(one["x"]))) * WIDTH,
         left + names_px([str(one["t"])]),
         (down := (1 - axes[1].share(float(str(one["y"])))) * HEIGHT) - 6,
         down + 6)
        for one in named
    ]  # fmt: skip
    marks = [(axes[0].share(spot.x) * WIDTH, (1 - axes[1].share(spot.y)) * HEIGHT) for spot in spots]
    assert "layer-20" in {one["t"] for one in named}
    assert 3 <= len(named) < 21
    for number, (left, right, top, bottom) in enumerate(boxes):
        assert not any(left < x < right and top < y < bottom for x, y in marks)
        assert not any(
            left < other[1] and other[0] < right and top < other[3] and other[2] < bottom
            for other in boxes[number + 1 :]
        )
