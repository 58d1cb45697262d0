# SPDX-License-Identifier: BSD-3-Clause
"""What the machine did between two campaigns, from all that both measured: floors, references and every layer.

Cells are taken together that move alike: of one form of exchange, at one place, in one wait mode (a floor's form is the
one that patterns name). Where both campaigns have too few series of that, all of the place are taken, then all there
are. Where even these are too few, the self-test that both campaigns keep says how far campaigns lie apart on this
machine, if it is of this machine; which build it is of does not matter here, as two may be compared. It is not used
beside what the two campaigns show themselves: that is of these very hours, and the self-test of others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from cadge_analysis.selftest.pinned import is_of_this_machine
from cadge_analysis.stats.inference.between import CampaignDrift, CellMove, between
from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.rounds import by_epoch
from cadge_analysis.stats.inference.shift import Shift, between_epochs
from cadge_analysis.stats.load import Case, Cell
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.versus.forbidden import forbids
from cadge_analysis.versus.sides import Side
from cadge_results.formats.selftest import BetweenCampaigns

Group = tuple[str, ...]
"""Place, wait mode and form of exchange, or the first of these: what cells have in common."""
WHOLE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What the machine did, by group, and what the self-test says of campaigns on this machine, if it says anything.

    A cell is freed of what all other series of its group did: `without`, by group and series. A series that moved alone
    is no part of that.
    """

    groups: Mapping[Group, CampaignDrift]
    without: Mapping[tuple[Group, str], CampaignDrift]
    usual: tuple[BetweenCampaigns, ...]

    def at(self, case: Case) -> tuple[Group, CampaignDrift] | None:
        """Return the closest group of a case that is known."""
        whole = group_of(case)
        parts = (whole[:length] for length in range(len(whole), -1, -1))
        return next(((part, self.groups[part]) for part in parts if part in self.groups), None)

    def used(self, case: Case, series: str) -> CampaignDrift | None:
        """Return the drift that a series' case is freed of; None where it is not known from these two campaigns."""
        found = self.at(case)
        return self.without.get((found[0], series), found[1]) if found else None

    def out_of(self, shift: Shift, cell: Cell, *, more_is_better: bool) -> ShiftEstimate | None:
        """Return a cell's shift less the drift that is in it; None where that is not known at all."""
        found = self.used(cell.case, cell.series.label)
        if found is not None:
            common = -found.common.value if more_is_better else found.common.value
            return ShiftEstimate(shift, (common,) if found.has_floors else (0.0, common), found.error, found.freedom)
        if self.usual:
            return allowed(shift, closest(self.usual, cell.case))
        return None


def closest(usual: Sequence[BetweenCampaigns], case: Case) -> BetweenCampaigns:
    """Return what is known of cells like this one; where it has none like it, the one that drifts most."""
    whole = group_of(case)
    alike = [one for one in usual if (one.place, one.wait, one.form) == whole]
    return max(alike or usual, key=lambda one: one.common**2 + one.spread**2)


def allowed(shift: Shift, usual: BetweenCampaigns) -> ShiftEstimate:
    """Return a shift with the drift that campaigns of a machine usually have; nothing of it is known to be common."""
    return ShiftEstimate(shift, (0.0,), sqrt(2 * (usual.spread**2 + usual.common**2)), usual.freedom)


def group_of(case: Case) -> Group:
    """Return what a case has in common with those that move alike, the widest first."""
    return case.place, case.wait, case.file.floor.form or case.pattern


def drift(first: Side, second: Side) -> Drift:
    """Return what the machine did between two campaigns."""
    cells: dict[Group, list[CellMove]] = defaultdict(list)
    for case, one, _ in moved_cells(first, second):
        whole = group_of(case)
        for length in range(len(whole) + 1):
            cells[whole[:length]].append(one)
    known: dict[Group, CampaignDrift] = {}
    asked = {group for group in cells if len(group) == WHOLE}
    while asked:  # a group that says nothing asks for the next wider one
        found = {group: between(cells[group]) for group in sorted(asked)}
        known |= {group: one for group, one in found.items() if one is not None}
        asked = {group[:-1] for group, one in found.items() if one is None and group}
    without = {
        (group, series): others
        for group in known
        for series in {cell.series for cell in cells[group] if not cell.is_floor}
        if (others := between(cells[group], without=series)) is not None
    }
    return Drift(groups=known, without=without, usual=_usual(first, second))


def moved_cells(first: Side, second: Side) -> Iterator[tuple[Case, CellMove, Shift]]:
    """Yield each cell that two campaigns have in common and that may be compared, with its shift."""
    ours, theirs = first.everything, second.everything
    for key in sorted(ours.keys() & theirs.keys()):
        here, there = ours[key], theirs[key]
        shift = shift_between(here, there)
        if shift is None or forbids(first, second, here.cell, there.cell):
            continue
        way = -1 if here.more_is_better else 1
        kind, label, *_ = key
        one = CellMove(series=label, is_floor=kind == "floor", shift=way * shift.log_ratio, error=shift.error())
        yield here.cell.case, one, shift


def shift_between(ours: Numbers, theirs: Numbers) -> Shift | None:
    """Return the shift between cells of two campaigns; None where a number has no logarithm."""
    if min(*ours.by_round.values(), *theirs.by_round.values()) <= 0:
        return None
    return between_epochs(by_epoch(ours.by_round), by_epoch(theirs.by_round))


def _usual(first: Side, second: Side) -> tuple[BetweenCampaigns, ...]:
    """Return what the newest self-test of this machine that either campaign keeps says of campaigns."""
    pins = [
        side.data.meta.selftest
        for side in (first, second)
        if side.data.meta.selftest is not None and is_of_this_machine(side.data.meta.selftest, side.data.nodes)
    ]
    told = [pin for pin in pins if pin.between]
    return max(told, key=lambda pin: (pin.finished_utc, pin.selftest_id)).between if told else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePart:
    """What the machine did to some of the compared cells, and below what change none is called faster or slower.

    `group`: of which series the drift was taken. `least`: as a logarithm, with however many launches, at the level of
    this comparison.
    """

    group: Group
    drift: CampaignDrift
    cells: int
    least: float


def told(found: Drift, cells: Sequence[tuple[Case, ShiftEstimate, float]]) -> tuple[MachinePart, ...]:
    """Return what befell the compared cells, each group once; a cell is its case, its shift and its level."""
    by_group: dict[Group, list[float]] = defaultdict(list)
    for case, shift, level in cells:
        if (at := found.at(case)) is not None:
            by_group[at[0]].append(shift.beyond(level))
    return tuple(
        MachinePart(group=group, drift=found.groups[group], cells=len(reaches), least=min(reaches))
        for group, reaches in sorted(by_group.items())
    )
