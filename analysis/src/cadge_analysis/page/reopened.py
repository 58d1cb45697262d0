# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report that was opened again: what it carries is enough for, and a warning that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from markupsafe import Markup

from cadge_analysis import messages
from cadge_analysis.blocks.model import Column, Remark
from cadge_analysis.page import provenance, sections
from cadge_analysis.page.tables import uncounted as uncounted_of
from cadge_analysis.page.viewmodel import CaseTable, Page, Section, TableRow
from cadge_analysis.page.warned import warned
from cadge_analysis.reopen import ReportNumbers
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.load import Dataset

say = partial(messages.say, "report")

NEEDS_RAW = (
    say("reopened.lacks_costs"),
    say("reopened.lacks_tails"),
    say("reopened.lacks_charts"),
    say("reopened.lacks_reasons"),
    say("reopened.lacks_proof"),
)
_TOLD = frozenset(("wait", "p50", "verdict", "p99_verdict", "base", "ratio", "above", "floor", "references"))
"""Columns that each launch's own number is enough for."""
Columns = tuple[Column, ...]


def narrowed(page: Page, comparison: Comparison, carried: ReportNumbers, *, file: str) -> Page:
    """Return a page without what needs raw data. `carried`: what the file of that name carries beside its numbers."""
    uncounted = tuple(uncounted_of(comparison.rows))
    whole = {name: value for name, value in carried.whole.items() if name not in ("report", "pages")}
    sheet = replace(
        page.sheet,
        facts=carried.facts,
        command="",
        data_json=Markup(provenance.as_json({**whole, "opened_again": True})),  # noqa: S704 - escaped by as_json
    )
    return replace(
        page,
        title=carried.title,
        deck=carried.deck,
        compared=replace(page.compared, libraries=()),
        warned=warned((_opened(comparison.data, file), *carried.remarks), (), nothing_found=""),
        findings=(),
        opening=(),
        questions=None,
        cannot=(*(text for text in page.cannot if text not in uncounted), *NEEDS_RAW),
        layers=None,
        sections=tuple(_section(one) for one in page.sections if one.tables),
        itself=None,
        without=None,
        provenance=sections.provenance(sheet),
        sheet=sheet,
        versions=None,
        scale=None,
        opened_from=file,
    )


def _opened(data: Dataset, file: str) -> Remark:
    against = f"against {data.plan.baseline}" if data.plan.baseline else say("reopened.no_baseline")
    chosen = say("reopened.baseline_chosen") if data.baseline_chosen else ""
    return Remark(
        serious=True,
        share=1,
        title=say("reopened.title"),
        text=say("reopened.text", file=file, against=against, chosen=chosen),
    )


def _section(section: Section) -> Section:
    return replace(
        section,
        figures=(),
        summaries=(),
        knees=(),
        columns=_carried(section.columns),
        more=tuple(map(_carried, section.more)),
        tables=tuple(_table(one, section.columns, section.more[one.more_set]) for one in section.tables),
        models=(),
        note="",
    )


def _carried(columns: Columns) -> Columns:
    return tuple(column for column in columns if column.key in _TOLD)


def _table(table: CaseTable, first: Columns, more: Columns) -> CaseTable:
    """Return a table without the cells that need raw data."""
    return replace(
        table,
        rows=_rows(table.rows, first),
        more=_rows(table.more, more) if _carried(more) else (),
        same=tuple(one for one in table.same if one.column.key in _TOLD),
    )


def _rows(rows: Sequence[TableRow], columns: Columns) -> tuple[TableRow, ...]:
    def kept(row: TableRow) -> TableRow:
        cells = zip(columns, row.cells, strict=True)
        return replace(row, cells=tuple(cell for column, cell in cells if column.key in _TOLD))

    return tuple(map(kept, rows))
