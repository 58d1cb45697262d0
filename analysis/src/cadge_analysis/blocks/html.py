# SPDX-License-Identifier: BSD-3-Clause
"""Pages as HTML: one template of macros prints the blocks of each. Equal pages give equal bytes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cadge_analysis import units
from cadge_analysis.blocks import layout
from cadge_analysis.blocks.model import CHOSEN, Block, Data, PageDocument, Region
from cadge_analysis.blocks.script import script, tidy
from cadge_analysis.cells.shown import Value
from cadge_analysis.draw.palette import Identity

HERE = "<!--definitions-->"
"""What a page has in the place of its definitions until it is whole; no value from data can be it."""
_USED = re.compile(r'<use href="#mk(\d+)"')
_OWN = re.compile(r'<defs>((?:<path id="[^"]+-m\d+" d="[^"]+"/>)+)</defs>')
_OUTLINE = re.compile(r'<path id="([^"]+)" d="([^"]+)"/>')
_REFERENCE = re.compile(r'<use href="#([^"]+-m\d+)"')


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
        sig3=units.sig3,
        times=units.times,
    )
    made.tests["value"] = lambda cell: isinstance(cell, Value)
    made.globals["heads_most"] = layout.MOST
    made.globals["definitions"] = Markup(HERE)  # noqa: S704 - a constant of ours
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


class PrintedSections:
    """Prints blocks, and each section of a pattern once, whatever number of pages has it.

    It keeps them packed: a large report has 20 MB of them.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[int, tuple[Region, bytes]] = {}

    def __call__(self, block: Block, blocks: Callable[[list[Block]], Markup]) -> Markup:
        """Return a block as text. blocks: the macro that prints some."""
        if not isinstance(block, Region) or block.part is None:
            return blocks([block])
        if id(block) in self._known:
            return Markup(zlib.decompress(self._known[id(block)][1]).decode())  # noqa: S704 - what a macro printed
        text = blocks([block])
        self._known[id(block)] = block, zlib.compress(text.encode(), 1)
        return text


def _printed_block(block: Block, blocks: Callable[[list[Block]], Markup]) -> Markup:
    return blocks([block])


def printed(page: PageDocument, sections: PrintedSections | None = None) -> str:
    """Return a page as one HTML document that needs nothing else. sections: what other pages have as well."""
    return "".join(printed_parts(page, sections))


def printed_parts(page: PageDocument, sections: PrintedSections | None = None) -> Iterator[str]:
    """Yield a page in parts of whole lines: as one text, a large one takes its memory several times."""
    template = environment().get_template("page.html.j2")
    each = sections or _printed_block
    made = template.generate(page=page, script=script() if page.scripted else None, printed=each)
    tidied = map(tidy, defined(list(_whole_lines(made))))
    return (text for text in tidied if text != "\n")


def _whole_lines(pieces: Iterable[str]) -> Iterator[str]:
    """Cut pieces again, so that each ends with a line."""
    left = ""
    for piece in pieces:
        lines, end, left = f"{left}{piece}".rpartition("\n")
        yield f"{lines}{end}"
    yield left


# ---- what a page draws more than once, defined once: markers beside names, and outlines that charts repeat ----
# A chart brings its outlines with it, so that it is whole by itself; a page of many charts has most of them many times.


def defined(parts: Sequence[str]) -> Iterator[str]:
    """Yield a page's parts with the definition of all that it refers to, in the place for them; each chart is in one.

    Charts refer to the page's outlines instead of their own.
    """
    if not any(HERE in text for text in parts):
        yield from parts
        return
    charts = (found for text in parts for found in _OWN.findall(text))
    own = {name: outline for found in charts for name, outline in _OUTLINE.findall(found)}
    ids = {outline: f"o{number}" for number, outline in enumerate(dict.fromkeys(own.values()))}
    outlines = "".join(f'<path id="{name}" d="{outline}"/>' for outline, name in ids.items())
    used = sorted({int(number) for text in parts for number in _USED.findall(text)})
    symbols = "".join(_symbol(Identity.of_number(number)) for number in used)
    here = symbols + (f"<defs>{outlines}</defs>" if outlines else "")
    is_placed = False
    for part in parts:
        text = _REFERENCE.sub(lambda found: f'<use href="#{ids[own[found[1]]] if found[1] in own else found[1]}"', part)
        text = _OWN.sub("", text)
        if not is_placed and HERE in text:
            text, is_placed = text.replace(HERE, here, 1), True
        yield text


def _symbol(look: Identity) -> str:
    colour = f"var(--s{look.slot},{look.light})"
    paint = f'fill="none" stroke="{colour}" stroke-width=".45"' if look.hollow else f'fill="{colour}"'
    shape = f'<path d="{look.shape}" {paint}'
    if not look.dash:
        return f'<symbol id="mk{look.number}" viewBox="-1.3 -1.3 2.6 2.6">{shape}/></symbol>'
    dashes = " ".join(map(str, look.dash))
    line = f'<path d="M0,5.5H23" fill="none" stroke="{colour}" stroke-width="1.4" stroke-dasharray="{dashes}"/>'
    place = 'transform="translate(11.5,5.5) scale(4.23)"'
    return f'<symbol id="mk{look.number}" viewBox="0 0 23 11">{line}{shape} {place}/></symbol>'
