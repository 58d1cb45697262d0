# SPDX-License-Identifier: BSD-3-Clause
"""A report as headings, sentences and tables: what its Markdown and text editions have of the page, without pictures.

A figure is told by its caption and its numbers. What the page has beside that, `ONLY_IN_HTML` names, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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

_DRAWN = "a picture, or what belongs to one"
_LINKED = "where a link of the page leads"
_FOR_PROGRAMS = "for programs, which have `cadge export`"
_SHOWN_OTHERWISE = "how something looks that is said in words beside it"
_ONE_FILE = "an edition is one file, whatever the page is"
ONLY_IN_HTML = {
    **dict.fromkeys(("Figure.svg", "Figure.back", "Figure.small_title"), _DRAWN),
    **dict.fromkeys(("SmallPicture.svg", "SmallPicture.heading"), _DRAWN),
    **dict.fromkeys(("Sheet.palette_light", "Sheet.palette_dark", "SummaryCell.bar"), _DRAWN),
    **dict.fromkeys(("Figure.name", "Section.anchor", "Section.short", "Remark.anchor", "Span.href"), _LINKED),
    **dict.fromkeys(("Finding.kind", "Remark.kind", "Value.raw"), _FOR_PROGRAMS),
    **dict.fromkeys(("CaseTable.case", "KneeTable.case", "Summary.cases", "Column.key"), _FOR_PROGRAMS),
    **dict.fromkeys(("TableRow.point_id", "TableRow.wait", "Summary.wait", "Sheet.data_json"), _FOR_PROGRAMS),
    **dict.fromkeys(
        ("Value.flag", "Column.below", "SummaryCell.reason", "Span.role", "Column.role"),
        _SHOWN_OTHERWISE,
    ),
    **dict.fromkeys(("Section.pattern", "Section.pattern_title", "split", "PageLink.href", "PageLink.text"), _ONE_FILE),
    "SummaryCell.p90": "what a switch of the page shows in place of the median",
    "opened_from": "a report opened again is HTML alone, and a warning of its own says where it came from",
    "sheet": "the section on provenance tells it",
    "findings": "they are told among the warnings and notes, or in the sentence of what changed",
}
"""Fields of the view model that the editions leave out, or whole parts of the page, and why; all else is told."""


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
        yield Heading(3, "The model fitted to it")
        yield from lines_of(section.models)
    if section.tables:
        yield Heading(3, "Every size")
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
        yield Paragraph(f"In every row of {table.title}:")
        yield Listed(tuple(map(_same, table.same)))
    if table.more:
        heads = column_heads(section.more[table.more_set])[1:]
        yield FlatTable(f"{table.title}, all other columns", ("layer", *heads), _rows(table.more))


def _same(one: Same) -> str:
    values = (_joined(wait, _value(value), between=": ") for wait, value in one.values)
    return f"{column_heads((one.column,))[1]}: {'; '.join(values)}"


def _rows(rows: Iterable[TableRow]) -> tuple[tuple[str, ...], ...]:
    return tuple((row.key.label, *map(_value, row.cells)) for row in rows)


def _value(one: Value) -> str:
    return " ".join(filter(None, (one.text, one.detail, one.reason)))


def _joined(first: str, second: str, *, between: str) -> str:
    return f"{first}{between}{second}" if first and second else first or second
