# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of each cell, its floor, its ratio to that floor, and layers against each other.

A floor is the fastest bare exchange of the same bytes at the same place and in the same wait mode, measured in the same
campaign: of all floors measured at that very size, the one with the lowest median over launches of the p50 (for streams
the highest rate). It is never interpolated. A round trip is compared with a floor's round trip of the same size each
way, at depth 1; asymmetric, deeper and one-sided cells have no like-for-like floor and say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cadge_analysis import units
from cadge_analysis.stats import intervals
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate, Tail
from cadge_analysis.stats.load import Case, Cell, Dataset, RoundKey, Sample, Series

P50, P99, P999 = 500, 990, 999
FloorKey = tuple[str, str, str, int]  # place, wait, "latency" or "rate", bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuPerOperation:
    """CPU time an operation, user and system together, in ns: total time of all launches ÷ total operations."""

    client_ns: float
    server_ns: float

    @property
    def both_ns(self) -> float:
        """Client and server together: work that one side's kernel does for the other is in no single side."""
        return self.client_ns + self.server_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What a cell measured. `central` is the p50 in ns, for a stream the rate in MB/s."""

    cell: Cell
    by_round: Mapping[RoundKey, float]
    central: Estimate
    samples: int
    p99: Tail | None
    p999: Tail | None
    pooled_mb_s: float
    operations_s: float
    remote: Estimate | None
    cpu: CpuPerOperation | None
    switches: tuple[float, float] | None
    operations: int
    lost: int
    late: int
    unsteady: int

    @property
    def is_rate(self) -> bool:
        """True where more is better."""
        return self.cell.case.pattern == "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measured cell beside its floor. `reason` says why there is no floor. `above` is None for rates."""

    numbers: Numbers
    floor: Numbers | None
    ratio: Estimate | None
    above: Estimate | None
    reason: str | None

    @property
    def cell(self) -> Cell:
        """The cell itself."""
        return self.numbers.cell

    @property
    def beats_floor(self) -> bool:
        """True where the median is better than its floor: an error of ours, or a weak floor."""
        if self.ratio is None:
            return False
        return self.ratio.value > 1 if self.numbers.is_rate else self.ratio.value < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All measured cells of the layers with their floors, and the floors themselves."""

    data: Dataset
    rows: tuple[Row, ...]
    floors: Mapping[FloorKey, Numbers]
    floor_numbers: tuple[Numbers, ...]


def _per_launch(sample: Sample, pattern: str) -> float:
    """Return a launch's own number: bytes ÷ time for a stream (MB/s), the median of its histogram otherwise (ns)."""
    if pattern == "stream":
        return units.mb_per_s(sample.bytes, sample.elapsed_ns)
    return float(intervals.quantile(sample.histogram or (), P50))


def _cpu(samples: tuple[Sample, ...], operations: int) -> CpuPerOperation | None:
    """Return CPU time an operation over all launches; None unless every launch has it for both sides."""
    if not operations or any(not sample.cpu for sample in samples):
        return None
    client = sum(sample.cpu[0].user_ns + sample.cpu[0].system_ns for sample in samples)
    server = sum(use.user_ns + use.system_ns for sample in samples for use in sample.cpu[1:])
    return CpuPerOperation(client_ns=client / operations, server_ns=server / operations)


def _switches(samples: tuple[Sample, ...], operations: int) -> tuple[float, float] | None:
    """Return voluntary context switches an operation, client and server."""
    if not operations or any(not sample.cpu for sample in samples):
        return None
    client = sum(sample.cpu[0].voluntary_switches for sample in samples)
    server = sum(use.voluntary_switches for sample in samples for use in sample.cpu[1:])
    return client / operations, server / operations


def numbers_of(cell: Cell) -> Numbers | None:
    """Return the numbers of a cell, or None where no launch gave a valid sample."""
    samples, pattern = cell.samples, cell.case.pattern
    if not samples:
        return None
    by_round = {sample.round: _per_launch(sample, pattern) for sample in samples}
    histograms = [sample.histogram for sample in samples if sample.histogram]
    remotes = [sample.remote for sample in samples if sample.remote]
    operations = sum(sample.operations for sample in samples)
    elapsed = sum(sample.elapsed_ns for sample in samples)
    return Numbers(
        cell=cell,
        by_round=by_round,
        central=intervals.over_launches(list(by_round.values())),
        samples=sum(intervals.size_of(histogram) for histogram in histograms),
        p99=intervals.tail(histograms, P99) if histograms else None,
        p999=intervals.tail(histograms, P999) if histograms else None,
        pooled_mb_s=units.mb_per_s(sum(sample.bytes for sample in samples), elapsed),
        operations_s=units.per_second(operations, elapsed),
        remote=intervals.over_launches([float(intervals.quantile(h, P50)) for h in remotes]) if remotes else None,
        cpu=_cpu(samples, operations),
        switches=_switches(samples, operations),
        operations=operations,
        lost=sum(sample.lost for sample in samples),
        late=sum(sample.late for sample in samples),
        unsteady=sum(not sample.steady for sample in samples),
    )


def floor_key(case: Case) -> FloorKey | str:
    """Return what a case's floor must have measured, or the sentence why there can be none."""
    if case.pattern == "stream":
        return case.place, case.wait, "rate", case.request_bytes
    if case.pattern == "onesided":
        return "a floor is an exchange in both directions; a one-sided operation has no floor of its kind"
    if case.request_bytes != case.reply_bytes:
        return "request and reply differ in size; a floor exchanges the same bytes both ways"
    if case.depth != 1:
        return "a floor has one operation in flight"
    return case.place, case.wait, "latency", case.request_bytes


def _better(one: Numbers, other: Numbers) -> bool:
    if one.is_rate:
        return one.central.value > other.central.value
    return one.central.value < other.central.value


def fastest_floors(floors: Iterable[Numbers]) -> dict[FloorKey, Numbers]:
    """Return the fastest floor of each place, wait mode and size; equal ones by name."""
    best: dict[FloorKey, Numbers] = {}
    for numbers in sorted(floors, key=lambda n: n.cell.series):
        key = floor_key(numbers.cell.case)
        if isinstance(key, str):
            continue
        if key not in best or _better(numbers, best[key]):
            best[key] = numbers
    return best


def _row(numbers: Numbers, floors: Mapping[FloorKey, Numbers]) -> Row:
    key = floor_key(numbers.cell.case)
    if isinstance(key, str):
        return Row(numbers=numbers, floor=None, ratio=None, above=None, reason=key)
    floor = floors.get(key)
    if floor is None:
        reason = f"no floor was measured here at {units.size(key[3])} in {key[1]} mode"
        return Row(numbers=numbers, floor=None, ratio=None, above=None, reason=reason)
    return Row(
        numbers=numbers,
        floor=floor,
        ratio=intervals.ratio(numbers.by_round, floor.by_round),
        above=None if numbers.is_rate else intervals.difference(numbers.by_round, floor.by_round),
        reason=None,
    )


def compare(data: Dataset) -> Comparison:
    """Return every measured cell beside its floor."""
    measured = [numbers for numbers in map(numbers_of, data.cells) if numbers is not None]
    floor_numbers = tuple(n for n in measured if n.cell.series.kind == "floor")
    floors = fastest_floors(floor_numbers)
    rows = tuple(_row(n, floors) for n in measured if n.cell.series.kind == "layer")
    return Comparison(data=data, rows=rows, floors=floors, floor_numbers=floor_numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The series of one case from best to worst; for each the ratio to the best (None for the best itself)."""

    case: Case
    best: Row
    others: tuple[tuple[Row, Estimate], ...]

    def undecided(self) -> tuple[Series, ...]:
        """Return the series that cannot be told apart from the best: see `decided`."""
        return tuple(row.cell.series for row, ratio in self.others if not decided(ratio))


def decided(ratio: Estimate) -> bool:
    """Tell whether a ratio's interval covers at least 95 % and lies wholly on one side of 1."""
    if ratio.low is None or ratio.high is None or ratio.coverage < TARGET_COVERAGE:
        return False
    return ratio.low > 1 or ratio.high < 1


def standing(rows: Iterable[Row]) -> Standing | None:
    """Return how the series of one case stand to each other (all rows of one case, or nothing)."""
    ordered = sorted(
        rows,
        key=lambda r: (-r.numbers.central.value if r.numbers.is_rate else r.numbers.central.value, r.cell.series),
    )
    if not ordered:
        return None
    best = ordered[0]
    return Standing(
        case=best.cell.case,
        best=best,
        others=tuple((row, intervals.ratio(row.numbers.by_round, best.numbers.by_round)) for row in ordered[1:]),
    )
