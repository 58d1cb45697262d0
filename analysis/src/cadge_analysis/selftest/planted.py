# SPDX-License-Identifier: BSD-3-Clause
"""Delays that were planted: how often they are found, and how often the interval holds what was really planted.

What was planted is measured in place: the shim counts how long it spun, in the processes and over the operations that
were timed (`delay.worked_ns`), for a spin lasts longer than it was told to. Both sides spin, one of them longer: a
reading of the clock waits for everything before it, and who waits for the other side's message does so otherwise in the
first 100 ns than later (a spin of 100 ns beside none lengthened a round trip of peregrine-shm by 212 ns, not 204;
one of 200 ns beside one of 100 ns did by 199, of 200). The launches are cut into series, one after the other: each
is what a campaign of so many launches would have been, with its own drift, and none has a launch of another. A series
finds a delay where the interval of its paired differences, the one that reports use, lies wholly above zero.

What the planner would have said beforehand is told beside: the share of pairs of rounds whose mean shows the delayed
side as the slower one, by how the rounds of the *largest* planted delay scatter around their middle, gives the power
(Noether, see signed_rank.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from cadge_analysis.groups import by_key
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.signed_rank import averages, launches_to_decide, power
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate, median, over_pairs
from cadge_analysis.stats.load import Cell, Dataset
from cadge_analysis.stats.numbers import CellNumbers, Numbers

SEND = "delay.send_ns"
WORKED = "delay.worked_ns"
SERIES_LAUNCHES = 30
USUAL_NS = 100
"""How long the side without a delay spins before each message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a layer's round trip takes, with the spins that both sides have, and where its bytes go."""

    layer: str
    round_trip_ns: float
    medium: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayReading:
    """One planted delay: what it really was, and what each series says of it. Times are of a round trip, in ns."""

    layer: str
    asked_ns: int
    round_trip_ns: float
    truth_ns: float
    """Over all launches; each series is held against its own."""
    series: tuple[Estimate, ...]
    truths_ns: tuple[float, ...]
    disturbed: int
    predicted_share: float
    clock_step_ns: float = 0.0

    @property
    def found(self) -> int:
        """In how many series the interval lies above zero."""
        return sum(one.low is not None and one.coverage >= TARGET_COVERAGE and one.low > 0 for one in self.series)

    @property
    def held(self) -> int:
        """In how many series the interval holds the truth, give or take a step of the clock: no median is nearer."""
        step = self.clock_step_ns
        return sum(
            one.low is not None and one.high is not None and one.low - step <= truth <= one.high + step
            for one, truth in zip(self.series, self.truths_ns, strict=True)
        )

    @property
    def predicted(self) -> float:
        """With which probability the planner says that a series finds it."""
        return power(SERIES_LAUNCHES, self.predicted_share, ERROR)

    @property
    def launches_needed(self) -> int | None:
        """How many launches the planner asks for, to find it in four of five; None: more than anybody makes."""
        return launches_to_decide(round(self.predicted_share, 3), ERROR)


def _send_ns(cell: Cell) -> int:
    return int(dict(cell.series.settings)[SEND])


def _by_layer(data: Dataset) -> Mapping[str, list[Cell]]:
    """Return the cells of each layer by how long they were told to spin, the shortest first: it stands for none."""
    return by_key(sorted(data.cells, key=lambda one: (_send_ns(one), one.series)), lambda cell: cell.series.layer)


def worked_ns(cell: Cell) -> dict[RoundKey, float]:
    """Return by launch how long both ends together spun for a round trip."""
    return {one.round: one.counters.get(WORKED, 0) / one.operations for one in cell.samples if one.operations}


def calibrations(data: Dataset) -> tuple[Calibration, ...]:
    """Return what the campaign of the sweep selftest-find found out, the quickest layer first."""
    medium = {
        record.launch.layer: record.result.path[0].medium
        for record in data.records
        if record.result is not None and record.result.path
    }
    numbers = CellNumbers(data)
    found = [
        Calibration(
            layer=cell.series.layer,
            round_trip_ns=numbers[cell.point_id].central.value,
            medium=medium.get(cell.series.layer, ""),
        )
        for cell in data.cells
        if cell.samples
    ]
    return tuple(sorted(found, key=lambda one: one.round_trip_ns))


def send_ns(wanted_ns: float) -> int:
    """Return what both ends are told to spin, so that a round trip takes so much longer than with USUAL_NS."""
    return USUAL_NS + max(1, round(wanted_ns / 2))


def planted(data: Dataset) -> tuple[DelayReading, ...]:
    """Return what a campaign of the sweep selftest-delay says of each delay, layer by layer."""
    return tuple(
        one for cells in _by_layer(data).values() for one in _of_layer(cells, CellNumbers(data), data.clock_step_ns)
    )


def _of_layer(cells: Sequence[Cell], every: Mapping[str, Numbers], step_ns: float) -> Iterator[DelayReading]:
    measured = [(cell, every[cell.point_id]) for cell in cells if cell.samples]
    if len(measured) < 2 or measured[0][0] is not cells[0]:
        return
    (_, base), *others = measured
    without, least = base.by_round, worked_ns(cells[0])
    scatter = _scatter(without, max(others, key=lambda one: _send_ns(one[0]))[1].by_round)
    scattered = averages(scatter)
    for cell, numbers in others:
        spun, with_it = worked_ns(cell), numbers.by_round
        spun = {key: value - least[key] for key, value in spun.items() if key in least}
        series, truths = [], []
        for rounds in _series(sorted(set(without) & set(with_it) & set(spun))):
            series.append(over_pairs([with_it[key] - without[key] for key in rounds]))
            truths.append(median([spun[key] for key in rounds]))  # as what it is held against
        if not series:
            continue
        truth = median(truths)
        step = log(1 + truth / base.central.value)
        yield DelayReading(
            layer=cell.series.layer,
            asked_ns=_send_ns(cell),
            round_trip_ns=base.central.value,
            truth_ns=truth,
            series=tuple(series),
            truths_ns=tuple(truths),
            disturbed=numbers.disturbed + base.disturbed,
            predicted_share=sum(one + step > 0 for one in scattered) / len(scattered),
            clock_step_ns=step_ns,
        )


def _scatter(without: Mapping[RoundKey, float], with_it: Mapping[RoundKey, float]) -> list[float]:
    """Return how the rounds' log-ratios lie around their median."""
    ratios = [log(with_it[key] / without[key]) for key in sorted(set(without) & set(with_it))]
    middle = median(ratios)
    return [one - middle for one in ratios]


def _series(rounds: Sequence[RoundKey]) -> Iterator[Sequence[RoundKey]]:
    """Cut rounds into series of SERIES_LAUNCHES by their numbers, so that no round shifts another into a series."""
    by_number = by_key(rounds, lambda key: key[0] // SERIES_LAUNCHES)
    # a few launches that failed leave a series what it is
    yield from (found for _, found in sorted(by_number.items()) if len(found) >= SERIES_LAUNCHES - 3)
