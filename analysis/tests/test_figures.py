# SPDX-License-Identifier: BSD-3-Clause
"""Charts show the numbers that they are given, at places that can be computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pagereader
import pytest

from cadge_analysis import units
from cadge_analysis.draw import plots, svg
from cadge_analysis.draw.chart import Chart, FloorMark, Foreign, Line, Mark
from cadge_analysis.draw.dress import dressed
from cadge_analysis.draw.palette import MUTED, Identity
from cadge_analysis.errors import PictureError
from cadge_analysis.page.figures.main_figure import EMPHASISED, emphasised


def mark(size: int, value: float, ratio: float | None = None) -> Mark:
    return Mark(size=size, value=value, low=None, high=None, ratio=ratio, ratio_low=None, ratio_high=None)


def chart(*lines: Line, floor: tuple[FloorMark, ...] = (), more_is_better: bool = True, **rest: Any) -> Chart:  # noqa: ANN401
    sizes = sorted({one.size for line in lines for one in line.marks})
    return Chart(
        more_is_better=more_is_better,
        linear=more_is_better,
        unit="MB/s",
        spoken="MB/s",
        title="MB/s",
        along="size",
        along_title="message size",
        proportional=False,
        sizes={size: f"{size} B" for size in sizes},
        lines=lines,
        floor=floor,
        **rest,
    )


def line(label: str, *marks: Mark, slot: int = 0) -> Line:
    return Line(label=label, look=Identity(slot, slot), marks=marks, short_bytes=0, style=label.partition("-")[0])


def test_bandwidth_stands_on_a_logarithm_and_from_zero_above_its_ratio() -> None:
    one = line("a-x", mark(8, 10.0, 0.5), mark(1024, 1000.0, 0.25))
    floor = (FloorMark(size=8, value=20.0, name="f"), FloorMark(size=1024, value=4000.0, name="f"))
    spec = plots.main_figure(chart(one, floor=floor))
    parts = spec["vconcat"]
    assert isinstance(parts, list)
    assert [part["height"] for part in parts] == [plots.HEIGHT, plots.LINEAR_HEIGHT, plots.RATIO_HEIGHT]
    picture = pagereader.read(str(svg.render(spec, name="f", title="t", description="d")))
    lines = [
        [tuple(map(float, corner.split(","))) for corner in node.attrs["d"].removeprefix("M").split("L")]
        for node in picture.all("path", class_="k0")
        if "L" in node.attrs.get("d", "") and node.attrs.get("stroke-width") == "1.7"
    ]
    log, linear, ratio = ([y for _, y in corners] for corners in lines)
    span = math.log(4000 * 1.18 / (10 / 1.18))
    assert log == pytest.approx(
        [plots.HEIGHT * (1 - math.log(v * 1.18 / 10) / span) for v in (10.0, 1000.0)], abs=0.06
    ), "both ends of a factor of a hundred can be seen"
    assert linear == pytest.approx([plots.LINEAR_HEIGHT * (1 - v / (4000 * 1.06)) for v in (10.0, 1000.0)], abs=0.06)
    assert ratio == pytest.approx([plots.RATIO_HEIGHT * (1 - v / 1.06) for v in (0.5, 0.25)], abs=0.06)


def test_every_size_of_a_narrow_chart_is_named() -> None:
    sizes = (8, 64, 1024, 3968, 4096, 16384, 65536, 262144, 1048576)
    one = line("a-x", *(mark(size, 10.0) for size in sizes))
    spec = plots.beside_figure(replace(chart(one), sizes={size: units.size(size) for size in sizes}))
    picture = pagereader.read(str(svg.render(spec, name="f", title="t", description="d")))
    named = [node.text for node in picture.all("text")]
    assert [text for text in named if text in ("8 B", "64 B") or text.endswith("i")] == [
        "8 B", "64 B", "1Ki", "4Ki", "16Ki", "64Ki", "256Ki", "1Mi",
    ]  # fmt: skip


def test_a_ratio_over_more_than_a_decade_is_logarithmic_as_well() -> None:
    one = line("a-x", mark(8, 10.0, 0.004), mark(1024, 1000.0, 0.4))
    spec = plots.main_figure(chart(one, floor=(FloorMark(size=8, value=2500.0, name="f"),)))
    picture = pagereader.read(str(svg.render(spec, name="f", title="t", description="d")))
    assert {"0.01\u00d7", "0.1\u00d7", "1\u00d7"} <= {node.text for node in picture.all("text")}


def test_what_lies_within_a_decade_needs_no_logarithm() -> None:
    spec = plots.main_figure(chart(line("a-x", mark(8, 300.0), mark(64, 1000.0))))
    parts = spec["vconcat"]
    assert isinstance(parts, list)
    assert len(parts) == 1


def test_zero_has_no_place_on_a_logarithm() -> None:
    spec = plots.main_figure(chart(line("a-x", mark(8, 0.0), mark(64, 10.0), mark(512, 1000.0))))
    picture = pagereader.read(str(svg.render(spec, name="f", title="t", description="d")))
    assert not any("NaN" in value or "null" in value for node in picture.walk() for value in node.attrs.values())


def test_no_more_than_eight_lines_stand_out_and_none_is_lost() -> None:
    lines = [line(f"s{n:02d}-x", mark(8, 100.0 + n), mark(64, 200.0 + (n == 11)), slot=n % 10) for n in range(12)]
    one = emphasised(chart(*lines, more_is_better=False), "s10-x")
    kept = [x.label for x in one.lines if not x.faint]
    assert len(kept) == EMPHASISED
    # the baseline s10; best at 8 B: s00, as at 64 B, where all but s11 are equal; then the next at 8 B
    assert kept == ["s00-x", "s01-x", "s02-x", "s03-x", "s04-x", "s05-x", "s06-x", "s10-x"]
    picture = pagereader.read(str(svg.render(plots.main_figure(one), name="f", title="t", description="d")))
    names = {node.text for node in picture.all("text")}
    assert set(kept) <= names
    assert {x.label for x in one.lines if x.faint} <= names
    classes = {f"k{x.look.number}" for x in one.lines}
    assert classes <= {node.attrs.get("class") for node in picture.walk()}, "each is drawn, in colour or in grey"


def test_up_to_eight_all_stand_out() -> None:
    lines = [line(f"s{n}-x", mark(8, 100.0 + n), slot=n) for n in range(EMPHASISED)]
    assert not any(x.faint for x in emphasised(chart(*lines)).lines)


def test_drawings_say_once_what_neighbours_share_and_nothing_that_is_not_seen() -> None:
    raw = (
        '<svg xmlns="http://www.w3.org/2000/svg"><g fill="none" stroke-miterlimit="10" transform="translate(5,6)">'
        '<g class="x"><path class="background" d="M0,0h9v9h-9Z"/>'
        '<line transform="translate(1,2)" x2="0" y2="7" stroke="#e4e5e9" stroke-width="1"/>'
        '<line transform="translate(3.04,2)" x2="0" y2="7" stroke="#e4e5e9" stroke-width="1"/>'
        '<path d="M0,0L4.449,5" stroke="#fe0001" stroke-width="2"/>'
        '<path d="M0,0L9,9" fill="#fe0001" fill-opacity="0" stroke="#fe0001" stroke-width="2"/>'
        '<text transform="translate(1.06,2)" font-family="x" font-size="11px" fill="#1c1d21">a &lt;b&gt;</text><text/>'
        "</g></g></svg>"
    )
    made = dressed(raw, name="n", colours={"#1c1d21": "var(--ink,#1c1d21)"}, classes={"#fe0001": "k1"})
    assert made == (
        '<g fill="none" transform="translate(5,6)"><path stroke="#e4e5e9" d="M1,2v7M3,2v7"/>'
        '<g class="k1" stroke="#fe0001" stroke-width="2"><path d="M0,0L4.4,5"/><path d="M0,0L9,9"/></g>'
        '<text fill="var(--ink,#1c1d21)" x="1.1" y="2">a &lt;b&gt;</text></g>'
    )


@pytest.mark.parametrize("raw", ["", "<svg>", "<svg/>", "<p><g/></p>"])
def test_a_drawing_of_another_shape_is_refused(raw: str) -> None:
    with pytest.raises(PictureError, match="chart n"):
        dressed(raw, name="n", colours={}, classes={})


def test_all_thousands_of_a_tick_are_set_apart_alike() -> None:
    spec = plots.main_figure(chart(line("a-x", mark(8, 2_000_000.0), mark(64, 9_000_000.0))))
    picture = pagereader.read(str(svg.render(spec, name="f", title="t", description="d")))
    assert "2\u202f000\u202f000" in {node.text for node in picture.all("text")}


def test_what_was_not_measured_here_is_a_thin_dashed_line_under_its_name() -> None:
    own = line("a-x", mark(8, 10.0), mark(64, 20.0))
    one = chart(own, foreign=(Foreign(label="imported: OSU 7.4", marks=((8, 15.0), (64, 40.0))),))
    picture = pagereader.read(str(svg.render(plots.main_figure(one), name="f", title="t", description="d")))
    dashed = [node for node in picture.walk() if node.attrs.get("stroke-dasharray") == "6,4"]
    assert len(dashed) == 1
    assert dashed[0].attrs["stroke"] == f"var(--muted,{MUTED})"
    assert "imported: OSU 7.4" in {node.text for node in picture.all("text")}
    spec: Any = plots.main_figure(one)
    low, high = spec["vconcat"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert (low, high) == (0.0, pytest.approx(40.0 * 1.06)), "the axis has room for it"


def test_a_ratio_to_a_series_has_no_floor_and_stands_around_one() -> None:
    lines = [line("a-x", mark(8, 10.0, 1.0), mark(64, 20.0, 1.0)), line("b-x", mark(8, 20.0, 2.0), slot=1)]
    spec: Any = plots.main_figure(chart(*lines, base="a-x"))
    ratios = spec["vconcat"][1]
    titles = {layer["encoding"]["y"]["axis"]["title"] for layer in ratios["layer"] if "axis" in layer["encoding"]["y"]}
    assert titles == {"ratio to a-x"}
    picture = pagereader.read(str(svg.render(spec, name="f", title="t", description="d")))
    assert "floor" not in {node.text for node in picture.all("text")}


def test_a_floor_line_joins_neighbours_of_one_program_alone() -> None:
    """Else it passes over the mark of another program between them, and shows a floor that is none."""
    programs = [(8, 10.0, "line"), (64, 11.0, "copy"), (512, 12.0, "copy"), (1024, 3.0, "both"), (4096, 40.0, "copy")]
    floor = tuple(FloorMark(size=size, value=value, name=name) for size, value, name in programs)
    one = chart(line("a-x", *(mark(size, 50.0) for size, _, _ in programs)), floor=floor)
    for spec in (plots.main_figure(one), plots.small_backdrop(one)):
        picture = pagereader.read(str(svg.render(spec, name="f", title="t", description="d")))
        drawn = [node.attrs for node in picture.all("path") if "id" not in node.attrs and "stroke" not in node.attrs]
        assert max(way["d"].count("L") for way in drawn) == 1
