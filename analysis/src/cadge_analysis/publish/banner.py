# SPDX-License-Identifier: BSD-3-Clause
"""What a site adds to a report: a way back, its files, and a banner where the run was retracted."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment

from cadge_analysis import units
from cadge_analysis.blocks.html import environment
from cadge_analysis.draw.textwidth import width_px
from cadge_analysis.publish.model import PublishedRun

_FRAME = re.compile(r"<!--cadge-site-->.*?<!--/cadge-site-->\n?", re.DOTALL)
_BODY = re.compile(r"<body[^>]*>\n?")
_RETRACTED = "Retracted: "


def templates() -> Environment:
    """Return the templates of a site."""
    return environment(Path(__file__).parent / "templates")


def framed(html: str, run: PublishedRun, *, on_site: bool = True) -> str:
    """Return a report with what the site adds, in the place of what it added before. Off a site: the banner alone."""
    bare = _FRAME.sub("", html).replace(f"<title>{_RETRACTED}", "<title>", 1)
    frame = templates().get_template("frame.html.j2").render(run=run, on_site=on_site)
    if run.retracted:
        bare = bare.replace("<title>", f"<title>{_RETRACTED}", 1)
    return _BODY.sub(lambda found: f"{found.group()}<!--cadge-site-->{frame}<!--/cadge-site-->\n", bare, count=1)


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
