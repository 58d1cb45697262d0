# SPDX-License-Identifier: BSD-3-Clause
"""A study's page in a real browser: phone and desktop, light and dark, no network, no complaint."""

from __future__ import annotations

import json
from pathlib import Path

import ablated
import pytest
from chromium import Browser
from test_browser import COLOUR, TOO_WIDE, luminance

from cadge_analysis.study.views import build

PEREGRINE = Path(__file__).parents[1] / "studies" / "peregrine"


@pytest.fixture(scope="module")
def study_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    bench = folder / "bench.json"
    bench.write_text(
        json.dumps({"readings": [{"name": "shm 8 B", "unit": "us", "median": 4, "low": 3.9, "high": 4.1}]})
    )
    build([ablated.make(folder)], PEREGRINE, folder / "study.html", engine_bench=bench)
    return folder / "study.html"


@pytest.mark.parametrize("width", [375, 768, 1280])
@pytest.mark.first(1)
def test_the_page_never_scrolls_sideways(browser: Browser, study_path: Path, width: int) -> None:
    browser.open(study_path, width=width)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []


@pytest.mark.parametrize("dark", [False, True])
def test_it_asks_for_nothing_and_has_nothing_to_complain_of(browser: Browser, study_path: Path, dark: bool) -> None:
    browser.open(study_path, width=1280, dark=dark, scripts=False)
    assert browser.complaints() == []
    assert browser.requests() == [study_path.resolve().as_uri()]
    assert browser.value("document.querySelector('#fig-bill svg.chart').getBoundingClientRect().height") > 150


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_bars_contrast_with_the_page(browser: Browser, study_path: Path, dark: bool) -> None:
    browser.open(study_path, width=1280, dark=dark)
    page = luminance(browser.value(COLOUR.format(selector="body", name="backgroundColor")))
    assert (page < 0.05) is dark

    def contrast(selector: str, name: str = "color", ground: float = page) -> float:
        shade = luminance(browser.value(COLOUR.format(selector=selector, name=name)))
        return (max(shade, ground) + 0.05) / (min(shade, ground) + 0.05)

    for selector in (".deck", "figcaption", ".lede", ".ablation .same", ".ablation .differs", ".bill .remark", ".why"):
        assert contrast(selector) >= 4.5, selector
    row = luminance(browser.value(COLOUR.format(selector=".published td", name="backgroundColor")))
    assert contrast(".published small", ground=row) >= 4.5
    assert contrast("#fig-bill svg.chart text", "fill") >= 4.5
    for variable in ("floor", "s0", "s1", "s2", "s9"):
        assert contrast(f'#fig-bill svg.chart [fill^="var(--{variable},"]', "fill") >= 3.0, variable


def test_labels_do_not_leave_the_picture(browser: Browser, study_path: Path) -> None:
    browser.open(study_path, width=1280)
    outside = """
    Array.from(document.querySelectorAll('#fig-bill svg.chart text')).filter(t => {
      const b = t.getBoundingClientRect(), box = t.closest('svg').getBoundingClientRect();
      return b.width > 0 && (b.right > box.right + 1 || b.left < box.left - 1 || b.bottom > box.bottom + 1);
    }).map(t => t.textContent)
    """
    assert browser.value(outside) == []
