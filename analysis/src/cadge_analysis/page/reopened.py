# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report that was opened again: verdicts made anew of what the file carries, and what they cannot do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cadge_analysis import words
from cadge_analysis.draw import palette
from cadge_analysis.judged import judged
from cadge_analysis.page import coverage, sheet, tables, verdict_words
from cadge_analysis.page.answers import answers
from cadge_analysis.page.method import method
from cadge_analysis.page.viewmodel import (
    Answer,
    CaseTable,
    Column,
    Fact,
    FactTable,
    Key,
    Matrix,
    Remark,
    Sheet,
    TableRow,
)
from cadge_analysis.page.views import keys_of
from cadge_analysis.reopen import Carried
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.load import Dataset, Series

NEEDS_RAW = (
    "What an operation took of processors, system calls and switches, how many were lost, and who carried it out.",
    "Tails of all launches together (p99, p99.9), rates of all launches together, and every quantity but the main one.",
    "Charts, fitted models, knees, clocks, pinning, libraries as loaded, and what the hosts are.",
    "Why points have no result; how many have none is below.",
    "Whether what the file says is what was measured: `cadge verify FILE` recomputes it from the raw data.",
)
_TOLD = frozenset(("wait", "p50", "verdict", "p99_verdict", "base", "ratio", "above", "floor", "references"))
"""Columns that each launch's own number is enough for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopened:
    """The whole page."""

    title: str
    deck: str
    verdict: str
    remarks: tuple[Remark, ...]
    answers: tuple[Answer, ...]
    cannot: tuple[str, ...]
    parts: tuple[Part, ...]
    matrix: Matrix
    families: FactTable
    method: tuple[Fact, ...]
    sheet: Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One pattern at one place."""

    anchor: str
    short: str
    heading: str
    lede: str
    columns: tuple[Column, ...]
    tables: tuple[CaseTable, ...]


def page(comparison: Comparison, carried: Carried, *, file: str) -> Reopened:
    """Return the page. `carried`: what the file of that name carries."""
    data = comparison.data
    looks = palette.identities(data.layers)
    keys = keys_of(looks)
    verdicts = judged(comparison, carried.withheld)
    titles = {name: one.title for name, one in data.patterns.items()}
    parts = (
        _part(comparison, pattern, place, keys, verdicts) for pattern in data.patterns for place in words.PLACE_ORDER
    )
    return Reopened(
        title=carried.title,
        deck=carried.deck,
        verdict=f"Opened again from {file}, without raw data",
        remarks=(_opened(data, file), *carried.remarks),
        answers=answers(comparison, verdicts, once=False)[1],
        cannot=(*verdict_words.cannot(verdicts), *NEEDS_RAW),
        parts=tuple(part for part in parts if part is not None),
        matrix=coverage.matrix(data, keys),
        families=verdict_words.table(verdicts, titles),
        method=method(
            data.patterns,
            verdict_words.facts(verdicts, titles),
            several_ends=any(row.numbers.apart for row in comparison.rows),
        ),
        sheet=sheet.dressed(
            carried.facts,
            "",
            {
                **{name: value for name, value in carried.whole.items() if name not in ("report", "pages")},
                "opened_again": True,
            },
            generated=f"as {file} carries them",
            looks=looks.values(),
        ),
    )


def _opened(data: Dataset, file: str) -> Remark:
    against = f"against {data.plan.baseline}" if data.plan.baseline else "without a baseline, for none is declared"
    chosen = ", which was chosen now and not by the sweep" if data.baseline_chosen else ""
    return Remark(
        grave=True,
        title="Nothing here was read from raw data",
        text=f"Each launch's own numbers are those that {file} carries; verdicts on them were made anew, {against}"
        f"{chosen}. The warnings below are that file's own.",
    )


def _part(
    comparison: Comparison, pattern: str, place: str, keys: Mapping[Series, Key], verdicts: CampaignVerdicts
) -> Part | None:
    file = comparison.data.patterns[pattern]
    rows = [row for row in comparison.rows if (row.cell.case.pattern, row.cell.case.place) == (pattern, place)]
    if not rows:
        return None
    first, rest = tables.parted(file, tables.columns_of(file, rows, tables.baseline_of(rows, verdicts)))
    every = (*first, *rest)
    made = tables.case_tables(rows, keys, {}, comparison.data, {}, verdicts)
    return Part(
        anchor=f"{pattern}-{place}",
        short=f"{file.title}, {words.PLACES_SHORT[place]}",
        heading=f"{file.title} {words.PLACES[place]}",
        lede=file.summary,
        columns=tuple(column for column in every if column.key in _TOLD),
        tables=tuple(_told(table, every) for table in made),
    )


def _told(table: CaseTable, columns: Sequence[Column]) -> CaseTable:
    """Return a table without the cells that need raw data."""
    more = table.more or tuple(replace(row, cells=()) for row in table.rows)

    def row_of(row: TableRow, further: TableRow) -> TableRow:
        cells = zip(columns, (*row.cells, *further.cells), strict=True)
        return replace(row, cells=tuple(cell for column, cell in cells if column.key in _TOLD))

    rows = tuple(row_of(*pair) for pair in zip(table.rows, more, strict=True))
    return replace(table, rows=rows, more=())
