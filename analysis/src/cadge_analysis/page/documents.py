# SPDX-License-Identifier: BSD-3-Clause
"""A report as one document: its sections in the page's order, and the list of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from cadge_analysis import messages
from cadge_analysis.blocks.make import embedded, link_to, made_of_records, sections_of
from cadge_analysis.blocks.model import Facts, Item, NavLink, PageDocument, Region, Remark, Sheet, Span
from cadge_analysis.page.embed import ReportHead
from cadge_analysis.page.parts.warned import stops, validity

say = partial(messages.say, "sections")

STYLES = ("part/first.css", "part/questions.css", "part/nav.css", "part/script.css", "part/pages.css")
_SURE = ("itself", "since", "coverage", "without")
_METHOD = ("floors", "imported", "method", "provenance")


def document(
    regions: Iterable[Region | None],
    *,
    said: ReportHead,
    compared: Facts,
    sheet: Sheet,
    findings: tuple[Item, ...] = (),
    opened_from: str = "",
) -> PageDocument:
    """Return a report of its sections, as far as it has them. opened_from: the report that it was made of, if any."""
    blocks = tuple(one for one in regions if one is not None)
    opened = say("nav.opened", file=opened_from) if opened_from else ""
    made = say("nav.made_again", file=opened_from) if opened_from else made_of_records(sheet.generated)
    return PageDocument(
        title=said.title,
        kicker=(Span(f"Cadge report{opened}"),),
        deck=said.deck,
        styles=STYLES,
        sections=_navigation(blocks, has_command=bool(sheet.command)),
        head=(compared,),
        blocks=(*stops(said.remarks), *blocks),
        sheet=sheet,
        made=made,
        carried=embedded(),
        findings=findings,
        scripted=True,
    )


def short_document(
    regions: Sequence[Region],
    *,
    kind: str,
    title: str,
    deck: str,
    styles: tuple[str, ...],
    verdict: str,
    remarks: Sequence[Remark],
    sheet: Sheet,
    carried: str = "",
    holds: str = "",
) -> PageDocument:
    """Return a page without a script: its verdict, and its sections one after the other. carried: see `embedded`.

    kind: what Cadge calls such a page. verdict: what its sections may be taken for; "" where there is nothing to say.
    holds: for which launches verdicts hold.
    """
    banner = (validity(verdict, remarks, holds=holds),) if verdict else ()
    return PageDocument(
        title=title,
        kicker=(Span(f"Cadge {kind}"),),
        deck=deck,
        styles=styles,
        sections=sections_of(regions),
        blocks=(*banner, *regions),
        sheet=sheet,
        made=made_of_records(sheet.generated),
        carried=embedded(carried),
    )


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
