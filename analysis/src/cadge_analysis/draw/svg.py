# SPDX-License-Identifier: BSD-3-Clause
"""Vega-Lite specifications to static SVG that belongs into our page.

vl-convert renders without a browser and without a network. Its SVG carries colours as presentation attributes; each
colour of our palette becomes `var(--name,#fallback)`, so that a page's style sheet decides for light and dark, and a
page without a style sheet still has the fallback.

No byte depends on the fonts of the machine. The renderer measures texts with whatever fonts it finds, so nothing is
laid out by what it measured: a specification states its frame (`framed`), and where its titles stand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from markupsafe import Markup, escape

from cadge_analysis import messages
from cadge_analysis.draw import renderer
from cadge_analysis.draw.dress import dressed
from cadge_analysis.draw.kept import drawn
from cadge_analysis.draw.palette import LIGHT, NEUTRALS, classes, variables
from cadge_analysis.errors import NoRendererError, PictureError

say = partial(messages.say, "draw")

Spec = dict[str, object]
NO_PICTURE = say("svg.no_picture")

_VARIABLES = (
    {colour: f"var(--s{slot},{colour})" for slot, colour in enumerate(LIGHT)}
    | {colour: f"var(--{name},{colour})" for colour, name in NEUTRALS.items()}
    | variables()
)
_CLASSES = classes()


def framed(spec: Spec, *, left: float, top: float, right: float, bottom: float) -> Spec:
    """Return a specification with so many px around what it plots, whatever its texts measure."""
    padding = {"left": round(left), "top": round(top), "right": round(right), "bottom": round(bottom)}
    return {**spec, "autosize": {"type": "none"}, "bounds": "flush", "padding": padding}


def _plotted(spec: Mapping[str, object]) -> tuple[float, float]:
    """Return width and height of what a specification plots, without its frame, in px."""
    panels = spec.get("vconcat")
    if isinstance(panels, Sequence):
        sizes = [_plotted(panel) for panel in panels]
        gaps = float(str(spec.get("spacing", 0))) * (len(sizes) - 1)
        return max(width for width, _ in sizes), sum(height for _, height in sizes) + gaps
    return float(str(spec["width"])), float(str(spec["height"]))


def _size(spec: Mapping[str, object]) -> tuple[int, int]:
    """Return width and height of the picture in px."""
    padding = spec.get("padding")
    if not isinstance(padding, Mapping):
        raise PictureError(say("svg.no_frame"))
    width, height = _plotted(spec)
    return round(width + padding["left"] + padding["right"]), round(height + padding["top"] + padding["bottom"])


def _rendered(spec: Mapping[str, object], name: str) -> str:
    text = json.dumps(spec)

    def make() -> str:
        try:
            raw = renderer.draw("vegalite", text).decode()
        except NoRendererError:
            raise
        except PictureError as error:
            raise PictureError(f"chart {name}: {error}") from error
        return dressed(raw, name=name, colours=_VARIABLES, classes=_CLASSES)

    try:
        return drawn((name, text), make)
    except NoRendererError:
        return ""


def render(
    spec: Mapping[str, object],
    *,
    name: str,
    title: str,
    description: str = "",
    minimum_px: int = 0,
    maximum_px: int = 0,
    behind: str = "",
) -> Markup:
    """Return a chart as an inline `<svg>` with a title, and a description where its numbers stand in no table.

    `name` is unique in the page and prefixes every id. The picture scales with its box, but never below `minimum_px`,
    and never above `maximum_px` where one is given.
    behind: the name of a `backdrop` with the same frame, which is seen behind it. Where nothing can be drawn on this
    machine the frame says so, and `renderer.RENDERER.trouble` why. Raises PictureError where the renderer refuses the
    specification.
    """
    width, height = _size(spec)
    picture = _rendered(spec, name) or f'<text x="12" y="24">{escape(NO_PICTURE)}</text>'
    bounds = {"min-width": minimum_px, "max-width": maximum_px}
    stated = ";".join(f"{bound}:{px}px" for bound, px in bounds.items() if px)
    style = f' style="{stated}"' if stated else ""
    back = f'<use href="#{behind}"/>' if behind else ""
    more = f'<desc id="{name}-d">{escape(description)}</desc>' if description else ""
    spoken = f"{name}-t {name}-d" if description else f"{name}-t"
    return Markup(  # noqa: S704 - the renderer's own, and what is escaped here
        f'<svg class="chart" role="img" aria-labelledby="{spoken}" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}"{style} font-family="system-ui,sans-serif" font-size="11px">'
        f'<title id="{name}-t">{escape(title)}</title>{more}'
        f"{back}{picture}</svg>"
    )


def backdrop(spec: Mapping[str, object], *, name: str) -> Markup:
    """Return what several charts have behind them, to stand in the page once, unseen by itself."""
    return Markup(  # noqa: S704 - the renderer's own
        '<svg width="0" height="0" style="position:absolute" aria-hidden="true" font-family="system-ui,sans-serif"'
        f' font-size="11px"><g id="{name}">{_rendered(spec, name)}</g></svg>'
    )


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
