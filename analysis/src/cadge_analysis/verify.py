# SPDX-License-Identifier: BSD-3-Clause
"""Compares a report with one that was made again of its campaign's raw records.

Both are the same bytes where one program made them; else each place at which something is said is named, and compared.
A cell is named by its table, row and column, embedded data by its path, a sentence and a part of a chart by where it
stands. A report of another revision may word and draw otherwise: there a number that differs in a cell or in embedded
data is a difference, and a sentence agrees where ours says the very same one, as often. What is left over on either
side could not be compared; it is counted and named.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from html.parser import HTMLParser

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError
from cadge_analysis.making import program
from cadge_analysis.page.embed import DAMAGED, SCHEMA, upgraded
from cadge_analysis.page.pages import PAGE_SCHEMA

say = partial(messages.say, "verify")

_DATA = re.compile(r'<script\b[^>]*\bid="data"[^>]*>(.*?)</script>', re.DOTALL)
_NUMBER = re.compile(r"[-\u2212]?\d+(?:[.\u202f,]\d+)*(?:[eE][+-]?\d+)?")
_NOTHING = "nothing"
_PARTS = ("section", "nav", "header", "footer")
_IN_LINE = (
    "a",
    "abbr",
    "b",
    "bdi",
    "br",
    "code",
    "em",
    "i",
    "kbd",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "svg",
    "use",
)
"""Elements that end no sentence."""
_DRAWN = ("d", "transform", "x", "y", "points")
_ITEM_KEYS = ("point_id", "launch_id", "series", "label", "name")


class Sort(StrEnum):
    """What stands at a place; the words are a reader's."""

    CELL = "tables"
    DATA = "embedded data"
    CHART = "charts"
    TEXT = "sentences"


@dataclass(frozen=True, slots=True)
class Place:
    """What a reader sees at a place, and the numbers that stand there; of a cell also its raw ones."""

    sort: Sort
    shown: str
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceDifference:
    """A place at which both do not say the same."""

    place: str
    printed: str
    recomputed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCheck:
    """The outcome.

    `recomputed`: how many numbers agree, by where they stand; `unchecked`: places that could not be compared;
    `left_out`: pages that are not there and do not claim to be.
    """

    recomputed: Mapping[Sort, int]
    differences: tuple[PlaceDifference, ...] = ()
    unchecked: tuple[str, ...] = ()
    same_program: bool = True
    left_out: tuple[str, ...] = ()

    @property
    def numbers(self) -> int:
        """How many numbers were recomputed, and agree."""
        return sum(self.recomputed.values())

    @property
    def agrees(self) -> bool:
        """True where every number that is there was recomputed, and no place differs."""
        return not self.differences and not self.unchecked


@dataclass(frozen=True, slots=True)
class PrintedReport:
    """A report as it lies there. `data`: what is embedded in it."""

    text: str
    data: Mapping[str, object]

    @property
    def campaign_id(self) -> str:
        """The campaign that it says it is of."""
        return str(self.data.get("campaign_id", ""))

    @property
    def pages(self) -> tuple[str, ...]:
        """The file names of the pages beside it, where it is the main file of several."""
        found = self.data.get("pages")
        names = found.values() if isinstance(found, Mapping) else ()
        return tuple(name for name in names if isinstance(name, str))

    @property
    def part_of(self) -> str:
        """The name of the main file, where it is one of its pages."""
        return str(self.data.get("report", "")) if self.data.get("schema") == PAGE_SCHEMA else ""

    @property
    def making(self) -> Mapping[str, object]:
        """What it says it was made with."""
        found = self.data.get("making")
        return found if isinstance(found, Mapping) else {}


def printed(text: str, source: str) -> PrintedReport:
    """Return a report with its embedded data. Raises BadInputError for what is none."""
    found = _DATA.findall(text)
    if len(found) != 1:
        raise BadInputError(say("check.no_report", source=source, n=len(found) or "no"))
    try:
        data = upgraded(json.loads(found[0]))
    except (RecursionError, *DAMAGED) as error:
        raise BadInputError(say("check.data_unreadable", source=source, error=error)) from error
    if not isinstance(data, Mapping) or data.get("schema") not in (SCHEMA, PAGE_SCHEMA):
        raise BadInputError(say("check.another_schema", source=source, schema=SCHEMA))
    return PrintedReport(text, data)


# ---- both compared ----


def check_all(reports: Mapping[str, str], anew: Mapping[str, str], elsewhere: Collection[str] = ()) -> ReportCheck:
    """Compare the text of each file of a report with the one that its campaign gives anew.

    Places begin with the name of their file where there are several. `elsewhere`: pages that an excerpt says lie in its
    archive. Raises BadInputError.
    """
    found = {name: check(printed(reports[name], name), text) for name, text in anew.items() if name in reports}
    if len(anew) == 1 and reports.keys() == anew.keys():
        return next(iter(found.values()))
    page = partial(PlaceDifference, printed=_NOTHING, recomputed="a page")
    return ReportCheck(
        recomputed=sum((Counter(one.recomputed) for one in found.values()), Counter()),
        differences=(
            *(replace(it, place=f"{name}: {it.place}") for name, one in found.items() for it in one.differences),
            *(page(place=name) for name in anew if name not in reports and name not in elsewhere),
            *(page(place=name, printed="a page", recomputed=_NOTHING) for name in reports if name not in anew),
        ),
        unchecked=tuple(f"{name}: {place}" for name, one in found.items() for place in one.unchecked),
        left_out=tuple(name for name in anew if name in elsewhere),
        same_program=all(one.same_program for one in found.values()),
    )


def check(report: PrintedReport, anew: str) -> ReportCheck:
    """Compare a report with the one that its campaign gives anew."""
    ours = places(anew)
    if report.text == anew:
        return ReportCheck(recomputed=_counted(ours.values()))
    theirs = places(report.text)
    agree = _counted(place for name, place in theirs.items() if ours.get(name) == place)
    names = dict.fromkeys((*theirs, *ours))
    apart = [name for name in names if theirs.get(name) != ours.get(name)]
    moved = _movable(theirs, apart) & _movable(ours, apart)  # the same sentence, after more or fewer than here
    agree += _counted(moved.elements())
    printed_only, ours_only = _remaining(theirs, apart, moved), _remaining(ours, apart, moved)
    left = [name for name in apart if name in printed_only or name in ours_only]
    if report.making.get("program") == program():
        exact = tuple(_difference(name, printed_only.get(name), ours_only.get(name)) for name in left)
        return ReportCheck(recomputed=agree, differences=exact or (_first_bytes(report.text, anew),))
    left = [name for name in left if not name.startswith("data, making,")]
    wrong = [name for name in left if _is_another_number(printed_only.get(name), ours_only.get(name))]
    return ReportCheck(
        recomputed=agree,
        differences=tuple(_difference(name, printed_only[name], ours_only[name]) for name in wrong),
        unchecked=tuple(name for name in left if name not in set(wrong)),
        same_program=False,
    )


def _counted(found: Iterator[Place] | Collection[Place]) -> Counter[Sort]:
    """Return how many numbers stand there, by what stands at their places."""
    numbers: Counter[Sort] = Counter()
    for place in found:
        numbers[place.sort] += len(place.numbers)
    return numbers


def _is_another_number(here: Place | None, there: Place | None) -> bool:
    if here is None or there is None or here.sort not in (Sort.CELL, Sort.DATA):
        return False
    return here.numbers != there.numbers


def _movable(found: Mapping[str, Place], names: Sequence[str]) -> Counter[Place]:
    at = (found[name] for name in names if name in found)
    return Counter(place for place in at if place.sort in (Sort.TEXT, Sort.CHART))


def _remaining(found: Mapping[str, Place], names: Sequence[str], moved: Counter[Place]) -> dict[str, Place]:
    """Return the places of these names that are not among those which moved."""
    spare = moved.copy()
    remaining = {}
    for name in names:
        if (place := found.get(name)) is not None and not spare[place]:
            remaining[name] = place
        elif place is not None:
            spare[place] -= 1
    return remaining


def _difference(name: str, here: Place | None, there: Place | None) -> PlaceDifference:
    """Return a difference as a reader sees it; where both look alike, with all numbers behind what is seen."""
    by_raw = here is not None and there is not None and here.shown == there.shown
    shown = [_NOTHING if one is None else " ".join(one.numbers) if by_raw else one.shown for one in (here, there)]
    return PlaceDifference(place=name, printed=shown[0], recomputed=shown[1])


def _first_bytes(text: str, anew: str) -> PlaceDifference:
    """Return the first bytes that differ, of two reports that say the same at each place."""
    pairs = enumerate(zip(text, anew, strict=False))
    at = next((n for n, pair in pairs if pair[0] != pair[1]), min(len(text), len(anew)))
    line = text.count("\n", 0, at) + 1
    around = [one[max(0, at - 20) : at + 40] for one in (text, anew)]
    return PlaceDifference(place=say("check.line", line=line), printed=around[0], recomputed=around[1])


def words_of(found: ReportCheck) -> Iterator[str]:
    """Yield the outcome in lines: first the whole, then each place."""
    parts = ", ".join(f"{count} in {sort}" for sort, count in found.recomputed.items() if count)
    whole = f"{found.numbers} numbers recomputed"
    if not found.same_program:
        whole = say("check.another_version", whole=whole)
    if found.agrees:
        yield f"{whole}, all agree ({parts})"
    elif found.differences:
        yield say("check.differs", whole=whole, n=len(found.differences))
    else:
        yield say("check.agrees", whole=whole)
    for one in found.differences:
        yield f"{one.place}: printed {one.printed!r}, recomputed {one.recomputed!r}"
    if found.unchecked:
        yield say("check.not_recomputed", n=len(found.unchecked), unchecked=found.unchecked[:3])
    if found.left_out:
        yield say("check.left_out", n=len(found.left_out), left_out=found.left_out)


# ---- the places of one ----


def places(text: str) -> dict[str, Place]:
    """Return every place of a report by its name; equal names are numbered."""
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


class _Reader(HTMLParser):
    """Gathers text, raw values and what is drawn until an element begins or ends that is not one of a line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, Place]] = []
        self._sections = ["head"]
        self._tag, self._name, self._sort = "", "head", Sort.TEXT
        self._texts: list[str] = []
        self._raw: list[str] = []
        self._chart = self._table = self._point = ""
        self._heads: list[str] = []
        self._row: list[tuple[str, str, Place]] = []
        self._whole = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        attrs = {name: value or "" for name, value in attributes}
        if tag == "svg" and attrs.get("class") == "chart":
            self.end()
            self._chart = "chart"
        if not self._whole and (self._chart or tag not in _IN_LINE):
            self._begin(tag, attrs)
        elif "data-v" in attrs:
            self._raw.append(attrs["data-v"])

    def _begin(self, tag: str, attrs: Mapping[str, str]) -> None:
        self.end()
        if tag in _PARTS:
            self._sections.append(attrs.get("id") or (self._sections[-1] if tag == "section" else tag))
        section = self._sections[-1]
        self._tag, self._name, self._sort = tag, f"{section}: {tag}", Sort.TEXT
        self._raw = [attrs[name] for name in (_DRAWN if self._chart else ("data-v",)) if name in attrs]
        if self._chart:
            self._sort = Sort.CHART
        elif tag in ("div", "table"):
            named = attrs.get("aria-label") or attrs.get("aria-labelledby", "").removesuffix("-t")
            self._table = named or (self._table if tag == "table" else "")
            self._heads = []
        elif tag == "tr":
            self._row, self._point = [], attrs.get("data-point", "")
        elif tag in ("td", "th"):
            self._whole, self._name = tag, attrs.get("data-f", "")
        elif tag == "script":
            self._tag = "data" if attrs.get("type") == "application/json" else tag

    def handle_data(self, data: str) -> None:
        self._texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag not in (self._whole, "tr", "table") if self._whole else tag in _IN_LINE and not self._chart:
            return
        self.end()
        self._name, self._tag = f"{self._sections[-1]}: text", ""
        if tag == "svg":
            self._chart = ""
        elif tag == "tr":
            self._end_row()
        elif tag in _PARTS and len(self._sections) > 1:
            self._sections.pop()

    def end(self) -> None:
        """End what was gathered: it becomes a place, or a cell of the row."""
        text, raw, tag = "".join(self._texts), " ".join(self._raw), self._tag
        self._texts, self._raw, self._tag = [], [], ""
        if tag == "data":
            self.found += _data(text)
        if tag in ("script", "style", "data"):
            return
        shown = re.sub(r"[ \t\r\n]+", " ", text).strip(" ")  # U+202F and U+00A0 hold a number together
        self._whole = ""
        if tag in ("td", "th"):
            self._row.append((tag, self._name, Place(Sort.CELL, shown, tuple(_NUMBER.findall(shown) + raw.split()))))
        elif self._chart:
            if tag == "title" and self._chart == "chart":
                self._chart = f"chart \u201c{shown}\u201d"
            if shown or raw:
                place = Place(Sort.CHART, shown or raw, tuple(_NUMBER.findall(f"{raw} {shown}")))
                self.found.append((f"{self._sections[-1]}: {self._chart}, {tag or 'text'}", place))
        elif shown or raw:
            if tag == "caption":
                self._table = shown
            self.found.append((self._name, Place(self._sort, shown, tuple(_NUMBER.findall(shown) + raw.split()))))

    def _end_row(self) -> None:
        cells, self._row = self._row, []
        table = ": ".join(filter(None, (self._sections[-1], self._table)))
        if cells and not self._heads and all(tag == "th" for tag, _, _ in cells):
            self._heads = list(_heads(cells))
            self.found += [(f"{table}: heads", replace(place, sort=Sort.TEXT)) for _, _, place in cells]
            return
        head = next((place.shown for tag, _, place in cells if tag == "th"), cells[0][2].shown if cells else "")
        line = " ".join(filter(None, (head, self._point)))
        for number, (_, _, place) in enumerate(cells):
            column = self._heads[number] if number < len(self._heads) else str(number + 1)
            self.found.append((f"{table}, {line}, {column}", place))


def _heads(cells: Sequence[tuple[str, str, Place]]) -> Iterator[str]:
    last = ""
    for _, name, place in cells:
        text = name or place.shown
        if text.startswith("\u00f7") and last:  # it belongs to the column before it
            text = f"{last} {text}"
        else:
            last = text
        yield text


def _data(text: str) -> Iterator[tuple[str, Place]]:
    try:
        value = upgraded(json.loads(text))
    except DAMAGED:
        return iter([("data", Place(Sort.DATA, text[:60], ()))])
    return _values(value, "data")


def _values(value: object, path: str) -> Iterator[tuple[str, Place]]:
    """Yield every value of the embedded data by its path; items of lists go by what names them."""
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
