# SPDX-License-Identifier: BSD-3-Clause
"""A number that was altered is found in whatever part of a report it stands: a sentence, a table, a chart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.blocks.make import lede, listed, plain_table
from cadge_analysis.blocks.model import Fact, Facts, Figure, Item, Items, PageDocument, Region, Span
from cadge_analysis.page.pages import parts_of
from cadge_analysis.stats.load import read
from cadge_analysis.verify import ReportCheck, check, printed

SECTION = re.compile(r'<section id="([^"]+)".*?(?=<section id="|</main>)', re.DOTALL)
SAID = re.compile(r">[^<]*?([1-9])[^<]*?<")


def whole(page: PageDocument) -> PageDocument:
    """Return a page with every part that a report may have, of numbers at hand."""
    (first, *_) = (one for one in parts_of(page)[0].blocks if isinstance(one, Figure))
    figure = replace(first, name="connect", title="Time to connect")
    table = plain_table(title="What changed", columns=("cell", "ratio"), rows=(("8 B", "1.25"),))
    found = Item(kind="changed", spans=(Span(text="3 cells took 1.25 times as long."),))
    listing = listed(("RPC, pairs: 1 and 4",))
    test = plain_table("latency", ("message size", "p50"), (("8 B", "5.0"),))
    more = (
        Region(id="found", title="Since then", blocks=(Items((found,)),)),
        Region(id="scale", title="Scale", blocks=(listing, figure)),
        Region(id="since", title="Since the earlier campaign", blocks=(lede("Of 2 days ago."), table)),
        Region(id="imported", title="Imported", blocks=(Facts((Fact(name="Version", text="7.3"),)), test)),
    )
    return replace(page, blocks=(*page.blocks, *more))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    options = synthetic.Options(
        layers=("sockets-tcp", "am-ucx"), sizes=(8, 4096), waits=("poll",), samples=500, launches=4
    )
    return report.html(whole(report.page_of(read(synthetic.make(tmp_path_factory.mktemp("parts"), options)))))


def older(text: str) -> str:
    return re.sub(r'"program":"[0-9a-f]+"', '"program":"0123456789abcdef"', text)


def held(text: str, against: str) -> ReportCheck:
    return check(printed(text, "report.html"), against)


def in_every_section(text: str, alter: Callable[[str], str]) -> tuple[str, list[str]]:
    """Return a report of which each section was altered, and these sections' ids."""
    ids: list[str] = []

    def one(found: re.Match[str]) -> str:
        made = alter(found[0])
        if made != found[0]:
            ids.append(found[1])
        return made

    return SECTION.sub(one, text), ids


def digit(numbers: list[re.Match[str]], section: str, at: int) -> str:
    """Return a section of which one digit that is read became another one."""
    if not numbers:
        return section
    place = numbers[at].start(1)
    return f"{section[:place]}{int(section[place]) % 9 + 1}{section[place + 1 :]}"


PLACES: dict[str, Callable[[str], str]] = {
    "the first number": lambda section: digit(list(SAID.finditer(section)), section, 0),
    "the last number": lambda section: digit(list(SAID.finditer(section)), section, -1),
    "one in the middle": lambda section: digit(found := list(SAID.finditer(section)), section, len(found) // 2),
    "what programs read": lambda section: re.sub(r'data-v="([1-9])', r'data-v="9\1', section, count=1),
    "what is said once of all rows": lambda section: re.sub(
        r"(class=\"plain same\".*?<tbody>\s*<tr[^>]*>\s*<td>[^<]*</td>\s*<td[^>]*>)([^<]*)(<)",
        r"\g<1>\g<2>7\3",
        section,
        count=1,
        flags=re.DOTALL,
    ),
    "a line of a chart": lambda section: re.sub(r'( d="M[\d.]+,)(\d)', r"\g<1>9\2", section, count=1),
    "a number behind a figure": lambda section: re.sub(
        r'(class="plain numbers".*?<td>)', r"\g<1>9", section, count=1, flags=re.DOTALL
    ),
}
LEAST = {
    "what programs read": 4,
    "what is said once of all rows": 4,
    "a line of a chart": 5,
    "a number behind a figure": 5,
}


def test_the_report_has_every_part(text: str) -> None:
    ids = [found[1] for found in SECTION.finditer(text)]
    assert {"answer", "questions", "layers", "rpc-within", "stream-between", "scale", "since", "itself", "coverage",
            "without", "floors", "imported", "method", "provenance"} <= set(ids)  # fmt: skip
    assert held(text, text).agrees
    assert held(older(text), text).agrees


@pytest.mark.parametrize("version", ["the same", "another"])
@pytest.mark.parametrize("where", PLACES)
def test_one_altered_in_each_section_is_found_in_each(where: str, version: str, text: str) -> None:
    spoiled, ids = in_every_section(text, PLACES[where])
    assert len(ids) >= LEAST.get(where, 14)
    found = held(spoiled if version == "the same" else older(spoiled), text)
    assert not found.agrees
    places = [*(one.place for one in found.differences), *found.unchecked]
    assert {re.split("[:,]", one)[0] for one in places} == set(ids), "in each of them, and nowhere else"
