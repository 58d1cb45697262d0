# SPDX-License-Identifier: BSD-3-Clause
"""What the page of two sides is made of: finished strings in frozen shapes."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from cadge_analysis.blocks.model import DataTable, Fact, Key, Sheet
from cadge_analysis.page.viewmodel import FactTable, Finding, Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRow:
    """A condition that differed, and what that means for the comparison."""

    what: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionClass:
    """Conditions that mean the same for the comparison; `flag` is its style."""

    title: str
    note: str
    flag: str
    rows: tuple[ConditionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A cell that changed, or of which that cannot be told. Details are intervals."""

    flag: str
    sign: str
    verdict: str
    key: Key
    what: str
    first: str
    first_detail: str
    second: str
    second_detail: str
    ratio: str
    change: str
    interval: str
    launches: str
    p: str
    more: str
    objections: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTable:
    """Rows of one kind; `gist` says how many there are beside them. One that is not `open` is folded."""

    title: str
    gist: str
    open: bool
    rows: tuple[ChangeRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioFigure:
    """A small chart, what is told apart in it, and its numbers."""

    name: str
    title: str
    svg: Markup
    keys: tuple[Key, ...]
    note: str
    table: DataTable


@dataclass(frozen=True, slots=True, kw_only=True)
class FateTable:
    """Cells that came to the same: appeared, disappeared, newly failing, and so on."""

    title: str
    note: str
    grave: bool
    rows: tuple[tuple[str, str], ...]
    more: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BesidePage:
    """The whole page."""

    title: str
    deck: str
    verdict: str
    remarks: tuple[Remark, ...]
    findings: tuple[Finding, ...]
    conditions: tuple[ConditionClass, ...]
    no_conditions: str
    counts: FactTable | None
    changes: tuple[ChangeTable, ...]
    no_changes: str
    ratios: tuple[RatioFigure, ...]
    ratios_note: str
    tails: tuple[RatioFigure, ...]
    tails_note: str
    fates: tuple[FateTable, ...]
    means: FactTable | None
    machine: tuple[FactTable, ...]
    method: tuple[Fact, ...]
    sides: tuple[tuple[str, tuple[Fact, ...]], ...]
    command: str
    sheet: Sheet
