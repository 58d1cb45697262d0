# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of each cell, its floor, its ratio to that floor, and layers against each other.

A floor is what the machine itself can do for the same bytes at the same place and in the same wait mode, measured in
the same campaign with the same choices (data touched or not): see `floors`. Which form of floor belongs to a pattern,
and which of its points have a like-for-like floor, its own file says; the others say why they have none. That a layer
is better than its floor is said where that stands up to all others of its pattern, place and wait mode.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from cadge_analysis import messages, units
from cadge_analysis.stats import intervals
from cadge_analysis.stats.costs import Costs, costs_of
from cadge_analysis.stats.family_verdicts import told_apart
from cadge_analysis.stats.floors import Floor, FloorKey, Floors, group_of
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_analysis.stats.load import Case, Cell, Dataset, Measured, RoundKey, Sample, Series
from cadge_analysis.stats.offered import unlike
from cadge_analysis.stats.verdict import Verdict
from cadge_results import Plan
from cadge_results.pattern import FOLLOWS, Quantity
from cadge_results.uncollected import uncollected

say = partial(messages.say, "stats")

P50, P90, P99, P999 = 500, 900, 990, 999
OPERATIONS_MIN = 50
"""A launch's own median has at least so many operations behind it, else its row is marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What a cell measured. `central` is that of the main quantity, in its base unit: ns (the p50), MB/s, 1/s, or own.

    `others` are the pattern's other quantities; one that this cell does not have is absent.
    """

    cell: Cell
    by_round: Mapping[RoundKey, float]
    own_p99: Mapping[RoundKey, float]
    """Each launch's own p99; empty for what is no time."""
    fewest: int
    """Samples of the launch that has the fewest."""
    central: Estimate
    samples: int
    p90: Tail | None
    p99: Tail | None
    p999: Tail | None
    pooled: float | None
    apart: Estimate | None
    """How many times the lowest of several endpoints' own values the highest is, launch by launch."""
    operations_s: float
    others: Mapping[str, Estimate]
    costs: Costs
    operations: int
    lost: int
    late: int
    unsteady: int
    hindered: int
    caveats: Mapping[str, int]
    """In how many launches each quantity that is a caveat was not 0; those that never were are absent."""
    counted: Mapping[str, float]
    """What the layer counted, an operation, both sides together, by its own names; what stayed 0 is absent."""
    thin: bool
    """Fewer than OPERATIONS_MIN operations in some launch."""

    @property
    def quantity(self) -> Quantity:
        """The main quantity."""
        return self.cell.case.file.main_quantity

    @property
    def to_be_read(self) -> tuple[str, ...]:
        """With what care the number is to be read, in a word or two each: of caveats, those of more than half."""
        quantities = self.cell.case.file.quantities
        often = [quantities[name].title for name, seen in self.caveats.items() if 2 * seen > self.central.launches]
        return (*often, *(["few operations"] if self.thin else []))

    @property
    def more_is_better(self) -> bool:
        """True where the highest value is the best."""
        return self.quantity.better == "high"


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
    floor_numbers: tuple[Numbers, ...]
    withheld: str = ""
    alike: frozenset[tuple[str, str, str]] = frozenset()

    def why_not(self, pattern: str, place: str, wait: str) -> str:
        """Return why nothing may be concluded of a pattern at a place, in a wait mode; "" where it may."""
        rounds = say("compare.rounds_alike") if (pattern, place, wait) in self.alike else ""
        return self.withheld or rounds


def per_launch(measured: Measured, quantity: Quantity) -> float:
    """Return a launch's own number: see cadge_results.pattern.Quantity for what becomes of several endpoints."""
    if measured.told is not None:
        return measured.told.value
    if quantity.kind == "histogram":
        return float(intervals.quantile(measured.counts, P50))
    if quantity.kind == "rate":
        return sum(_rate(amount, elapsed_ns, quantity) for amount, elapsed_ns in measured.amounts)
    return sum(measured.numbers) if quantity.kind == "count" else median(measured.numbers)


def _rate(amount: int, elapsed_ns: int, quantity: Quantity) -> float:
    if quantity.unit == "MB/s":
        return units.mb_per_s(amount, elapsed_ns)
    return units.per_second(amount, elapsed_ns)


def _pooled(measured: Sequence[Measured], quantity: Quantity) -> float | None:
    """Return the rate of all launches together, endpoint by endpoint; None for what is no rate."""
    if quantity.kind != "rate" or any(one.told for one in measured):
        return None
    endpoints = zip(*(one.amounts for one in measured), strict=False)
    return sum(_rate(sum(a for a, _ in found), sum(t for _, t in found), quantity) for found in endpoints)


def apart(measured: Sequence[Measured], quantity: Quantity) -> Estimate | None:
    """Return how far endpoints that measure the same lie apart; None where a launch has fewer than two of them."""
    found = []
    for one in measured:
        ends = [float(intervals.quantile(counts, P50)) for counts in one.by_end]
        ends += [_rate(amount, elapsed_ns, quantity) for amount, elapsed_ns in one.amounts]
        if len(ends) < 2 or min(ends) <= 0:
            return None
        found.append(max(ends) / min(ends))
    return intervals.over_launches(found)


def _counted(samples: Sequence[Sample]) -> Counter[str]:
    found: Counter[str] = Counter()
    for sample in samples:
        for name, often in sample.counters.items():
            found[name] += often
    return +found


def numbers_of(cell: Cell) -> Numbers | None:
    """Return the numbers of a cell, or None where no launch gave a valid sample."""
    samples, file = cell.samples, cell.case.file
    if not samples:
        return None
    main = [sample.quantities[file.main] for sample in samples]
    by_round = {
        sample.round: per_launch(measured, file.main_quantity) for sample, measured in zip(samples, main, strict=True)
    }
    histograms = [measured.counts for measured in main if measured.counts]
    p90, p99, p999 = intervals.tails(histograms, (P90, P99, P999)) if histograms else (None, None, None)
    others, caveats = {}, {}
    for name, quantity in file.quantities.items():
        found = [per_launch(s.quantities[name], quantity) for s in samples if name in s.quantities]
        if name != file.main and found:
            others[name] = intervals.over_launches(found)
        if quantity.caveat and any(found):
            caveats[name] = sum(value > 0 for value in found)
    roles = file.roles_of(cell.case.workload)
    operations = sum(sample.operations for sample in samples)
    elapsed = sum(sample.elapsed_ns for sample in samples)
    return Numbers(
        cell=cell,
        by_round=by_round,
        own_p99=_own_p99(samples, main) if file.main_quantity.kind == "histogram" else {},
        fewest=min(_samples(measured) for measured in main),
        central=intervals.over_launches(list(by_round.values())),
        samples=sum(histogram.total for histogram in histograms),
        p90=p90,
        p99=p99,
        p999=p999,
        pooled=_pooled(main, file.main_quantity),
        apart=apart(main, file.main_quantity),
        operations_s=units.per_second(operations, elapsed) if elapsed else 0.0,
        others=others,
        costs=costs_of(samples, roles),
        operations=operations,
        lost=sum(sample.lost for sample in samples),
        late=sum(sample.late for sample in samples),
        unsteady=sum(not sample.steady for sample in samples),
        hindered=sum(sample.hindered for sample in samples),
        caveats=caveats,
        counted={name: count / operations for name, count in sorted(_counted(samples).items())} if operations else {},
        thin=bool(histograms) and any(sample.operations < OPERATIONS_MIN for sample in samples),
    )


def _own_p99(samples: Sequence[Sample], main: Sequence[Measured]) -> dict[RoundKey, float]:
    return {
        sample.round: one.told.p99_ns if one.told else float(intervals.quantile(one.counts, P99))
        for sample, one in zip(samples, main, strict=True)
    }


def _samples(measured: Measured) -> int:
    return measured.told.samples if measured.told else measured.counts.total


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
    return say("compare.floor_not_measured", size=units.size(size), wait=case.wait)


def tail_by_round(numbers: Numbers, per_mille: int) -> dict[RoundKey, float]:
    """Return each launch's own tail quantile of the main quantity, a histogram."""
    if per_mille == P99:
        return dict(numbers.own_p99)
    main = numbers.cell.case.file.main
    return {
        sample.round: float(intervals.quantile(sample.quantities[main].counts, per_mille))
        for sample in numbers.cell.samples
    }


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
    if any(name.startswith("link.") for name, _ in numbers.cell.series.settings):
        key = say("compare.link_without_rate")
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
def compare(data: Dataset) -> Comparison:
    """Return every measured cell beside its floor."""
    measured = [numbers for numbers in map(numbers_of, data.cells) if numbers is not None]
    floor_numbers = tuple(n for n in measured if n.cell.series.kind == "floor")
    floors = Floors(floor_numbers, data.plan.floors)
    layers = [n for n in measured if n.cell.series.kind == "layer"]
    by_case = {(n.cell.series, n.cell.case): n for n in layers}
    wanted = {key for n in layers if not isinstance(key := floor_key(n.cell.case, data.plan), str)} | floors.keys
    found = {key: floors.at(key) for key in sorted(wanted, key=repr)}
    return Comparison(
        data=data,
        rows=_beside_floors(data, [_row(n, floors, data.plan, by_case) for n in layers]),
        floors={key: floor for key, floor in found.items() if floor is not None},
        references={key: references for key in found if (references := floors.references_at(key))},
        floor_numbers=floor_numbers,
    )
