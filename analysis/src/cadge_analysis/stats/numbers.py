# SPDX-License-Identifier: BSD-3-Clause
"""What a cell measured: its main number with all that stands beside it, over its launches and launch by launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from types import MappingProxyType
from typing import Any

from cadge_analysis import units
from cadge_analysis.stats import intervals
from cadge_analysis.stats.costs import Costs, costs_of
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_analysis.stats.load import Cell, Dataset, Measurement, Sample, read
from cadge_results import Campaign
from cadge_results.plugins.parameter import Quantity

P50, P90, P99, P999 = 500, 900, 990, 999
OPERATIONS_MIN = 50
"""A launch's own median has at least so many operations behind it, else its row is marked."""
MANY_ATTEMPTS = 0.1
"""A larger share of attempts that did not settle, or were disturbed, is worth a warning."""


@dataclass(frozen=True, kw_only=True)
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
    operations: int
    lost: int
    late: int
    unsteady: int
    disturbed: int
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

    @cached_property
    def costs(self) -> Costs:
        """What an operation took of processors."""
        return costs_of(self.cell.samples, self.cell.case.file.roles_of(self.cell.case.workload))

    @cached_property
    def cpu_ns(self) -> Estimate | None:
        """The median over launches of what an operation took of processors, all roles together, with its interval."""
        if "cpu" not in self.costs.of:
            return None
        roles = self.cell.case.file.roles_of(self.cell.case.workload)
        used = {sample.round: costs_of((sample,), roles).of.get("cpu") for sample in self.cell.samples}
        return intervals.over_rounds({key: one.all_roles for key, one in used.items() if one is not None})

    @property
    def more_is_better(self) -> bool:
        """True where the highest value is the best."""
        return self.quantity.better == "high"


def per_launch(measured: Measurement, quantity: Quantity) -> float:
    """Return a launch's own number: see plugins.pattern.Quantity for what becomes of several endpoints."""
    if quantity.kind == "histogram" and not measured.numbers:
        return float(intervals.quantile(measured.counts, P50))
    if measured.amounts:
        return sum(_rate(amount, elapsed_ns, quantity) for amount, elapsed_ns in measured.amounts)
    return sum(measured.numbers) if quantity.kind == "count" else median(measured.numbers)


def _rate(amount: int, elapsed_ns: int, quantity: Quantity) -> float:
    if quantity.unit == "MB/s":
        return units.mb_per_s(amount, elapsed_ns)
    return units.per_second(amount, elapsed_ns)


def _pooled(measured: Sequence[Measurement], quantity: Quantity) -> float | None:
    """Return the rate of all launches together, endpoint by endpoint; None where there are no amounts."""
    if quantity.kind != "rate" or not all(one.amounts for one in measured):
        return None
    endpoints = zip(*(one.amounts for one in measured), strict=False)
    return sum(_rate(sum(a for a, _ in found), sum(t for _, t in found), quantity) for found in endpoints)


def apart(measured: Mapping[RoundKey, Measurement], quantity: Quantity) -> Estimate | None:
    """Return how far endpoints that measure the same lie apart; None where a launch has fewer than two of them."""
    found = {}
    for key, one in measured.items():
        ends = [float(intervals.quantile(counts, P50)) for counts in one.by_end]
        ends += [_rate(amount, elapsed_ns, quantity) for amount, elapsed_ns in one.amounts]
        if len(ends) < 2 or min(ends) <= 0:
            return None
        found[key] = max(ends) / min(ends)
    return intervals.over_rounds(found)


def _counted(samples: Sequence[Sample]) -> Counter[str]:
    found: Counter[str] = Counter()
    for sample in samples:
        for name, often in sample.counters.items():
            found[name] += often
    return +found


class CellNumbers(Mapping[str, Numbers]):
    """The numbers of every planned point that has some, by its id. Each is computed once, when it is asked for."""

    def __init__(self, data: Dataset) -> None:
        """Take a campaign's cells, twins as well."""
        self._cells = {cell.point_id: cell for cell in data.planned if cell.samples}
        self._found: dict[str, Numbers] = {}

    def __getitem__(self, point_id: str) -> Numbers:
        """Return the numbers of a point. Raises KeyError where no launch gave a valid sample."""
        if point_id not in self._found:
            self._found[point_id] = _numbers(self._cells[point_id])
        return self._found[point_id]

    def __iter__(self) -> Iterator[str]:
        """Yield the points in the order of the cells."""
        return iter(self._cells)

    def __len__(self) -> int:
        """Return how many points have numbers."""
        return len(self._cells)


_NOTHING: Mapping[str, Any] = MappingProxyType({})


def read_lean(campaign: Campaign, *, costs: bool = False) -> tuple[Dataset, Mapping[str, Numbers]]:
    """Return a campaign without the bulk of its samples, and what they gave, by point: the bulk goes cell by cell.

    Of a sample stay its launch, its operations and the load that it was offered; costs: and what it took of processors,
    and the load that it bore. Percentiles other than those of `Numbers` need the whole one.
    """
    measured: dict[str, Numbers] = {}

    def without_bulk(cell: Cell) -> Cell:
        rule, knee = cell.case.file.one_load, cell.case.file.knee
        names = {rule.offered} if rule else set()
        if knee and costs:
            names |= {knee.offered, knee.achieved}
        made = replace(cell, samples=tuple(_lean(sample, names, costs=costs) for sample in cell.samples))
        if cell.samples:
            measured[cell.point_id] = _numbers(cell, made)
        return made

    data = read(campaign, kept=without_bulk)
    return data, {cell.point_id: measured[cell.point_id] for cell in data.planned if cell.samples}


def _lean(sample: Sample, names: Collection[str], *, costs: bool) -> Sample:
    quantities = {name: one for name, one in sample.quantities.items() if name in names} if names else _NOTHING
    if costs:
        return replace(sample, quantities=quantities)
    return replace(sample, quantities=quantities, cpu=(), counters=_NOTHING)


def _numbers(cell: Cell, kept: Cell | None = None) -> Numbers:
    """Return the numbers of a cell. kept: what stays of it, where that is less."""
    samples, file = cell.samples, cell.case.file
    measures = [dict(sample.quantities.items()) for sample in samples]  # unpacked once
    main = [one[file.main] for one in measures]
    by_round = {
        sample.round: per_launch(measured, file.main_quantity) for sample, measured in zip(samples, main, strict=True)
    }
    histograms = [measured.counts for measured in main if measured.counts]
    p90, p99, p999 = intervals.tails(histograms, (P90, P99, P999)) if histograms else (None, None, None)
    others, caveats = {}, {}
    for name, quantity in file.quantities.items():
        found = {
            key: per_launch(one[name], quantity) for key, one in zip(by_round, measures, strict=True) if name in one
        }
        if name != file.main and found:
            others[name] = intervals.over_rounds(found)
        if quantity.caveat and any(found.values()):
            caveats[name] = sum(value > 0 for value in found.values())
    operations = sum(sample.operations for sample in samples)
    elapsed = sum(sample.elapsed_ns for sample in samples)
    return Numbers(
        cell=kept or cell,
        by_round=by_round,
        own_p99=_own_p99(samples, main) if file.main_quantity.kind == "histogram" else {},
        fewest=min(
            one.counts.total if one.p99_ns is None else sample.operations
            for sample, one in zip(samples, main, strict=True)
        ),
        central=intervals.over_rounds(by_round),
        samples=sum(histogram.total for histogram in histograms),
        p90=p90,
        p99=p99,
        p999=p999,
        pooled=_pooled(main, file.main_quantity),
        apart=apart(dict(zip(by_round, main, strict=True)), file.main_quantity),
        operations_s=units.per_second(operations, elapsed) if elapsed else 0.0,
        others=others,
        operations=operations,
        lost=sum(sample.lost for sample in samples),
        late=sum(sample.late for sample in samples),
        unsteady=sum(not sample.steady for sample in samples),
        disturbed=sum(sample.disturbed for sample in samples),
        caveats=caveats,
        counted={name: count / operations for name, count in sorted(_counted(samples).items())} if operations else {},
        thin=bool(histograms) and any(sample.operations < OPERATIONS_MIN for sample in samples),
    )


def _own_p99(samples: Sequence[Sample], main: Sequence[Measurement]) -> dict[RoundKey, float]:
    return {
        sample.round: float(intervals.quantile(one.counts, P99)) if one.p99_ns is None else one.p99_ns
        for sample, one in zip(samples, main, strict=True)
    }


def tail_by_round(numbers: Numbers, per_mille: int) -> dict[RoundKey, float]:
    """Return each launch's own tail quantile of the main quantity, a histogram."""
    if per_mille == P99:
        return dict(numbers.own_p99)
    main = numbers.cell.case.file.main
    return {
        sample.round: float(intervals.quantile(sample.quantities[main].counts, per_mille))
        for sample in numbers.cell.samples
    }
