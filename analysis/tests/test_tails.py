# SPDX-License-Identifier: BSD-3-Clause
"""Tails by percentile: what the curves show, counted by hand, and where they stop."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.draw import tails
from cadge_analysis.draw.chart import Line
from cadge_analysis.draw.palette import Identity
from cadge_analysis.draw.plots import WIDTH
from cadge_analysis.draw.tails import EDGE, HEIGHT, TailPanel, TailSpot
from cadge_analysis.page.figures.tail_figures import chosen
from cadge_analysis.stats.intervals import tail_curve

CALM, SLOW = synthetic.counted((100, 9000), (1000, 1000)), synthetic.counted((200, 9000), (1000, 900), (1500, 100))


def test_points_are_counted_in_all_launches_together() -> None:
    found = {point.one_in: point for point in tail_curve([CALM, SLOW])}
    # 20,000 samples: 9,000 of 100 ns, 9,000 of 200, 1,900 of 1,000, 100 of 1,500
    assert list(found) == [2, 3, 5, 10, 20, 30, 50, 100, 200], "one in 300 leaves 66 samples beyond it"
    assert [found[n].value_ns for n in (2, 10, 20, 100, 200)] == [200, 200, 1000, 1000, 1000]
    assert (found[2].low_ns, found[2].high_ns) == (100, 200)
    assert (found[100].low_ns, found[100].high_ns) == (1000, 1000), "number 9,900 of 10,000"
    assert (found[200].low_ns, found[200].high_ns) == (1000, 1500), "number 9,950"


def test_too_few_samples_are_no_curve() -> None:
    assert tail_curve([synthetic.counted((100, 199))]) == ()
    assert [point.one_in for point in tail_curve([synthetic.counted((100, 200))])] == [2]
    assert tail_curve([]) == ()


@pytest.mark.parametrize(
    ("sizes", "is_bytes", "expected"),
    [
        ((0, 8, 64, 1024, 4096, 65536, 1048576, 4194304), True, [8, 1024, 65536, 1048576]),
        ((0, 16, 32), True, [0, 16, 32]),
        ((10, 30, 50, 60, 70, 80, 100), False, [10, 50, 70, 100]),
    ],
)
def test_sizes_are_the_nearest_to_the_usual_ones(sizes: tuple[int, ...], is_bytes: bool, expected: list[int]) -> None:
    assert chosen(sizes, is_bytes=is_bytes) == expected


def _tailed(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    if synthetic.flat(point)["kind"] == "layer":
        synthetic.set_samples(attempt, [(100 + 100 * (number % 2), 9000), (1000, 1000)])


def test_the_figure_shows_them_and_its_table_says_them(tmp_path: Path) -> None:
    options = synthetic.Options(
        layers=("sockets-tcp",),
        sizes=(8, 64),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        launches=2,
        troubles=False,
        attempt_hook=_tailed,
    )
    path = tmp_path / "r.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path)
    figure = pagereader.read(path.read_text()).one("figure", id="fig-rpc-within-poll-tails")
    rows = [[cell.text for cell in row.all("td")] for row in figure.one("tbody").all("tr")]
    samples = "20\u202f000"
    assert rows[0] == ["sockets-tcp", samples, "0.200 [0.100,\u00a00.200]", "0.200 [0.100,\u00a00.200]",
                       "1.00 [1.00,\u00a01.00]"], "none reaches further"  # fmt: skip
    picture = figure.all("svg", role="img")[0]
    curve = next(node for node in picture.all("path") if node.attrs.get("stroke-width") == "1.7")
    corners = [tuple(map(float, one.split(","))) for one in curve.attrs["d"].removeprefix("M").split("L")]
    last = math.log10(200)
    span_x, span_y = last - math.log10(2) + 2 * EDGE, math.log(1.0 * 1.18 / (0.1 / 1.18))
    spots = [(2, 0.2), (3, 0.2), (5, 0.2), (10, 0.2), (20, 1.0), (30, 1.0), (50, 1.0), (100, 1.0), (200, 1.0)]
    expected = [
        (
            WIDTH * (math.log10(one_in) - math.log10(2) + EDGE) / span_x,
            HEIGHT * (1 - math.log(value * 1.18 / 0.1) / span_y),
        )
        for one_in, value in spots
    ]
    assert [x for x, _ in corners] == pytest.approx([x for x, _ in expected], abs=0.06)
    assert [y for _, y in corners] == pytest.approx([y for _, y in expected], abs=0.06)
    assert {"50\u202f%", "90\u202f%", "99\u202f%"} <= {node.text for node in picture.all("text")}
    assert "99.9\u202f%" not in {node.text for node in picture.all("text")}


def test_the_axis_holds_what_is_drawn_and_no_more() -> None:
    """Launches have bars at named percentiles alone, and lines that stand back have none."""
    look = Identity(0, 0)
    lines = [Line(label=name, look=look, marks=(), short_bytes=0, faint=name == "b") for name in ("a", "b")]
    spots = {
        "a": [TailSpot(one_in=2, value=1.0, low=0.5, high=2.0), TailSpot(one_in=3, value=1.0, low=1.0, high=9000.0)],
        "b": [TailSpot(one_in=2, value=3.0, low=0.001, high=9000.0)],
    }
    spec: Any = tails.figure(lines, [TailPanel(title="8 B", spots=spots)])
    (domain,) = {
        tuple(layer["encoding"]["y"]["scale"]["domain"])
        for layer in spec["vconcat"][0]["layer"]
        if "scale" in layer["encoding"]["y"]
    }
    assert domain == pytest.approx((0.5 / 1.18, 3.0 * 1.18))
