# SPDX-License-Identifier: BSD-3-Clause
"""The page of two sides: what stands in it, in which order, and that it is one harmless file that never differs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from math import exp, log
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
from chromium import Browser
from scaled import scaled
from test_browser import OPEN_ALL, OUTSIDE, TOO_WIDE

from cadge_analysis.blocks.html import printed
from cadge_analysis.draw import palette
from cadge_analysis.draw.ratios import FARTHEST, RatioLine, RatioMark, RatioPanel, lines_of, ratio_panel, reach_of
from cadge_analysis.messages import say
from cadge_analysis.page import beside
from cadge_analysis.stats import load
from cadge_analysis.versus.against import Fate, SideComparison, against
from cadge_analysis.versus.as_data import PAIRS
from cadge_analysis.versus.sides import Side
from cadge_analysis.versus.tail_shift import PER_MILLES, beyond, tail_shifts

SLOW, TAILED, FAILING = "native-ucx", "native-ofi", "rdma-ucx"
LAYERS = ("sockets-tcp", SLOW, TAILED, FAILING, "sockets-unix", "sockets-udp")
SAMPLES = 12_000


def side(folder: Path, **options: Any) -> Side:  # noqa: ANN401
    usual = {
        "layers": LAYERS,
        "sizes": (8, 4096, 65536),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("rpc", 1), ("stream", 64)),
        "launches": 12,
        "samples": SAMPLES,
        "troubles": False,
    }
    data = load.read(synthetic.make(folder, synthetic.Options(**(usual | options))))
    return Side(data.campaign_id, data)


def planted(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Calls of one layer take longer, of another the slowest hundredth alone, and a third one fails at one size."""
    subject, known = point["subject"], synthetic.flat(point)
    if subject["kind"] != "layer" or known["pattern"] != "rpc":
        return
    if subject["layer"] == TAILED and known["size"] == 8:
        usual = [(10_000 + 10 * number, SAMPLES * 98 // 100), (60_000, SAMPLES * 2 // 100)]
        synthetic.set_samples(attempt, usual)
    if subject["layer"] == FAILING and known["size"] == 65536:
        attempt["quantities"] = {}


def level(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    subject, known = point["subject"], synthetic.flat(point)
    if (subject["layer"], known["pattern"], known["size"]) == (TAILED, "rpc", 8):
        synthetic.set_samples(attempt, [(10_000 + 10 * number, SAMPLES)])


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    folder = tmp_path_factory.mktemp("beside")
    before = side(folder / "a", attempt_hook=level)
    return before, scaled(side(folder / "b", seed=8, attempt_hook=planted, node={"kernel": "7.0"}), {SLOW: 3.0})


@pytest.fixture(scope="module")
def found(sides: tuple[Side, Side]) -> SideComparison:
    return against(*sides, 0.05)


def page_of(found: SideComparison, sides: tuple[Side, Side], **options: Any) -> str:  # noqa: ANN401
    return printed(beside.page(found, *sides, generated="then", **options))


@pytest.fixture(scope="module")
def text(found: SideComparison, sides: tuple[Side, Side]) -> str:
    return page_of(found, sides)


@pytest.fixture(scope="module")
def path(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "beside.html"
    file.write_text(text)
    return file


def test_what_differed_stands_before_what_changed(text: str) -> None:
    root = pagereader.read(text)
    sections = [one.attrs["id"] for one in root.all("section") if "id" in one.attrs]
    assert sections[:3] == ["answer", "comparability", "changes"]
    assert "kernel" in root.one("section", id="comparability").text
    assert "6.18.5" in root.one("section", id="comparability").text


def test_changes_are_listed_and_what_is_the_same_is_counted(text: str, found: SideComparison) -> None:
    table = pagereader.read(text).one("section", id="changes").all("table")[0]
    rows = table.all("tr")[1:]
    changed = [one for one in found.changes if one.judged.verdict in ("slower", "faster")]
    assert {one.series for one in changed} == {SLOW}
    assert len(rows) == len(changed) == 6  # three sizes of two patterns
    assert all(row.all("th")[0].text.startswith("\u25bc slower") for row in rows)
    same = sum(one.judged.verdict == "same" for one in found.changes)
    assert f"{same} points the same within 5\u202f%" in table.text


def test_ratio_charts_have_every_number_in_a_table(text: str, found: SideComparison) -> None:
    figures = [one for one in pagereader.read(text).all("figure") if one.attrs["id"].startswith("fig-ratio-")]
    assert len(figures) == 2  # patterns, at one place and in one wait mode
    shown = sum(cell.text != "\u2013" for one in figures for row in one.all("tr")[1:] for cell in row.all("td"))
    assert shown == len(found.changes)
    assert all(SLOW in one.one("p").text for one in figures)


def test_cells_that_came_and_went(text: str, found: SideComparison) -> None:
    assert {one.fate for one in found.left} == {Fate.FAILING}
    fates = pagereader.read(text).one("section", id="fates")
    assert "Newly failing: 1 point" in fates.text
    assert FAILING in fates.text


def test_a_tail_that_moved_under_a_median_that_stayed_is_shown(text: str, found: SideComparison) -> None:
    (change,) = (one for one in found.changes if (one.series, one.case.pattern, one.workload) == (TAILED, "rpc", "8 B"))
    assert change.judged.verdict == "same"
    shifts = {one.per_mille: one for one in tail_shifts(*change.sides, change.shift)}
    assert tuple(shifts) == PER_MILLES
    assert shifts[500].log_ratio == pytest.approx(0, abs=0.02)
    assert shifts[990].log_ratio == pytest.approx(log(6), abs=0.05)
    assert shifts[990].low is not None
    assert exp(shifts[990].low) > 4
    assert beyond(tuple(shifts.values()), 0.05) > 1
    figures = [one for one in pagereader.read(text).all("figure") if one.attrs["id"].startswith("fig-tail-")]
    assert any(TAILED in one.one("p").text and "8 B" in one.one("h3").text for one in figures)


def test_no_percentile_without_samples_beyond_it(tmp_path: Path) -> None:
    """Of 400 samples a launch ten lie beyond the 97.5th percentile."""
    few = {"samples": 400, "patterns": (("rpc", 1),), "sizes": (8, 4096)}
    found = against(side(tmp_path / "a", **few), side(tmp_path / "b", seed=8, **few), 0.05)
    assert found.changes
    for one in found.changes:
        assert [shift.per_mille for shift in tail_shifts(*one.sides, one.shift)] == [500, 750, 900, 950]


def test_it_is_one_file_that_never_differs(text: str, found: SideComparison, sides: tuple[Side, Side]) -> None:
    assert page_of(found, sides) == text
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "script-src" not in policy[1]
    assert not re.search(r"""(?:src|href)=["']https?:|url\(|@import""", text)


def test_its_numbers_are_there_for_programs(text: str, found: SideComparison) -> None:
    data = json.loads(pagereader.read(text).one("script", id="data").text)
    assert data["schema"] == "cadge.compare/2"
    assert len(data["pairs"]) == len(found.changes)
    for one, change in zip(data["pairs"], found.changes, strict=True):
        assert list(one) == [*(field.name for field in PAIRS), "first_by_launch", "second_by_launch"]
        assert (one["unit"], one["second_value"]) == (change.quantity.unit, change.sides[1].central.value)
        assert sorted(one["second_by_launch"].values()) == sorted(change.sides[1].by_round.values())
        assert one["second_launches"] == len(one["second_by_launch"])


def test_what_is_under_study_is_told_apart(found: SideComparison, sides: tuple[Side, Side]) -> None:
    text = page_of(found, sides, vary=("kernel",))
    section = pagereader.read(text).one("section", id="comparability")
    assert [one.all("span")[0].text for one in section.all("caption")] == ["Under study"]
    assert "--vary kernel" in text


def test_two_layers_of_one_campaign(sides: tuple[Side, Side]) -> None:
    series = {one.label: one for one in sides[0].data.layers}
    both = tuple(Side(f"c:{name}", sides[0].data, series[name]) for name in ("sockets-tcp", SLOW))
    text = page_of(against(both[0], both[1], 0.05), (both[0], both[1]))
    assert "paired by round" in text
    assert f"sockets-tcp \u2192 {SLOW}" in text
    assert pagereader.read(text).one("h1").text == f"{SLOW} against sockets-tcp", "the campaign's name tells neither"
    assert 'id="machine"' not in text


def test_what_cannot_be_told_is_not_called_unchanged(tmp_path: Path) -> None:
    few = {"launches": 2, "samples": 400, "patterns": (("rpc", 1),), "sizes": (8,)}
    one, other = side(tmp_path / "a", **few), side(tmp_path / "b", seed=8, **few)
    text = pagereader.read(page_of(against(one, other, 0.05), (one, other))).text
    assert say("report", "since.nothing_known") in text
    assert "nothing became slower" not in text


def test_values_at_an_edge_do_not_run_into_each_other() -> None:
    assert lines_of([(0.0, "2.74\u00d7"), (20.0, "2.17\u00d7"), (100.0, "2.37\u00d7")]) == [[1, 2], [0]]
    assert lines_of([(90.0, "1\u00d7"), (0.0, "1\u00d7")]) == [[1, 0]]
    assert [len(line) for line in lines_of([(8.0 * at, "0.466\u00d7") for at in range(4)])] == [1, 1, 1, 1], "stairs"


def test_nothing_to_compare_is_said(sides: tuple[Side, Side], tmp_path: Path) -> None:
    other = side(tmp_path, seed=9, samples=400, node={"cpu": {"model name": "Another One"}})
    found = against(sides[0], other, 0.05)
    text = page_of(found, (sides[0], other))
    assert say("beside", "beside.nothing") in text
    assert "<b>Other machines</b>" in text
    assert "Breaks the comparison" in text
    assert 'id="ratios"' not in text


def test_hostile_names_stay_text(found: SideComparison, sides: tuple[Side, Side]) -> None:
    bad = "</title><script>alert(1)</script>\"'"
    changes = tuple(replace(one, workload=bad) for one in found.changes)
    left = tuple(replace(one, name=bad, why=bad) for one in found.left)
    text = page_of(replace(found, first=bad, changes=changes, left=left), sides)
    assert "<script>alert" not in text
    assert pagereader.read(text).one("h1").text.endswith(bad)


# ---- charts ----


def panel(*ratios: float) -> RatioPanel:
    look = palette.Identity(0, 0)
    marks = tuple(RatioMark(at=at, ratio=ratio, low=None, high=None) for at, ratio in enumerate(ratios))
    line = RatioLine(label="one", look=look, marks=marks, told=True)
    names = {float(at): f"{at} B" for at in range(len(ratios))}
    return RatioPanel(title="t", along="a", names=names, lines=(line,), margin=0.05, reach=reach_of((line,), 0.05))


def test_a_ratio_beyond_the_scale_is_a_triangle_with_its_value() -> None:
    spec = json.dumps(ratio_panel(panel(1.1, 7.5, 0.02)))
    assert "triangle-up" in spec
    assert "7.50\\u00d7" in spec
    assert "0.0200\\u00d7" in spec
    assert "triangle" not in json.dumps(ratio_panel(panel(1.1, 0.9)))
    assert panel(1.1, 7.5).reach == pytest.approx(FARTHEST * 1.03)


# ---- in a browser ----


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_in_a_browser(browser: Browser, path: Path, width: int, dark: bool) -> None:
    browser.open(path, width=width, dark=dark)
    browser.value(OPEN_ALL)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []
    assert browser.value(OUTSIDE) == []
    assert browser.complaints() == []
    assert browser.requests() == [path.resolve().as_uri()]
    levels = browser.value("Array.from(document.querySelectorAll('h1,h2,h3,h4')).map(e => +e.tagName[1])")
    assert levels.count(1) == 1
    assert max(later - earlier for earlier, later in pairwise(levels)) == 1
