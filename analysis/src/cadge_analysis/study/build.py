# SPDX-License-Identifier: BSD-3-Clause
"""The page of a study: one HTML file. Equal records, figures and readings give equal bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cadge_analysis.blocks import html
from cadge_analysis.report import stamp
from cadge_analysis.stats import compare, load
from cadge_analysis.study import engine, plugin, prose, published, views
from cadge_results import Campaign, Written, write_output


@dataclass(frozen=True, slots=True)
class Built:
    """A page that was written, and whether any number on it is of the campaigns."""

    written: Written
    has_ours: bool


def build(campaigns: Sequence[Campaign], folder: Path, out_path: Path, *, engine_bench: Path | None = None) -> Built:
    """Write the page of the study in `folder` for one or more campaigns.

    Each section is made of the first campaign that has something for it.
    Raises AnalysisError, cadge_results.ResultsError.
    """
    figures = published.read(folder)
    own = plugin.load_own(folder, figures)
    bench = engine.read(engine_bench) if engine_bench is not None else None
    data = [load.read(campaign) for campaign in campaigns]
    said = prose.read(folder)
    page = views.page([compare.compare(one) for one in data], figures, said, bench, own, generated=stamp(data[0]))
    return Built(write_output(out_path, html.printed(page).encode()), views.has_ours(page.blocks))
