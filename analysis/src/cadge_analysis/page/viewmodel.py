# SPDX-License-Identifier: BSD-3-Clause
"""What the templates receive: finished strings in frozen shapes. A template computes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from cadge_analysis.page.imported import ImportedTables
    from cadge_analysis.page.questions_model import Questions


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a sentence; strong for names and numbers that carry the answer."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer: what it is about, the sentences, and how all stand to the baseline, where there is one."""

    topic: str
    spans: tuple[Span, ...]
    against: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A series' marker and colour, by their places in the palette, and its dashes, beside its name."""

    label: str
    number: int
    slot: int
    marker: int
    hollow: bool = False
    dash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something that limits what the numbers mean; `grave` ones are warnings, all others notes.

    `size` says how much it touches, `share` which share of the campaign that is, for the order. `stops`: answers are
    not to be read without it, so that it is told above them. `items`: several of a kind, told as one. `kind`: that of
    findings, for programs.
    """

    grave: bool
    title: str
    text: str
    size: str = ""
    share: float = 0.0
    stops: bool = False
    items: tuple[str, ...] = ()
    anchor: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table's column: `key` names its field for programs, `head` and `unit` are for people."""

    key: str
    head: str
    unit: str = ""
    number: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One cell of a table.

    `raw` holds the value, and the ends of its interval where there is one, to twelve digits and parted by spaces, in
    the base unit (ns, MB/s, ratio, counts), for programs. An empty cell has a `reason`.
    """

    text: str
    detail: str = ""
    raw: str = ""
    reason: str = ""
    flag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One series in one case."""

    key: Key
    point_id: str
    layer: str
    wait: str
    cells: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTable:
    """All series of one workload size: collapsed under `title`, with a one-line answer beside it.

    `more` are the rows of its second table, in which the rest of the columns stands; none where there is no such rest.
    """

    title: str
    case: str
    gist: str
    rows: tuple[TableRow, ...]
    more: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KneeTable:
    """The highest load that each series bears, with one set of values beside the axis."""

    title: str
    case: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCell:
    """A number, its interval, its ratio to the floor and the length of the ratio's bar in percent."""

    text: str
    detail: str
    ratio: str
    bar: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """One layer across the summary's sizes."""

    key: Key
    cells: tuple[SummaryCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The short table of a section: a few sizes, one wait mode; `without` names the layers that have no number in it.

    Where nothing has a ratio, it `has_ratios` not, and the columns for them are left out.
    """

    caption: str
    note: str
    sizes: tuple[str, ...]
    has_ratios: bool
    columns: int
    rows: tuple[SummaryRow, ...]
    without: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """The numbers behind a figure, as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPicture:
    """A small chart of a few series."""

    heading: str
    keys: tuple[Key, ...]
    svg: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, how to read it, small charts with what lies behind them all, and its data."""

    name: str
    title: str
    svg: Markup
    caption: str
    keys: tuple[Key, ...]
    small_title: str
    back: Markup
    small: tuple[SmallPicture, ...]
    table: DataTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One pattern at one place."""

    anchor: str
    short: str
    heading: str
    lede: str
    figures: tuple[Figure, ...]
    summaries: tuple[Summary, ...]
    knees: tuple[KneeTable, ...]
    columns: tuple[Column, ...]
    more: tuple[Column, ...]
    tables: tuple[CaseTable, ...]
    models: tuple[FactTable, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCard:
    """A layer: what it is, which library served it, and the path that really ran."""

    key: Key
    library: str
    file: str
    build_id: str
    paths: tuple[tuple[str, str], ...]
    rpc: str
    work: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """Coverage of one layer in one column: `state` decides its hatching, `text` says it in words."""

    state: str
    text: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Coverage: layers against pattern, place and wait mode."""

    columns: tuple[tuple[str, str, str], ...]
    rows: tuple[tuple[Key, tuple[MatrixCell, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """How many planned points and attempts ended in one state."""

    state: str
    meaning: str
    points: str
    attempts: str
    raw_points: int
    raw_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleRow:
    """Why some points have no number."""

    state: str
    layer: str
    code: str
    where: str
    reason: str
    points: str
    attempts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A name and what is known under it."""

    name: str
    text: str
    code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTable:
    """A small table of provenance."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What every page has: colours and shapes, where its numbers come from, and the numbers themselves.

    `looks` are number and colour of what its figures' readers may pick out.
    """

    facts: tuple[Fact, ...]
    command: str
    shapes: tuple[str, ...]
    looks: tuple[tuple[int, int], ...]
    palette_light: tuple[tuple[str, str], ...]
    palette_dark: tuple[tuple[str, str], ...]
    data_json: Markup
    generated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that was found wrong, or changed, in a sentence; `kind` for programs. `grave` ones stand out.

    `share`: of the campaign's attempts that it touches; `stops`: as of a Remark.
    """

    kind: str
    grave: bool
    spans: tuple[Span, ...]
    share: float = 0.0
    stops: bool = False

    @property
    def text(self) -> str:
        """The whole sentence."""
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """The campaign beside an earlier one: sentences for the first screen, and the tables behind them."""

    title: str
    findings: tuple[Finding, ...]
    note: str
    tables: tuple[FactTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library with its version as its layers state it, these layers, and what carried their payload, by place."""

    name: str
    layers: tuple[str, ...]
    paths: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What was compared. `workloads`: patterns with the values of their axes; `attempts`: planned, and with numbers."""

    libraries: tuple[Library, ...]
    workloads: str
    attempts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """All that limits the numbers. `headline` counts it; `stops` are told above the answer, in one line."""

    headline: str
    stops: tuple[Remark, ...]
    warnings: tuple[Remark, ...]
    notes: tuple[Remark, ...]
    nothing_found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole report."""

    title: str
    deck: str
    compared: Compared
    warned: Warned
    findings: tuple[Finding, ...]
    since: Since | None
    opening: tuple[str, ...]
    answers: tuple[Answer, ...]
    bracket: str
    questions: Questions
    cannot: tuple[str, ...]
    layers: tuple[LayerCard, ...]
    sections: tuple[Section, ...]
    itself: tuple[Fact, ...]
    matrix: Matrix
    outcomes: tuple[OutcomeRow, ...]
    planned_points: str
    planned_attempts: str
    troubles: tuple[TroubleRow, ...]
    floors: FactTable
    method: tuple[Fact, ...]
    families: FactTable
    fact_tables: tuple[FactTable, ...]
    hosts: tuple[tuple[str, tuple[Fact, ...]], ...]
    sheet: Sheet
    imported: tuple[ImportedTables, ...] = ()

    @property
    def told(self) -> tuple[Finding, ...]:
        """All that was found, as it is to be read: what is grave, then what an earlier campaign says, then notes."""
        grave = tuple(one for one in self.findings if one.grave)
        notes = tuple(one for one in self.findings if not one.grave)
        return (*grave, *(self.since.findings if self.since else ()), *notes)
