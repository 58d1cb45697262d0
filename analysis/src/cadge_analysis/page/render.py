# SPDX-License-Identifier: BSD-3-Clause
"""A report as HTML, with its script, and the digest by which the file's policy allows that script alone."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files

from markupsafe import Markup

from cadge_analysis import messages
from cadge_analysis.blocks.html import environment, tidy, whole
from cadge_analysis.page.pages import PatternPage
from cadge_analysis.page.sections import first_screen, stops
from cadge_analysis.page.viewmodel import Page

say = partial(messages.say, "report")


def html(page: Page) -> str:
    """Return the report as one HTML document that needs nothing else."""
    return whole(
        environment()
        .get_template("report.html.j2")
        .render(page=page, script=_script(), stops=stops(page.warned.stops), first=first_screen(page))
    )


def pattern(page: PatternPage) -> str:
    """Return one pattern's page of a report in several files as an HTML document of its own."""
    return whole(
        environment()
        .get_template("pattern.html.j2")
        .render(page=page, script=_script(), stops=stops(page.stops, page.report))
    )


@cache
def _script() -> Script:
    """Return what a report can do besides being read, tidied already: its digest is of what stands in the file."""
    text = (files("cadge_analysis.page") / "templates" / "report.js").read_text("utf-8")
    return script_of(tidy(text).rstrip("\n"))


@dataclass(frozen=True, slots=True)
class Script:
    """`text` stands between its tags unchanged; `source` is what a Content-Security-Policy calls it (CSP 3, 2.3.1)."""

    text: Markup
    source: Markup


def script_of(text: str) -> Script:
    """Return a script of our own, of which no byte may change any more: its first line, and what is no comment.

    Raises ValueError where it would end its element, or where a reader of the file would see other characters.
    """
    if not text.isascii() or any(mark in text.lower() for mark in ("</script", "<!--", "\r")):
        raise ValueError(say("render.not_ascii"))
    first, *rest = text.splitlines(keepends=True)
    text = first + "".join(line for line in rest if not line.lstrip().startswith(("//", "/**")))
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), Markup(f"'sha256-{digest}'"))  # noqa: S704 - ours, and checked above
