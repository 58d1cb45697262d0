# SPDX-License-Identifier: BSD-3-Clause
"""What the templates receive: finished strings in frozen shapes. A template computes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cadge_analysis.blocks.model import Column, Fact, Figure, Key, Region, Remark, Sheet, Span, Table
from cadge_analysis.cells.shown import Value

if TYPE_CHECKING:
    from cadge_analysis.page.pages import PageLink, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer: what it is about, the sentences, and how all stand to the baseline, where there is one."""

    topic: str
    spans: tuple[Span, ...]
    against: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One series in one case."""

    key: Key
    point_id: str
    wait: str
    cells: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """A column that says the same in every row of a table, or in all that wait the same way, which is then named."""

    column: Column
    values: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTable:
    """All series of one workload size: collapsed under `title`, with a one-line answer beside it.

    `more` are the rows of its second table, in which the rest of the columns stands; none where there is no such rest.
    `same` is what all rows have in common, said above it; `more_set` is the place of its columns in the section's.
    """

    title: str
    case: str
    gist: str
    rows: tuple[TableRow, ...]
    more: tuple[TableRow, ...]
    same: tuple[Same, ...] = ()
    more_set: int = 0


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
    """A number, its interval, its ratio to the floor and the length of the ratio's bar in percent.

    `p90`: that of all launches together and the range of single ones, "0.681|0.620…0.730", or why it has none; "" of
    what has no percentiles.
    """

    text: str
    detail: str
    ratio: str
    bar: str
    reason: str = ""
    p90: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """One layer across the summary's sizes."""

    key: Key
    cells: tuple[SummaryCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The short table of a section: a few sizes, one wait mode; `without` names the layers that have no number in it.

    Where nothing has a ratio, it `has_ratios` not, and the columns for them are left out. `cases` are the workloads of
    its sizes, as the tables of all columns are called.
    """

    caption: str
    wait: str
    cases: tuple[str, ...]
    note: str
    sizes: tuple[str, ...]
    has_ratios: bool
    columns: int
    rows: tuple[SummaryRow, ...]
    without: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One pattern at one place. `elsewhere`: the page that has it whole, where this is not the one.

    `more`: the sets of columns that the second tables of its sizes have.
    """

    anchor: str
    short: str
    heading: str
    lede: str
    figures: tuple[Figure, ...]
    summaries: tuple[Summary, ...]
    knees: tuple[KneeTable, ...]
    columns: tuple[Column, ...]
    more: tuple[tuple[Column, ...], ...]
    tables: tuple[CaseTable, ...]
    models: tuple[Table, ...]
    note: str
    pattern: str
    pattern_title: str
    elsewhere: PageLink | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that was found wrong, or changed, in a sentence; `kind` for programs. `serious` ones stand out.

    `share`: of the campaign's attempts that it touches; `stops`: as of a Remark.
    """

    kind: str
    serious: bool
    spans: tuple[Span, ...]
    share: float = 0.0
    stops: bool = False

    @property
    def text(self) -> str:
        """The whole sentence."""
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """What is said of one thing beside another, as a campaign beside an earlier one: sentences, and their tables."""

    title: str
    findings: tuple[Finding, ...]
    note: str
    tables: tuple[Table, ...]


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
    since: tuple[Finding, ...]
    opening: tuple[str, ...]
    answers: tuple[Answer, ...]
    bracket: str
    questions: Region | None
    cannot: tuple[str, ...]
    layers: Region | None
    sections: tuple[Section, ...]
    since_then: Region | None
    itself: Region | None
    coverage: Region
    without: Region | None
    floors: Region
    method: Region
    provenance: Region
    sheet: Sheet
    versions: Region | None = None
    """Layers of the same adapter with several builds of its library."""
    imported: Region | None = None
    split: Split | None = None
    scale: Region | None = None
    glossary: tuple[Fact, ...] = ()
    opened_from: str = ""
    """The report that it was made of, where that was no campaign."""

    @property
    def told(self) -> tuple[Finding, ...]:
        """All that was found, as it is to be read: what is serious, then what an earlier campaign says, then notes."""
        serious = tuple(one for one in self.findings if one.serious)
        notes = tuple(one for one in self.findings if not one.serious)
        return (*serious, *self.since, *notes)
