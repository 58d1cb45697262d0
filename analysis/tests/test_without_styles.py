# SPDX-License-Identifier: BSD-3-Clause
"""A report where a server forbids styles: its charts carry their colours themselves, on a white page."""

from __future__ import annotations

import re
from pathlib import Path

import pagereader
import pytest
import synthetic
from chromium import Browser
from pagereader import Node

from cadge_analysis import report

FORBIDDEN = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
"""What a build server's own policy does to a page: both hold, and the stricter one wins."""
PAINTED = """
Array.from(document.querySelectorAll('svg.chart :is(path, rect, use, line)')).filter(e => !e.closest('defs, clipPath'))
  .filter(e => { if (e.matches('use[href$="-back"]')) return false;
    const s = getComputedStyle(e);
    return s.fill === 'none' && s.stroke === 'none' || s.fill === 'rgb(0, 0, 0)' && s.stroke === 'none'; }).length
"""
TEXTS = (
    "Array.from(new Set(Array.from(document.querySelectorAll('svg.chart text')).map(e => getComputedStyle(e).fill)))"
)


Paint = tuple[Node, str | None, str | None]
"""A shape, with the fill and the stroke that it has, or inherits."""


@pytest.fixture(scope="module")
def report_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report with figures of every kind and with small pictures, of a small campaign."""
    folder = tmp_path_factory.mktemp("styles")
    options = synthetic.Options(
        sizes=(8, 4096, 65536), patterns=(("rpc", 1), ("stream", 16)), places=("within",), launches=3, samples=300
    )
    report.build(synthetic.make(folder / "store", options).path, folder / "r.html")
    return (folder / "r.html").read_text()


def _painted(node: Node, fill: str | None, stroke: str | None, found: list[Paint]) -> None:
    fill, stroke = node.attrs.get("fill", fill), node.attrs.get("stroke", stroke)
    if node.tag in ("path", "rect", "use", "line", "text"):
        found.append((node, fill, stroke))
    for child in node.children:
        if isinstance(child, Node) and child.tag not in ("defs", "clippath"):
            _painted(child, fill, stroke, found)


def test_every_stroke_and_text_of_a_chart_says_its_colour(report_text: str) -> None:
    """A shape that says nothing is filled with black, and a variable alone is nothing without a style sheet."""
    page = pagereader.read(report_text)
    charts = page.all("svg", class_="chart")
    assert len(charts) > 6
    found: list[Paint] = []
    for chart in charts:
        _painted(chart, None, None, found)
    assert all(fill or stroke for node, fill, stroke in found if node.attrs.get("href", "").find("-back") < 0)
    for node in page.walk():
        for key in ("fill", "stroke"):
            for name in re.findall(r"var\(--[\w-]+\)", node.attrs.get(key, "")):
                pytest.fail(f"{node.tag} has {key} {name}, without a colour to fall back to")


def luminance(red: float, green: float, blue: float) -> float:
    """Return the relative luminance of WCAG 2.2, of channels from 0 to 255."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red / 255, green / 255, blue / 255)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_read_on_white_whatever_the_reader_prefers(
    browser: Browser, report_text: str, tmp_path: Path, dark: bool
) -> None:
    path = tmp_path / "r.html"
    path.write_text(report_text.replace("<head>", f"<head>\n{FORBIDDEN}", 1))
    browser.open(path, width=1280, dark=dark)
    assert browser.value("getComputedStyle(document.querySelector('h1')).marginTop") != "0px", "no style sheet holds"
    assert browser.value("getComputedStyle(document.documentElement).colorScheme") == "normal", "the page is white"
    assert browser.value(PAINTED) == 0
    texts = browser.value(TEXTS)
    assert texts
    for colour in texts:
        channels = [float(number) for number in re.findall(r"[\d.]+", colour)[:3]]
        assert 1.05 / (luminance(channels[0], channels[1], channels[2]) + 0.05) >= 4.5, colour
