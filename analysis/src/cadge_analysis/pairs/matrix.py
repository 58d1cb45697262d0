# SPDX-License-Identifier: BSD-3-Clause
"""What a campaign measured over pairs of hosts, as matrices: one for each layer and case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cadge_analysis.pairs.fit import Pair, SlowPart, slow_for_all, stalled_for_all
from cadge_analysis.stats.load import Case, Cell, Dataset, Series
from cadge_analysis.stats.numbers import CellNumbers
from cadge_results.plugins.parameter import Quantity

PAIR = "hosts.pair"
"""The setting by which a plan says over which pair a series runs."""


MEANS_TIMES = 2
"""What is slower by its mean call so many times as much as by its median stalls, and is not just slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMatrix:
    """One layer in one case over pairs of hosts. values: the best of a pair's launches, in the quantity's base unit.

    The best, for a launch that something else disturbed says nothing of a host or a link. missing: pairs that gave no
    number, and why. launches: how many a pair has. spreads: of a pair with more than one, by which share its largest
    value exceeds its smallest. means: of a quantity that is a time, the best launch's time over its operations, in ns.
    """

    series: Series
    case: Case
    quantity: Quantity
    hosts: tuple[str, ...]
    values: Mapping[Pair, float]
    missing: Mapping[Pair, str]
    launches: int
    spreads: Mapping[Pair, float] = field(default_factory=dict)
    means: Mapping[Pair, float] = field(default_factory=dict)

    @property
    def times(self) -> Mapping[Pair, float]:
        """Return the values as times: more is worse."""
        if self.quantity.better == "low":
            return self.values
        return {pair: 1 / value for pair, value in self.values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowFound:
    """A host or link that is slow or stalls in a case, over every layer."""

    case: Case
    part: SlowPart


def matrices(data: Dataset) -> list[PairMatrix]:
    """Return a campaign's matrices, by case and layer; none where it measured no pairs."""
    numbers = CellNumbers(data)
    values: dict[tuple[Case, Series], dict[Pair, float]] = defaultdict(dict)
    missing: dict[tuple[Case, Series], dict[Pair, str]] = defaultdict(dict)
    spreads: dict[tuple[Case, Series], dict[Pair, float]] = defaultdict(dict)
    means: dict[tuple[Case, Series], dict[Pair, float]] = defaultdict(dict)
    for cell in data.planned:
        settings = dict(cell.series.settings)
        if PAIR not in settings or cell.twin:
            continue
        first, _, second = settings.pop(PAIR).partition(",")
        key = cell.case, replace(cell.series, settings=tuple(sorted(settings.items())))
        found = list(numbers[cell.point_id].by_round.values()) if cell.point_id in numbers else []
        if found and min(found) > 0:
            quantity = cell.case.file.main_quantity
            values[key][first, second] = min(found) if quantity.better == "low" else max(found)
            if len(found) > 1:
                spreads[key][first, second] = max(found) / min(found) - 1
            if quantity.kind == "histogram":
                means[key][first, second] = min(one.elapsed_ns / max(1, one.operations) for one in cell.samples)
        else:
            missing[key][first, second] = next((one.reason for one in cell.troubles), cell.state)
    every = sorted(values.keys() | missing.keys(), key=lambda key: (key[0].sort_key, key[1]))
    hosts = tuple(data.meta.testbed.hosts)
    return [
        PairMatrix(
            series=series,
            case=case,
            quantity=case.file.main_quantity,
            hosts=tuple(host for host in hosts if any(host in pair for pair in {**values[key], **missing[key]})),
            values=values[key],
            missing=missing[key],
            launches=data.plan.rounds,
            spreads=spreads[key],
            means=means[key],
        )
        for key in every
        for case, series in [key]
    ]


def slow_of(found: Sequence[PairMatrix]) -> list[SlowFound]:
    """Return what is slow in each case over every layer that was measured there, but for what lost packets explain.

    They take the rate of some of a host's streams by chance, and may delay its median call a little too.
    """
    stalled = list(_stalled(found))
    lossy = {part.hosts for _, part in stalled}
    means = {(case, part.hosts): part.times for case, part in stalled}
    return [
        SlowFound(case=case, part=part)
        for case, of in _by_case(found)
        for part in slow_for_all([one.times for one in of])
        if means.get((case, part.hosts), 0) < MEANS_TIMES * part.times
        and (len(part.hosts) == 1 or not any((host,) in lossy for host in part.hosts))
    ]


def stalled_of(found: Sequence[PairMatrix]) -> list[SlowFound]:
    """Return what stalls in each case over every layer, and is not already slow there."""
    slow = {(one.case, frozenset(one.part.hosts)) for one in slow_of(found)}
    return [
        SlowFound(case=case, part=part) for case, part in _stalled(found) if (case, frozenset(part.hosts)) not in slow
    ]


def _stalled(found: Sequence[PairMatrix]) -> Iterable[tuple[Case, SlowPart]]:
    for case, of in _by_case(found):
        yield from ((case, part) for part in stalled_for_all([one.means for one in of if one.means]))


def _by_case(found: Sequence[PairMatrix]) -> Iterable[tuple[Case, list[PairMatrix]]]:
    by_case: dict[Case, list[PairMatrix]] = defaultdict(list)
    for one in found:
        if one.values:
            by_case[one.case].append(one)
    return by_case.items()


def dead_of(found: Sequence[PairMatrix]) -> dict[Pair, str]:
    """Return the pairs over which no layer gave a number, with a reason."""
    alive = {pair for one in found for pair in one.values}
    return {pair: why for one in found for pair, why in one.missing.items() if pair not in alive}


def without_pairs(data: Dataset) -> Dataset:
    """Return a campaign without its series over pairs of hosts: hosts are compared there, not layers."""

    def kept(cells: Sequence[Cell]) -> tuple[Cell, ...]:
        return tuple(cell for cell in cells if PAIR not in dict(cell.series.settings))

    launches = tuple(launch for launch in data.plan.launches if launch.subject.setting(PAIR) is None)
    points = tuple(point for point in data.plan.points if point.subject.setting(PAIR) is None)
    names = {launch.launch_id for launch in launches}
    return replace(
        data,
        plan=data.plan.model_copy(update={"launches": launches, "points": points}),
        cells=kept(data.cells),
        twins=kept(data.twins),
        records=tuple(record for record in data.records if record.launch.launch_id in names),
        attempts={name: one for name, one in data.attempts.items() if name in names},
    )
