# SPDX-License-Identifier: BSD-3-Clause
"""Figures as files of their own: whole, readable without the page, and with the numbers that the page has."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pagereader
import pytest

from cadge_analysis.blocks.model import PageDocument
from cadge_analysis.draw.svg import alone, picture
from cadge_analysis.errors import BadInputError, PictureError
from cadge_analysis.page import paper
from cadge_analysis.report import page_of
from cadge_analysis.stats.load import read
from cadge_results import Campaign

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def page(campaign: Campaign) -> PageDocument:
    return page_of(read(campaign))


@pytest.fixture(scope="module")
def files(page: PageDocument) -> dict[str, bytes]:
    return dict(paper.files(page, "svg", tuple(paper.shown(page))))


def test_every_figure_of_the_report_is_there(files: dict[str, bytes], report_text: str) -> None:
    names = {name.removesuffix(".svg") for name in files if name.endswith(".svg")}
    shown = {one.attrs["id"].removeprefix("fig-") for one in pagereader.read(report_text).all("figure", class_="fig")}
    assert names == shown
    assert len(names) > 5
    assert list(files)[-1] == "FIGURES.md"


def test_a_picture_needs_no_style_sheet_and_no_page(files: dict[str, bytes]) -> None:
    for name, content in files.items():
        if not name.endswith(".svg"):
            continue
        text = content.decode()
        root = ET.fromstring(text)  # noqa: S314 - our own
        assert root.tag == f"{SVG}svg"
        assert "var(" not in text
        ids = {one.get("id") for one in root.iter()}
        assert all(one.get("href", "#").removeprefix("#") in ids for one in root.iter(f"{SVG}use"))
        assert len(root.findtext(f"{SVG}title") or "") > 5
        assert len(root.findtext(f"{SVG}desc") or "") > 20
        assert len(list(root.iter(f"{SVG}text"))) > 2


def test_numbers_beside_it_are_those_of_the_page(files: dict[str, bytes], page: PageDocument) -> None:
    for one in paper.shown(page):
        rows = list(csv.reader(io.StringIO(files[f"{one.figure.name}.csv"].decode())))
        assert tuple(rows[0]) == one.figure.table.columns
        assert [tuple(row) for row in rows[1:]] == list(one.figure.table.rows)


def test_the_list_says_what_each_is_and_nothing_that_holds_in_the_page_alone(
    files: dict[str, bytes], page: PageDocument
) -> None:
    listed = files["FIGURES.md"].decode()
    for one in paper.shown(page):
        assert f"## {one.figure.name}.svg" in listed
    assert "chosen above" not in listed
    assert "Latency against size, polling, within one host" in listed


def test_names_from_a_campaign_are_text_in_the_list(page: PageDocument) -> None:
    figure = next(paper.shown(page)).figure
    hostile = paper.PaperFigure(heading="<script>alert(1)</script>", figure=replace(figure, title="[x](http://y)"))
    listed = dict(paper.files(page, "svg", (hostile,)))["FIGURES.md"].decode()
    assert "<script" not in listed
    assert "[x](" not in listed


def test_pdf_and_png_are_what_they_are_called(page: PageDocument) -> None:
    one = (next(paper.shown(page)),)
    pdf, png = (dict(paper.files(page, kind, one)) for kind in ("pdf", "png"))
    assert pdf[f"{one[0].figure.name}.pdf"].startswith(b"%PDF-")
    picture_png = png[f"{one[0].figure.name}.png"]
    assert picture_png.startswith(b"\x89PNG")
    width = int.from_bytes(picture_png[16:20], "big")
    asked = re.search(r'width="(\d+)"', one[0].figure.svg)
    assert asked is not None
    assert width == 3 * int(asked[1])


def test_the_same_records_give_the_same_files(files: dict[str, bytes], campaign: Campaign) -> None:
    again = page_of(read(campaign))
    assert dict(paper.files(again, "svg", tuple(paper.shown(again)))) == files


def test_what_is_no_chart_or_no_kind_is_refused() -> None:
    with pytest.raises(PictureError, match="no chart"):
        alone("<svg><text>other</text></svg>")
    with pytest.raises(PictureError, match="cannot be made"):
        picture("<svg", "png")
    with pytest.raises(BadInputError, match="not gif"):
        paper.kind_of("gif")
