# SPDX-License-Identifier: BSD-3-Clause
"""A report as headings, sentences and tables: what its Markdown and text editions have of the page, without pictures.

A figure is told by its caption and its numbers. tests/test_editions_whole.py names what only the page has, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from cadge_analysis import messages
from cadge_analysis.blocks.layout import column_heads
from cadge_analysis.blocks.lines import FlatTable, Lines, Listed, Paragraph, lines_of
from cadge_analysis.blocks.model import Heading
from cadge_analysis.cells.shown import Value
from cadge_analysis.page.sections import first_screen
from cadge_analysis.page.viewmodel import (
    CaseTable,
    KneeTable,
    Page,
    Same,
    Section,
    Summary,
    SummaryCell,
    TableRow,
)

say = partial(messages.say, "sections")


def outline(page: Page) -> Iterator[Lines]:
    """Yield all of a report that can be said without a picture, in the page's order."""
    yield Heading(1, page.title)
    yield Paragraph(page.deck)
    yield from _compared(page)
    yield from lines_of(filter(None, (*first_screen(page), page.questions, page.layers)))
    for section in page.sections:
        yield from _section(section)
    sure = (page.since_then, page.itself, page.coverage, page.without, page.floors)
    rest = (page.versions, page.scale, *sure, page.imported, page.method, page.provenance)
    yield from lines_of(filter(None, rest))


def _compared(page: Page) -> Iterator[Lines]:
    compared = [
        _joined(f"{one.name}: {', '.join(one.layers)}", one.paths, between=" - ") for one in page.compared.libraries
    ]
    yield Listed((*compared, _joined(f"Measured: {page.compared.workloads}", page.compared.attempts, between=". ")))


def _section(section: Section) -> Iterator[Lines]:
    yield Heading(2, section.heading)
    yield Paragraph(_joined(section.lede, section.note, between=" "))
    yield from map(_summary, section.summaries)
    yield from map(_knees, section.knees)
    yield from lines_of(section.figures)
    if section.models:
        yield Heading(3, say("outline.models"))
        yield from lines_of(section.models)
    if section.tables:
        yield Heading(3, say("outline.tables"))
        for table in section.tables:
            yield from _case(table, section)


def _summary(table: Summary) -> FlatTable:
    without = f" {table.without}" if table.without else ""
    return FlatTable(
        f"{_joined(table.caption, table.note, between=' ')}{without}",
        ("layer", *table.sizes),
        tuple((row.key.label, *map(_summary_cell, row.cells)) for row in table.rows),
    )


def _summary_cell(one: SummaryCell) -> str:
    return " ".join(filter(None, (one.text, one.detail, one.ratio and f"({one.ratio} floor)")))


def _knees(table: KneeTable) -> FlatTable:
    heads = column_heads(table.columns)[1:]
    return FlatTable(_joined(table.title, table.note, between=": "), ("layer", *heads), _rows(table.rows))


def _case(table: CaseTable, section: Section) -> Iterator[Lines]:
    heads = column_heads(section.columns)[1:]
    yield FlatTable(_joined(table.title, table.gist, between=": "), ("layer", *heads), _rows(table.rows))
    if table.same:
        yield Paragraph(say("outline.same", table=table.title))
        yield Listed(tuple(map(_same, table.same)))
    if table.more:
        heads = column_heads(section.more[table.more_set])[1:]
        yield FlatTable(say("outline.more", table=table.title), ("layer", *heads), _rows(table.more))


def _same(one: Same) -> str:
    values = (_joined(wait, _value(value), between=": ") for wait, value in one.values)
    return f"{column_heads((one.column,))[1]}: {'; '.join(values)}"


def _rows(rows: Iterable[TableRow]) -> tuple[tuple[str, ...], ...]:
    return tuple((row.key.label, *map(_value, row.cells)) for row in rows)


def _value(one: Value) -> str:
    return " ".join(filter(None, (one.text, one.detail, one.reason)))


def _joined(first: str, second: str, *, between: str) -> str:
    return f"{first}{between}{second}" if first and second else first or second
