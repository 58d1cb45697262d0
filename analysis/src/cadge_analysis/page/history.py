# SPDX-License-Identifier: BSD-3-Clause
"""The page of campaigns over time: what changed when, the machine beside it, and what else changed then."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from cadge_analysis import messages, units
from cadge_analysis.blocks.model import (
    Block,
    Command,
    DataTable,
    Document,
    Fact,
    Facts,
    Item,
    Items,
    PanelFigure,
    Region,
    Span,
    Table,
    plain,
    plain_table,
    sections_of,
)
from cadge_analysis.draw import palette, svg
from cadge_analysis.draw.course import CourseChart, CourseMark, Level, course_chart
from cadge_analysis.draw.palette import Identity
from cadge_analysis.page import provenance
from cadge_analysis.page.beside_charts import key_of
from cadge_analysis.page.sheet import dressed
from cadge_analysis.page.viewmodel import Remark
from cadge_analysis.page.warned import banner
from cadge_analysis.stats.change_points import LEAST, SHUFFLES
from cadge_analysis.versus.history import Course, Event, History, Turn
from cadge_analysis.versus.history_data import document

CHANGED_MOST = 24
OTHERS_MOST = 12
NAMED_MOST = 3


@dataclass(frozen=True)
class _Drawing:
    """A history, and what all its charts have in common."""

    found: History
    looks: Mapping[str, Identity]
    dates: tuple[str, ...]
    numbers: Mapping[int, str]
    """What events of a campaign are called in charts: their campaign's number, counted from 1."""


def page(found: History, *, generated: str) -> Document:
    """Return the page. `generated`: its time stamp."""
    looks = palette.identities({series for side in found.campaigns for series in side.data.layers})
    by_label = {series.label: look for series, look in looks.items()}
    dates = tuple(f"{provenance.moment(side.data.meta.created_utc):%d %b}" for side in found.campaigns)
    drawing = _Drawing(found, by_label, dates, {one.at: str(one.at + 1) for one in found.events})
    command = shlex.join(
        [
            "cadge",
            "history",
            *(side.data.campaign_id for side in found.campaigns),
            "--margin",
            f"{100 * found.margin:g}%",
            "--format",
            "html",
        ]
    )
    blocks = (
        Region(
            id="answer",
            title="Answer",
            role="first",
            blocks=(Items(tuple(_findings(found)), "found"), plain(_say("legend"), "dim")),
        ),
        *_courses(drawing),
        Region(
            id="campaigns",
            title="Campaigns",
            blocks=(*_campaigns(found), plain(_say("again")), Command(command, label="Command")),
        ),
        Region(id="method", title="Method", blocks=(Facts(tuple(_method(found))),)),
    )
    remarks = tuple(_remarks(found))
    return Document(
        title=f"{units.count_of(len(found.campaigns), 'campaign')} over time",
        kicker=(Span("Cadge history"),),
        deck=_deck(found),
        styles=("part/beside.css",),
        sections=sections_of(blocks),
        banner=banner(_verdict(found), remarks) if remarks else (),
        blocks=blocks,
        sheet=dressed((), command, document(found), generated=generated, looks=by_label.values()),
        carried=_say("carried"),
    )


def _say(key: str) -> str:
    return messages.say("history", key)


def _courses(drawing: _Drawing) -> Iterator[Region]:
    """Yield the courses: of the machine, of what changed, of what lies farthest apart unchanged; and events."""
    found = drawing.found
    if found.machine:
        yield _panels("machine", _say("machine"), [_figure(found.machine, drawing, "machine")], short="Machine")
    if found.changed:
        changed = found.changed[:CHANGED_MOST]
        more = len(found.changed) - len(changed)
        text = f"{units.count_of(more, 'cell')} more that changed stand in the table." if more > 0 else ""
        figures = [_figure(one, drawing, f"changed-{at}") for at, one in enumerate(changed)]
        yield _panels("changed", _say("changed"), figures, text, after=_changes(found))
    rest = [one for one in found.courses if not one.turns]
    rest.sort(key=lambda one: (-_spread(one), one.name))
    if others := rest[:OTHERS_MOST]:
        text = (
            f"{len(others)} of {units.count_of(len(rest), 'cell')} in which no change was found: those whose values "
            "lie farthest apart."
        )
        figures = [_figure(one, drawing, f"other-{at}") for at, one in enumerate(others)]
        yield _panels("others", _say("others"), figures, text, short="What did not")
    if found.events:
        yield Region(id="events", title=_say("events"), short="Events", blocks=(_events(found),))


def _panels(
    name: str,
    title: str,
    figures: Sequence[PanelFigure],
    text: str = "",
    *,
    short: str = "",
    after: Sequence[Table] = (),
) -> Region:
    note = (plain(text),) if text else ()
    return Region(
        id=name, title=title, short=short, blocks=(*note, Region(blocks=tuple(figures), role="panels"), *after)
    )


def _spread(course: Course) -> float:
    values = [stop.value for stop in course.stops]
    return log(max(values) / min(values))


def _deck(found: History) -> str:
    first, last = (provenance.moment(found.campaigns[at].data.meta.created_utc) for at in (0, -1))
    cells = units.count_of(len(found.courses), "cell")
    return f"{cells} in two or more of them; {units.day(first)} to {units.day(last)}."


def _verdict(found: History) -> str:
    if found.testable < len(found.courses):
        if not found.testable:
            return "Too few campaigns to tell a change"
        return "Some cells have too few campaigns to tell a change"
    return "Every cell has enough campaigns to tell a change"


def missing(found: History) -> str:
    """Return what is missing to tell a change; empty where nothing is."""
    lacking = len(found.courses) - found.testable
    if not lacking:
        return ""
    have = max((len(one.stops) for one in found.courses), default=0)
    return (
        f"{units.count_of(lacking, 'cell has', 'cells have')} fewer than {found.needed} comparable campaigns (the most "
        f"that a cell has is {have}): with fewer, values without any change stand in such an order more often than in "
        f"{units.percent(found.level, 0)} of all cases. `cadge compare` judges two campaigns launch by launch"
    )


def _remarks(found: History) -> Iterator[Remark]:
    said = missing(found)
    if said:
        yield Remark(grave=True, title=f"{found.needed} campaigns are needed", text=f"{said}.")
    if found.left:
        why, often = next(iter(found.left.items()))
        more = f"; and {units.count_of(len(found.left) - 1, 'further reason')}" if len(found.left) > 1 else ""
        text = f"{units.count_of(often, 'value')}: {why}{more}. They are in no course, and in the table below."
        yield Remark(grave=True, title="Not comparable with the newest campaign", text=text)


def _findings(found: History) -> Iterator[Item]:
    by_campaign: Counter[int] = Counter(turn.at for one in found.changed for turn in one.turns)
    if not by_campaign:
        about = units.count_of(found.testable, "cell that has", "cells that have")
        head = f"No change was found in {about} enough campaigns" if found.testable else "No cell can be told"
        yield Item(kind="none", spans=(Span(f"{head}.", strong=True),))
    for at, often in sorted(by_campaign.items(), reverse=True):
        yield _at_campaign(found, at, often)
    if by_campaign:
        text = (
            f"Of {units.count_of(found.testable, 'cell')} without any change {units.sig3(found.by_chance)} at most are "
            "expected to show one by chance."
        )
        yield Item(kind="chance", spans=(Span(text),))


def _at_campaign(found: History, at: int, often: int) -> Item:
    here = [(one, turn) for one in found.changed for turn in one.turns if turn.at == at]
    worse = sum(one.worse(turn) for one, turn in here)
    ways = ", ".join(
        f"{units.grouped(number)} for the {way}"
        for number, way in ((worse, "worse"), (often - worse, "better"))
        if number
    )
    spans = [
        Span(f"From {called(found, at)} on", strong=True),
        Span(f" {units.count_of(often, 'cell')} changed, {ways}: "),
    ]
    named = sorted(here, key=lambda pair: -abs(log(pair[1].ratio)))[:NAMED_MOST]
    spans.append(Span("; ".join(f"{one.name} {units.times(turn.ratio)} ({way(one, turn)})" for one, turn in named)))
    rest = len(here) - len(named)
    spans.append(Span(f"; and {units.grouped(rest)} more" if rest > 0 else ""))
    if found.machine_turned(at):
        spans.append(Span(". Floors changed there as well, without any layer: it may be the machine"))
    events = [one for one in found.events if one.at == at]
    if events:
        said = "; ".join(f"{one.what} {one.first or 'nothing'}, then {one.second or 'nothing'}" for one in events[:2])
        more = f"; and {units.count_of(len(events) - 2, 'condition')} more" if len(events) > 2 else ""
        spans.append(Span(f". What else changed there: {said}{more}"))
    chance = often <= found.by_chance
    spans.append(Span(". So many would be found by chance alone." if chance else "."))
    return Item(kind="change", role="grave" if worse > 0 and not chance else "", spans=tuple(spans))


def called(found: History, at: int) -> str:
    """Return what a campaign is called in sentences: its number, counted from 1, and its name."""
    return f"campaign {at + 1} ({found.campaigns[at].name})"


def way(course: Course, turn: Turn) -> str:
    """Return whether a change is for the better."""
    return "worse" if course.worse(turn) else "better"


def _figure(course: Course, drawing: _Drawing, name: str) -> PanelFigure:
    turns = [turn.at for turn in course.turns]
    ends = [-0.5, *(at - 0.5 for at in turns), len(drawing.dates) - 0.5]
    middles = [*(turn.before for turn in course.turns[:1]), *(turn.after for turn in course.turns)]
    events = {one.at: drawing.numbers[one.at] for one in drawing.found.events_of(course.series)}
    chart = CourseChart(
        title=course.unit or units.TIMES,
        look=drawing.looks[course.series] if course.series else None,
        names=drawing.dates,
        marks=tuple(CourseMark(at=one.at, value=one.value, low=one.low, high=one.high) for one in course.stops),
        levels=tuple(
            Level(begin=begin, end=end, value=value)
            for (begin, end), value in zip(pairwise(ends), middles, strict=False)
        ),
        turns=tuple(turns),
        events=events,
    )
    title = course.name
    return PanelFigure(
        name=f"course-{name}",
        title=title,
        key=key_of(course.series, drawing.looks[course.series]) if course.series else None,
        svg=svg.render(
            course_chart(chart), name=f"course-{name}", title=title, description=_described(course, drawing)
        ),
        note=_note(course, drawing),
        table=DataTable(
            columns=("campaign", course.unit or "times"),
            rows=tuple(
                (drawing.found.campaigns[one.at].name, _value(one.value, one.low, one.high)) for one in course.stops
            ),
        ),
    )


def _value(value: float, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" {units.interval(units.sig3(low), units.sig3(high))}"
    return f"{units.sig3(value)}{ends}"


def _note(course: Course, drawing: _Drawing) -> str:
    if course.turns:
        said = "; ".join(_said(turn, drawing.found) for turn in course.turns)
        better = "less is better" if course.better == "low" else "more is better"
        return f"{said}; {better}."
    if len(course.stops) < drawing.found.needed:
        return f"{units.count_of(len(course.stops), 'campaign')}: a change cannot be told."
    return "No change was found."


def _said(turn: Turn, found: History) -> str:
    too = ", and floors changed there too" if found.machine_turned(turn.at) else ""
    return (
        f"{units.times(turn.ratio)} from campaign {turn.at + 1} on ({units.sig3(turn.before)}, then "
        f"{units.sig3(turn.after)}; p {turn.p:.2g}){too}"
    )


def _described(course: Course, drawing: _Drawing) -> str:
    first, last = course.stops[0], course.stops[-1]
    text = (
        f"{units.count_of(len(course.stops), 'campaign')}, from {units.sig3(first.value)} to {units.sig3(last.value)} "
    )
    return f"{text}{course.unit}. {_note(course, drawing)}"


# ---- tables ----


def change_rows(found: History) -> Iterator[tuple[Course, Turn, str]]:
    """Yield every change, the farthest cell first, with what else changed there."""
    for one in found.changed:
        for turn in one.turns:
            said = "; ".join(event.what for event in found.events_of(one.series) if event.at == turn.at)
            yield one, turn, said


def _changes(found: History) -> tuple[Table, ...]:
    rows = tuple(
        (
            one.name,
            f"{turn.at + 1}: {found.campaigns[turn.at].name}",
            units.times(turn.ratio),
            way(one, turn),
            f"{units.sig3(turn.before)} {one.unit}",
            f"{units.sig3(turn.after)} {one.unit}",
            f"{turn.p:.2g}",
            "; ".join(filter(None, ("floors as well" if found.machine_turned(turn.at) else "", said))),
        )
        for one, turn, said in change_rows(found)
    )
    heads = ("cell", "from campaign", "after / before", "which is", "before", "after", "p", "what else changed there")
    return (plain_table("Every change that was found", heads, rows),) if rows else ()


def _events(found: History) -> Table:
    def row(one: Event) -> tuple[str, ...]:
        where = f"{one.at + 1}: {found.campaigns[one.at].name}"
        return where, one.what, one.first or "nothing", one.second or "nothing"

    return plain_table("Events", ("from campaign", "what", "before", "from then on"), map(row, found.events))


def _campaigns(found: History) -> Iterator[Block]:
    rows = tuple(
        (
            f"{at}",
            side.data.campaign_id,
            side.data.meta.created_utc,
            side.data.meta.sweep,
            f"{side.data.meta.tool.version} {side.data.meta.tool.revision}",
            units.grouped(side.data.rounds),
            units.grouped(len(side.numbers)),
        )
        for at, side in enumerate(found.campaigns, 1)
    )
    heads = ("number", "campaign", "made", "sweep", "cadge", "launches of each", "cells with a number")
    yield plain_table("Campaigns", heads, rows)
    gaps = tuple((one.series, units.grouped(one.cells), _ranges([at + 1 for at in one.at])) for one in found.gaps)
    if gaps:
        yield plain_table("Cells that only some campaigns have", ("layer", "cells", "in campaigns"), gaps)
    left = tuple((why, units.grouped(often)) for why, often in found.left.items())
    if left:
        title = "Values that are not comparable (first: the earlier campaign, second: the newest)"
        yield plain_table(title, ("why", "values"), left)


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, those that follow each other as a range; `none` of none."""
    starts = [at for at, one in enumerate(numbers) if at == 0 or numbers[at - 1] != one - 1]
    runs = [numbers[begin:end] for begin, end in pairwise([*starts, len(numbers)])]
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs) or "none"


def _method(found: History) -> Iterator[Fact]:
    yield Fact(
        name="Value", text="Of each campaign the median over launches, with its interval: campaigns are what repeats."
    )
    yield Fact(
        name="Change",
        text="E-divisive (Matteson and James 2014) on logarithms: a cut is a change where no more than "
        f"{units.percent(found.level, 0)} of {SHUFFLES} shuffled series are as far apart. A part has at least {LEAST} "
        "campaigns, so that the newest one alone is never a change. With fewer than "
        f"{found.needed} nothing can be told. Levels within {units.percent(found.margin, 0)} of each other count as "
        "the same.",
    )
    yield Fact(
        name="By chance",
        text=f"Each cell is looked at by itself: of a hundred without a change {100 * found.level:g} at most show one.",
    )
    yield Fact(
        name="Wandering",
        text="The method takes campaigns for independent. Where a number wanders from one to the next it finds changes "
        "more often: simulated, in 2 of 100 series of 10 campaigns, in 11 of 14 campaigns, in 30 of 20 "
        "(harness/bench/change_points.py). Look at the course of the machine, and at what else changed.",
    )
    yield Fact(
        name="Comparable",
        text="A value is left out where it was measured on another machine than the newest of its cell, with processes "
        "spread otherwise, or by a pattern that measures something else.",
    )
    yield Fact(
        name="The machine",
        text="Floors have no layer in them: how many times as long they take as in the first campaign that has them.",
    )
