# SPDX-License-Identifier: BSD-3-Clause
"""A report as headings, sentences and tables: what its Markdown and text editions have of the page, without pictures.

A figure is told by its caption and its numbers. tests/test_editions_whole.py names what only the page has, and why.
"""

from __future__ import annotations

from collections.abc import Iterator

from cadge_analysis.blocks.lines import Lines, Listed, Paragraph, lines_of
from cadge_analysis.blocks.model import Heading
from cadge_analysis.page.sections import first_screen
from cadge_analysis.page.viewmodel import Page


def outline(page: Page) -> Iterator[Lines]:
    """Yield all of a report that can be said without a picture, in the page's order."""
    yield Heading(1, page.title)
    yield Paragraph(page.deck)
    yield from _compared(page)
    sure = (page.since_then, page.itself, page.coverage, page.without, page.floors)
    rest = (page.versions, page.scale, *sure, page.imported, page.method, page.provenance)
    yield from lines_of(filter(None, (*first_screen(page), page.questions, page.layers, *page.sections, *rest)))


def _compared(page: Page) -> Iterator[Lines]:
    compared = [
        _joined(f"{one.name}: {', '.join(one.layers)}", one.paths, between=" - ") for one in page.compared.libraries
    ]
    yield Listed((*compared, _joined(f"Measured: {page.compared.workloads}", page.compared.attempts, between=". ")))


def _joined(first: str, second: str, *, between: str) -> str:
    return f"{first}{between}{second}" if first and second else first or second
