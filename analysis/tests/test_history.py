# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns over time: which changes are told, of what, with what else, and the page that shows them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import axe
import over_time
import pagereader
import pytest
from chromium import Browser
from over_time import LAYERS, OPTIONS, SLOW
from test_browser import OPEN_ALL, TOO_WIDE

from cadge_analysis import messages
from cadge_analysis.blocks.html import printed
from cadge_analysis.messages import say
from cadge_analysis.page import history as pages
from cadge_analysis.versus.history import History, history
from cadge_analysis.versus.history_data import document
from cadge_analysis.versus.sides import Side


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    """The same numbers, before and after another kernel was installed."""
    folder = tmp_path_factory.mktemp("history")
    return over_time.read(folder / "a"), over_time.read(folder / "b", replace(OPTIONS, node={"kernel": "7.0"}))


@pytest.fixture(scope="module")
def found(two: tuple[Side, Side]) -> History:
    return history(over_time.sides(*two), 0.05)


@pytest.fixture(scope="module")
def text(found: History) -> str:
    return printed(pages.page(found, generated="then"))


def test_what_changed_is_told_of_the_layer_that_did(found: History) -> None:
    assert {one.series for one in found.courses} == set(LAYERS)
    assert {one.series for one in found.changed} == {SLOW}
    for course in found.changed:
        (turn,) = course.turns
        assert turn.at == 6
        slower = turn.ratio if course.better == "low" else 1 / turn.ratio
        assert slower == pytest.approx(1.3, rel=0.03)
        assert course.worse(turn)
        assert 0 < turn.p <= found.level
    assert found.machine is not None
    assert not found.machine.turns
    assert [(one.at, one.what, one.first != one.second) for one in found.events] == [(6, "kernel", True)]
    assert not found.gaps


def test_a_change_within_the_margin_is_none(two: tuple[Side, Side]) -> None:
    sides = over_time.sides(*two)
    assert not history(sides, 0.35).changed
    assert history(sides, 0.25).changed


def test_campaigns_stand_in_the_order_of_time_whatever_the_order_given(two: tuple[Side, Side], found: History) -> None:
    again = history(over_time.sides(*two)[::-1], 0.05)
    assert document(again) == document(found)


def test_too_few_campaigns_tell_nothing_and_say_how_many_would(two: tuple[Side, Side]) -> None:
    few = history(over_time.sides(*two, count=9, changed=4, slower=9.0), 0.05)
    assert not few.changed
    assert (few.testable, few.needed) == (0, 10)
    shown = pagereader.read(printed(pages.page(few, generated="then")))
    banner = shown.one("section", class_="banner")
    assert banner.one("h2").text == messages.say("history", "history.too_few")
    assert "10 campaigns are needed" in shown.text
    assert messages.say("history", "history.nothing_known") in shown.text


def test_every_marker_beside_a_name_is_drawn(found: History) -> None:
    shown = pagereader.read(printed(pages.page(found, generated="then")))
    wanted = {one.attrs["href"] for one in shown.all("use")}
    drawn = {f"#{one.attrs['id']}" for one in shown.walk() if "id" in one.attrs}
    assert any(one.startswith("#mk") for one in wanted)
    assert wanted <= drawn


def test_where_floors_changed_as_well_it_may_be_the_machine(two: tuple[Side, Side]) -> None:
    before, after = two
    sides = [over_time.at(after if n >= 6 else before, n, {"": 2.0} if n >= 6 else {}) for n in range(12)]
    found = history(sides, 0.05)
    assert found.machine is not None
    assert [turn.at for turn in found.machine.turns] == [6]
    page = pagereader.read(printed(pages.page(found, generated="then")))
    assert say("history", "history.floors_too") in page.text
    assert all("machine_changed_too" in one for cell in document(found)["cells"] for one in cell["changes"])  # type: ignore[union-attr,index,call-overload]


def test_cells_that_came_and_went_are_told(tmp_path: Path, two: tuple[Side, Side]) -> None:
    fewer = over_time.read(tmp_path, replace(OPTIONS, layers=("sockets-tcp", "rdma-ucx")))
    sides = [*over_time.sides(*two, count=3), over_time.at(fewer, 3, {})]
    found = history(sides, 0.05)
    assert {(one.series, one.at) for one in found.gaps} == {
        ("native-ucx", (0, 1, 2)),
        ("native-ofi", (0, 1, 2)),
        ("rdma-ucx", (3,)),
    }
    page = pagereader.read(printed(pages.page(found, generated="then")))
    assert say("history", "history.some_campaigns_title") in page.text
    assert "1 to 3" in page.text


def test_another_machine_s_values_are_left_out_and_said(tmp_path: Path, two: tuple[Side, Side]) -> None:
    cpu = {"cpu": {"model": "Other 9000", "sockets": 1, "cores": 2}}
    other = over_time.read(tmp_path, replace(OPTIONS, node=cpu))
    found = history([over_time.at(two[0], 0, {}), over_time.at(two[0], 1, {}), over_time.at(other, 2, {})], 0.05)
    assert sum(found.left.values()) > 0
    page = pagereader.read(printed(pages.page(found, generated="then")))
    assert say("history", "history.left_out_title") in page.text


def test_the_page_says_what_the_numbers_do(text: str, found: History) -> None:
    page = pagereader.read(text)
    assert "12 campaigns over time" in page.text
    assert "From campaign 7 (20261107T010203Z-00000006) on" in page.text
    assert "kernel" in page.text
    data = json.loads(page.one("script", id="data").text)
    assert data == json.loads(json.dumps(document(found)))
    for figure in page.all("figure"):
        assert figure.one("title").text
        assert figure.one("desc").text
        rows = figure.one("tbody").all("tr")
        assert len(rows) == 12


def test_the_same_campaigns_give_the_same_bytes(two: tuple[Side, Side], text: str) -> None:
    again = history(over_time.sides(*two), 0.05)
    assert printed(pages.page(again, generated="then")) == text


def test_names_are_text(two: tuple[Side, Side]) -> None:
    sides = over_time.sides(*two)
    hostile = "<script>alert(1)</script>"
    meta = sides[6].data.meta.model_copy(update={"sweep": hostile})
    sides[6] = Side(hostile, replace(sides[6].data, meta=meta))
    text = printed(pages.page(history(sides, 0.05), generated="then"))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_it_can_be_read_everywhere(browser: Browser, text: str, tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "history.html"
    path.write_text(text, encoding="utf-8")
    browser.open(path, width=width, dark=dark)
    browser.value(OPEN_ALL)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []
    assert browser.complaints() == []
    if axe.PROGRAM.is_file():
        assert axe.violations(browser) == []
