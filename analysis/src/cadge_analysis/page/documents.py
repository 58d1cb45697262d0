# SPDX-License-Identifier: BSD-3-Clause
"""A report as one document: its parts in the page's order, which all editions print, and its list of sections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cadge_analysis import messages
from cadge_analysis.blocks.make import embedded, link_to, made_of_records
from cadge_analysis.blocks.model import NavLink, PageDocument, Region, Span
from cadge_analysis.page.sections import first_screen, stops
from cadge_analysis.page.viewmodel import Page

say = partial(messages.say, "sections")

STYLES = ("part/first.css", "part/questions.css", "part/nav.css", "part/script.css", "part/pages.css")
_SURE = ("itself", "since", "coverage", "without")
_METHOD = ("floors", "imported", "method", "provenance")


def document(page: Page) -> PageDocument:
    """Return a report as its printers take it."""
    blocks = _regions(page)
    opened = say("nav.opened", file=page.opened_from) if page.opened_from else ""
    return PageDocument(
        title=page.title,
        kicker=(Span(f"Cadge report{opened}"),),
        deck=page.deck,
        styles=STYLES,
        sections=_navigation(blocks, has_command=bool(page.sheet.command)),
        head=(page.compared, *page.files),
        banner=stops(page.warned.stops),
        blocks=blocks,
        sheet=page.sheet,
        made=_made(page),
        carried=embedded(),
        scripted=True,
    )


def _made(page: Page) -> str:
    file = page.opened_from
    return say("nav.made_again", file=file) if file else made_of_records(page.sheet.generated)


def _regions(page: Page) -> tuple[Region, ...]:
    sure = (page.since_then, page.itself, page.coverage, page.without, page.floors)
    rest = (page.versions, page.scale, *sure, page.imported, page.method, page.provenance)
    every = (*first_screen(page), page.questions, page.layers, *page.sections, *rest)
    return tuple(one for one in every if one is not None)


def _navigation(regions: Sequence[Region], *, has_command: bool) -> tuple[NavLink, ...]:
    """Return the list of sections: the answer, then by pattern, how sure it is, and how it was found."""
    known = {one.id: one for one in regions}
    parts = tuple(link_to(one) for one in regions if one.part)

    def links(*names: str) -> tuple[NavLink, ...]:
        texts = {"since": say("nav.since"), "provenance": say("nav.command") if has_command else ""}
        return tuple(link_to(known[name], texts.get(name, "")) for name in names if name in known)

    layers = links("layers") if parts else tuple(link_to(known[one], "Layers") for one in ("layers",) if one in known)
    return (
        *links("found", "answer", "questions"),
        *((NavLink("Patterns", below=(*layers, *parts)),) if parts else layers),
        *links("versions", "scale"),
        NavLink(say("nav.sure"), below=links(*_SURE)),
        NavLink(say("nav.method"), below=links(*_METHOD)),
    )
