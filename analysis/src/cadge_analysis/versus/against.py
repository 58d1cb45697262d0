# SPDX-License-Identifier: BSD-3-Clause
"""Two sides, cell by cell: shifts of the main quantity, and a verdict on each that stands up to all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import chain
from math import exp, fsum, log

from cadge_analysis import messages, words
from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.shift import EpochShift, Shift, paired
from cadge_analysis.stats.inference.verdict import IntervalVerdict, Verdict
from cadge_analysis.stats.intervals import do_disagree, median
from cadge_analysis.stats.load import Case, Cell
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.versus.conditions import Difference, differences, holds
from cadge_analysis.versus.drift import MachinePart, drift, shift_between, told
from cadge_analysis.versus.forbidden import forbids, other_parameters
from cadge_analysis.versus.judging import between_campaigns, within_campaign
from cadge_analysis.versus.moved import Movement, moved
from cadge_analysis.versus.names import ARROW, name_of, workloads
from cadge_analysis.versus.sides import Key, Side
from cadge_results.formats.selftest import BetweenCampaigns
from cadge_results.plugins.parameter import Quantity

say = partial(messages.say, "versus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One cell on both sides. The ratio is second / first, of the main quantity, which both have in its base unit."""

    name: str
    series: str
    workload: str
    first: float
    second: float
    shift: ShiftEstimate
    """What it is once the machine's part is out; `shift.shift` is what was seen."""
    judged: IntervalVerdict
    objections: str
    """Of how many launches there is no number, on either side; empty where there are none."""
    sides: tuple[Numbers, Numbers] = field(repr=False)
    """All that was measured of it, first and second."""
    pairs_disagree: bool = False
    """The ratio, which is the median over pairs, is not what both medians say, by more than the margin."""

    @property
    def case(self) -> Case:
        """The first side's case."""
        return self.sides[0].cell.case

    @property
    def quantity(self) -> Quantity:
        """What both sides measured."""
        return self.sides[0].quantity

    @property
    def mode(self) -> tuple[str, str, str]:
        """Pattern, place and wait mode."""
        return self.case.pattern, self.case.place, self.case.wait

    @property
    def values(self) -> tuple[str, str]:
        """What both sides measured, for people."""
        shown = words.shown(self.quantity)
        return shown.text(self.first), shown.text(self.second)

    @property
    def ratio(self) -> float:
        """How many times the first side's number the second side's is, as it was measured."""
        return exp(self.shift.shift.log_ratio)

    @property
    def change(self) -> float:
        """The same less what the machine did between two campaigns."""
        return exp(self.shift.log_ratio)


class Fate(StrEnum):
    """What became of a cell that is not compared, from the first side to the second."""

    REFUSED = "refused"
    APPEARED = "appeared"
    DISAPPEARED = "disappeared"
    FAILING = "newly failing"
    LOST = "no longer measured"
    WORKING = "newly measured"
    NEITHER = "on neither side"
    UNMATCHED = "unmatched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A cell that is not compared, of `series` and `pattern`. `neither`: no side has a number.

    reasons: why the plan refused it, on either side. values: what a side measured all the same, for people.
    """

    name: str
    series: str
    pattern: str
    why: str
    fate: Fate
    neither: bool
    reasons: tuple[str, ...]
    values: tuple[str, str]

    @property
    def forbidden(self) -> bool:
        """Both sides have it, or nearly, and it would not be the same thing."""
        return self.fate is Fate.REFUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesMean:
    """The geometric mean of the ratios of a series in one pattern; `mean` is None where `why` says why not."""

    series: str
    pattern: str
    quantity: str
    better: str
    cells: int
    mean: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideComparison:
    """All that is said of two sides. `margin` as a share; `moved`: what the machine itself did between them.

    `drift`: what all series did alike, and how far apart they are otherwise; nothing of one campaign, and of machines.
    `usual`: what a self-test of this machine says of that, which is used where series are too few. `withheld`: why
    verdicts are, or some of them. `correlation`: of the rounds of one campaign, as is allowed for.
    """

    first: str
    second: str
    paired: bool
    across_hosts: bool
    margin: float
    conditions: tuple[Difference, ...]
    moved: tuple[Movement, ...]
    drift: tuple[MachinePart, ...]
    usual: tuple[BetweenCampaigns, ...]
    withheld: str
    correlation: float
    changes: tuple[Change, ...]
    left: tuple[Exclusion, ...]
    wholes: tuple[SeriesMean, ...]
    holds: str
    """What verdicts hold for, launches of one boot or of several; empty where they are withheld."""

    @property
    def missing(self) -> Mapping[str, int]:
        """How many cells one side alone has, by why."""
        return dict(sorted(Counter(one.why for one in self.left if not one.forbidden).items()))

    @property
    def refused(self) -> Mapping[str, int]:
        """How many cells cannot be compared, by why."""
        return dict(sorted(Counter(one.why for one in self.left if one.forbidden).items()))

    @property
    def drift_is_unknown(self) -> bool:
        """True where some cells are of too few series to show the drift of two campaigns."""
        of_campaigns = not self.paired and not self.across_hosts
        return of_campaigns and sum(one.cells for one in self.drift) < len(self.changes)

    @property
    def silent(self) -> int:
        """How many cells could have no verdict, however large their difference."""
        return sum(change.judged.is_silent for change in self.changes)

    @property
    def is_over_epochs(self) -> bool:
        """True where a cell is compared over epochs."""
        return any(isinstance(one.shift.shift, EpochShift) for one in self.changes)

    def count(self, verdict: Verdict) -> int:
        """How many cells have this verdict."""
        return sum(change.judged.verdict is verdict for change in self.changes)


@dataclass(frozen=True, slots=True)
class _CellMatch:
    name: str
    series: str
    workload: str
    ours: Numbers
    theirs: Numbers
    shift: Shift


def against(first: Side, second: Side, margin: float, *, across_hosts: bool = False) -> SideComparison:
    """Compare two sides. Of one campaign they are paired, launch by launch; else they are not."""
    pairs = first.data.campaign_id == second.data.campaign_id
    found: list[_CellMatch] = []
    left: list[Exclusion] = []
    cells = {**second.cells, **first.cells}
    said = workloads(cells.values(), of_series=first.series is None)
    for key, cell in sorted(cells.items()):
        series = key[0] or f"{_label(first)} {ARROW} {_label(second)}"
        workload = said[cell.point_id]
        name = name_of(cell, workload, series)
        why, forbidden = _why(first, second, key, across_hosts=across_hosts)
        if not why:
            ours, theirs = first.numbers[key], second.numbers[key]
            shift = shift_of(ours, theirs, pairs=pairs)
            if shift is not None:
                found.append(_CellMatch(name, series, workload, ours, theirs, shift))
                continue
            why = say("against.no_round_with_both")
        neither = key not in first.numbers and key not in second.numbers
        fate = Fate.REFUSED if forbidden else _fate(first, second, key)
        pattern = cell.case.pattern
        left.append(
            Exclusion(
                name=name,
                series=series,
                pattern=pattern,
                why=why,
                fate=fate,
                neither=neither,
                reasons=_reasons(first, second, key),
                values=(_shown(first.numbers.get(key)), _shown(second.numbers.get(key))),
            )
        )
    between = None if pairs or across_hosts else drift(first, second)
    cells_of = [(one.ours, one.theirs, one.shift) for one in found]
    if pairs:
        ruling = within_campaign(first, cells_of, margin)
    else:
        own = {side.name: side.withheld for side in (first, second)}
        ruling = between_campaigns(cells_of, between, margin, withheld=own)
    changes = [_change(*one, margin) for one in zip(found, ruling.shifts, ruling.judged, strict=True)]
    order = [Verdict.SLOWER, Verdict.FASTER, Verdict.UNKNOWN, Verdict.SAME]
    changes.sort(key=lambda one: (order.index(one.judged.verdict), -abs(one.shift.log_ratio)))
    return SideComparison(
        first=first.name,
        second=second.name,
        paired=pairs,
        across_hosts=across_hosts,
        margin=margin,
        conditions=differences(first, second),
        moved=() if pairs else moved(first, second),
        drift=told(between, [(one.case, one.shift, one.judged.level) for one in changes]) if between else (),
        usual=between.usual if between else (),
        withheld=ruling.withheld,
        correlation=ruling.correlation,
        changes=tuple(changes),
        left=tuple(left),
        wholes=tuple(_wholes(changes, left)),
        holds="" if ruling.withheld else holds((first.data, second.data)),
    )


def _label(side: Side) -> str:
    return side.series.label if side.series else ""


def _why(first: Side, second: Side, key: Key, *, across_hosts: bool) -> tuple[str, bool]:
    """Return why a cell is not compared, and whether it is so because it must not be; "" where it is."""
    ours, theirs = first.cells.get(key), second.cells.get(key)
    if ours is None or theirs is None:
        there, cell = (first, theirs) if ours is None else (second, ours)
        why = other_parameters(there, cell) if cell is not None else ""
        return why or f"not planned in {there.name}", bool(why)
    why = forbids(first, second, ours, theirs, across_hosts=across_hosts)
    if why:
        return why, True
    lacking = [side for side in (first, second) if key not in side.numbers]
    return "; ".join(f"{side.cells[key].state} in {side.name}" for side in lacking), False


def _reasons(first: Side, second: Side, key: Key) -> tuple[str, ...]:
    """Return why the plan refused a cell on either side."""
    planned = ((side.data.plan.by_id, side.cells[key].point_id) for side in (first, second) if key in side.cells)
    return tuple(dict.fromkeys(reason for by_id, point_id in planned if (reason := by_id[point_id].reason)))


def _shown(measured: Numbers | None) -> str:
    return words.shown(measured.quantity).text(measured.central.value) if measured else ""


def _fate(first: Side, second: Side, key: Key) -> Fate:
    """Return what became of a cell that may be compared, and is not."""
    here, there = key in first.numbers, key in second.numbers
    if here and there:
        return Fate.UNMATCHED
    if not here and not there:
        return Fate.NEITHER
    if there:
        return Fate.WORKING if key in first.cells else Fate.APPEARED
    if key not in second.cells:
        return Fate.DISAPPEARED
    return Fate.FAILING if second.cells[key].state in ("failed", "unsound") else Fate.LOST


def shift_of(ours: Numbers, theirs: Numbers, *, pairs: bool) -> Shift | None:
    """Return the shift between two cells; None where there is none, or a number that has no logarithm."""
    if not pairs:
        return shift_between(ours, theirs)
    if min(*ours.by_round.values(), *theirs.by_round.values()) <= 0:
        return None
    return paired(ours.by_round, theirs.by_round)


def _medians(found: _CellMatch) -> tuple[float, float]:
    """Return what the first and the second side measured: of pairs in the rounds that both have, else in all."""
    ours, theirs = found.ours, found.theirs
    if not found.shift.paired:
        return ours.central.value, theirs.central.value
    both = sorted(ours.by_round.keys() & theirs.by_round.keys())
    first, second = (median([side.by_round[key] for key in both]) for side in (ours, theirs))
    return first, second


def _change(found: _CellMatch, shift: ShiftEstimate, judged: IntervalVerdict, margin: float) -> Change:
    ours, theirs = found.ours, found.theirs
    first, second = _medians(found)
    return Change(
        name=found.name,
        series=found.series,
        workload=found.workload,
        first=first,
        second=second,
        pairs_disagree=do_disagree(
            log(second / first), found.shift.log_ratio, found.shift.low, found.shift.high, margin
        ),
        shift=shift,
        judged=judged,
        objections="; ".join(chain(_objections("first", ours.cell), _objections("second", theirs.cell))),
        sides=(ours, theirs),
    )


def _objections(side: str, cell: Cell) -> Iterator[str]:
    bad = [f"{cell.states[state]} {state}" for state in ("unsound", "failed", "missing") if cell.states.get(state)]
    if bad:
        yield f"{side}: of {cell.planned} launches {', '.join(bad)}"


def _wholes(changes: Sequence[Change], left: Sequence[Exclusion]) -> Iterator[SeriesMean]:
    """Yield a summary of each series in each pattern.

    Only where all of its cells are compared that a side has a number of: a mean over those that happen to be there says
    something of which they are. It has no interval, for cells are not a sample of anything; and none is made over
    layers or quantities.
    """
    lacking = Counter((one.series, one.pattern) for one in left if not one.neither)
    by_pattern: dict[tuple[str, str, str, str], list[Change]] = defaultdict(list)
    for change in changes:
        of = change.quantity
        by_pattern[change.series, change.case.pattern, of.title, of.better].append(change)
    for (series, pattern, quantity, better), found in sorted(by_pattern.items()):
        without = lacking[series, pattern]
        why = say("against.cells_not_compared", left=without, every=len(found) + without) if without else ""
        mean = None if without else exp(fsum(one.shift.log_ratio for one in found) / len(found))
        yield SeriesMean(
            series=series, pattern=pattern, quantity=quantity, better=better, cells=len(found), mean=mean, why=why
        )
