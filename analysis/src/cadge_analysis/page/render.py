# SPDX-License-Identifier: BSD-3-Clause
"""Pages from view models: Jinja2 with autoescape and strict names; templates compute nothing."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cadge_analysis.page import definitions, layout
from cadge_analysis.page.beside_model import BesidePage
from cadge_analysis.page.figures import CHOSEN
from cadge_analysis.page.history_model import HistoryPage
from cadge_analysis.page.pages import PatternPage
from cadge_analysis.page.script import Script, script_of
from cadge_analysis.page.viewmodel import Page


@cache  # a report has a page a pattern, and a template is compiled once
def environment(folder: Path | None = None) -> Environment:
    """Return the environment of all templates, and of those in a folder. Every value from data is escaped."""
    ours = PackageLoader("cadge_analysis.page", "templates")
    made = Environment(
        loader=ours if folder is None else ChoiceLoader([ours, FileSystemLoader(folder)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        captioned=captioned,
        heads=layout.heads,
        how_many=layout.how_many,
        heads_rule=layout.heads_rule,
        column_heads=layout.column_heads,
        summary_heads=layout.summary_heads,
        matrix_heads=layout.matrix_heads,
    )
    made.globals["heads_most"] = layout.MOST
    made.globals["definitions"] = Markup(definitions.HERE)  # noqa: S704 - a constant of ours
    return made


def captioned(text: str) -> Markup:
    """Return a caption, with what is true where something can be chosen marked for paper to leave out."""
    return Markup(escape(text).replace(CHOSEN, f'<span class="onscreen">{CHOSEN}</span>'))  # noqa: S704 - escaped


def html(page: Page) -> str:
    """Return the report as one HTML document that needs nothing else."""
    return document(environment().get_template("report.html.j2").render(page=page, script=_script()))


def pattern(page: PatternPage) -> str:
    """Return one pattern's page of a report in several files as an HTML document of its own."""
    return document(environment().get_template("pattern.html.j2").render(page=page, script=_script()))


@cache
def _script() -> Script:
    """Return what a report can do besides being read, tidied already: its digest is of what stands in the file."""
    text = (files("cadge_analysis.page") / "templates" / "report.js").read_text("utf-8")
    return script_of(tidy(text).rstrip("\n"))


def beside(page: BesidePage) -> str:
    """Return the page of two sides as one HTML document that needs nothing else."""
    return document(environment().get_template("beside.html.j2").render(page=page))


def document(text: str) -> str:
    """Return a page as it is written: with what it draws more than once, without what a browser does not need."""
    return tidy(definitions.defined(text))


def history(page: HistoryPage) -> str:
    """Return the page of campaigns over time as one HTML document that needs nothing else."""
    return tidy(environment().get_template("history.html.j2").render(page=page))


def tidy(text: str) -> str:
    """Return a rendered page without indentation and empty lines."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"
