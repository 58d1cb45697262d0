# SPDX-License-Identifier: BSD-3-Clause
"""Every place of a report at which something is said, with a name that another report of the campaign has for it too.

A cell of a table is named by its section and table, row and column, a number of the embedded data by its point and
launch: those names outlive a new version that words sentences otherwise or draws charts afresh. A sentence and a part
of a chart are named by where they stand, which holds between two reports of one version alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from html.parser import HTMLParser

from cadge_analysis.page.embed import upgraded

NUMBER = re.compile(r"\d+(?:[.\u202f,]\d+)*(?:[eE][+-]?\d+)?")
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6", "title", "legend", "summary", "figcaption"}
_WHOLE = {*_HEADINGS, "p", "li", "dt", "dd", "label", "pre", "option", "button"}
"""Elements whose text is one place, with that of all elements in them."""
_HELD = ("td", "th", "caption", "script", "style")
_PARTS = ("section", "nav", "header", "footer")
_DRAWN = ("d", "transform", "x", "y", "points")
_ITEM_KEYS = ("point_id", "launch_id", "series", "label", "name")


class Sort(StrEnum):
    """What stands at a place; the words are a reader's."""

    CELL = "in tables"
    DATA = "in the embedded data"
    CHART = "in charts"
    TEXT = "in sentences"


@dataclass(frozen=True, slots=True)
class Place:
    """What a reader sees at a place, and the numbers that stand there; of a cell also its raw ones."""

    sort: Sort
    shown: str
    numbers: tuple[str, ...]


@dataclass(slots=True)
class _Held:
    """An element whose text and raw values are one place: `attrs` are its own."""

    depth: int
    tag: str
    attrs: Mapping[str, str]
    texts: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return _spaced(" ".join(self.texts))

    def place(self, sort: Sort) -> Place:
        return Place(sort, self.text, (*NUMBER.findall(self.text), *" ".join(self.raw).split()))


@dataclass(slots=True)
class _Part:
    """An element of a chart."""

    tag: str
    attrs: Mapping[str, str]
    text: str = ""


def places(text: str) -> dict[str, Place]:
    """Return every place of a report by its name; equal names are told apart by their order."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.end()
    found: dict[str, Place] = {}
    often: Counter[str] = Counter()
    for name, place in reader.found:
        often[name] += 1
        found[name if often[name] == 1 else f"{name}, number {often[name]}"] = place
    return found


def counted(found: Mapping[str, Place]) -> Counter[Sort]:
    """Return how many numbers stand there, by what stands at their places."""
    numbers: Counter[Sort] = Counter()
    for place in found.values():
        numbers[place.sort] += len(place.numbers)
    return numbers


class _Reader(HTMLParser):
    """Keeps the elements that are open as (tag, section, name of the table), and no others."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, Place]] = []
        self._open: list[tuple[str, str, str]] = [("document", "head", "")]
        self._how_many: Counter[str] = Counter()
        self._held: _Held | None = None
        self._chart: list[_Part] = []
        self._chart_depth = 0
        self._said_once = ""
        self._table = ""
        self._heads: list[str] = []
        self._row: list[_Held] = []
        self._row_point = ""

    @property
    def _section(self) -> str:
        return self._open[-1][1]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        attrs = {name: value or "" for name, value in attributes}
        _, section, named = self._open[-1]
        if tag in _PARTS:
            section = attrs.get("id") or (section if tag == "section" else tag)
        if tag not in _VOID:
            self._how_many[tag] += 1
            self._open.append((tag, section, attrs.get("aria-label") or named))
        if self._chart:
            self._chart.append(_Part(tag, attrs))
        elif self._held is not None:
            self._held.raw.append(attrs.get("data-v", ""))
        else:
            self._begin(tag, attrs)

    def _begin(self, tag: str, attrs: Mapping[str, str]) -> None:
        depth = len(self._open)
        if tag == "svg":
            self._chart, self._chart_depth = [_Part(tag, attrs)], depth
        elif tag == "table":
            _, section, named = self._open[-1]
            self._table, self._heads = f"{section}: {named}" if named else section, []
        elif tag == "tr":
            self._row, self._row_point = [], attrs.get("data-point", "")
        elif tag == "dl" and "data-case" in attrs:
            self._said_once = f"{self._section}: {attrs['data-case']}, in every row"
        elif (
            tag in ("td", "th", "caption", "script", "style")
            or tag in _WHOLE
            or (self._said_once and "data-f" in attrs)
        ):
            self._held = _Held(depth, tag, attrs, raw=[attrs.get("data-v", "")])

    def handle_data(self, data: str) -> None:
        if self._chart:
            self._chart[-1].text += data
        elif self._held is not None:
            self._held.texts.append(data)
        elif data.strip():
            shown = _spaced(data)
            name = f"{self._section}: text in {self._open[-1][0]}"
            self.found.append((name, Place(Sort.TEXT, shown, tuple(NUMBER.findall(shown)))))

    def handle_endtag(self, tag: str) -> None:
        if self._how_many[tag]:
            while self._close() != tag:
                pass

    def end(self) -> None:
        """End what the document left open."""
        while len(self._open) > 1:
            self._close()

    def _close(self) -> str:
        depth = len(self._open)
        if self._chart and self._chart_depth == depth:
            self.found += _chart(self._chart, self._section)
            self._chart = []
        elif self._held is not None and self._held.depth == depth:
            self._let_go(self._held)
            self._held = None
        tag = self._open.pop()[0]
        self._how_many[tag] -= 1
        if tag == "tr":
            self._end_row()
        elif tag == "dl":
            self._said_once = ""
        return tag

    def _let_go(self, held: _Held) -> None:
        if held.tag in ("td", "th"):
            self._row.append(held)
        elif held.tag == "script" and held.attrs.get("type") == "application/json":
            self.found += _data("".join(held.texts))
        elif held.tag not in ("script", "style"):
            if held.tag == "caption" and self._table == self._section:
                self._table = f"{self._section}: {held.text}"
            once = self._said_once and held.attrs.get("data-f")
            name = f"{self._said_once}, {held.attrs['data-f']}" if once else f"{self._section}: {held.tag}"
            self.found.append((name, held.place(Sort.CELL if once else Sort.TEXT)))

    def _end_row(self) -> None:
        cells, self._row = self._row, []
        if cells and not self._heads and all(cell.tag == "th" for cell in cells):
            self._heads = list(_heads(cells))
            self.found += [(f"{self._table}: heads", cell.place(Sort.TEXT)) for cell in cells]
            return
        head = next((cell for cell in cells if cell.tag == "th"), cells[0] if cells else None)
        line = " ".join(filter(None, (head.text if head else "", self._row_point)))
        for number, cell in enumerate(cells):
            column = self._heads[number] if number < len(self._heads) else str(number + 1)
            self.found.append((f"{self._table}, {line}, {column}", cell.place(Sort.CELL)))


def _spaced(text: str) -> str:
    """Return a text with single spaces; one that holds a number together (U+202F, U+00A0) stays as it is."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip(" ")


def _heads(cells: Sequence[_Held]) -> Iterator[str]:
    last = ""
    for cell in cells:
        text = cell.attrs.get("data-f") or cell.text
        if text.startswith("\u00f7") and last:  # it belongs to the column before it
            text = f"{last} {text}"
        else:
            last = text
        yield text


def _chart(parts: Sequence[_Part], section: str) -> Iterator[tuple[str, Place]]:
    """Yield every element of a picture: its attributes hold what is drawn. A mark has no title, and says nothing."""
    title = next((one.text.strip() for one in parts if one.tag == "title"), "")
    for one in parts if title else ():
        drawn = " ".join(value for key, value in one.attrs.items() if key in _DRAWN)
        shown = one.text.strip() or drawn
        place = Place(Sort.CHART, shown, tuple(NUMBER.findall(f"{drawn} {one.text}")))
        yield f"{section}: chart \u201c{title}\u201d, {one.tag}", place


def _data(text: str) -> Iterator[tuple[str, Place]]:
    """Yield every value of the embedded data by its path; items of lists go by what names them."""
    try:
        value = upgraded(json.loads(text))
    except ValueError:
        yield "data", Place(Sort.DATA, text[:60], ())
        return
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
        yield path, Place(Sort.DATA, shown, (shown,) if is_number else ())
