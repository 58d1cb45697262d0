# SPDX-License-Identifier: BSD-3-Clause
"""A chart of a page as a picture of its own: SVG that any program reads, PDF or PNG.

Inside a page, colours come from its style sheet. Here each is the light theme's, on white.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Literal

from cadge_analysis import messages
from cadge_analysis.draw import renderer
from cadge_analysis.errors import NoRendererError, PictureError

say = partial(messages.say, "draw")

Kind = Literal["svg", "pdf", "png"]

_VARIABLE = re.compile(r"var\(--[\w-]+,(#[0-9A-Fa-f]{3,8})\)")
_HEAD = re.compile(r'<svg class="chart" role="img" (?P<said>[^>]*?)(?: style="[^"]*")?(?P<rest> font-family=[^>]*)>')
_PAPER = '<rect width="100%" height="100%" fill="#fff"/>'


def alone(chart: str) -> str:
    """Return a chart of `svg.render` that has no backdrop as an SVG document. Raises PictureError for other text."""
    head = _HEAD.match(chart)
    if head is None:
        raise PictureError(say("alone.no_chart"))
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {head["said"]}{head["rest"]}>'
    document = f"{opening}{_PAPER}{chart[head.end() :]}\n"
    found = 1
    while found:  # a colour may stand within another's choice
        document, found = _VARIABLE.subn(r"\1", document)
    return document


def picture(document: str, kind: Kind) -> bytes:
    """Return an SVG document as a file of a kind. A PDF holds its text as text, in a font of this machine."""
    if kind == "svg":
        return document.encode()
    try:
        return renderer.draw(kind, document)
    except NoRendererError:
        raise
    except PictureError as error:
        raise PictureError(say("alone.failed", error=str(error).partition(chr(10))[0])) from error
