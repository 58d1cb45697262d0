# SPDX-License-Identifier: BSD-3-Clause
"""A renderer's drawing, made small and fit for a page: half the bytes, the same picture.

What a reader cannot see goes; colours become variables; what siblings have in common is said once, by a group around
them; straight strokes of one look become one path, and outlines that repeat are written once. All that is drawn of one
series has its class, by which a page or a script finds it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from xml.etree.ElementTree import Element, ParseError, fromstring

from markupsafe import escape

from cadge_analysis import messages
from cadge_analysis.errors import PictureError

say = partial(messages.say, "draw")

_UNSEEN = {"pointer-events", "role", "aria-hidden", "aria-roledescription", "aria-label", "font-family", "class"}
_USUAL = {
    ("opacity", "1"),
    ("fill-opacity", "1"),
    ("stroke-opacity", "1"),
    ("stroke-width", "1"),
    ("stroke-miterlimit", "10"),
    ("font-size", "11px"),
    ("text-anchor", "start"),
    ("transform", "translate(0,0)"),
    ("stroke-dasharray", "1,0"),
}
_INHERITED = (
    "class",
    "fill",
    "fill-opacity",
    "font-size",
    "font-weight",
    "stroke",
    "stroke-dasharray",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
)
_NOTHING = (None, "none", "transparent")
_NUMBER = re.compile(r"-?\d*\.\d{2,}")
_MOVED = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
_STEADY = tuple(one for one in _INHERITED if one not in ("class", "fill", "stroke"))
"""What series that are drawn alike have in common."""
_LONG_OUTLINE = 24


def dressed(raw: str, *, name: str, colours: Mapping[str, str], classes: Mapping[str, str]) -> str:
    """Return what an SVG document holds, dressed. `name` prefixes every id.

    colours: what stands for which colour. classes: of all that has a colour. Raises PictureError where the renderer's
    SVG has another shape than expected.
    """
    try:
        root = fromstring(raw.replace(' xmlns="http://www.w3.org/2000/svg"', ""))  # noqa: S314 - our renderer's own
    except ParseError as error:
        raise PictureError(say("dress.unreadable", name=name, error=error)) from error
    groups = [child for child in root if child.tag == "g"]
    if root.tag != "svg" or len(groups) != 1:
        raise PictureError(say("dress.another_shape", name=name))
    body = groups[0]
    _clean(body)
    body[:] = list(_flat(body))
    for node in body.iter():
        _unpainted(node)
        _coloured(node, colours, classes)
    _gathered(body)
    shapes = _shared(body, name)
    _named(body, name)
    return shapes + "".join(_text(child) for child in [body])


def _clean(node: Element) -> None:
    """Take out attributes that say nothing, and shorten numbers to a tenth of a pixel: no eye sees less."""
    for key, value in list(node.attrib.items()):
        if key in _UNSEEN or (key, value) in _USUAL:
            del node.attrib[key]
        elif key == "d" and "C" in value:
            node.set(key, _NUMBER.sub(_finer, value))
        elif key in ("transform", "d", "x2", "y2", "x", "y", "width", "height"):
            node.set(key, _NUMBER.sub(_short, value))
    moved = _MOVED.fullmatch(node.get("transform", "")) if node.tag == "text" else None
    if moved is not None:
        del node.attrib["transform"]
        node.set("x", moved[1])
        node.set("y", moved[2])
    for child in node:
        _clean(child)


def _short(match: re.Match[str], digits: int = 1) -> str:
    text = f"{float(match[0]):.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _finer(match: re.Match[str]) -> str:
    """Return a number of a bent outline, which is small and shows its corners."""
    return _short(match, 2)


def _seen(node: Element) -> bool:
    if node.get("display") == "none":
        return False
    if node.tag == "text":
        return bool(node.text)
    if node.tag in ("path", "rect"):
        return node.get("fill") not in _NOTHING or node.get("stroke") not in _NOTHING
    return node.tag != "g" or len(node) > 0


def _flat(node: Element) -> Iterator[Element]:
    """Yield what a group holds, without groups that say nothing and without what cannot be seen."""
    for child in node:
        if child.tag == "g":
            child[:] = list(_flat(child))
        if not _seen(child):
            continue
        if child.tag == "g" and not child.attrib:
            yield from child
        else:
            yield child


def _unpainted(node: Element) -> None:
    """Take out paint that cannot be seen, and what is said of it."""
    for key in ("fill", "stroke"):
        if node.get(f"{key}-opacity") == "0":
            node.attrib.pop(key, None)
        if node.tag != "g" and node.get(key) in _NOTHING:
            for said in (key, f"{key}-opacity", f"{key}-width", f"{key}-dasharray"):
                node.attrib.pop(said, None)


def _coloured(node: Element, colours: Mapping[str, str], classes: Mapping[str, str]) -> None:
    for key in ("fill", "stroke"):
        colour = node.get(key, "").lower()
        if colour in classes:
            node.set("class", classes[colour])
        if colour in colours:
            node.set(key, colours[colour])


def _look(node: Element) -> tuple[tuple[str, str], ...]:
    if node.tag == "g" or node.get("opacity"):
        return ()
    return tuple((key, value) for key in _INHERITED if (value := node.get(key)) is not None)


def _gathered(node: Element) -> None:
    """Put a group around neighbours that look the same, of which it says how."""
    found: list[Element] = []
    for look, members in groupby(node, _look):
        several = list(members)
        if not look:
            found += several
            continue
        if all(one.tag == "line" for one in several):
            several = [_one_path(several, dict(look))]
        found += [_group(several, look)] if len(several) > 1 else several
    node[:] = []
    for look, members in groupby(found, _steady):
        alike = list(members)
        node.extend([_group(alike, look)] if look and len(alike) > 1 else alike)
    for child in node:
        if child.tag == "g" and child.get("transform"):
            _gathered(child)


def _steady(node: Element) -> tuple[tuple[str, str], ...]:
    """Return what a drawing of one series may have in common with that of the next one."""
    if node.get("opacity") or (node.tag == "g" and node.get("transform")):
        return ()
    return tuple((key, value) for key in _STEADY if (value := node.get(key)) is not None)


def _group(members: list[Element], look: tuple[tuple[str, str], ...]) -> Element:
    """Return a group that says how its members look, and they no more."""
    for one in members:
        for key, _ in look:
            del one.attrib[key]
    group = Element("g", dict(look))
    group[:] = members
    return group


def _one_path(lines: list[Element], look: dict[str, str]) -> Element:
    """Return straight strokes of one look as a path."""
    strokes = []
    for line in lines:
        moved = _MOVED.fullmatch(line.get("transform", "translate(0,0)"))
        if moved is None:
            raise PictureError(say("dress.no_shift", transform=line.get("transform")))
        right, down = line.get("x2", "0"), line.get("y2", "0")
        step = f"v{down}" if right == "0" else f"h{right}" if down == "0" else f"l{right},{down}"
        strokes.append(f"M{moved[1]},{moved[2]}{step}")
    return Element("path", {**look, "d": "".join(strokes)})


def _shared(node: Element, name: str) -> str:
    """Let outlines that repeat refer to one, and return the definitions."""
    paths = [one for one in node.iter("path") if len(one.get("d", "")) >= _LONG_OUTLINE and one.get("transform")]
    often = Counter(one.get("d", "") for one in paths)
    shared = {outline: f"{name}-m{n}" for n, outline in enumerate(o for o, count in often.items() if count > 2)}
    for one in paths:
        outline = one.get("d", "")
        moved = _MOVED.fullmatch(one.get("transform", ""))
        if outline in shared and moved is not None:
            one.tag = "use"
            rest = {key: value for key, value in one.attrib.items() if key not in ("d", "transform")}
            one.attrib = {"href": f"#{shared[outline]}", "x": moved[1], "y": moved[2], **rest}
    outlines = "".join(f'<path id="{ref}" d="{outline}"/>' for outline, ref in shared.items())
    return f"<defs>{outlines}</defs>" if shared else ""


def _named(node: Element, name: str) -> None:
    """Prefix the ids of what a drawing defines itself: clips and gradients."""
    ids = {one.get("id", "") for one in node.iter() if one.get("id")}
    for one in node.iter():
        for key, value in list(one.attrib.items()):
            if key == "id":
                one.set(key, f"{name}-{value}")
            elif value.startswith("url(#") and value[5:-1] in ids:
                one.set(key, f"url(#{name}-{value[5:-1]})")


def _text(node: Element) -> str:
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in node.attrib.items())
    inner = escape(node.text) if node.tag == "text" and node.text else "".join(map(_text, node))
    return f"<{node.tag}{attributes}>{inner}</{node.tag}>" if inner else f"<{node.tag}{attributes}/>"
