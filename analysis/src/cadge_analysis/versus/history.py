# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns over time: the course of each cell through them, where it changed, and what else changed meanwhile.

A campaign gives a cell one value, its median over launches: launches of one campaign share its day, so that campaigns
are what repeats. The machine's own course is that of its floors: how many times as long they take as in the first
campaign that has them, the median over all. A change of cells where floors change as well may be the machine's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import exp, log, log1p
from statistics import median

import numpy as np

from cadge_analysis import messages, units, words
from cadge_analysis.stats.inference.change_points import LEVEL, change_points, needed
from cadge_analysis.stats.load import Case
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.versus.conditions import HARMLESS, OF_LAYERS, differences, merged
from cadge_analysis.versus.forbidden import forbids
from cadge_analysis.versus.names import name_of, workloads
from cadge_analysis.versus.sides import Side
from cadge_results.plugins.parameter import Quantity

say = partial(messages.say, "versus")

LEAST = 2
"""Campaigns that a course has at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A cell in one campaign: which one, in order of time, and its number in the base unit."""

    at: int
    value: float
    low: float | None
    high: float | None

    def shown(self, scale: float) -> tuple[float, float | None, float | None]:
        """Return value, low and high in a unit that people read."""
        low, high = (None if end is None else end * scale for end in (self.low, self.high))
        return self.value * scale, low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A change: the first campaign after it, medians before it and after it up to the next ones, and its p."""

    at: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float:
        """How many times as much it is afterwards."""
        return self.after / self.before


@dataclass(frozen=True, kw_only=True)
class Course:
    """One cell through campaigns. `series` and `case` are None of the machine itself.

    margin: within this share of each other two levels are the same.
    """

    name: str
    series: str | None
    case: Case | None
    stops: tuple[Stop, ...]
    margin: float

    @property
    def quantity(self) -> Quantity | None:
        """What was measured; None of the machine itself, which has a ratio."""
        return self.case.file.main_quantity if self.case else None

    @property
    def shown(self) -> tuple[str, float]:
        """The unit that people read, and what values are multiplied with for it."""
        shown = words.shown(self.quantity) if self.quantity else None
        return (shown.unit, shown.scale) if shown else ("", 1.0)

    @property
    def better(self) -> str:
        """Whether low or high numbers are better."""
        return self.quantity.better if self.quantity else "low"

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """Where it changed by more than the margin; medians before and after are those between such places."""
        logs = np.array([log(stop.value) for stop in self.stops])
        kept = list(change_points(logs))
        while kept:
            ends = [0, *(one.at for one in kept), len(logs)]
            middles = [median(logs[begin:end].tolist()) for begin, end in pairwise(ends)]
            steps = [abs(after - before) for before, after in pairwise(middles)]
            if min(steps) > log1p(self.margin):
                return tuple(
                    Turn(at=self.stops[one.at].at, before=exp(before), after=exp(after), p=one.p)
                    for one, (before, after) in zip(kept, pairwise(middles), strict=True)
                )
            del kept[steps.index(min(steps))]
        return ()

    @property
    def farthest(self) -> float:
        """The logarithm of its largest change, whatever way; 0 of none."""
        return max((abs(log(turn.ratio)) for turn in self.turns), default=0.0)

    def levels(self, turn: Turn) -> tuple[str, str]:
        """Return the medians before and after a change, for people."""
        unit, scale = self.shown
        return f"{units.sig3(turn.before * scale)} {unit}", f"{units.sig3(turn.after * scale)} {unit}"

    def worse(self, turn: Turn) -> bool:
        """Tell whether it is worse after a change."""
        return (turn.ratio > 1) == (self.better == "low")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A condition that is another from this campaign on; `series`: of which layer, None of all."""

    at: int
    what: str
    first: str
    second: str
    series: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Cells of a series that only some campaigns have: how many, and in which."""

    series: str
    cells: int
    at: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class History:
    """Campaigns in the order of time, and all that is said of them. `left`: why stops are not in a course, counted.

    A cell that a single campaign has is in no course, but in `gaps`.
    """

    campaigns: tuple[Side, ...]
    courses: tuple[Course, ...]
    machine: Course | None
    events: tuple[Event, ...]
    gaps: tuple[Gap, ...]
    left: dict[str, int]
    margin: float
    level: float = LEVEL

    @property
    def needed(self) -> int:
        """Of how many campaigns a change can be told at all."""
        return needed(self.level)

    @property
    def testable(self) -> int:
        """How many courses have as many."""
        return sum(len(one.stops) >= self.needed for one in self.courses)

    @property
    def by_chance(self) -> float:
        """In how many courses at most a change would be found if none had any."""
        return self.testable * self.level

    @cached_property
    def changed(self) -> tuple[Course, ...]:
        """The courses that changed, the farthest first."""
        found = [one for one in self.courses if one.turns]
        return tuple(sorted(found, key=lambda one: (-one.farthest, one.name)))

    def events_of(self, series: str | None) -> tuple[Event, ...]:
        """Return what concerns a series."""
        return tuple(one for one in self.events if one.series in (None, series))

    def machine_turned(self, at: int) -> bool:
        """Tell whether floors changed at a campaign, too."""
        return self.machine is not None and any(turn.at == at for turn in self.machine.turns)


def history(campaigns: Sequence[Side], margin: float) -> History:
    """Return the history of campaigns; each is compared with the newest that has the cell.

    margin: a share, as of `compare`: what changed by less counts as the same.
    """
    ordered = tuple(sorted(campaigns, key=lambda side: (side.data.meta.created_utc, side.data.campaign_id)))
    left: Counter[str] = Counter()
    every = tuple(_courses(ordered, left, margin))
    courses = tuple(course for course in every if len(course.stops) >= LEAST)
    return History(
        campaigns=ordered,
        courses=courses,
        machine=_machine(ordered, margin),
        events=tuple(_events(ordered)),
        gaps=tuple(_gaps(every, len(ordered))),
        left=dict(left.most_common()),
        margin=margin,
    )


def _courses(campaigns: Sequence[Side], left: Counter[str], margin: float) -> Iterator[Course]:
    newest = {key: at for at, side in enumerate(campaigns) for key in side.numbers}
    cells = {key: campaigns[at].numbers[key].cell for key, at in newest.items()}
    said = workloads(cells.values())
    for key in sorted(newest):
        last = campaigns[newest[key]]
        stops = []
        for at, side in enumerate(campaigns):
            numbers = side.numbers.get(key)
            if numbers is None or numbers.central.value <= 0:
                continue
            why = side.withheld and say(
                "history.verdicts_withheld", campaign_id=side.data.campaign_id, withheld=side.withheld
            )
            why = why or forbids(side, last, numbers.cell, cells[key])
            if why:
                left[why] += 1
            else:
                central = numbers.central
                stops.append(Stop(at=at, value=central.value, low=central.low, high=central.high))
        cell = cells[key]
        yield Course(
            name=name_of(cell, said[cell.point_id]),
            series=cell.series.label,
            case=cell.case,
            stops=tuple(stops),
            margin=margin,
        )


def _gaps(courses: Sequence[Course], campaigns: int) -> Iterator[Gap]:
    often = Counter((course.series or "", tuple(stop.at for stop in course.stops)) for course in courses)
    for (series, at), cells in sorted(often.items()):
        if len(at) < campaigns:
            yield Gap(series=series, cells=cells, at=at)


def _machine(campaigns: Sequence[Side], margin: float) -> Course | None:
    """Return the course of floors: as many times as long as at first, the median over floors; None without any."""
    firsts: dict[tuple[str, ...], Numbers] = {}
    ratios: dict[int, list[float]] = defaultdict(list)
    for at, side in enumerate(campaigns):
        for key, numbers in side.everything.items():
            if key[0] != "floor" or numbers.central.value <= 0 or forbids(side, campaigns[-1], *[numbers.cell] * 2):
                continue
            first = firsts.setdefault(key, numbers)
            ratio = numbers.central.value / first.central.value
            ratios[at].append(1 / ratio if numbers.more_is_better else ratio)
    if len(ratios) < LEAST:
        return None
    stops = tuple(Stop(at=at, value=median(found), low=None, high=None) for at, found in sorted(ratios.items()))
    return Course(name=say("history.machine"), series=None, case=None, stops=stops, margin=margin)


def _events(campaigns: Sequence[Side]) -> Iterator[Event]:
    for at, (before, after) in enumerate(pairwise(campaigns), 1):
        told = [one for one in differences(before, after) if one.what not in HARMLESS]
        for what, first, second in merged(told):
            name, of, series = what.partition(" of ")
            is_layers = bool(of) and name in OF_LAYERS
            yield Event(at=at, what=what, first=first, second=second, series=series if is_layers else None)
