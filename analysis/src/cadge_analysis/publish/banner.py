# SPDX-License-Identifier: BSD-3-Clause
"""What a site adds to a report: a way back, its files, and a banner where the run was retracted."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment

from cadge_analysis.blocks.html import environment
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
