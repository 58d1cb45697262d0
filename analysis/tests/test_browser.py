# SPDX-License-Identifier: BSD-3-Clause
"""The report in a real browser: phone and desktop, light and dark, scripts off, no network, no complaint."""

from __future__ import annotations

import base64
import re
from itertools import pairwise
from pathlib import Path

import pytest
import synthetic
from chromium import Browser

from cadge_analysis import report

COLOUR = "getComputedStyle(document.querySelector('{selector}')).{name}"
TOO_WIDE = """
Array.from(document.querySelectorAll('body *')).filter(e => {
  if (e.closest('svg') && e.tagName !== 'svg') return false;
  if (e.closest('.scroll') && !e.classList.contains('scroll')) return false;
  if (e.closest('nav ul') || e.closest('.skip') || e.tagName === 'INPUT') return false;
  const box = e.getBoundingClientRect();
  return box.width > 0 && box.right > document.documentElement.clientWidth + 0.5;
}).map(e => e.tagName + '.' + e.className).slice(0, 5)
"""
OUTSIDE = """
Array.from(document.querySelectorAll('svg.chart')).flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return Array.from(svg.querySelectorAll('text')).filter(t => {
    const b = t.getBoundingClientRect();
    return b.width > 0 && (b.right > box.right + 1 || b.left < box.left - 1 || b.bottom > box.bottom + 1
                           || b.top < box.top - 1);
  }).map(t => svg.querySelector('title').textContent + ': ' + t.textContent);
}).slice(0, 5)
"""
OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"


@pytest.mark.parametrize("width", [375, 768, 1280])
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.first(1)
def test_the_page_never_scrolls_sideways(browser: Browser, report_path: Path, width: int, opened: bool) -> None:
    browser.open(report_path, width=width)
    if opened:
        browser.value(OPEN_ALL)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []


@pytest.mark.parametrize("dark", [False, True])
def test_it_asks_for_nothing_and_has_nothing_to_complain_of(browser: Browser, report_path: Path, dark: bool) -> None:
    browser.open(report_path, width=1280, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == [report_path.resolve().as_uri()]


HEIGHTS = "Array.from(document.querySelectorAll('{selector}')).map(e => e.getBoundingClientRect().{side})"


@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_holds_the_answer(browser: Browser, report_path: Path, dark: bool) -> None:
    """Of a window of 1280 by 900: what was compared, the caution, and ranked panels side by side."""
    browser.open(report_path, width=1280, height=900, dark=dark)
    assert browser.value(HEIGHTS.format(selector=".deck", side="bottom"))[0] < 200
    assert browser.value(HEIGHTS.format(selector=".stops", side="bottom"))[0] < 300
    panels = browser.value(HEIGHTS.format(selector=".ranking", side="bottom"))
    assert sum(bottom < 900 for bottom in panels) >= 2


def test_headings_are_in_order(browser: Browser, report_path: Path) -> None:
    browser.open(report_path, width=1280)
    levels = browser.value("Array.from(document.querySelectorAll('h1,h2,h3,h4,h5,h6')).map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(later - earlier for earlier, later in pairwise(levels)) == 1


def test_it_is_complete_with_scripts_off(browser: Browser, report_path: Path) -> None:
    browser.open(report_path, width=1280, scripts=False)
    assert browser.value("document.querySelectorAll('svg.chart').length") > 8
    assert browser.value("document.querySelectorAll('table.full tbody tr').length") > 100
    assert browser.value("document.querySelector('figure svg.chart').getBoundingClientRect().height") > 200
    assert browser.complaints() == []


def luminance(colour: str) -> float:
    channels = [float(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_lines_contrast_with_the_page(browser: Browser, report_path: Path, dark: bool) -> None:
    browser.open(report_path, width=1280, dark=dark)
    page = luminance(browser.value(COLOUR.format(selector="body", name="backgroundColor")))
    assert (page < 0.05) is dark

    def contrast(selector: str, name: str = "color", ground: float = page) -> float:
        shade = luminance(browser.value(COLOUR.format(selector=selector, name=name)))
        return (max(shade, ground) + 0.05) / (min(shade, ground) + 0.05)

    for selector in (
        ".answers li",
        ".deck",
        "figcaption",
        ".full small",
        "nav a",
        "summary",
        "td.below",
        ".answers small",
        ".rank:not(.leads)",
        ".away",
    ):
        if browser.value(f"document.querySelector('{selector}') !== null"):
            assert contrast(selector) >= 4.5, selector
    assert contrast("figure svg.chart text", "fill") >= 4.5
    for slot in range(10):
        if browser.value(f"document.querySelector('figure svg.chart [fill*=\"var(--s{slot},\"]') !== null"):
            assert contrast(f'figure svg.chart [fill*="var(--s{slot},"]', "fill") >= 3.0
    banner = luminance(browser.value(COLOUR.format(selector=".banner", name="backgroundColor")))
    for selector in (".banner p", ".banner h3", ".banner summary span"):
        assert contrast(selector, ground=banner) >= 4.5, selector
    chip = luminance(browser.value(COLOUR.format(selector=".rank.leads", name="backgroundColor")))
    assert contrast(".rank.leads", ground=chip) >= 4.5


def test_a_layer_can_be_picked_out_without_scripts(browser: Browser, report_path: Path) -> None:
    browser.open(report_path, width=1280)
    strokes = (
        "Array.from(document.querySelectorAll('#fig-rpc-within-poll {where} svg [stroke^=\"var(--k\"]'))"
        ".map(e => getComputedStyle(e).stroke)"
    )
    before = browser.value(strokes.format(where="> .scroll"))
    browser.value("document.querySelectorAll('#field .keys input')[3].click()")
    after = browser.value(strokes.format(where="> .scroll"))
    ghost = browser.value("getComputedStyle(document.documentElement).getPropertyValue('--ghost')").strip()
    faint = f"rgb({', '.join(str(int(ghost[at : at + 2], 16)) for at in (1, 3, 5))})"
    assert faint not in before
    kept = [colour for colour in after if colour != faint]
    assert 0 < len(kept) < len(after)
    assert len(set(kept)) == 1
    assert set(kept) < set(before)


def test_a_window_of_another_width_is_filled_at_once(browser: Browser, report_path: Path) -> None:
    """No rule of the page may look at every line of every chart: a page of all layers hung for minutes."""
    browser.open(report_path, width=1280)
    rules = browser.value(
        "Array.from(document.styleSheets).flatMap(s => Array.from(s.cssRules)).map(r => r.selectorText || '')"
    )
    picking = [rule for rule in rules if ":has(" in rule]
    assert len(picking) == 8
    assert all(rule.endswith(":checked)") for rule in picking)
    assert all(":checked) > .scroll, #field:has(" in rule for rule in picking)


def test_labels_of_charts_do_not_leave_the_picture(browser: Browser, report_path: Path) -> None:
    browser.open(report_path, width=1280)
    assert browser.value(OUTSIDE) == []


def test_paper_shows_what_the_screen_folds(browser: Browser, report_path: Path) -> None:
    """The texts of warnings, tables of blocking layers, every size, the numbers of figures, hosts."""
    taller = (
        "Array.from(document.querySelectorAll('main details')).map(e => e.getBoundingClientRect().height"
        " > e.querySelector('summary').getBoundingClientRect().height + 10)"
    )
    browser.open(report_path, width=760)
    assert not all(browser.value(taller))
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        shown = browser.value(taller)
        assert len(shown) > 20
        assert all(shown)
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_nothing_but_a_chart_scrolls_sideways(browser: Browser, report_path: Path, width: int) -> None:
    """Tables give way: where their columns do not fit, a row is a block of its cells with their heads."""
    browser.open(report_path, width=width)
    browser.value(OPEN_ALL)
    wide = browser.value(
        "Array.from(document.querySelectorAll('.scroll'))"
        ".filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)"
        ".filter(e => !e.querySelector('svg.chart')).map(e => e.getAttribute('aria-label') || e.tagName)"
    )
    assert wide == []
    assert browser.value("document.documentElement.scrollWidth") == width
    heads = "Array.from(document.querySelectorAll('table.full')).filter(t => t.dataset.heads == 'many' || %s)"
    cells = f"{heads % str(width == 390).lower()}.map(t => t.querySelector('tbody td'))"
    said = browser.value(f"{cells}.map(c => getComputedStyle(c, '::before').content)")
    assert said
    assert all(one.strip('"') for one in said), "each cell says its head where its column's head is out of sight"


def test_it_prints_with_every_section_on_paper(browser: Browser, report_path: Path) -> None:
    browser.open(report_path, width=1280)
    printed = base64.b64decode(browser.send("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    sheets = len(re.findall(rb"/Type /Page\b", printed))
    assert len(report_path.read_text().split("<section")) < sheets < 140, "all is there, and none of it is spread out"


@pytest.fixture(scope="module")
def long_names_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of layers whose settings make long names, more of them than share one picture."""
    folder = tmp_path_factory.mktemp("long")
    options = synthetic.Options(
        layers=synthetic.LAYERS[:7],
        sizes=(8, 64, 4096),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        settings=({"env.LONGEST_OF_ALL_VARIABLES": "10000,20000,30000"},),
        launches=2,
        samples=200,
    )
    report.build(synthetic.make(folder / "campaigns", options).path, folder / "report.html")
    return folder / "report.html"


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.long
def test_long_names_leave_neither_page_nor_picture(browser: Browser, long_names_path: Path, width: int) -> None:
    browser.open(long_names_path, width=width)
    browser.value(OPEN_ALL)
    assert browser.value("document.querySelectorAll('.ranked .name').length") > 6
    names = "Array.from(document.querySelectorAll('.summary tbody th, .full[data-heads=few] tbody th'))"
    widest = browser.value(f"Math.max(...{names}.map(e => e.getBoundingClientRect().width))")
    assert widest < (width / 2 if width > 640 else width), "others are read beside the names, on a phone below them"
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []
    assert browser.value(OUTSIDE) == []
