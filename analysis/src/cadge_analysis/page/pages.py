# SPDX-License-Identifier: BSD-3-Clause
"""A report in several files: a main one, and a page a pattern beside it for what makes a large campaign large.

The main file keeps the first screen, the matrix, every section's summary, and the numbers that are embedded; tables of
every size and column move to the pattern's page, which has the section whole. A campaign whose report has more than
`ONE_FILE_MOST` bytes in one file is split so; no other is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from cadge_analysis import messages, units
from cadge_analysis.blocks.model import WHOLE, Block, Figure, Region, Remark, Sheet, Span, Text
from cadge_analysis.page.provenance import as_json
from cadge_analysis.page.viewmodel import ComparedScope, Page

say = partial(messages.say, "report")

ONE_FILE_MOST = 4_000_000
"""Bytes: what a browser opens at once, and what may be mailed."""
PAGE_SCHEMA = "cadge.report-page/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLink:
    """A page of the report: what it is of, its address from the page that names it, and whether that is the same."""

    text: str
    href: str
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Why a report has several files, and which."""

    said: str
    links: tuple[PageLink, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternPage:
    """One pattern's page. `report`: the address of the main file, and `part_of` its name; `headline`: see Warned."""

    title: str
    name: str
    deck: str
    part_of: str
    report: str
    compared: ComparedScope
    headline: str
    stops: tuple[Remark, ...]
    sections: tuple[Region, ...]
    links: tuple[PageLink, ...]
    sheet: Sheet


def page_name(report: str, pattern: str) -> str:
    """Return the file name of a pattern's page, beside the report of a name."""
    path = PurePath(report)
    return f"{path.stem}-{pattern}{path.suffix}"


def split(page: Page, report: str, one_file_bytes: int) -> tuple[Page, dict[str, PatternPage]]:
    """Return the main page, and every other one by its file name. `report`: the main file's name.

    one_file_bytes: how many it would have in one file.
    """
    patterns = {one.part.name: one.part.title for one in page.sections if one.part}
    names = {pattern: page_name(report, pattern) for pattern in patterns}
    links = tuple(PageLink(text=title, href=quote(names[pattern])) for pattern, title in patterns.items())
    data: dict[str, Any] = json.loads(page.sheet.data_json)
    many, size = units.count_of(len(patterns), "page"), f"{one_file_bytes / 1e6:.1f} MB"
    most = f"{ONE_FILE_MOST / 1e6:.0f} MB"
    said = say("pages.parted", report=report, many=many, size=size, most=most)
    main = replace(
        page,
        sections=tuple(_without_whole(one, names[one.part.name]) for one in page.sections if one.part),
        sheet=_carrying(page.sheet, data | {"report": report, "pages": names}),
        split=Split(said=said, links=links),
    )
    pages = {
        names[pattern]: PatternPage(
            title=f"{title}: {page.title}",
            name=title,
            deck=page.deck,
            part_of=report,
            report=quote(report),
            compared=page.compared,
            headline=page.warned.headline,
            stops=page.warned.stops,
            sections=tuple(one for one in page.sections if one.part and one.part.name == pattern),
            links=tuple(replace(link, here=link.href == quote(names[pattern])) for link in links),
            sheet=_carrying(page.sheet, _of_page(data, report, pattern)),
        )
        for pattern, title in patterns.items()
    }
    return main, pages


def lighter(page: Page) -> Iterator[Page]:
    """Yield a main page with less in it each time; what it leaves out stands on the patterns' pages.

    First it is without small pictures, then with the first figure of each section alone, then with none.
    """
    for most in (None, 1, 0):
        yield replace(page, sections=tuple(_with_figures(one, most) for one in page.sections))


def _with_figures(section: Region, most: int | None) -> Region:
    """Return a section with its first figures alone, and these without small pictures."""
    kept = [one for one in section.blocks if isinstance(one, Figure)][:most]
    blocks = (one for one in section.blocks if not isinstance(one, Figure) or one in kept)
    return replace(section, blocks=tuple(map(_without_small, blocks)))


def _without_small(block: Block) -> Block:
    return replace(block, small=(), back=Markup("")) if isinstance(block, Figure) else block


def _of_page(data: Mapping[str, Any], report: str, pattern: str) -> dict[str, Any]:
    made = {"making": data["making"]} if "making" in data else {}
    return {"schema": PAGE_SCHEMA, "campaign_id": data["campaign_id"], "report": report, "pattern": pattern, **made}


def _without_whole(section: Region, name: str) -> Region:
    """Return a section with a link to the page that has it whole, in the place of what that page alone has."""
    said = say("tables.elsewhere", section=section.short)
    link = Text((Span(said), Span(" "), Span(name, href=f"{quote(name)}#{section.id}")), "elsewhere")
    kept = (one for one in section.blocks if not (isinstance(one, Region) and one.role == WHOLE))
    return replace(section, blocks=(*kept, link))


def _carrying(sheet: Sheet, data: Mapping[str, Any]) -> Sheet:
    return replace(sheet, data_json=Markup(as_json(data)))  # noqa: S704 - escaped by as_json
