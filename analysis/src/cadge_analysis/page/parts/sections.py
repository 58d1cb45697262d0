# SPDX-License-Identifier: BSD-3-Clause
"""Sections of a report as blocks, for the page and its editions: the first screen, how sure it is, what was done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cadge_analysis import messages
from cadge_analysis.blocks.make import lede, listed, plain, words_column
from cadge_analysis.blocks.model import (
    Block,
    Chooser,
    Command,
    Fact,
    Facts,
    Figure,
    Fold,
    Item,
    Items,
    Region,
    Sheet,
    Span,
    Table,
    TableLine,
    Text,
)
from cadge_analysis.blocks.ranked import Picture


def _say(key: str, **values: object) -> str:
    return messages.say("sections", key, **values)


def layers(lines: tuple[TableLine, ...], compared: Facts) -> Region:
    """Return what was compared, what the layers are and what really ran, a line each."""
    heads = ("layer", "library, as loaded", "path that ran", "RPC", "done by", "planned points")
    columns = tuple(map(words_column, heads))
    table = Table(label="Layers", role="plain layers", columns=columns, lines=lines, fits=True)
    more = " ".join(_say(f"layers.{name}") for name in ("calls", "work"))
    text = lede(_say("layers.lede"), more)
    return Region(id="layers", title=_say("layers.title"), blocks=(text, compared, table))


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


def provenance(sheet: Sheet, tables: Sequence[Table] = (), hosts: Table | None = None) -> Region:
    """Return what was run, of which code, on which machines."""
    command: tuple[Block, ...] = ()
    if sheet.command:
        command = (plain(_say("command")), Command(sheet.command))
    return Region(
        id="provenance",
        title="Provenance",
        blocks=(
            *command,
            Facts(sheet.facts),
            *tables,
            *((Fold(summary=(Span(_say("hosts")),), blocks=(hosts,)),) if hosts and hosts.lines else ()),
        ),
    )


# ---- the first screen: what changed, the answer, how sure it is, and what the run leaves open ----


def changed(items: tuple[Item, ...]) -> Region | None:
    """Return what changed since an earlier campaign; None where nothing is set beside one."""
    if not items:
        return None
    return Region(id="found", title="Since then", role="first", blocks=(Items(items, "found"),))


def answer(opening: Sequence[str], first: Picture) -> Region:
    """Return the first screen."""
    said: list[Block] = [plain(text, "opening") for text in opening]
    if first.questions:
        said.append(first)
    return Region(id="answer", title="Answer", blocks=tuple(said))


def further(picture: Picture) -> Region | None:
    """Return the panels that follow the first screen; None without any."""
    if not picture.questions:
        return None
    return Region(id="further", title=_say("further.title"), role="further", blocks=(picture,))


def field(figures: Sequence[Figure], caption: tuple[Span, ...]) -> Region | None:
    """Return the charts of the layers against size, side by side; None without any."""
    if not figures:
        return None
    keys = tuple(dict.fromkeys(key for one in figures for key in one.keys))
    charts = Region(role="charts", blocks=tuple(replace(one, keys=()) for one in figures))
    return Region(
        id="field",
        title=_say("field.title"),
        blocks=(Chooser(name="field", keys=keys), charts, Text(caption, "legend")),
    )


def limits(validity: Region, bracket: str, cannot: Sequence[str]) -> Region:
    """Return what limits the numbers. bracket: what [a, b] means; cannot: what the campaign leaves open."""
    said = (plain(bracket, "bracket"),) if bracket else ()
    sure = Region(role="sure", blocks=(validity, *said, *_left_open(cannot)))
    return Region(id="limits", title=_say("limits.title"), blocks=(sure,))


def glossary(facts: tuple[Fact, ...]) -> Region | None:
    """Return what words mean; None where there is nothing to say."""
    return Region(id="glossary", title="Glossary", blocks=(Facts(facts),)) if facts else None


def _left_open(texts: Sequence[str]) -> Iterator[Fold]:
    if texts:
        title = (Span(_say("open"), role="h3"),)
        yield Fold(summary=title, blocks=(listed(texts, "cannot"),), role="cannots", is_open=True)
