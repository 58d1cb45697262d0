# SPDX-License-Identifier: BSD-3-Clause
"""What a study's templates receive: finished strings in frozen shapes. A template computes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from cadge_analysis.cells.shown import Value
from cadge_analysis.page.viewmodel import Fact, Figure, Remark, Sheet


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
class MatrixRow:
    """One style on one substrate: at each size its value, and its ratio to the base style."""

    label: str
    detail: str
    is_base: bool
    cells: tuple[tuple[Value, Value | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTable:
    """Every style on one substrate at one place, with its figure where there is enough to draw."""

    title: str
    unit: str
    sizes: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    figure: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticsRow:
    """One property: of each system what was published, and what our layers of its style were tested to do."""

    name: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """The systems, and a row a property."""

    systems: tuple[str, ...]
    rows: tuple[SemanticsRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRow:
    """A range: the fastest and the slowest, and how far they lie apart."""

    label: str
    detail: str
    published: bool
    cells: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A published range above ours, place by place. `missing` says why there is none of ours."""

    title: str
    note: str
    heads: tuple[str, str]
    rows: tuple[RangeRow, ...]
    missing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRow:
    """Layers with a price each column, or one reason why there is none."""

    label: str
    detail: str
    cells: tuple[Value, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What one feature costs: a column a place and pattern."""

    name: str
    note: str
    heads: tuple[str, ...]
    rows: tuple[FeatureRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastRow:
    """A layer in each column and what follows from it, or layers with one reason why there is nothing."""

    label: str
    cells: tuple[Value, ...]
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastTable:
    """One operation at one place: a row a layer, a column a size, or a value of another parameter."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ContrastRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What one value of a parameter costs beside another, what was published of it, and what is called free.

    `anchor` is its place on the page.
    """

    anchor: str
    title: str
    note: str
    criterion: str
    published: tuple[Fact, ...]
    tables: tuple[ContrastTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A system's parameters, published or ours: o_s, o_r, L, g, the time one way, the processors' share of it."""

    label: str
    detail: str
    published: bool
    cells: tuple[Value, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Published parameters above ours, and what ours say together. `missing` says why there are none of ours."""

    title: str
    note: str
    said: str
    rows: tuple[ModelRow, ...]
    missing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderRow:
    """A layer on a rung: a cell each column, or one reason why it has no number in any. The first rung has no ratio."""

    label: str
    detail: str
    cells: tuple[Value, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderTable:
    """One measure at one place: a row a layer and rung, a column a value."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[LadderRow, ...]
    head: str = "layer"
    wide: bool = False
    """Its headings go over several lines, and its rows\u2019 names have more room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Rungs of a ladder; `published` are the figures that go with them, `anchor` is its place on the page.

    `beside` says whether published ratios stand beside ours, and what to compare rungs by where they do not.
    """

    anchor: str
    title: str
    note: str
    beside: str
    published: tuple[Fact, ...]
    tables: tuple[LadderTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """One combination: a number each column, or one reason why there is none."""

    labels: tuple[str, ...]
    cells: tuple[Value, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GridTable:
    """All combinations of one layer at one place and in one wait mode; `published`: what is known of the paper's."""

    title: str
    published: bool
    heads: tuple[str, ...]
    rows: tuple[GridRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A published table above ours, layer by layer. `missing` names layers without a number, and why."""

    title: str
    note: str
    columns: tuple[str, ...]
    tables: tuple[GridTable, ...]
    missing: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRow:
    """What one layer keeps at each size; the published one above. `detail` says where and how."""

    label: str
    detail: str
    published: bool
    cells: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of another pattern's rate, a column a size."""

    title: str
    note: str
    sizes: tuple[str, ...]
    rows: tuple[ShareRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisRow:
    """A claim, what was published of it, what of ours speaks for it, against it, or cannot be told, and the verdict."""

    claim: str
    said: str
    criterion: str
    cells: tuple[Value, Value, Value]
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section of a study of an application: what it says in sentences, then its tables; `more` are folded."""

    anchor: str
    title: str
    note: str
    said: tuple[str, ...]
    tables: tuple[LadderTable, ...]
    more: tuple[LadderTable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One of the campaigns that a page is made of, and the sections that are made of it."""

    campaign_id: str
    deck: str
    sections: tuple[str, ...]
    command: str
    facts: tuple[Fact, ...]


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
    answers: tuple[str, ...]
    matrix: tuple[MatrixTable, ...]
    ranges: tuple[Range, ...]
    semantics: Semantics | None
    bill: Bill | None
    has_ablation: bool
    base_name: str
    ablations: tuple[AblationTable, ...]
    ablation_note: str
    features: tuple[Feature, ...]
    grid: Grid | None
    shares: Shares | None
    contrasts: tuple[Contrast, ...]
    hypotheses: tuple[HypothesisRow, ...]
    ladders: tuple[Ladder, ...]
    models: tuple[Models, ...]
    parts: tuple[Part, ...]
    sources: tuple[Source, ...]
    sheet: Sheet
