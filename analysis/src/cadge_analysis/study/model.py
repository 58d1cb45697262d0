# SPDX-License-Identifier: BSD-3-Clause
"""What a study's templates receive: finished strings in frozen shapes. A template computes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from cadge_analysis.page.viewmodel import Fact, Remark, Sheet, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """A published figure, what it is tagged, and where it stands."""

    name: str
    text: str
    tag: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceRow:
    """One measurement: published or ours. Cells are total, floor, above the floor, ratio.

    `bar` is the length of the ratio's bar in percent, empty where there is none.
    """

    label: str
    detail: str
    published: bool
    cells: tuple[Value, ...]
    bar: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """A published measurement above ours. `missing` says why there is none of ours."""

    title: str
    note: str
    unit: str
    rows: tuple[DistanceRow, ...]
    missing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BillRow:
    """A round trip and its parts, which add up to it."""

    label: str
    detail: str
    cells: tuple[Value, ...]
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The stacked bill: the chart, what its colours mean, and the table behind it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[BillRow, ...]
    svg: Markup
    keys: tuple[tuple[str, str], ...]
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationTable:
    """One layer at one place: a row a value of the setting, a column a size. `missing` says why there are no rows."""

    title: str
    sizes: tuple[str, ...]
    base: tuple[Value, ...]
    rows: tuple[tuple[str, str, tuple[Value, ...]], ...]
    missing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPage:
    """The whole page of a study."""

    title: str
    deck: str
    system: str
    year: str
    verdict: str
    remarks: tuple[Remark, ...]
    paper: tuple[Fact, ...]
    figures: tuple[FigureRow, ...]
    tags: tuple[Fact, ...]
    distances: tuple[Distance, ...]
    bill: Bill
    base_name: str
    ablations: tuple[AblationTable, ...]
    ablation_note: str
    sheet: Sheet
