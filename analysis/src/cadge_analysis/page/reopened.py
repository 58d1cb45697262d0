# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report that was opened again: what it carries is enough for, and a warning that says so."""

from __future__ import annotations

from functools import partial

from cadge_analysis import messages
from cadge_analysis.blocks.model import PageDocument, Remark
from cadge_analysis.page.documents import document
from cadge_analysis.page.embed import ReportHead
from cadge_analysis.page.parts import coverage, provenance
from cadge_analysis.page.parts import sections as parts
from cadge_analysis.page.parts.answers import answers
from cadge_analysis.page.parts.compared import compared
from cadge_analysis.page.parts.glossary import glossary
from cadge_analysis.page.parts.imported import imported
from cadge_analysis.page.parts.opening import bracket
from cadge_analysis.page.parts.warned import validity, warned
from cadge_analysis.page.sheet import dressed
from cadge_analysis.page.views import cannot, judged_campaign, method_section, pattern_sections
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
TOLD = frozenset(("wait", "p50", "verdict", "p99_verdict", "base", "ratio", "above", "floor", "references"))
"""Columns that each launch's own number is enough for."""


def page(comparison: Comparison, carried: ReportNumbers, *, file: str) -> PageDocument:
    """Return the page of what a file of that name carries, without what needs raw data. comparison: of its numbers."""
    made = judged_campaign(comparison, carried.withheld, TOLD)
    comparison, data = made.comparison, made.comparison.data
    sections = pattern_sections(made)
    limits = warned((_opened(data, file), *carried.remarks), ())
    whole = {name: value for name, value in carried.whole.items() if name not in ("report", "pages")}
    whole["opened_again"] = True
    sheet = dressed(carried.facts, "", whole, generated=f"as {file} carries them", looks=made.looks.values())
    regions = (
        parts.answer(
            (),
            answers(comparison, made.verdicts)[1],
            bracket(comparison.rows),
            glossary(comparison.rows, data.patterns),
            validity(limits),
            (*cannot(made), *NEEDS_RAW),
        ),
        *sections,
        coverage.coverage(data, made.keys),
        parts.floors(provenance.floor_table(comparison)),
        imported(data),
        method_section(made),
        parts.provenance(sheet),
    )
    said = ReportHead(carried.title, carried.deck, limits)
    return document(regions, said=said, compared=compared(data, whole=False), sheet=sheet, opened_from=file)


def _opened(data: Dataset, file: str) -> Remark:
    against = f"against {data.plan.baseline}" if data.plan.baseline else say("reopened.no_baseline")
    chosen = say("reopened.baseline_chosen") if data.baseline_chosen else ""
    return Remark(
        serious=True,
        share=1,
        title=say("reopened.title"),
        text=say("reopened.text", file=file, against=against, chosen=chosen),
    )
