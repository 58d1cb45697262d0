# SPDX-License-Identifier: BSD-3-Clause
"""Badges: a small picture for a README that says what a run compared and when, or that it was retracted.

A badge names no layer and no figure: a number without its interval, its floor and its machine says nothing.
"""

from __future__ import annotations

from cadge_analysis import units
from cadge_analysis.draw.textwidth import width_px
from cadge_analysis.publish.banner import templates
from cadge_analysis.publish.model import PublishedRun

BADGE = "badge.svg"
_FONT_PX = 11
_EDGE_PX = 7


def said(run: PublishedRun) -> str:
    """Return what a badge says beside the name."""
    if run.retracted:
        return f"retracted {run.retracted.at_utc[:10]}"
    return f"{units.count_of(len(run.layers), 'layer')} compared, {run.created_utc[:10]}"


def badge(run: PublishedRun) -> bytes:
    """Return the badge of a run as SVG; equal runs have equal badges on every machine."""
    halves = [{"text": text, "width": round(width_px(text, _FONT_PX)) + 2 * _EDGE_PX} for text in ("cadge", said(run))]
    page = templates().get_template("badge.svg.j2")
    return page.render(halves=halves, edge=_EDGE_PX, retracted=run.retracted is not None).encode()
