# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a report by their names, before documents.py puts them in order, and what sentences are found of."""

from __future__ import annotations

from dataclasses import dataclass

from cadge_analysis.blocks.model import Block, Fact, Facts, Region, Remark, Sheet, Span, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer: what it is about, the sentences, and how all stand to the baseline, where there is one."""

    topic: str
    spans: tuple[Span, ...]
    against: str = ""


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
    compared: Facts
    warned: Warned
    findings: tuple[Finding, ...]
    since: tuple[Finding, ...]
    opening: tuple[str, ...]
    answers: tuple[Answer, ...]
    bracket: str
    questions: Region | None
    cannot: tuple[str, ...]
    layers: Region | None
    sections: tuple[Region, ...]
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
    files: tuple[Block, ...] = ()
    """Where else the report goes on, where it has several files."""
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
