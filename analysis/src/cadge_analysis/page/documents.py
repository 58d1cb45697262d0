# SPDX-License-Identifier: BSD-3-Clause
"""Pages as documents: their sections in order, and the list of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cadge_analysis import messages
from cadge_analysis.blocks.make import embedded, link_to, made_of_records, sections_of
from cadge_analysis.blocks.model import Block, NavLink, PageDocument, Region, Sheet, Span

say = partial(messages.say, "sections")

STYLES = (
    "part/first.css",
    "part/ranked.css",
    "part/questions.css",
    "part/nav.css",
    "part/script.css",
    "part/pages.css",
)
_SURE = ("limits", "itself", "since", "coverage", "without")
_METHOD = ("floors", "imported", "glossary", "method", "provenance")


def document(
    regions: Sequence[Region],
    *,
    kind: str,
    title: str,
    deck: str,
    styles: tuple[str, ...],
    sheet: Sheet,
    above: Sequence[Block] = (),
    sections: tuple[NavLink, ...] | None = None,
    made: str = "",
    carried: str = "",
) -> PageDocument:
    """Return a page: what stands above its sections, and these one after the other.

    kind: what Cadge calls such a page. sections: its list of them, where it is not simply all. made: what it is made
    of, where that is not its records; carried: see `embedded`.
    """
    return PageDocument(
        title=title,
        kicker=(Span(f"Cadge {kind}"),),
        deck=deck,
        styles=styles,
        sections=sections_of(regions) if sections is None else sections,
        blocks=(*above, *regions),
        sheet=sheet,
        made=made or made_of_records(sheet.generated),
        carried=embedded(carried),
    )


def navigation(regions: Sequence[Region], *, has_command: bool) -> tuple[NavLink, ...]:
    """Return the list of sections: the answer, then by pattern, how sure it is, and how it was found."""
    known = {one.id: one for one in regions}
    parts = tuple(link_to(one) for one in regions if one.part)

    def links(*names: str) -> tuple[NavLink, ...]:
        texts = {"since": say("nav.since"), "provenance": say("nav.command") if has_command else ""}
        return tuple(link_to(known[name], texts.get(name, "")) for name in names if name in known)

    layers = links("layers") if parts else tuple(link_to(known[one], "Layers") for one in ("layers",) if one in known)
    return (
        *links("found", "answer", "field", "questions"),
        *((NavLink("Patterns", below=(*layers, *parts)),) if parts else layers),
        *links("versions", "scale"),
        NavLink(say("nav.sure"), below=links(*_SURE)),
        NavLink(say("nav.method"), below=links(*_METHOD)),
    )
