# SPDX-License-Identifier: BSD-3-Clause
"""Pages from view models: Jinja2 with autoescape and strict names; templates compute nothing."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from cadge_analysis.blocks.html import environment, tidy, whole
from cadge_analysis.page.beside_model import BesidePage
from cadge_analysis.page.history_model import HistoryPage
from cadge_analysis.page.pages import PatternPage
from cadge_analysis.page.script import Script, script_of
from cadge_analysis.page.viewmodel import Page


def html(page: Page) -> str:
    """Return the report as one HTML document that needs nothing else."""
    return whole(environment().get_template("report.html.j2").render(page=page, script=_script()))


def pattern(page: PatternPage) -> str:
    """Return one pattern's page of a report in several files as an HTML document of its own."""
    return whole(environment().get_template("pattern.html.j2").render(page=page, script=_script()))


@cache
def _script() -> Script:
    """Return what a report can do besides being read, tidied already: its digest is of what stands in the file."""
    text = (files("cadge_analysis.page") / "templates" / "report.js").read_text("utf-8")
    return script_of(tidy(text).rstrip("\n"))


def beside(page: BesidePage) -> str:
    """Return the page of two sides as one HTML document that needs nothing else."""
    return whole(environment().get_template("beside.html.j2").render(page=page))


def history(page: HistoryPage) -> str:
    """Return the page of campaigns over time as one HTML document that needs nothing else."""
    return tidy(environment().get_template("history.html.j2").render(page=page))
