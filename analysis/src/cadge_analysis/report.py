# SPDX-License-Identifier: BSD-3-Clause
"""The report of a campaign: one HTML file. Equal records give equal bytes."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from cadge_analysis.errors import BadInputError
from cadge_analysis.page import provenance, render, views
from cadge_analysis.page.since import since
from cadge_analysis.page.viewmodel import Page
from cadge_analysis.stats import compare, load
from cadge_analysis.versus.against import Against
from cadge_results import Campaign, Written, write_output


def stamp(data: load.Dataset) -> str:
    """Return when the report was made, as far as it may matter: the campaign's end, or SOURCE_DATE_EPOCH if set.

    The clock is not asked, so that the same records give the same bytes.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is not None:
        try:
            return f"{datetime.fromtimestamp(int(epoch), UTC):%Y-%m-%d %H:%M:%S} UTC"
        except (ValueError, OverflowError, OSError) as error:
            raise BadInputError(f"SOURCE_DATE_EPOCH is {epoch!r}, which is not a time in seconds") from error
    made = provenance.moment(data.meta.finished_utc or data.meta.created_utc)
    return f"records of {made:%Y-%m-%d %H:%M:%S} UTC"


def page_of(data: load.Dataset, *, title: str | None = None, beside: Against | None = None) -> Page:
    """Return the page of a campaign. `beside`: it as the second side against an earlier one."""
    told = since(beside) if beside is not None else None
    return views.page(compare.compare(data), title=title, generated=stamp(data), since=told)


def build(campaign_path: Path, out_path: Path, title: str | None = None) -> Written:
    """Write the report of the campaign in a folder. Raises AnalysisError, cadge_results.ResultsError."""
    return write(page_of(load.read(Campaign(campaign_path)), title=title), out_path)


def write(page: Page, out_path: Path) -> Written:
    """Write a page into a file."""
    return write_output(out_path, render.html(page).encode())
