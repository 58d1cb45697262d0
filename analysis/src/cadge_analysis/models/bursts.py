# SPDX-License-Identifier: BSD-3-Clause
"""Which points of a campaign are bursts that a model is fitted to, by what their pattern's file says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from cadge_analysis.models.fit import LaunchReading
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import median
from cadge_analysis.stats.load import Cell, Dataset, Sample, Series
from cadge_analysis.stats.numbers import per_launch
from cadge_results.formats.point import Value
from cadge_results.plugins.rules import FitsOf

Choices = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True, order=True)
class FitKey:
    """What one fit is of."""

    place: str
    wait: str
    pattern: str
    series: Series
    choices: Choices
    """Values of the parameters that are no input of the model."""


def groups(data: Dataset) -> dict[FitKey, tuple[tuple[FitsOf, Cell], ...]]:
    """Return the points of each fit that gave numbers."""
    found: dict[FitKey, list[tuple[FitsOf, Cell]]] = defaultdict(list)
    for cell in data.cells:
        case, spec = cell.case, cell.case.file.fits
        if spec is None or cell.series.kind != "layer" or not cell.samples:
            continue
        own = tuple((name, case.workload[name]) for name in case.file.parameters if name not in spec.parameters)
        found[FitKey(case.place, case.wait, case.pattern, cell.series, own)].append((spec, cell))
    return {key: tuple(found[key]) for key in sorted(found)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A point: how many messages of which size, and which delay; and what each launch's medians are, by quantity."""

    messages: int
    size: int
    delay_percent: int
    times: Mapping[RoundKey, Mapping[str, float]]


def _medians(sample: Sample, cell: Cell, spec: FitsOf) -> dict[str, float]:
    found = {}
    for role, name in zip(("burst", "single", "undelayed", "receive"), spec.quantities, strict=True):
        if name in sample.quantities:
            found[role] = per_launch(sample.quantities[name], cell.case.file.quantities[name])
    return found


def bursts(cells: Iterable[tuple[FitsOf, Cell]]) -> tuple[Burst, ...]:
    """Return the points of one fit by what they are to the model."""
    return tuple(
        Burst(
            messages=cell.case.workload.integer(spec.messages),
            size=cell.case.workload.integer(spec.bytes),
            delay_percent=cell.case.workload.integer(spec.delay),
            times={sample.round: _medians(sample, cell, spec) for sample in cell.samples},
        )
        for spec, cell in cells
    )


def fitted_messages(points: Sequence[Burst]) -> int:
    """Return how many messages the bursts have that a model is fitted to: the most; all others are held out."""
    return max((one.messages for one in points if not one.delay_percent), default=0)


def readings(points: Sequence[Burst]) -> Iterator[LaunchReading]:
    """Yield what each launch says of each size."""
    messages = fitted_messages(points)
    mine = sorted((one for one in points if one.messages == messages), key=lambda one: one.size)
    for size, here in groupby(mine, key=lambda one: one.size):
        at_size = list(here)
        delayed = [one for one in at_size if one.delay_percent]
        for point in (one for one in at_size if not one.delay_percent):
            for launch, times in sorted(point.times.items()):
                if "burst" in times and "single" in times and messages > 1:
                    yield _reading(launch, size, messages, times, delayed)


def _reading(
    launch: RoundKey, size: int, messages: int, times: Mapping[str, float], delayed: Sequence[Burst]
) -> LaunchReading:
    gap_ns = (times["burst"] - times["single"]) / (messages - 1)
    beside = [(one.delay_percent, one.times[launch]) for one in delayed if launch in one.times]
    sends = [
        (found["undelayed"] - found["single"]) / (messages - 1)
        for percent, found in beside
        # what stands in the way of the next message must be over when the delay is
        if "undelayed" in found and "single" in found and percent * found["single"] >= 100 * gap_ns
    ]
    takes = [found["receive"] for _, found in beside if "receive" in found]
    singles = [times["single"], *(found["single"] for _, found in beside if "single" in found)]
    return LaunchReading(
        launch=launch,
        size=size,
        one_way_ns=median(singles) / 2,
        gap_ns=gap_ns,
        send_ns=median(sends) if sends else None,
        receive_ns=median(takes) if takes else None,
    )
