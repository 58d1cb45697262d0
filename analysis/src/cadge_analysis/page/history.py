# SPDX-License-Identifier: BSD-3-Clause
"""The page of campaigns over time: what changed when, the machine beside it, and what else changed then."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import log

from cadge_analysis import messages, units
from cadge_analysis.blocks.make import facts_of, plain, plain_table
from cadge_analysis.blocks.model import (
    Block,
    Command,
    DataTable,
    Fact,
    Facts,
    Item,
    Items,
    PageDocument,
    PanelFigure,
    Region,
    Remark,
    Span,
    Table,
)
from cadge_analysis.draw import palette, svg
from cadge_analysis.draw.course import CourseChart, CourseMark, Level, course_chart
from cadge_analysis.draw.palette import Identity
from cadge_analysis.page.documents import document as document_of
from cadge_analysis.page.figures.beside_charts import key_of, panels
from cadge_analysis.page.parts import provenance
from cadge_analysis.page.parts.warned import validity
from cadge_analysis.page.sheet import dressed
from cadge_analysis.stats.inference.change_points import LEAST, SHUFFLES
from cadge_analysis.versus.history import Course, Event, History, Turn
from cadge_analysis.versus.history_data import document

say = partial(messages.say, "history")

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


def page(found: History, *, generated: str) -> PageDocument:
    """Return the page. `generated`: its time stamp."""
    looks = palette.identities({series for side in found.campaigns for series in side.data.layers})
    by_label = {series.label: look for series, look in looks.items()}
    dates = tuple(f"{provenance.moment(side.data.meta.created_utc):%d %b}" for side in found.campaigns)
    drawing = _Drawing(found, by_label, dates, {one.at: str(one.at + 1) for one in found.events})
    ids = [side.data.campaign_id for side in found.campaigns]
    command = shlex.join(["cadge", "history", *ids, "--margin", f"{100 * found.margin:g}%", "--format", "html"])
    answer = (Items(tuple(_findings(found)), "found"), plain(say("legend"), "dim"))
    campaigns = (*_campaigns(found), plain(say("again")), Command(command, label="Command"))
    blocks = (
        Region(id="answer", title="Answer", role="first", blocks=answer),
        *_courses(drawing),
        Region(id="campaigns", title="Campaigns", blocks=campaigns),
        Region(id="method", title="Method", blocks=(Facts(_method(found)),)),
    )
    remarks = tuple(_remarks(found))
    return document_of(
        blocks,
        kind="history",
        title=f"{units.count_of(len(found.campaigns), 'campaign')} over time",
        deck=_deck(found),
        styles=("part/beside.css",),
        above=(validity(_verdict(found), remarks),) if remarks else (),
        sheet=dressed((), command, document(found), generated=generated, looks=by_label.values()),
        carried=say("carried"),
    )


def _courses(drawing: _Drawing) -> Iterator[Region]:
    """Yield the courses: of the machine, of what changed, of what lies farthest apart unchanged; and events."""
    found = drawing.found
    if found.machine:
        yield panels("machine", say("machine"), [_figure(found.machine, drawing, "machine")], short="Machine")
    if found.changed:
        changed = found.changed[:CHANGED_MOST]
        more = len(found.changed) - len(changed)
        text = say("history.more_cells", more=more) if more > 0 else ""
        figures = [_figure(one, drawing, f"changed-{at}") for at, one in enumerate(changed)]
        region = panels("changed", say("changed"), figures, note=text)
        yield replace(region, blocks=(*region.blocks, *_changes(found)))
    rest = [one for one in found.courses if not one.turns]
    rest.sort(key=lambda one: (-_spread(one), one.name))
    if others := rest[:OTHERS_MOST]:
        text = say("history.unchanged", shown=len(others), cells=len(rest))
        figures = [_figure(one, drawing, f"other-{at}") for at, one in enumerate(others)]
        yield panels("others", say("others"), figures, short="What did not", note=text)
    if found.events:
        yield Region(id="events", title=say("events"), short="Events", blocks=(_events(found),))


def _spread(course: Course) -> float:
    values = [stop.value for stop in course.stops]
    return log(max(values) / min(values))


def _deck(found: History) -> str:
    first, last = (provenance.moment(found.campaigns[at].data.meta.created_utc) for at in (0, -1))
    cells = units.count_of(len(found.courses), "point")
    return say("history.several", cells=cells, first=units.day(first), last=units.day(last))


def _verdict(found: History) -> str:
    if found.testable < len(found.courses):
        if not found.testable:
            return say("history.too_few")
        return say("history.some_too_few")
    return say("history.enough")


def missing(found: History) -> str:
    """Return what is missing to tell a change; empty where nothing is."""
    lacking = len(found.courses) - found.testable
    if not lacking:
        return ""
    have = max((len(one.stops) for one in found.courses), default=0)
    return say("history.lacking", lacking=lacking, needed=found.needed, have=have, level=found.level)


def _remarks(found: History) -> Iterator[Remark]:
    said = missing(found)
    if said:
        yield Remark(serious=True, title=f"{found.needed} campaigns are needed", text=f"{said}.")
    if found.left:
        why, often = next(iter(found.left.items()))
        more = f"; and {units.count_of(len(found.left) - 1, 'further reason')}" if len(found.left) > 1 else ""
        text = say("history.left_out", often=often, why=why, more=more)
        yield Remark(serious=True, title=say("history.left_out_title"), text=text)


def _findings(found: History) -> Iterator[Item]:
    by_campaign: Counter[int] = Counter(turn.at for one in found.changed for turn in one.turns)
    if not by_campaign:
        about = units.count_of(found.testable, "point that has", "points that have")
        head = say("history.none_in_enough", about=about) if found.testable else say("history.nothing_known")
        yield Item(kind="none", spans=(Span(f"{head}.", strong=True),))
    for at, often in sorted(by_campaign.items(), reverse=True):
        yield _at_campaign(found, at, often)
    if by_campaign:
        text = say("history.by_chance", testable=found.testable, by_chance=found.by_chance)
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
        Span(f" {units.count_of(often, 'point')} changed, {ways}: "),
    ]
    named = sorted(here, key=lambda pair: -abs(log(pair[1].ratio)))[:NAMED_MOST]
    spans.append(Span("; ".join(f"{one.name} {units.times(turn.ratio)} ({way(one, turn)})" for one, turn in named)))
    rest = len(here) - len(named)
    spans.append(Span(f"; and {units.grouped(rest)} more" if rest > 0 else ""))
    if found.machine_turned(at):
        spans.append(Span(say("history.floors_too")))
    events = [one for one in found.events if one.at == at]
    if events:
        said = "; ".join(f"{one.what} {one.first or 'nothing'}, then {one.second or 'nothing'}" for one in events[:2])
        more = f"; and {units.count_of(len(events) - 2, 'condition')} more" if len(events) > 2 else ""
        spans.append(Span(say("history.events", said=said, more=more)))
    chance = often <= found.by_chance
    spans.append(Span(say("history.chance") if chance else "."))
    return Item(kind="change", role="serious" if worse > 0 and not chance else "", spans=tuple(spans))


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
    unit, scale = course.shown
    values = [(one.at, one.shown(scale)) for one in course.stops]
    events = {one.at: drawing.numbers[one.at] for one in drawing.found.events_of(course.series)}
    chart = CourseChart(
        title=unit or units.TIMES,
        look=drawing.looks[course.series] if course.series else None,
        names=drawing.dates,
        marks=tuple(CourseMark(at=at, value=value, low=low, high=high) for at, (value, low, high) in values),
        levels=tuple(
            Level(begin=begin, end=end, value=value * scale)
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
            columns=("campaign", unit or "times"),
            rows=tuple((drawing.found.campaigns[at].name, _value(*value)) for at, value in values),
        ),
    )


def _value(value: float, low: float | None, high: float | None) -> str:
    return f"{units.sig3(value)}{units.ends(low, high)}"


def _note(course: Course, drawing: _Drawing) -> str:
    if course.turns:
        said = "; ".join(_turn_sentence(turn, course.shown[1], drawing.found) for turn in course.turns)
        better = "less is better" if course.better == "low" else "more is better"
        return f"{said}; {better}."
    if len(course.stops) < drawing.found.needed:
        return say("history.few_campaigns", n=len(course.stops))
    return say("history.no_change")


def _turn_sentence(turn: Turn, scale: float, found: History) -> str:
    too = say("history.floors_there") if found.machine_turned(turn.at) else ""
    return say(
        "history.change",
        ratio=turn.ratio,
        at=turn.at + 1,
        before=turn.before * scale,
        after=turn.after * scale,
        p=turn.p,
        too=too,
    )


def _described(course: Course, drawing: _Drawing) -> str:
    unit, scale = course.shown
    first, last = (units.sig3(course.stops[at].value * scale) for at in (0, -1))
    campaigns = units.count_of(len(course.stops), "campaign")
    return f"{campaigns}, from {first} to {last} {unit}. {_note(course, drawing)}"


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
            *one.levels(turn),
            f"{turn.p:.2g}",
            "; ".join(filter(None, ("floors as well" if found.machine_turned(turn.at) else "", said))),
        )
        for one, turn, said in change_rows(found)
    )
    heads = (
        "point",
        "from campaign",
        "after / before",
        "which is",
        "before",
        "after",
        "p",
        say("history.events_head"),
    )
    return (plain_table(say("history.changes_title"), heads, rows),) if rows else ()


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
    heads = ("number", "campaign", "made", "sweep", "cadge", "launches of each", "points with a number")
    yield plain_table("Campaigns", heads, rows)
    gaps = tuple((one.series, units.grouped(one.cells), _ranges([at + 1 for at in one.at])) for one in found.gaps)
    if gaps:
        yield plain_table(say("history.some_campaigns_title"), ("layer", "points", "in campaigns"), gaps)
    left = tuple((why, units.grouped(often)) for why, often in found.left.items())
    if left:
        title = say("history.not_comparable_title")
        yield plain_table(title, ("why", "values"), left)


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, those that follow each other as a range; `none` of none."""
    starts = [at for at, one in enumerate(numbers) if at == 0 or numbers[at - 1] != one - 1]
    runs = [numbers[begin:end] for begin, end in pairwise([*starts, len(numbers)])]
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs) or "none"


def _method(found: History) -> tuple[Fact, ...]:
    known = {"level": found.level, "needed": found.needed, "margin": found.margin}
    return facts_of(
        {
            "Value": say("history.medians"),
            "Change": say("history.method", shuffles=SHUFFLES, least=LEAST, **known),
            "By chance": say("history.each_cell", per_hundred=100 * found.level),
            "Wandering": say("history.independent"),
            "Comparable": say("history.comparable"),
            "The machine": say("history.machine"),
        }
    )
