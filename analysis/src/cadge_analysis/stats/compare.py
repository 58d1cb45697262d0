# SPDX-License-Identifier: BSD-3-Clause
"""Each cell beside its floor, its ratio to that floor, and layers against each other.

A floor is what the machine itself can do for the same bytes at the same place and in the same wait mode, measured in
the same campaign with the same choices (data touched or not): see `floors`. Which form of floor belongs to a pattern,
and which of its points have a like-for-like floor, its own file says; the others say why they have none. That a layer
is better than its floor is said where that stands up to all others of its pattern, place and wait mode.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.stats import intervals
from cadge_analysis.stats.family_verdicts import told_apart
from cadge_analysis.stats.floors import Floor, FloorKey, Floors, group_of
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Case, Cell, Dataset, Series
from cadge_analysis.stats.numbers import P99, CellNumbers, Numbers, tail_by_round
from cadge_analysis.stats.offered import unlike
from cadge_results import Plan
from cadge_results.plugins.rules import FOLLOWS
from cadge_results.uncollected import uncollected

say = partial(messages.say, "stats")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRatio:
    """A cell divided by its pattern's baseline, launch by launch: its main number, and the p99 of times.

    `reason` says why there is neither; `p99_reason` why there is no ratio of the p99.
    """

    central: Estimate | None
    p99: Estimate | None
    reason: str = ""
    p99_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measured cell beside its floor. `reason` says why there is no floor. `above` is for times alone.

    `references` are bare exchanges of that size that are no floors, as they are not the best possible. `baseline`: it
    beside what its pattern compares it with, where that has such a thing. `beats_floor`: it is surely better than its
    floor, by an error of ours, or as the floor is weak.
    """

    numbers: Numbers
    floor: Floor | None
    ratio: Estimate | None
    above: Estimate | None
    reason: str | None
    references: tuple[Floor, ...] = ()
    baseline: BaselineRatio | None = None
    beats_floor: bool = False

    @property
    def cell(self) -> Cell:
        """The cell itself."""
        return self.numbers.cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All measured cells of the layers with their floors, and the floors themselves.

    `withheld`: why nothing may be concluded from it; `alike`: pattern, place and wait mode of families whose rounds are
    too much alike. Only `judged.gated` knows both.
    """

    data: Dataset
    rows: tuple[Row, ...]
    floors: Mapping[FloorKey, Floor]
    """At every size of a row or of a floor program."""
    references: Mapping[FloorKey, tuple[Floor, ...]]
    numbers: Mapping[str, Numbers]
    """Of every planned point that has some, by its id: floors and what was measured a second time as well."""
    withheld: str = ""
    alike: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def twin_numbers(self) -> tuple[Numbers, ...]:
        """What was measured a second time."""
        return tuple(self.numbers[cell.point_id] for cell in self.data.twins if cell.samples)

    def why_not(self, pattern: str, place: str, wait: str) -> str:
        """Return why nothing may be concluded of a pattern at a place, in a wait mode; "" where it may."""
        rounds = say("compare.rounds_alike") if (pattern, place, wait) in self.alike else ""
        return self.withheld or rounds


def floor_key(case: Case, plan: Plan) -> FloorKey | str:
    """Return which floor a case is divided by, or the sentence why there can be none."""
    rule = case.file.floor
    if rule.form is None or rule.none is not None:
        return rule.none or say("compare.no_floor_belongs")
    for name, alike in rule.alike.items():
        usual = case.file.is_usual(name, case.workload)
        if not (usual if alike.is_ == FOLLOWS else case.workload[name] == alike.is_):
            return alike.otherwise
    size = case.workload.integer(rule.sizes[0])
    form = plan.patterns.get(rule.form)
    if form is None:
        return _unmeasured(case, size)
    workload = form.workload(rule.form, {**{name: case.workload[name] for name in rule.carry}, form.axis: size})
    return (*group_of(Case(case.place, case.wait, workload, form)), size)


def _unmeasured(case: Case, size: int) -> str:
    if case.place == "self":
        return say("compare.floor_has_two_ends")
    return say("compare.floor_not_measured", size=units.size(size), wait=case.wait)


def _against(numbers: Numbers, layers: Mapping[tuple[Series, Case], Numbers]) -> BaselineRatio | None:
    """Return a cell divided by its baseline; None where its pattern has none, or it is the baseline."""
    case = numbers.cell.case
    workload = case.file.baseline_of(case.workload)
    if workload is None:
        return None
    base = layers.get((numbers.cell.series, replace(case, workload=workload)))
    if base is None:
        return BaselineRatio(central=None, p99=None, reason=say("compare.baseline_without_number"))
    if why := unlike((numbers.cell, base.cell)):
        return BaselineRatio(central=None, p99=None, reason=why)
    central = intervals.ratio(numbers.by_round, base.by_round)
    if numbers.p99 is None or base.p99 is None:
        return BaselineRatio(central=central, p99=None, p99_reason="it has no p99")
    few = next((tail.reason for tail in (base.p99, numbers.p99) if tail.reason), None)
    if few:
        return BaselineRatio(central=central, p99=None, p99_reason=few)
    return BaselineRatio(central=central, p99=intervals.ratio(tail_by_round(numbers, P99), tail_by_round(base, P99)))


def _row(numbers: Numbers, floors: Floors, plan: Plan, layers: Mapping[tuple[Series, Case], Numbers]) -> Row:
    case = numbers.cell.case
    key, against = floor_key(case, plan), _against(numbers, layers)
    for name, _ in numbers.cell.series.settings:
        if name.startswith("link."):
            key = say("compare.link_without_rate")
        elif name.startswith(("kernel.", "sys.", "device.")):
            key = say("compare.kernel_as_it_is")
    if isinstance(key, str):
        return Row(numbers=numbers, floor=None, ratio=None, above=None, reason=key, baseline=against)
    floor, references = floors.at(key), floors.references_at(key)
    if floor is None:
        reason = _unmeasured(case, key[4])
        return Row(
            numbers=numbers,
            floor=None,
            ratio=None,
            above=None,
            reason=reason,
            references=references,
            baseline=against,
        )
    return Row(
        numbers=numbers,
        floor=floor,
        ratio=intervals.ratio(numbers.by_round, floor.by_round),
        above=intervals.difference(numbers.by_round, floor.by_round) if numbers.quantity.unit == "ns" else None,
        reason=None,
        references=references,
        baseline=against,
    )


def _beside_floors(data: Dataset, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows, each with whether it is better than its floor; families are as those of layers."""
    families: dict[tuple[str, str, str], list[tuple[Numbers, Numbers]]] = defaultdict(list)
    for row in rows:
        if row.floor is not None:
            floor = replace(row.floor.program, by_round=row.floor.by_round)
            families[_family(row)].append((row.numbers, floor))
    found = told_apart(data, families)
    return tuple(
        replace(row, beats_floor=found[_family(row)][row.cell.point_id].says == Verdict.FASTER)
        if row.floor is not None
        else row
        for row in rows
    )


def _family(row: Row) -> tuple[str, str, str]:
    case = row.cell.case
    return case.pattern, case.place, case.wait


@uncollected()
def compare(data: Dataset, numbers: Mapping[str, Numbers] | None = None) -> Comparison:
    """Return every measured cell beside its floor. numbers: those of its cells, where they are at hand."""
    numbers = CellNumbers(data) if numbers is None else numbers
    measured = [numbers[cell.point_id] for cell in data.cells if cell.samples]
    floors = Floors([n for n in measured if n.cell.series.kind == "floor"], data.plan.floors)
    layers = [n for n in measured if n.cell.series.kind == "layer"]
    by_case = {(n.cell.series, n.cell.case): n for n in layers}
    wanted = {key for n in layers if not isinstance(key := floor_key(n.cell.case, data.plan), str)} | floors.keys
    found = {key: floors.at(key) for key in sorted(wanted, key=repr)}
    return Comparison(
        data=data,
        rows=_beside_floors(data, [_row(n, floors, data.plan, by_case) for n in layers]),
        floors={key: floor for key, floor in found.items() if floor is not None},
        references={key: references for key in found if (references := floors.references_at(key))},
        numbers=numbers,
    )
