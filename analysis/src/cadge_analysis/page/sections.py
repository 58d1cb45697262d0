# SPDX-License-Identifier: BSD-3-Clause
"""Sections of a report that say how sure it is, and what was done: each as blocks, for the page and its editions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cadge_analysis import messages
from cadge_analysis.blocks.model import (
    Block,
    Command,
    Either,
    Fact,
    Facts,
    Figure,
    Fold,
    Heading,
    Item,
    Items,
    Region,
    Sheet,
    Span,
    Table,
    TableLine,
    Text,
    lede,
    plain,
    plain_table,
    words_column,
)
from cadge_analysis.page.viewmodel import FactTable, Since


def _say(key: str, **values: object) -> str:
    return messages.say("sections", key, **values)


def table_of(table: FactTable) -> Table:
    """Return a small table of words as a block."""
    return plain_table(table.title, table.columns, table.rows)


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
    return Region(
        id="since", title=found.title, blocks=(Text((Span(found.note),), "lede"), *map(table_of, found.tables))
    )


def versions(found: Since) -> Region:
    """Return layers of the same adapter with several builds of its library, side by side."""
    sentences = Items(tuple(Item(spans=one.spans) for one in found.findings))
    note = Text((Span(found.note),), "lede")
    return Region(id="versions", title=found.title, blocks=(note, sentences, *map(table_of, found.tables)))


def itself(facts: tuple[Fact, ...], strips: Figure | None) -> Region:
    """Return how often a campaign finds a difference where there is none, and its launches one by one."""
    drawn = (strips,) if strips else ()
    return Region(id="itself", title=_say("itself.title"), blocks=(lede(_say("itself.lede")), Facts(facts), *drawn))


def floors(table: FactTable) -> Region:
    """Return the floors, or that none was measured."""
    found: Block = table_of(table) if table.rows else Either(html=(plain(_say("floors.none")),))
    return Region(id="floors", title="Floors", blocks=(lede(_say("floors.lede")), found))


def method(facts: tuple[Fact, ...], families: FactTable) -> Region:
    """Return how raw data became numbers and verdicts."""
    judged = (table_of(families),) if families.rows else ()
    return Region(id="method", title="Method", blocks=(lede(_say("method.lede")), Facts(facts), *judged))


def provenance(
    sheet: Sheet, tables: Sequence[FactTable] = (), hosts: Iterable[tuple[str, tuple[Fact, ...]]] = ()
) -> Region:
    """Return what was run, of which code, on which machines."""
    command: tuple[Block, ...] = ()
    if sheet.command:
        text = Either(html=(plain(_say("command.page")),), edition=(plain(_say("command.edition")),))
        command = (text, Command(sheet.command))
    made = Either(edition=(plain(_say("made", generated=sheet.generated)),))
    return Region(
        id="provenance",
        title="Provenance",
        blocks=(
            lede(_say("provenance.lede")),
            *command,
            Facts(sheet.facts),
            *map(table_of, tables),
            *(block for host, facts in hosts for block in _host(host, facts)),
            made,
        ),
    )


def _host(host: str, facts: tuple[Fact, ...]) -> Iterator[Block]:
    heading, spans = Heading(3, f"Host {host}"), (Span("Host "), Span(host, role="bdi"))
    if facts:
        yield Either(edition=(heading,))
        yield Fold(summary=spans, blocks=(Facts(facts),))
    else:
        yield Either(html=(Text(spans),), edition=(heading,))
