# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report that was opened again: what it carries is enough for, and a warning that says so."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from markupsafe import Markup

from cadge_analysis import messages
from cadge_analysis.blocks.model import Remark
from cadge_analysis.page import provenance, sections
from cadge_analysis.page.compared import compared
from cadge_analysis.page.tables import uncounted as uncounted_of
from cadge_analysis.page.viewmodel import Page
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
TOLD = frozenset(("wait", "p50", "verdict", "p99_verdict", "base", "ratio", "above", "floor", "references"))
"""Columns that each launch's own number is enough for."""


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
        compared=compared(comparison.data, whole=False),
        warned=warned((_opened(comparison.data, file), *carried.remarks), (), nothing_found=""),
        findings=(),
        opening=(),
        questions=None,
        cannot=(*(text for text in page.cannot if text not in uncounted), *NEEDS_RAW),
        layers=None,
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
