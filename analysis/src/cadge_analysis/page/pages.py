# SPDX-License-Identifier: BSD-3-Clause
"""A report in several files: a main one, and a page a pattern beside it for what makes a large campaign large.

The main file keeps the first screen, the matrix, every section's summary, and the numbers that are embedded; tables of
every size and column move to the pattern's page, which has the section whole. A campaign whose report has more than
`ONE_FILE_MOST` bytes in one file is split so; no other is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from cadge_analysis import messages, units
from cadge_analysis.blocks.make import link_to, region_of
from cadge_analysis.blocks.model import (
    NOTHING,
    WHOLE,
    Block,
    Command,
    Facts,
    Figure,
    Heading,
    NavLink,
    PageDocument,
    Part,
    Region,
    Sheet,
    Span,
    Text,
)
from cadge_analysis.page.parts.provenance import as_json

say = partial(messages.say, "report")
in_nav = partial(messages.say, "sections")

ONE_FILE_MOST = 4_000_000
"""Bytes: what a browser opens at once, and what may be mailed."""
PAGE_SCHEMA = "cadge.report-page/1"


def page_name(report: str, pattern: str) -> str:
    """Return the file name of a pattern's page, beside the report of a name."""
    path = PurePath(report)
    return f"{path.stem}-{pattern}{path.suffix}"


def split(page: PageDocument, report: str, one_file_bytes: int) -> tuple[PageDocument, dict[str, PageDocument]]:
    """Return the main page, and every other one by its file name. `report`: the main file's name.

    one_file_bytes: how many it would have in one file.
    """
    patterns = {one.part.name: one.part.title for one in parts_of(page) if one.part}
    names = {pattern: page_name(report, pattern) for pattern in patterns}
    links = {title: quote(names[pattern]) for pattern, title in patterns.items()}
    data: dict[str, Any] = json.loads(page.sheet.data_json)
    many, size = units.count_of(len(patterns), "page"), f"{one_file_bytes / 1e6:.1f} MB"
    most = f"{ONE_FILE_MOST / 1e6:.0f} MB"
    said = say("pages.parted", report=report, many=many, size=size, most=most)
    main = replace(
        _with_parts(page, lambda one, part: _without_whole(one, names[part.name])),
        sheet=_carrying(page.sheet, data | {"report": report, "pages": names}),
        head=(*page.head, Text((Span(said), *_listed(links)), "pages dim")),
    )
    pages = {
        names[name]: _pattern_page(page, name, report, links, _carrying(page.sheet, _of_page(data, report, name)))
        for name in patterns
    }
    return main, pages


def parts_of(page: PageDocument) -> tuple[Region, ...]:
    """Return the sections of which each would have its page in a report of several files."""
    return tuple(one for one in page.blocks if isinstance(one, Region) and one.part)


def _with_parts(page: PageDocument, changed: Callable[[Region, Part], Region]) -> PageDocument:
    def of(block: Block) -> Block:
        return changed(block, block.part) if isinstance(block, Region) and block.part else block

    return replace(page, blocks=tuple(map(of, page.blocks)))


def _listed(links: Mapping[str, str]) -> Iterator[Span]:
    for number, (title, href) in enumerate(links.items()):
        yield Span(", " if number else " ")
        yield Span(title, href=href)


def _pattern_page(page: PageDocument, name: str, report: str, links: Mapping[str, str], sheet: Sheet) -> PageDocument:
    """Return the page of a pattern. links: of all patterns, by title; report: the name of the main file."""
    main = quote(report)
    sections = tuple(one for one in parts_of(page) if one.part and one.part.name == name)
    validity = region_of(page.blocks, "banner")
    headline = [one.text for one in validity.blocks if isinstance(one, Heading)] if validity else []
    title = next(one.part.title for one in sections if one.part)
    command = (Span(in_nav("nav.command_of")), Span(" "), Span(in_nav("nav.in_report"), href=f"{main}#provenance"))
    again = (Text((*command, Span(":"))), Command(sheet.command), Facts(sheet.facts))
    provenance = Region(id="provenance", title="Provenance", blocks=again)
    others = tuple(NavLink(text, href) for text, href in links.items() if text != title)
    return replace(
        page,
        title=f"{title}: {page.title}",
        kicker=(Span("Cadge report: "), Span(in_nav("nav.all"), href=main), Span(f" / {title}")),
        sections=(
            NavLink(in_nav("nav.answer"), f"{main}#answer"),
            *map(link_to, sections),
            NavLink(in_nav("nav.others"), below=others),
            link_to(provenance),
        ),
        head=tuple(Text((Span(text, href=f"{main}#answer"),), "dim") for text in headline),
        blocks=(*(_led_to(one, main) for one in page.blocks if isinstance(one, Text)), *sections, provenance),
        sheet=sheet,
        carried=(Span(in_nav("nav.numbers_in") + " "), Span(report, href=main), Span(".")),
        findings=(),
        part_of=report,
    )


def _led_to(block: Text, main: str) -> Text:
    """Return sentences of the main file for another one: their links lead there."""
    return replace(block, spans=tuple(replace(one, href=main + one.href) if one.href else one for one in block.spans))


def lighter(page: PageDocument) -> Iterator[PageDocument]:
    """Yield a main page with less in it each time; what it leaves out stands on the patterns' pages.

    First it is without small pictures, then with the first figure of each section alone, then with none.
    """
    for most in (None, 1, 0):
        yield _with_parts(page, lambda one, _, most=most: _with_figures(one, most))  # type: ignore[misc]


def _with_figures(section: Region, most: int | None) -> Region:
    """Return a section with its first figures alone, and these without small pictures."""
    kept = [one for one in section.blocks if isinstance(one, Figure)][:most]
    blocks = (one for one in section.blocks if not isinstance(one, Figure) or one in kept)
    return replace(section, blocks=tuple(map(_without_small, blocks)))


def _without_small(block: Block) -> Block:
    return replace(block, small=(), small_title="", back=NOTHING) if isinstance(block, Figure) else block


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
