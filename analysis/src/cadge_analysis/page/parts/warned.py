# SPDX-License-Identifier: BSD-3-Clause
"""What limits a page's numbers: warnings and notes, in a report merged by kind and ordered, the widest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.blocks.make import plain
from cadge_analysis.blocks.model import Block, Fold, Heading, Region, Remark, Remarks, Span, Text
from cadge_analysis.groups import by_key

say = partial(messages.say, "remarks")

SEVERAL = {
    "slow host": say("warned.slow_host"),
    "wrong transport": say("warned.wrong_transport"),
    "unsound": say("warned.unsound"),
    "refused": say("warned.refused"),
    "steered": say("warned.steered"),
}
"""What findings of one kind are called where there are several of them."""


def warned(found: Sequence[Remark], findings: Sequence[Remark]) -> tuple[Remark, ...]:
    """Return all that limits the numbers by how much of the campaign it touches; equal ones in the given order."""
    ordered = sorted([*_merged(findings), *found], key=lambda one: (not one.stops, not one.serious, -one.share))
    return tuple(replace(one, anchor=f"warning-{number}") for number, one in enumerate(ordered, 1))


def _merged(findings: Sequence[Remark]) -> Iterator[Remark]:
    """Yield a remark a kind of finding, and of what stops one of its own."""
    kinds = by_key(findings, lambda one: (one.kind, one.serious, one.stops))
    for (kind, serious, stops), members in kinds.items():
        share = max(one.share for one in members)
        if len(members) == 1:
            yield replace(members[0], text=members[0].text.removeprefix(":").strip())
            continue
        title = f"{units.grouped(len(members))} {SEVERAL.get(kind, kind)}"
        items = tuple(f"{one.title}{one.text}" for one in members)
        yield Remark(serious=serious, title=title, text="", items=items, share=share, stops=stops, kind=kind)


def headline(found: Sequence[Remark], *, undecided: bool = False) -> str:
    """Return how many warnings and notes there are. undecided: no comparison of the campaign tells anything."""
    stops = sum(one.stops for one in found)
    warnings = sum(one.serious and not one.stops for one in found)
    notes = sum(not one.serious for one in found)
    parts = [units.count_of(stops, "serious problem")] * bool(stops)
    parts += [units.count_of(warnings, "warning")] * bool(warnings)
    parts += [units.count_of(notes, "note")] * bool(notes)
    valid = say("warned.undecided") if undecided else "Valid"
    if not parts:
        return say("warned.none_undecided", valid=valid) if undecided else say("warned.none", valid=valid)
    return f"{say('warned.reserve') if stops else valid}: {', '.join(parts)}"


def validity(
    verdict: str, found: Sequence[Remark], nothing_found: str = "", *, level: int = 2, holds: str = ""
) -> Region:
    """Return what limits a page's numbers: warnings with their sizes, the details of each folded, then notes.

    verdict: the heading, of a level; nothing_found: said where there is no finding. holds: what verdicts
    hold for.
    """
    notes = tuple(one for one in found if not one.serious)
    blocks: list[Block] = [Heading(level, verdict), Remarks(tuple(one for one in found if one.serious))]
    if notes:
        blocks.append(Fold(summary=(Span("Notes"),), blocks=(Remarks(notes),), role="notes"))
    if nothing_found:
        blocks.append(plain(nothing_found, "dim nothing"))
    if holds:
        blocks.append(plain(holds, "dim"))
    return Region(role="banner", label="Validity", blocks=tuple(blocks))


CAUTIONS_MOST = 3
"""So many warnings stand in the line above all answers, and every one that stops them."""


def caution(found: Sequence[Remark]) -> tuple[Text, ...]:
    """Return the line above all answers: the widest warnings, each a link to its details."""
    serious = [one for one in found if one.serious]
    stops = sum(one.stops for one in serious)
    named = serious[: max(stops, CAUTIONS_MOST)]
    spans = [Span("Caution:", role="b"), Span(" ")]
    for number, one in enumerate(named):
        spans += [Span("; ")] * bool(number)
        spans += [
            Span(one.title, href=f"#{one.anchor}"),
            Span(f", {size}" if (size := one.size.partition(";")[0]) else ""),
        ]
    if more := len(serious) - len(named):
        spans += [Span("; "), Span(say("warned.more", n=more), href="#limits")]
    return (Text(tuple(spans), "stops" if stops else "stops mild"),) if named else ()
