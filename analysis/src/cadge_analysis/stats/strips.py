# SPDX-License-Identifier: BSD-3-Clause
"""Launches in the order in which they ran: what moved all points of a launch at once, and its machine probe beside it.

A launch's *effect* is the median, over its valid attempts, of the value divided by the median of its cell; of what is
better high the inverse, so that above one is always slower. What is left of it after the cells' own medians is the
launch: its memory, its processors, the hour. The drift is the slope of the logarithm of effects against time by Theil
and Sen (Sen, Journal of the American Statistical Association 63, 1968, p. 1379): the median of the slopes of all pairs,
with the interval of ranks at 95 %.

How much of what launches differ by goes with the state of the machine is for each probe the share of the variance
between launches that a straight line explains, within cells: of each valid attempt the logarithms of its central value
and of the probe around it, less their means in the cell; the squared correlation over all attempts of a group (an
analysis of covariance with one slope a group). Nothing in a report is adjusted by it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean, median

import numpy as np

from cadge_analysis.stats.attempt_columns import MACHINE_PROBES
from cadge_analysis.stats.load import Cell, Dataset, Series, series_of
from cadge_analysis.stats.numbers import CellNumbers, Numbers, per_launch

SAMPLES_MIN = 3
"""Cells of fewer launches have no usual value that a launch could be off."""
PAIRED_MAX = 1200
"""Of more launches every so many is taken for the drift: pairs grow with the square."""
ALONE_SHARE = 0.05
GAP_SHARE = 0.1
"""Launches at either end, that share of all at most, behind a gap of that share of the others' time: they stand alone.

So do those that are made again when all others have ended; a slope of the others says nothing of the hour between.
"""

LAUNCHES_MIN = 5
"""Cells with fewer launches say too little of what launches differ by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchEffect:
    """One launch: when it began, its effect (None: no valid attempt says), and the account of its attempts.

    probed: the mean of what its processes measured of the machine, in ns, by probe. disturbed and unsteady ones are
    used, and tagged; rejected ones gave no number, though their point was not refused.
    """

    launch_id: str
    series: Series
    place: str
    wait: str
    started: datetime
    effect: float | None
    used: int
    disturbed: int
    unsteady: int
    rejected: int
    probed: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchDrift:
    """By what factor launches became slower from the first to the last, with its interval at 95 %.

    begin and end: when the first and the last of them were made; `apart` further ones stand alone, and are not in it.
    """

    factor: float
    low: float
    high: float
    begin: datetime
    end: datetime
    apart: int


def launches(data: Dataset, numbers: Mapping[str, Numbers] | None = None) -> tuple[LaunchEffect, ...]:
    """Return the layers' launches that began, in the order of time. numbers: of its cells, where they are at hand."""
    numbers = CellNumbers(data) if numbers is None else numbers
    ratios: dict[str, list[float]] = defaultdict(list)
    tagged: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for cell in data.planned:
        if cell.series.kind != "layer" or not cell.samples:
            continue
        quantity, by_round = cell.case.file.main_quantity, numbers[cell.point_id].by_round
        values = [by_round[sample.round] for sample in cell.samples]
        usual = median(values)
        for sample, value in zip(cell.samples, values, strict=True):
            tagged[sample.launch_id].append((sample.disturbed, not sample.steady))
            if len(values) >= SAMPLES_MIN and usual > 0 and value > 0:
                ratios[sample.launch_id].append(usual / value if quantity.better == "high" else value / usual)
    refused = {cell.point_id for cell in data.planned if cell.state == "refused"}
    planned = {one.launch_id: len(set(one.point_ids) - refused) for one in data.plan.launches}
    found = []
    for record in data.records:
        if record.result is None or record.launch.subject.kind != "layer":
            continue
        name = record.launch_id
        looks = [near for near in data.attempts[name].every_around() if near]
        found.append(
            LaunchEffect(
                launch_id=name,
                series=series_of(record.launch.subject),
                place=record.launch.place,
                wait=record.launch.wait,
                started=datetime.fromisoformat(record.result.started_utc),
                effect=median(ratios[name]) if ratios[name] else None,
                used=len(tagged[name]),
                disturbed=sum(disturbed for disturbed, _ in tagged[name]),
                unsteady=sum(unsteady for _, unsteady in tagged[name]),
                rejected=max(0, planned.get(name, 0) - len(tagged[name])),
                probed={
                    one: fmean(near[one] for near in looks if one in near)
                    for one in MACHINE_PROBES
                    if any(one in near for near in looks)
                },
            )
        )
    return tuple(sorted(found, key=lambda ran: (ran.started, ran.launch_id)))


def _together(known: Sequence[LaunchEffect]) -> Sequence[LaunchEffect]:
    """Return launches without the few at either end that stand alone, far from all others."""
    for _ in range(2):
        seconds = [abs((one.started - known[0].started).total_seconds()) for one in known]
        few = int(ALONE_SHARE * len(known))
        alone = (k for k in range(few, 0, -1) if seconds[-k] - seconds[-k - 1] > GAP_SHARE * seconds[-k - 1])
        known = known[: len(known) - next(alone, 0)][::-1]  # and the other end
    return known


def drift(ran: Sequence[LaunchEffect]) -> LaunchDrift | None:
    """Return the drift of launches in the order of time; None where too few say anything, or no time passed."""
    every = [one for one in ran if one.effect]
    used = _together(every)
    known = [(one.started.timestamp(), math.log(one.effect)) for one in used if one.effect]
    known = known[:: -(-len(known) // PAIRED_MAX) or 1]
    n = len(known)
    if n < 2 * SAMPLES_MIN:
        return None
    seconds, logs = (np.array(column) for column in zip(*known, strict=True))
    first, second = np.triu_indices(n, 1)
    apart = seconds[second] - seconds[first]
    slopes = np.sort((logs[second] - logs[first])[apart > 0] / apart[apart > 0])
    if not len(slopes):
        return None
    reach = 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(0, math.floor((len(slopes) - reach) / 2) - 1)
    high = len(slopes) - 1 - low
    ends = (float(np.median(slopes)), float(slopes[low]), float(slopes[high]))
    begin, end = used[0].started, used[-1].started
    factor, least, most = (math.exp(slope * (end - begin).total_seconds()) for slope in ends)
    return LaunchDrift(factor=factor, low=least, high=most, begin=begin, end=end, apart=len(every) - len(used))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeShare:
    """What one machine probe explains in one group of cells."""

    probe: str
    cells: int
    attempts: int
    share: float
    """Of the variance between launches: 0 to 1."""
    slope: float
    """A machine probe twice as large goes with a value 2 ** slope times as large."""


def _deviations(values: Sequence[float]) -> list[float]:
    logs = [math.log(value) for value in values]
    middle = fmean(logs)
    return [one - middle for one in logs]


def explained(data: Dataset, cells: Sequence[Cell]) -> tuple[ProbeShare, ...]:
    """Return what each probe explains of these cells of a campaign; nothing where too few launches were made."""
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    used: dict[str, int] = defaultdict(int)
    for cell in cells:
        quantity, name = cell.case.file.main_quantity, cell.case.file.main
        measured = [
            (data.around(one.launch_id, cell.point_id), per_launch(one.quantities[name], quantity))
            for one in cell.samples
        ]
        for probe in MACHINE_PROBES:
            both = [(near[probe], value) for near, value in measured if probe in near and value > 0]
            if len(both) < LAUNCHES_MIN:
                continue
            state, value = zip(*both, strict=True)
            pairs[probe] += zip(_deviations(state), _deviations(value), strict=True)
            used[probe] += 1
    return tuple(_explained(probe, pairs[probe], used[probe]) for probe in pairs)


def _explained(probe: str, pairs: Sequence[tuple[float, float]], cells: int) -> ProbeShare:
    xx, yy, xy = (math.fsum(terms) for terms in zip(*((x * x, y * y, x * y) for x, y in pairs), strict=True))
    return ProbeShare(
        probe=probe,
        cells=cells,
        attempts=len(pairs),
        share=xy * xy / (xx * yy) if xx and yy else 0.0,
        slope=xy / xx if xx else 0.0,
    )
