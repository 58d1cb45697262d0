# SPDX-License-Identifier: BSD-3-Clause
"""What the history page is made of: finished strings in frozen shapes."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from cadge_analysis.blocks.model import DataTable, Fact, Key, Sheet
from cadge_analysis.page.viewmodel import FactTable, Finding, Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseFigure:
    """The course of one cell: a small chart, what is said of it, and its numbers."""

    name: str
    title: str
    key: Key | None
    svg: Markup
    note: str
    table: DataTable


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """The whole page."""

    title: str
    deck: str
    verdict: str
    remarks: tuple[Remark, ...]
    findings: tuple[Finding, ...]
    machine: CourseFigure | None
    changed: tuple[CourseFigure, ...]
    changed_note: str
    others: tuple[CourseFigure, ...]
    others_note: str
    changes: FactTable | None
    events: FactTable | None
    campaigns: FactTable
    gaps: FactTable | None
    left: FactTable | None
    method: tuple[Fact, ...]
    command: str
    sheet: Sheet
