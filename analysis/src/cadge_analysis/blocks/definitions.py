# SPDX-License-Identifier: BSD-3-Clause
"""What a page draws more than once, defined once: the marker beside a series' name, and outlines that charts repeat.

A chart brings its outlines with it, so that it is whole by itself; a page of many charts has most of them many times.
"""

from __future__ import annotations

import re

from cadge_analysis.draw.palette import Identity

HERE = "<!--definitions-->"
"""What a page has in the place of its definitions until it is whole; no value from data can be it."""
_USED = re.compile(r'<use href="#mk(\d+)"')
_OWN = re.compile(r'<defs>((?:<path id="[^"]+-m\d+" d="[^"]+"/>)+)</defs>')
_OUTLINE = re.compile(r'<path id="([^"]+)" d="([^"]+)"/>')
_REFERENCE = re.compile(r'<use href="#([^"]+-m\d+)"')


def defined(text: str) -> str:
    """Return a page with the definition of all that it refers to, in the place for them."""
    if HERE not in text:
        return text
    text, outlines = _shared(text)
    used = sorted({int(number) for number in _USED.findall(text)})
    symbols = "".join(_symbol(Identity.of_number(number)) for number in used)
    return text.replace(HERE, symbols + outlines, 1)


def _shared(text: str) -> tuple[str, str]:
    """Return a page whose charts refer to the page's outlines instead of their own, and these."""
    own = {name: outline for found in _OWN.findall(text) for name, outline in _OUTLINE.findall(found)}
    ids = {outline: f"o{number}" for number, outline in enumerate(dict.fromkeys(own.values()))}
    text = _REFERENCE.sub(lambda found: f'<use href="#{ids[own[found[1]]] if found[1] in own else found[1]}"', text)
    outlines = "".join(f'<path id="{name}" d="{outline}"/>' for outline, name in ids.items())
    return _OWN.sub("", text), f"<defs>{outlines}</defs>" if outlines else ""


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
