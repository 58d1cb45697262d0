# SPDX-License-Identifier: BSD-3-Clause
"""The report of a campaign: one HTML file. Equal records give equal bytes."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cadge_analysis import compare, load, provenance, render, views
from cadge_analysis.errors import BadInputError
from cadge_results import Campaign


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What was written: the file, its size, and how much is in it."""

    path: Path
    size_bytes: int
    layers: int
    points: int
    rows: int
    grave_remarks: int


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


def write(path: Path, content: bytes) -> None:
    """Put a whole file in its place, or leave what was there."""
    scratch = path.with_name(f".{path.name}.part")
    try:
        scratch.write_bytes(content)
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise BadInputError(f"cannot write {path}: {error.strerror}") from error


def build_campaign(campaign: Campaign, out_path: Path, *, title: str | None = None) -> Built:
    """Write the report of an opened campaign. Raises AnalysisError, cadge_results.ResultsError."""
    data = load.read(campaign)
    comparison = compare.compare(data)
    page = views.page(comparison, title=title, generated=stamp(data))
    encoded = render.html(page).encode()
    write(out_path, encoded)
    return Built(
        path=out_path,
        size_bytes=len(encoded),
        layers=len(data.layers),
        points=len(data.cells),
        rows=len(comparison.rows),
        grave_remarks=sum(remark.grave for remark in page.remarks),
    )


def build(campaign_path: Path, out_path: Path, title: str | None = None) -> None:
    """Write the report of the campaign in a folder. Raises AnalysisError, cadge_results.ResultsError."""
    build_campaign(Campaign(campaign_path), out_path, title=title)
