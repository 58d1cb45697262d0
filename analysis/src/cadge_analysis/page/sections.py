# SPDX-License-Identifier: BSD-3-Clause
"""Sections of a report as blocks, for the page and its editions: the first screen, how sure it is, what was done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cadge_analysis import messages
from cadge_analysis.blocks.make import lede, listed, plain, words_column
from cadge_analysis.blocks.model import (
    Block,
    Command,
    Fact,
    Facts,
    Figure,
    Fold,
    Heading,
    Item,
    Items,
    Region,
    Remark,
    Remarks,
    Sheet,
    Span,
    Table,
    TableLine,
    Text,
)
from cadge_analysis.page.viewmodel import Answer, Finding, Page, Since, Warned


def _say(key: str, **values: object) -> str:
    return messages.say("sections", key, **values)


def layers(lines: tuple[TableLine, ...]) -> Region:
    """Return what the layers are and what really ran, a line each."""
    heads = ("layer", "library, as loaded", "path that ran", "RPC", "done by", "planned points")
    columns = tuple(map(words_column, heads))
    table = Table(label="Layers", role="plain layers", columns=columns, lines=lines, fits=True)
    more = " ".join(_say(f"layers.{name}") for name in ("calls", "work", "state"))
    text = lede(_say("layers.lede"), more)
    return Region(id="layers", title=_say("layers.title"), blocks=(text, table))


def since(found: Since) -> Region:
    """Return the tables of what is said beside an earlier campaign; its sentences stand at the top of the page."""
    return Region(id="since", title=found.title, blocks=(Text((Span(found.note),), "lede"), *found.tables))


def versions(found: Since) -> Region:
    """Return layers of the same adapter with several builds of its library, side by side."""
    sentences = Items(tuple(Item(spans=one.spans) for one in found.findings))
    note = Text((Span(found.note),), "lede")
    return Region(id="versions", title=found.title, blocks=(note, sentences, *found.tables))


def itself(facts: tuple[Fact, ...], strips: Figure | None) -> Region:
    """Return how often a campaign finds a difference where there is none, and its launches one by one."""
    drawn = (strips,) if strips else ()
    return Region(id="itself", title=_say("itself.title"), blocks=(lede(_say("itself.lede")), Facts(facts), *drawn))


def floors(table: Table) -> Region:
    """Return the floors, or that none was measured."""
    found: Block = table if table.lines else plain(_say("floors.none"))
    return Region(id="floors", title="Floors", blocks=(lede(_say("floors.lede")), found))


def method(facts: tuple[Fact, ...], families: Table) -> Region:
    """Return how raw data became numbers and verdicts."""
    judged = (families,) if families.lines else ()
    return Region(id="method", title="Method", blocks=(lede(_say("method.lede")), Facts(facts), *judged))


def provenance(
    sheet: Sheet, tables: Sequence[Table] = (), hosts: Iterable[tuple[str, tuple[Fact, ...]]] = ()
) -> Region:
    """Return what was run, of which code, on which machines."""
    command: tuple[Block, ...] = ()
    if sheet.command:
        command = (plain(_say("command")), Command(sheet.command))
    return Region(
        id="provenance",
        title="Provenance",
        blocks=(
            lede(_say("provenance.lede")),
            *command,
            Facts(sheet.facts),
            *tables,
            *(_host(host, facts) for host, facts in hosts),
        ),
    )


def _host(host: str, facts: tuple[Fact, ...]) -> Block:
    spans = (Span("Host "), Span(host, role="bdi"))
    return Fold(summary=spans, blocks=(Facts(facts),)) if facts else Text(spans)


# ---- the first screen: what changed, the answer, how sure it is, and what the run leaves open ----


def first_screen(page: Page) -> tuple[Region, ...]:
    """Return the sections that stand before all others."""
    return (*_found(page.since), _answer(page))


def stops(remarks: Sequence[Remark], report: str = "") -> tuple[Text, ...]:
    """Return the line above all answers: what they are not to be read without. report: the address of its file."""
    if not remarks:
        return ()
    spans = [Span("Caution:", role="b"), Span(" ")]
    for number, one in enumerate(remarks):
        end = "; " if number < len(remarks) - 1 else ""
        spans += [Span(one.title, href=f"{report}#{one.anchor}"), Span(f", {one.size}{end}" if one.size else end)]
    return (Text(tuple(spans), "stops"),)


def _found(found: Sequence[Finding]) -> Iterator[Region]:
    if found:
        items = (Item(spans=one.spans, role="serious" if one.serious else "", kind=one.kind) for one in found)
        yield Region(id="found", title="Since then", role="first", blocks=(Items(tuple(items), "found"),))


def _answer(page: Page) -> Region:
    answers: tuple[Block, ...] = (Items(tuple(map(_item, page.answers)), "answers"), plain(page.bracket, "bracket"))
    said: tuple[Block, ...] = (
        *(plain(text, "opening") for text in page.opening),
        *(answers if page.answers else ()),
        *_glossary(page.glossary),
    )
    sure = Region(role="sure", blocks=(_validity(page.warned), *_left_open(page.cannot)))
    screen = Region(role="screen", blocks=(Region(blocks=said), sure))
    return Region(id="answer", title="Answer", blocks=(screen,))


def _item(one: Answer) -> Item:
    return Item(topic=one.topic, spans=one.spans, more=one.against)


def _glossary(facts: tuple[Fact, ...]) -> Iterator[Fold]:
    if facts:
        yield Fold(summary=(Span("Glossary"),), blocks=(Facts(facts),), role="glossary")


def _validity(warned: Warned) -> Region:
    """Return warnings with their sizes, the widest first; the details of each fold."""
    blocks: list[Block] = [Heading(3, warned.headline), Remarks(warned.warnings)]
    if warned.notes:
        blocks.append(Fold(summary=(Span("Notes"),), blocks=(Remarks(warned.notes),), role="notes"))
    if warned.nothing_found:
        blocks.append(plain(warned.nothing_found, "dim nothing"))
    return Region(role="banner", label="Validity", blocks=tuple(blocks))


def _left_open(texts: tuple[str, ...]) -> Iterator[Block]:
    """Yield what the campaign leaves open."""
    if texts:
        title = (Span(_say("open"), role="h3"),)
        yield Fold(summary=title, blocks=(listed(texts, "cannot"),), role="cannots", is_open=True)
