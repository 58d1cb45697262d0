# SPDX-License-Identifier: BSD-3-Clause
"""Pages as HTML: one template of macros prints the blocks of each. Equal pages give equal bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cadge_analysis.blocks import definitions, layout
from cadge_analysis.blocks.model import CHOSEN, Data, PageDocument
from cadge_analysis.blocks.script import script, tidy
from cadge_analysis.cells.shown import Value

_PART = 1 << 16
"""Characters of a part, at least."""


@cache  # a report has a page a pattern, and a template is compiled once
def environment(folder: Path | None = None) -> Environment:
    """Return the environment of all templates, and of those in a folder. Every value from data is escaped."""
    made = Environment(
        loader=ChoiceLoader(
            [PackageLoader("cadge_analysis.blocks", "templates"), *([FileSystemLoader(folder)] if folder else [])]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        captioned=captioned,
        attributes=attributes,
        kind=lambda block: type(block).__name__,
        heads=layout.heads,
        how_many=layout.how_many,
        heads_rules=layout.heads_rules,
        data=data,
    )
    made.tests["value"] = lambda cell: isinstance(cell, Value)
    made.globals["heads_most"] = layout.MOST
    made.globals["definitions"] = Markup(definitions.HERE)  # noqa: S704 - a constant of ours
    return made


def captioned(text: str) -> Markup:
    """Return a caption, with what is true where something can be chosen marked for paper to leave out."""
    return escape(text).replace(CHOSEN, Markup('<span class="onscreen">{}</span>').format(CHOSEN))


def attributes(given: Mapping[str, object]) -> Markup:
    """Return an element's attributes; one without a value is left out."""
    return Markup("").join(Markup(' {}="{}"').format(name, value) for name, value in given.items() if value != "")


def data(given: Data) -> Markup:
    """Return attributes for programs."""
    return Markup("").join(Markup(' data-{}="{}"').format(name, value) for name, value in given)


def printed(page: PageDocument) -> str:
    """Return a page as one HTML document that needs nothing else."""
    return "".join(printed_parts(page))


def printed_parts(page: PageDocument) -> Iterator[str]:
    """Yield a page in parts of whole lines: as one text, a large one takes its memory several times."""
    made = environment().get_template("page.html.j2").generate(page=page, script=script() if page.scripted else None)
    tidied = map(tidy, definitions.defined(list(_whole_lines(made))))
    return (text for text in tidied if text != "\n")


def _whole_lines(pieces: Iterable[str]) -> Iterator[str]:
    """Join pieces to parts that end with a line."""
    left: list[str] = []
    length = 0
    for piece in pieces:
        left.append(piece)
        length += len(piece)
        if length >= _PART:
            text = "".join(left)
            end = text.rfind("\n") + 1
            yield text[:end]
            left, length = [text[end:]], len(text) - end
    yield "".join(left)
