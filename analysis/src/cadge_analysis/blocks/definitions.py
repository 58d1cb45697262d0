# SPDX-License-Identifier: BSD-3-Clause
"""What a page draws more than once, defined once: the marker beside a series' name, and outlines that charts repeat.

A chart brings its outlines with it, so that it is whole by itself; a page of many charts has most of them many times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cadge_analysis.draw.palette import Identity

HERE = "<!--definitions-->"
"""What a page has in the place of its definitions until it is whole; no value from data can be it."""
_USED = re.compile(r'<use href="#mk(\d+)"')
_OWN = re.compile(r'<defs>((?:<path id="[^"]+-m\d+" d="[^"]+"/>)+)</defs>')
_OUTLINE = re.compile(r'<path id="([^"]+)" d="([^"]+)"/>')
_REFERENCE = re.compile(r'<use href="#([^"]+-m\d+)"')


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
