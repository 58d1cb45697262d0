# SPDX-License-Identifier: BSD-3-Clause
"""Charts of a comparison: ratios against size, a small one a pattern; and how each percentile of a cell changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, log10

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import plain
from cadge_analysis.blocks.model import DataTable, Key, PanelFigure, Region
from cadge_analysis.draw import svg
from cadge_analysis.draw.palette import Identity
from cadge_analysis.draw.ratios import RatioLine, RatioMark, RatioPanel, ratio_panel, reach_of
from cadge_analysis.draw.scales import positions
from cadge_analysis.groups import by_key
from cadge_analysis.page.families import in_family, main_family
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.load import Case
from cadge_analysis.versus.against import Change, SideComparison
from cadge_analysis.versus.tail_shift import TailShift, beyond, tail_shifts

say = partial(messages.say, "beside")

TOLD_MOST = 6
"""Of more series that changed in one chart the others are grey, and named beside it."""
TAILS_MOST = 9
TAILS_LEAST = 3
"""So many are shown even where no percentile of any left the stripe, as evidence of that."""
CHANGED = (Verdict.SLOWER, Verdict.FASTER)

Looks = Mapping[str, Identity]


def key_of(label: str, look: Identity) -> Key:
    """Return the key of a series, from its look."""
    return Key(label=label, number=look.number, dashed=bool(look.dash))


def mode_of(case: Case) -> str:
    """Return where a case was measured, and how it waited."""
    return f"{words.PLACES[case.place]}, {words.WAITS[case.wait]}"


# ---- ratios against size ----


@dataclass(frozen=True, slots=True)
class _Group:
    """Cells of one chart, those of each series in the order of sizes."""

    case: Case
    changes: tuple[Change, ...]
    panel: RatioPanel
    others: tuple[str, ...]
    """Series that changed as well, and are grey."""


def panels(
    name: str, title: str, figures: Iterable[PanelFigure], *, short: str = "", note: str = "", role: str = ""
) -> Region:
    """Return a section of charts side by side, below a note."""
    drawn = Region(blocks=tuple(figures), role="panels")
    return Region(id=name, title=title, short=short, blocks=(*([plain(note, role)] if note else []), drawn))


def ratio_figures(found: SideComparison, looks: Looks) -> tuple[PanelFigure, ...]:
    """Return a chart for each pattern, place and wait mode of which two sizes are compared; what changed most first."""
    groups = by_key(found.changes, lambda change: change.mode)
    made = [one for changes in groups.values() if (one := _group(changes, looks, found.margin)) is not None]
    reach = reach_of((line for one in made for line in one.panel.lines), found.margin)
    return tuple(_ratio_figure(one, replace(one.panel, reach=reach), looks) for one in made)


def _group(changes: Sequence[Change], looks: Looks, margin: float) -> _Group | None:
    rows = [Row(numbers=one.sides[0], floor=None, ratio=None, above=None, reason=None) for one in changes]
    family = main_family(rows)
    if family is None:
        return None
    members = [one for one in changes if in_family(one.case, family)]
    case = members[0].case
    axis = case.file.parameters[case.file.axis]
    sizes = {one.case.size for one in members}
    if len(sizes) < 2:
        return None
    spots = positions(sizes, proportional=axis.unit == "percent")
    by_series = by_key(members, lambda one: one.series)
    changed = [series for series, of in by_series.items() if any(one.judged.verdict in CHANGED for one in of)]
    told = changed[:TOLD_MOST]
    lines = tuple(
        RatioLine(
            label=series,
            look=looks[series],
            marks=tuple(sorted((_mark(one, spots) for one in of), key=lambda mark: mark.at)),
            told=series in told,
        )
        for series, of in sorted(by_series.items())
    )
    panel = RatioPanel(
        title="second / first",
        along="message size" if axis.unit == "bytes" else axis.title,
        names={spots[size]: words.value(axis, size) for size in sorted(sizes)},
        lines=lines,
        margin=margin,
        reach=reach_of(lines, margin),
    )
    return _Group(case, tuple(members), panel, tuple(changed[TOLD_MOST:]))


def _mark(change: Change, spots: Mapping[int, float]) -> RatioMark:
    low, high = change.judged.interval or (None, None)
    return RatioMark(
        at=spots[change.case.size],
        ratio=change.change,
        low=None if low is None else exp(low),
        high=None if high is None else exp(high),
    )


def _ratio_figure(group: _Group, panel: RatioPanel, looks: Looks) -> PanelFigure:
    case, changes = group.case, group.changes
    name = f"ratio-{case.pattern}-{case.place}-{case.wait}"
    title = f"{words.figure(case)}, {mode_of(case)}"
    better = say("beside_charts.second_is_better", side="below" if changes[0].quantity.better == "low" else "above")
    changed = sum(one.judged.verdict in CHANGED for one in changes)
    note = f"{changed} of {units.count_of(len(changes), 'point')} changed; {better}."
    if group.others:
        note += " " + say("beside_charts.grey", others=list(group.others))
    return PanelFigure(
        name=name,
        title=title,
        svg=svg.render(ratio_panel(panel), name=name, title=title, description=_described(panel)),
        keys=tuple(key_of(line.label, looks[line.label]) for line in panel.lines if line.told),
        note=note,
        table=DataTable(
            columns=("series", *panel.names.values()),
            rows=tuple((line.label, *_cells(line, panel)) for line in panel.lines),
        ),
    )


def _described(panel: RatioPanel) -> str:
    """Return one sentence for those who cannot see the chart."""
    told = [line for line in panel.lines if line.told]
    if not told:
        ratios = [mark.ratio for line in panel.lines for mark in line.marks]
        of = units.count_of(len(panel.lines), "series", "series")
        return say("beside_charts.none_separated", of=of, low=min(ratios), high=max(ratios))
    return "; ".join(f"{line.label}: {', '.join(filter(None, _mark_texts(line, panel)))}" for line in told) + "."


def _mark_texts(line: RatioLine, panel: RatioPanel) -> Iterable[str]:
    return (f"{units.times(mark.ratio)} at {panel.names[mark.at]}" for mark in line.marks)


def _cells(line: RatioLine, panel: RatioPanel) -> Iterable[str]:
    by_place = {mark.at: mark for mark in line.marks}
    return (_cell(by_place.get(place)) for place in panel.names)


def _cell(mark: RatioMark | None) -> str:
    if mark is None:
        return units.MISSING
    return f"{units.times(mark.ratio)}{units.ends(mark.low, mark.high)}"


# ---- percentiles ----


def tail_figures(found: SideComparison, looks: Looks) -> tuple[PanelFigure, ...]:
    """Return the cells of which a percentile changed most surely; a few others where there are hardly any."""
    every = [(one, shifts) for one in found.changes if len(shifts := tail_shifts(*one.sides, one.shift)) > 1]
    ranked = sorted(every, key=lambda pair: -beyond(pair[1], found.margin))
    clear = sum(beyond(shifts, found.margin) > 0 for _, shifts in ranked)
    shown = ranked[: min(TAILS_MOST, max(TAILS_LEAST, clear))]
    panels = [_tail_panel(change, shifts, looks, found.margin) for change, shifts in shown]
    reach = reach_of((line for panel in panels for line in panel.lines), found.margin)
    return tuple(
        _tail_figure(change, shifts, replace(panel, reach=reach), looks, number)
        for number, ((change, shifts), panel) in enumerate(zip(shown, panels, strict=True))
    )


def _place(per_mille: int) -> float:
    return -log10(1 - per_mille / 1000)


def percentile(per_mille: int) -> str:
    """Return a percentile for people: 99 %, 99.9 %."""
    return f"{per_mille / 10:g}{units.THIN}%"


def _tail_panel(change: Change, shifts: Sequence[TailShift], looks: Looks, margin: float) -> RatioPanel:
    marks = tuple(
        RatioMark(
            at=_place(one.per_mille),
            ratio=exp(one.log_ratio),
            low=None if one.low is None else exp(one.low),
            high=None if one.high is None else exp(one.high),
        )
        for one in shifts
    )
    line = RatioLine(label=change.series, look=looks[change.series], marks=marks, told=True)
    return RatioPanel(
        title="second / first",
        along=say("beside_charts.axis"),
        names={_place(one.per_mille): percentile(one.per_mille) for one in shifts},
        lines=(line,),
        margin=margin,
        reach=reach_of((line,), margin),
    )


def _tail_figure(
    change: Change, shifts: Sequence[TailShift], panel: RatioPanel, looks: Looks, number: int
) -> PanelFigure:
    shown = words.shown(change.sides[0].quantity)
    case = change.case
    title = f"{words.pattern(case)} of {change.workload}, {mode_of(case)}"
    away = beyond(tuple(shifts), change_margin := panel.margin) > 0
    within = units.percent(change_margin, 0)

    def times(one: TailShift) -> str:
        low, high = (None if end is None else exp(end) for end in (one.low, one.high))
        return f"{units.times(exp(one.log_ratio))}{units.ends(low, high)}"

    rows = tuple(
        (
            percentile(one.per_mille),
            f"{units.sig3(one.first_ns * shown.scale)} {shown.unit}",
            f"{units.sig3(one.second_ns * shown.scale)} {shown.unit}",
            f"{units.sig3((one.second_ns - one.first_ns) * shown.scale)} {shown.unit}",
            times(one),
        )
        for one in shifts
    )
    has_ends = any(one.low is not None for one in shifts)
    note = f"The median: {change.judged.verdict}. "
    note += (
        say(
            "beside_charts.beyond",
            which="Some percentile lies" if away else "No percentile lies",
            within=within,
        )
        if has_ends
        else say("beside_charts.few_launches")
    )
    name = f"tail-{number}"
    return PanelFigure(
        name=name,
        title=title,
        svg=svg.render(ratio_panel(panel), name=name, title=f"{change.series}: {title}", description=_described(panel)),
        keys=(key_of(change.series, looks[change.series]),),
        note=note,
        table=DataTable(columns=("percentile", "first", "second", "difference", "change"), rows=rows),
    )
