# SPDX-License-Identifier: BSD-3-Clause
"""Pages from view models: Jinja2 with autoescape and strict names; templates compute nothing."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from cadge_analysis.viewmodel import Page


def environment() -> Environment:
    """Return the environment of all templates. Every value from data is escaped."""
    return Environment(
        loader=PackageLoader("cadge_analysis", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def html(page: Page) -> str:
    """Return the report as one HTML document that needs nothing else."""
    text = environment().get_template("report.html.j2").render(page=page)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"
