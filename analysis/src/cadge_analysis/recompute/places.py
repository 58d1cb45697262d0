# SPDX-License-Identifier: BSD-3-Clause
"""Every place of a report at which something is said, with a name that another report of the campaign has for it too.

A cell of a table is named by the heads of its row and column, a number of the embedded data by its point and launch:
those names outlive a new version that words sentences otherwise or draws charts afresh. A sentence, a part of a chart
and all else are named by where they stand, which holds between two reports of one version alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cadge_analysis.recompute.tree import Node, spaced

NUMBER = re.compile(r"\d+(?:[.\u202f,]\d+)*(?:[eE][+-]?\d+)?")
_WHOLE = frozenset(("p", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "summary", "figcaption", "caption"))
_WHOLE_TOO = frozenset(("legend", "label", "pre", "title", "style", "script", "option", "button"))
_ITEM_KEYS = ("point_id", "launch_id", "series", "label", "name")


class Sort(StrEnum):
    """What stands at a place; the words are a reader's."""

    CELL = "in tables"
    DATA = "in the embedded data"
    CHART = "in charts"
    TEXT = "in sentences"
    MARKUP = "in markup"


@dataclass(frozen=True, slots=True)
class Place:
    """What stands at a place. `shown` is what a reader sees of it, `exact` all of it; `numbers` are those in it."""

    sort: Sort
    shown: str
    exact: str
    numbers: tuple[str, ...]


def places(root: Node) -> dict[str, Place]:
    """Return every place of a report by its name; equal names are told apart by their order."""
    found: dict[str, Place] = {}
    often: Counter[str] = Counter()
    for name, place in _walk(root, "head", ""):
        often[name] += 1
        found[name if often[name] == 1 else f"{name}, number {often[name]}"] = place
    return found


def _walk(node: Node, section: str, table: str) -> Iterator[tuple[str, Place]]:
    """Yield what stands in a node and its children. `table`: the name of what holds them, where that has one."""
    for child in node.children:
        if isinstance(child, str):
            if child.strip():
                yield f"{section}: text in {node.tag}", _place(Sort.TEXT, child, "")
            continue
        here = child.attrs.get("id", "") if child.tag in ("section", "nav", "header", "footer") else ""
        here = here or (child.tag if child.tag in ("header", "nav", "footer") else section)
        named = child.attrs.get("aria-label") or table
        if child.tag == "script" and child.attrs.get("type") == "application/json":
            yield from _data(child)
        elif child.tag == "svg":
            yield from _chart(child, here)
        elif child.tag == "table":
            yield from _cells(child, here, named)
        elif child.tag == "dl" and "data-case" in child.attrs:
            yield from _said_once(child, here)
        elif child.tag in _WHOLE or child.tag in _WHOLE_TOO:
            sort = Sort.MARKUP if child.tag in ("style", "script") else Sort.TEXT
            yield f"{here}: {child.tag}", _place(sort, child.text, _exact(child))
        else:
            yield f"{here}: markup {child.tag}", _place(Sort.MARKUP, "", _opening(child))
            yield from _walk(child, here, named)


def _place(sort: Sort, shown: str, exact: str, raw: str = "") -> Place:
    shown = spaced(shown)
    numbers = () if sort == Sort.MARKUP else (*NUMBER.findall(shown), *raw.split())
    return Place(sort, shown, exact or shown, numbers)


def _opening(node: Node) -> str:
    return f"<{node.tag}{''.join(f' {name}={value!r}' for name, value in node.attrs.items())}>"


def _exact(node: Node) -> str:
    inner = (child if isinstance(child, str) else _exact(child) for child in node.children)
    return f"{_opening(node)}{''.join(inner)}</{node.tag}>"


# ---- charts ----


def _chart(svg: Node, section: str) -> Iterator[tuple[str, Place]]:
    """Yield every element of a picture: its attributes hold what is drawn."""
    title = next((one.text for one in svg.elements if one.tag == "title"), "")
    name = f"{section}: chart \u201c{title}\u201d" if title else f"{section}: mark"
    sort = Sort.CHART if title else Sort.MARKUP

    def parts(node: Node) -> Iterator[tuple[str, Place]]:
        own = "".join(child for child in node.children if isinstance(child, str))
        drawn = " ".join(value for key, value in node.attrs.items() if key in ("d", "transform", "x", "y", "points"))
        exact = f"{_opening(node)}{own}"
        numbers = tuple(NUMBER.findall(f"{drawn} {own}")) if sort == Sort.CHART else ()
        yield f"{name}, {node.tag}", Place(sort, own.strip() or drawn, exact, numbers)
        for child in node.elements:
            yield from parts(child)

    yield from parts(svg)


# ---- tables ----


def _cells(table: Node, section: str, named: str) -> Iterator[tuple[str, Place]]:
    """Yield the cells of a table by the heads of their rows and columns."""
    caption = next((one.text for one in table.all("caption")), "")
    name = named or caption
    where = f"{section}: {name}" if name else section
    yield f"{where}: markup table", _place(Sort.MARKUP, "", _opening(table))
    if caption:
        yield f"{where}: caption", _place(Sort.TEXT, caption, _exact(next(table.all("caption"))))
    heads: list[str] = []
    for row in table.all("tr"):
        cells = [cell for cell in row.elements if cell.tag in ("th", "td")]
        if cells and all(cell.tag == "th" for cell in cells) and not heads:
            heads = list(_heads(cells))
            yield f"{where}: heads", _place(Sort.TEXT, " | ".join(cell.text for cell in cells), _exact(row))
            continue
        line = " ".join(filter(None, (_line_head(cells), row.attrs.get("data-point"))))
        yield f"{where}, {line}: markup tr", _place(Sort.MARKUP, "", _opening(row))
        for number, cell in enumerate(cells):
            column = heads[number] if number < len(heads) else str(number + 1)
            raw = cell.attrs.get("data-v", "")
            yield f"{where}, {line}, {column}", _place(Sort.CELL, cell.text, _exact(cell), raw)


def _said_once(found: Node, section: str) -> Iterator[tuple[str, Place]]:
    """Yield what is said once of all rows of a table, by the table's workload and the columns."""
    where = f"{section}: {found.attrs['data-case']}, in every row"
    yield f"{where}: markup dl", _place(Sort.MARKUP, "", _opening(found))
    for column in found.elements:
        raw = " ".join(child.attrs.get("data-v", "") for child in column.elements)
        yield f"{where}, {column.attrs.get('data-f', '')}", _place(Sort.CELL, column.text, _exact(column), raw)


def _heads(cells: Sequence[Node]) -> Iterator[str]:
    last = ""
    for cell in cells:
        text = cell.attrs.get("data-f") or cell.text
        if text.startswith("\u00f7") and last:  # it belongs to the column before it
            text = f"{last} {text}"
        else:
            last = text
        yield text


def _line_head(cells: Sequence[Node]) -> str:
    head = next((cell for cell in cells if cell.tag == "th"), cells[0] if cells else None)
    return head.text if head is not None else ""


# ---- embedded data ----


def _data(script: Node) -> Iterator[tuple[str, Place]]:
    """Yield every value of the embedded data by its path; items of lists go by what names them."""
    text = "".join(child for child in script.children if isinstance(child, str))
    try:
        value = json.loads(text)
    except ValueError:
        yield "data", Place(Sort.DATA, text[:60], text, ())
        return
    yield "data: markup script", _place(Sort.MARKUP, "", _opening(script))
    yield from _values(value, "data")


def _values(value: object, path: str) -> Iterator[tuple[str, Place]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _values(item, f"{path}, {key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            named = item if isinstance(item, Mapping) else {}
            own = next((str(named[key]) for key in _ITEM_KEYS if key in named), str(number + 1))
            yield from _values(item, f"{path}, {own}")
    else:
        shown = json.dumps(value, ensure_ascii=False)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        yield path, Place(Sort.DATA, shown, shown, (shown,) if is_number else ())
