# SPDX-License-Identifier: BSD-3-Clause
"""Pages for everybody: by keys alone, on poor screens, read aloud. By axe-core, and what it does not look at."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import ablated
import axe
import figured
import pagereader
import pytest
import synthetic
import test_beside
from chromium import Browser
from test_browser import OPEN_ALL, luminance

from cadge_analysis import report
from cadge_analysis.blocks.html import printed
from cadge_analysis.page import beside, pages
from cadge_analysis.publish.publish import publish, redacted
from cadge_analysis.publish.run import Labels
from cadge_analysis.study.views import build
from cadge_analysis.versus.against import against
from cadge_results.publish.published import Rules

SITE = Path(__file__).parents[2] / "build/site/html"
STUDIES = Path(__file__).parents[1] / "studies"
WAYS = [(1280, False), (1280, True), (390, False)]
SMALL = synthetic.Options(
    layers=("sockets-tcp", "native-ucx"), sizes=(8, 4096), places=("within",), waits=("poll",), samples=200
)


def studies(folder: Path) -> list[Path]:
    bench = folder / "bench.json"
    reading = {"name": "shm 8 B", "unit": "us", "median": 4, "low": 3.9, "high": 4.1}
    bench.write_text(json.dumps({"readings": [reading]}))
    campaign = ablated.make(folder)
    made = []
    for study in sorted(path for path in STUDIES.iterdir() if path.is_dir()):
        made.append(folder / f"{study.name}.html")
        build([campaign], study, made[-1], engine_bench=bench)
    return made


def two_sides(folder: Path) -> list[Path]:
    one = test_beside.side(folder / "one")
    other = test_beside.side(folder / "other", attempt_hook=test_beside.planted)
    page = beside.page(against(one, other, 0.05), one, other, generated="then")
    (folder / "beside.html").write_text(printed(page), encoding="utf-8")
    return [folder / "beside.html"]


def published(folder: Path) -> list[Path]:
    labels = Labels(licence="CC-BY-4.0", authors=({"family-names": "Curie", "given-names": "Marie"},))
    with redacted([synthetic.make(folder, SMALL)], Rules()) as copies:
        (run,) = publish(copies, folder / "site", labels)
    return [folder / "site/index.html", run / "index.html"]


def parted(folder: Path) -> list[Path]:
    """A report with a page a pattern beside it."""
    patterns = (("rpc", 1), ("stream", 64), ("pingpong", 1))
    options = replace(SMALL, patterns=patterns, places=("within", "between"), waits=("poll", "block"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "ONE_FILE_MOST", 1)
        report.build(synthetic.make(folder, options).path, folder / "r.html")
    made = sorted(folder.glob("r*.html"))
    assert len(made) == 1 + len(patterns)
    return made


def all_figures(folder: Path) -> list[Path]:
    return list(figured.pages(folder).values())


asked = pytest.mark.skipif(not axe.PROGRAM.is_file(), reason="axe-core is not here: `ci/setup axe` brings it")


def broken(browser: Browser, pages: Iterable[Path]) -> list[tuple[str, int, bool, str]]:
    """Return what pages break: each page's name, the width and scheme, and the rule."""
    found = []
    for path in pages:
        for width, dark in WAYS:
            browser.open(path, width=width, dark=dark)
            browser.value("document.querySelectorAll('main details').forEach(d => d.open = true)")
            found += [(path.name, width, dark, one) for one in axe.violations(browser)]
    return found


@asked
@pytest.mark.long
def test_axe_finds_no_violation_in_a_report(browser: Browser, report_path: Path) -> None:
    assert broken(browser, [report_path]) == []


@asked
@pytest.mark.long
@pytest.mark.parametrize("make", [studies, two_sides, published, parted, all_figures])
def test_axe_finds_no_violation(make: Callable[[Path], list[Path]], tmp_path: Path, browser: Browser) -> None:
    assert broken(browser, make(tmp_path)) == []


@asked
@pytest.mark.long
@pytest.mark.skipif(not SITE.is_dir(), reason="the site is not here: `make site` makes it")
def test_axe_finds_no_violation_in_the_site_of_pages(browser: Browser) -> None:
    pages = {*SITE.glob("*.html"), *SITE.glob("reference/*.html"), *SITE.glob("analysis/*.html")}
    pages -= {SITE / "search.html"}  # the theme's script makes its heading
    assert broken(browser, sorted(pages)) == []


@asked
def test_axe_would_find_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    wrong = (
        '<!doctype html><html lang="en"><title>t</title><main><h1>t</h1><img src="data:,"><p style="color:#bbb">faint'
    )
    (tmp_path / "wrong.html").write_text(wrong, encoding="utf-8")
    browser.open(tmp_path / "wrong.html", width=800)
    assert [one.partition(":")[0] for one in axe.violations(browser)] == ["color-contrast", "image-alt"]


# ---- text within pictures, of which axe cannot tell the ground ----

PAINTED = """
Array.from(document.querySelectorAll('svg.chart')).flatMap(svg => {
  const seen = e => { const box = e.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  const paint = e => getComputedStyle(e).fill;
  const shapes = Array.from(svg.querySelectorAll('path, rect')).filter(e => seen(e) && /^rgb\\(/.test(paint(e))
    && +getComputedStyle(e).fillOpacity === 1);
  return Array.from(svg.querySelectorAll('text')).filter(seen).map(text => {
    const box = text.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
    const below = shapes.filter(e => {
      const b = e.getBoundingClientRect();
      return b.left <= box.left && x < b.right && b.top <= y && y <= b.bottom && b.width > 14
        && e.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
    }).pop();
    return [paint(text), below ? paint(below) : getComputedStyle(document.body).backgroundColor,
            text.textContent + ' in ' + svg.querySelector('title').textContent];
  });
})
"""


def faint(browser: Browser) -> list[tuple[str, str, str]]:
    """Return what text of pictures stands out too little, with its colour and that of what is below it."""
    painted = {tuple(one) for one in browser.value(PAINTED)}
    assert len(painted) > 30
    found = []
    for fill, ground, text in painted:
        assert re.fullmatch(r"rgb\(\d+, \d+, \d+\)", fill), (fill, text)
        one, other = sorted((luminance(fill), luminance(ground)))
        if (other + 0.05) / (one + 0.05) < 4.5:
            found.append((text, fill, ground))
    return found


@pytest.mark.parametrize("dark", [False, True])
def test_text_in_pictures_stands_out_from_what_is_below_it(browser: Browser, report_path: Path, dark: bool) -> None:
    """WCAG 1.4.3: 4.5 to 1, for no text of a picture is large."""
    browser.open(report_path, width=1280, dark=dark)
    assert faint(browser) == []


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports with every kind of figure."""
    return figured.pages(tmp_path_factory.mktemp("figured"))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.first(1)
def test_text_in_pictures_of_every_kind_stands_out(browser: Browser, drawn: dict[str, Path], dark: bool) -> None:
    for path in drawn.values():
        browser.open(path, width=1280, dark=dark)
        assert faint(browser) == [], path.name


# ---- what is read aloud of a figure, and in which order ----


def test_every_kind_of_figure_has_a_title_a_description_and_its_numbers(drawn: dict[str, Path]) -> None:
    for name, path in drawn.items():
        root = pagereader.read(path.read_text())
        figures = {figure.attrs["id"].removeprefix("fig-"): figure for figure in root.all("figure", class_="fig")}
        assert set(figured.HAVE[name]) <= set(figures)
        for which, figure in figures.items():
            titled, described = figure.all("svg", class_="chart")[0].attrs["aria-labelledby"].split(" ")
            ids = {node.attrs["id"]: node for node in figure.walk() if "id" in node.attrs}
            assert figure.one("h3").text == ids[titled].text, which
            assert re.search(r"\d", ids[described].text), f"{which}: a description has numbers"
            assert all(caption.text.endswith(".") for caption in figure.all("figcaption")), which
            table = figure.one("table", class_="numbers")
            heads, rows = table.one("thead").all("th"), table.one("tbody").all("tr")
            assert rows, which
            for row in rows:
                cells = [*row.all("th"), *row.all("td")]
                assert len(cells) == len(heads) > 1, which
                assert cells[0].attrs["scope"] == "row"
    scale = pagereader.read(drawn["pairs"].read_text())
    assert "pairs: 1 and 2" in scale.one("section", id="scale").text
    assert "imported: " in scale.one("figure", id="fig-rpc-within-poll").all("svg", class_="chart")[0].text
    assert scale.one("section", id="imported").all("table", class_="imported")


def test_headings_go_down_a_level_at_a_time(drawn: dict[str, Path], report_path: Path) -> None:
    """WCAG 1.3.1: whoever steps through headings misses none."""
    for path in (*drawn.values(), report_path):
        root = pagereader.read(path.read_text())
        levels = [(int(node.tag[1]), node.text) for node in root.walk() if re.fullmatch("h[1-6]", node.tag)]
        assert levels[0][0] == 1
        for (before, _), (level, text) in itertools.pairwise(levels):
            assert 2 <= level <= before + 1, (path.name, text)
            assert text


# ---- keys ----

REACHABLE = """
Array.from(document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')).filter(e =>
  e.checkVisibility({contentVisibilityAuto: true}) && !(e.type === 'radio' && !e.checked))
"""
NUMBERED = f"{REACHABLE}.forEach((e, number) => {{ e.dataset.stop = number; }})"
FOCUSED = """
(() => {
  const e = document.activeElement, shown = e.closest('.keys') ? e.nextElementSibling : e;
  const style = getComputedStyle(shown), box = shown.getBoundingClientRect();
  return [e.dataset.stop ?? '', style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1,
          box.bottom > 0 && box.top < innerHeight, e.outerHTML.slice(0, 120)];
})()
"""


def test_every_control_is_reached_by_tab_and_seen_where_it_is(browser: Browser, tmp_path: Path) -> None:
    """WCAG 2.1.1, 2.4.3 and 2.4.7: in the order of the page, without a trap."""
    (page,) = published(tmp_path)[1:]
    browser.open(page, width=1280)
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    browser.value(NUMBERED)
    stops = len(browser.value(f"{REACHABLE}.map(e => e.dataset.stop)"))
    assert stops > 40
    reached = []
    for _ in range(stops):
        for kind in ("rawKeyDown", "keyUp"):
            browser.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        stop, ringed, inside, element = browser.value(FOCUSED)
        assert ringed, f"no ring: {element}"
        assert inside, f"out of sight: {element}"
        reached.append(int(stop or -1))
    assert sorted(reached) == list(range(stops))
    assert reached == sorted(reached)


def test_a_folded_list_opens_by_key_and_closes_by_escape(browser: Browser, tmp_path: Path) -> None:
    (page,) = published(tmp_path)[1:]
    browser.open(page, width=390)
    browser.value(OPEN_ALL.replace("details", "nav > details"))
    browser.value("document.querySelector('.layers-shown > summary').focus()")
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
    browser.send("Input.dispatchKeyEvent", type="keyDown", **key)
    browser.send("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)
    assert browser.value("document.querySelector('.layers-shown').open") is True
    browser.send("Input.dispatchKeyEvent", type="rawKeyDown", key="Escape", code="Escape", windowsVirtualKeyCode=27)
    assert browser.value("document.querySelector('.layers-shown').open") is False
    assert browser.value("document.activeElement.textContent").startswith("Layers")
