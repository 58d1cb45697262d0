# SPDX-License-Identifier: BSD-3-Clause
"""Vega-Lite specifications to static SVG that belongs into our page.

vl-convert renders without a browser and without a network. Its SVG carries colours as presentation attributes; each
colour of our palette becomes `var(--name,#fallback)`, so that a page's style sheet decides for light and dark, and a
page without a style sheet still has the fallback.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping

import vl_convert
from markupsafe import Markup, escape

from cadge_analysis.draw.palette import LIGHT, NEUTRALS, variables
from cadge_analysis.errors import PictureError

VEGA_LITE = "5.20"
Spec = dict[str, object]

_VARIABLES = (
    {colour: f"var(--s{slot},{colour})" for slot, colour in enumerate(LIGHT)}
    | {colour: f"var(--{name},{colour})" for colour, name in NEUTRALS.items()}
    | variables()
)
_COLOUR = re.compile(r'(fill|stroke)="(#[0-9a-fA-F]{6})"')
_OPENING = re.compile(r"<svg\b[^>]*>")
_SIZE = re.compile(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"')
_NOISE = (
    re.compile(r' (?:class|pointer-events|role|aria-hidden|aria-roledescription|aria-label)="[^"]*"'),
    re.compile(r' (?:fill-opacity|stroke-opacity|opacity)="1"'),
    re.compile(r' stroke-miterlimit="10"'),
    re.compile(r' transform="translate\(0,0\)"'),
    re.compile(r' font-family="[^"]*"| font-size="11px"'),
)
_LONG_NUMBER = re.compile(r"(?<![\w.#])-?\d*\.\d{3,}(?![\w.])|(?<=[MLHVZA,])-?\d*\.\d{3,}")
_TAG = re.compile(r"<[^>]+>")
_BACKDROP = re.compile(
    r'<path d="" display="none"\s*/>|<path d="[^"]*"(?: (?:stroke|fill)="(?:none|transparent)")*\s*/>|<g>\s*</g>'
)
_MARKER = re.compile(r'<path transform="([^"]+)" d="([^"]{24,})"')
_IDS = re.compile(r'id="([^"]+)"')


def render(spec: Mapping[str, object], *, name: str, title: str, description: str, minimum_px: int = 0) -> Markup:
    """Return a chart as an inline `<svg>` with a title and a description for those who do not see it.

    `name` is unique in the page and prefixes every id. The picture scales with its box, but never below `minimum_px`.
    Raises PictureError where the renderer refuses the specification.
    """
    try:
        raw = vl_convert.vegalite_to_svg(json.dumps(spec), vl_version=VEGA_LITE)
    except ValueError as error:
        raise PictureError(f"chart {name}: {error}") from error
    return Markup(_dress(raw, name=name, title=title, description=description, minimum_px=minimum_px))  # noqa: S704


def _dress(raw: str, *, name: str, title: str, description: str, minimum_px: int) -> str:
    opening = _OPENING.search(raw)
    size = _SIZE.search(raw)
    if opening is None or size is None:
        raise PictureError(f"chart {name}: the renderer's SVG has another shape than expected")
    body = raw[opening.end() :]
    for noise in _NOISE:
        body = noise.sub("", body)
    body = _COLOUR.sub(_variable, body)
    body = _TAG.sub(lambda tag: _LONG_NUMBER.sub(_short_number, tag[0]), body)
    for _ in range(3):
        body = _BACKDROP.sub("", body)
    for identifier in _IDS.findall(body):
        body = body.replace(f'id="{identifier}"', f'id="{name}-{identifier}"')
        body = body.replace(f"url(#{identifier})", f"url(#{name}-{identifier})")
    body = _share_shapes(body, name)
    width, height = size.groups()
    style = f' style="min-width:{minimum_px}px"' if minimum_px else ""
    return (
        f'<svg class="chart" role="img" aria-labelledby="{name}-t {name}-d" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}"{style} font-family="system-ui,sans-serif" font-size="11px">'
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>{body}'
    )


def _share_shapes(body: str, name: str) -> str:
    """Return the drawing with each outline that markers repeat written once: a third of the bytes."""
    often = Counter(match[2] for match in _MARKER.finditer(body))
    shared = {outline: f"{name}-m{n}" for n, outline in enumerate(o for o, count in often.items() if count > 2)}
    if not shared:
        return body

    def reference(match: re.Match[str]) -> str:
        if match[2] not in shared:
            return match[0]
        return f'<use href="#{shared[match[2]]}" transform="{match[1]}"'

    outlines = "".join(f'<path id="{ref}" d="{outline}"/>' for outline, ref in shared.items())
    return f"<defs>{outlines}</defs>{_MARKER.sub(reference, body)}"


def _short_number(match: re.Match[str]) -> str:
    """Return a coordinate to a hundredth of a pixel: finer than any screen, half the bytes."""
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _variable(match: re.Match[str]) -> str:
    colour = match[2].lower()
    return f'{match[1]}="{_VARIABLES.get(colour, colour)}"'
