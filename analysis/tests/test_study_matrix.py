# SPDX-License-Identifier: BSD-3-Clause
"""A study of styles on substrates: every cell from the campaign, ratios by round, blanks and unseen cells said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
from chromium import Browser
from test_browser import TOO_WIDE

from cadge_analysis.errors import BadInputError
from cadge_analysis.study import published
from cadge_analysis.study.views import build
from cadge_results import Campaign

SC98 = Path(__file__).parents[1] / "studies" / "sc98"
US = 1000
BASE = {"native-ucx": 1, "am-ucx": 2, "native-ofi": 4, "am-ofi": 12}
"""Times of 8 B in round 0, us. Every round is slower than the one before by half: only pairs show ratios."""


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    known = synthetic.flat(point)
    value = US // 2
    if known["kind"] == "layer":
        value = round(BASE[known["layer"]] * US * (known["size"] / 8) ** 0.5 * 1.5**number)
    synthetic.set_samples(attempt, [(value, 200)])
    attempt["operations"] = 200
    attempt["elapsed_ns"] = value * 200


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    options = synthetic.Options(
        layers=tuple(BASE),
        sizes=(8, 4096),
        places=("within",),
        waits=("poll",),
        patterns=(("pingpong", 1),),
        attempt_hook=by_hand,
        samples=200,
        troubles=False,
    )
    return synthetic.make(tmp_path_factory.mktemp("styles"), options)


@pytest.fixture(scope="module")
def path(campaign: Campaign, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "sc98.html"
    build([campaign], SC98, out)
    return out


def rows(table: pagereader.Node) -> dict[str, list[pagereader.Node]]:
    return {row.one("th").own: row.all("td") for row in table.one("tbody").all("tr")}


def test_each_style_beside_the_library_s_own_messages(path: Path) -> None:
    tables = pagereader.read(path.read_text()).all("table", class_="matrix")
    assert len(tables) == 2  # one place, one pattern, two substrates
    for substrate, table, times in (("ucx", tables[0], 2), ("ofi", tables[1], 3)):
        found = rows(table)
        assert list(found) == [f"native-{substrate}", f"am-{substrate}"]
        value = [float(part) for part in found[f"am-{substrate}"][0].attrs["data-v"].split()]
        assert value[0] == pytest.approx(BASE[f"am-{substrate}"] * US * (1.5**2 + 1.5**3) / 2, rel=0.002)
        # by round there is no spread at all, though the rounds differ by a factor of 7.6
        assert any(small.startswith(f"{times}.00\u00d7") for small in found[f"am-{substrate}"][0].smalls)
        assert not any("\u00d7" in small for small in found[f"native-{substrate}"][0].smalls)


def test_style_or_substrate(path: Path) -> None:
    text = pagereader.read(path.read_text()).one("section", id="answer").text
    assert "the styles lie within 2.00\u00d7 on UCX, 3.00\u00d7 on libfabric." in text
    # ln 1, ln 2, ln 4, ln 12: sums of squares 0.803 of styles, 2.525 of substrates, 3.369 of all
    assert "the style explains 24\u202f%, the substrate 75\u202f%, and 1\u202f% belongs to single pairs" in text


def test_published_ranges_and_what_is_missing(path: Path) -> None:
    root = pagereader.read(path.read_text())
    latency, bandwidth = root.all("table", class_="range")
    published_row, ours = latency.one("tbody").all("tr")
    assert [cell.own for cell in published_row.all("td")] == ["5 \u00b5s", "17 \u00b5s", "3.40\u00d7"]
    assert [cell.own for cell in ours.all("td")][2] == "6.00\u00d7"
    assert len(bandwidth.one("tbody").all("tr")) == 1
    assert "this campaign has no two of am-*, bip-*" in root.one("section", id="answer").text


def test_semantics_are_those_that_the_layers_state(path: Path) -> None:
    found = rows(pagereader.read(path.read_text()).one("table", class_="semantics"))
    assert "credits for requests" in found["Flow control"][0].text
    assert "not seen" in found["Flow control"][1].text
    assert "not measured here" in found["Flow control"][1].text  # no layer of that style ran


def test_what_a_study_does_not_have_has_no_section(path: Path) -> None:
    root = pagereader.read(path.read_text())
    ids = [node.attrs["id"] for node in root.walk() if "id" in node.attrs]
    assert len(ids) == len(set(ids))
    assert not {"bill", "distance"} & set(ids)
    for link in root.all("a"):
        assert link.attrs["href"].removeprefix("#") in ids


def test_figures_are_tagged_as_seen() -> None:
    study = published.read(SC98)
    assert {figure.tag for figure in study.figures.values()} == {"seed", "found"}
    assert study.figures["latency_high"].value / study.figures["latency_low"].value == 3.4


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  base: native", "  base: naive", "naive is none of the styles"),
        ("    low: copied_low", "    low: copied_lo", "no figure is called copied_lo"),
        ("      cap: RELIABLE", "      cap: RELIABLE\n      trait: flow", "Reliable: give either trait or cap"),
    ],
)
def test_bad_data_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = (SC98 / published.FILE).read_text()
    assert old in text
    (tmp_path / published.FILE).write_text(text.replace(old, new, 1))
    with pytest.raises(BadInputError, match=words):
        published.read(tmp_path)


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, path: Path, width: int) -> None:
    browser.open(path, width=width)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []
    assert browser.complaints() == []
    assert browser.requests() == [path.resolve().as_uri()]
