# SPDX-License-Identifier: BSD-3-Clause
"""Holds a report against one that was made anew: byte for byte where both are of one program, else number by number.

A file of this very program has to be the same; its places tell what is not. One of another revision may say the same in
other words and draw it otherwise. Its tables and embedded data are held against ours by name, and a sentence counts as
recomputed where ours says the very same one, as often. What could not be compared is counted and named.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError
from cadge_analysis.making import program
from cadge_analysis.page.embed import SCHEMA, upgraded
from cadge_analysis.page.pages import PAGE_SCHEMA
from cadge_analysis.verify.places import Place, Sort, counted, places

say = partial(messages.say, "verify")

_DATA = re.compile(r'<script\b[^>]*\bid="data"[^>]*>(.*?)</script>', re.DOTALL)
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceDifference:
    """A place at which both do not say the same."""

    place: str
    printed: str
    recomputed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCheck:
    """What came of it.

    `recomputed`: how many numbers agree, by where they stand; `unchecked`: places left over; `left_out`: pages that are
    not there and do not claim to be.
    """

    recomputed: Mapping[Sort, int]
    differences: tuple[PlaceDifference, ...]
    unchecked: tuple[str, ...]
    same_program: bool
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
    except (ValueError, RecursionError) as error:
        raise BadInputError(say("check.data_unreadable", source=source, error=error)) from error
    if not isinstance(data, Mapping) or data.get("schema") not in (SCHEMA, PAGE_SCHEMA):
        raise BadInputError(say("check.another_schema", source=source, schema=SCHEMA))
    return PrintedReport(text, data)


def check_all(reports: Mapping[str, str], anew: Mapping[str, str], elsewhere: Collection[str] = ()) -> ReportCheck:
    """Hold the text of each file of a report against the one that its campaign gives anew, one after another.

    Places begin with the name of their file where there are several. `elsewhere`: pages that an excerpt says lie in its
    archive. Raises BadInputError.
    """
    if len(anew) == 1 and reports.keys() == anew.keys():
        ((name, text),) = anew.items()
        return check(printed(reports[name], name), text)
    found = {name: check(printed(reports[name], name), text) for name, text in anew.items() if name in reports}
    agree: Counter[Sort] = Counter()
    for one in found.values():
        agree.update(one.recomputed)
    differences = [
        replace(difference, place=f"{name}: {difference.place}")
        for name, one in found.items()
        for difference in one.differences
    ]
    absent = [name for name in anew if name not in reports and name not in elsewhere]
    missing = (PlaceDifference(place=name, printed=_NOTHING, recomputed="a page") for name in absent)
    further = (
        PlaceDifference(place=name, printed="a page", recomputed=_NOTHING) for name in reports if name not in anew
    )
    return ReportCheck(
        recomputed=agree,
        differences=(*differences, *missing, *further),
        unchecked=tuple(f"{name}: {place}" for name, one in found.items() for place in one.unchecked),
        left_out=tuple(name for name in anew if name in elsewhere),
        same_program=all(one.same_program for one in found.values()),
    )


def check(report: PrintedReport, anew: str) -> ReportCheck:
    """Hold a report against the one that its campaign gives anew."""
    ours = places(anew)
    if report.text == anew:
        return ReportCheck(recomputed=counted(ours), differences=(), unchecked=(), same_program=True)
    same = report.making.get("program") == program()
    theirs = places(report.text)
    return _exactly(report.text, anew, theirs, ours) if same else _by_name(theirs, ours)


def _exactly(text: str, anew: str, theirs: Mapping[str, Place], ours: Mapping[str, Place]) -> ReportCheck:
    names = (*theirs, *(name for name in ours if name not in theirs))
    apart = [name for name in names if theirs.get(name) != ours.get(name)]
    differences = [_difference(name, theirs.get(name), ours.get(name)) for name in apart] or [_bytes(text, anew)]
    alike = counted({name: place for name, place in theirs.items() if name not in set(apart)})
    return ReportCheck(recomputed=alike, differences=tuple(differences), unchecked=(), same_program=True)


def _by_name(theirs: Mapping[str, Place], ours: Mapping[str, Place]) -> ReportCheck:
    agree: Counter[Sort] = Counter()
    differences: list[PlaceDifference] = []
    unchecked: list[str] = []
    said = Counter((place.sort, place.shown) for place in ours.values())
    for name, here in theirs.items():
        there = ours.get(name)
        if name.startswith("data, making,"):
            continue
        if here.sort in (Sort.CELL, Sort.DATA) and there is not None and here.numbers != there.numbers:
            differences.append(_difference(name, here, there))
        elif said[here.sort, here.shown] if here.sort in (Sort.TEXT, Sort.CHART) else here == there:
            said[here.sort, here.shown] -= 1  # as often as ours says it, and no more
            agree[here.sort] += len(here.numbers)
        else:
            unchecked.append(name)
    return ReportCheck(recomputed=agree, differences=tuple(differences), unchecked=tuple(unchecked), same_program=False)


def _difference(name: str, here: Place | None, there: Place | None) -> PlaceDifference:
    """Return a difference as a reader sees it; where both look alike, with all numbers behind what is seen."""
    by_raw = here is not None and there is not None and here.shown == there.shown
    shown = [_NOTHING if one is None else " ".join(one.numbers) if by_raw else one.shown for one in (here, there)]
    return PlaceDifference(place=name, printed=shown[0], recomputed=shown[1])


def _around(text: str, other: str, most: int = 40) -> str:
    """Return what of a text is not in the other one, with some of what stands before it."""
    at = _first_apart(text, other)
    return text[max(0, at - most // 2) : at + most]


def _first_apart(text: str, other: str) -> int:
    return next((n for n, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1]), len(text))


def _bytes(text: str, anew: str) -> PlaceDifference:
    at = _first_apart(text, anew)
    line = text.count("\n", 0, at) + 1
    return PlaceDifference(
        place=say("check.line", line=line), printed=_around(text, anew), recomputed=_around(anew, text)
    )


def words_of(found: ReportCheck) -> Iterator[str]:
    """Yield what came of it in lines: first the whole, then each place."""
    parts = ", ".join(f"{count} {sort}" for sort, count in found.recomputed.items() if count)
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
