# SPDX-License-Identifier: BSD-3-Clause
"""How much of what launches differ by goes with the state that the machine was in, as their witness measured it.

For each witness: the share of the variance between launches that a straight line explains, within cells. Of each valid
attempt the logarithms of its central value and of the witness around it (before and after, both endpoints) are taken;
the mean of its cell is subtracted from both; and the squared correlation over all attempts of a group is the share (an
analysis of covariance with one slope a group). Nothing in a report is adjusted by it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from cadge_analysis.stats.compare import per_launch
from cadge_analysis.stats.load import Cell, Dataset
from cadge_results import LaunchRecord
from cadge_results.result import Witness

WITNESSES = ("line_ns", "copy_ns", "clock_ns")
LAUNCHES_MIN = 5
"""Cells with fewer launches say too little of what launches differ by."""

Around = Mapping[str, float]
"""What was measured around an attempt, by witness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What one witness explains in one group of cells."""

    witness: str
    cells: int
    attempts: int
    share: float
    """Of the variance between launches: 0 to 1."""
    slope: float
    """A witness twice as large goes with a value 2 ** slope times as large."""


def around(record: LaunchRecord) -> dict[str, Around]:
    """Return what was measured around each attempt of a launch, by point."""
    if record.result is None:
        return {}
    found: dict[str, Around] = {}
    looks: dict[int, list[Witness]] = defaultdict(list)
    for look in record.result.witness:
        looks[look.at].append(look)
    for attempt in record.result.attempts:
        near = [*looks[attempt.order], *looks[attempt.order + 1]]
        values = {name: [v for one in near if (v := getattr(one, name)) is not None] for name in WITNESSES}
        found[attempt.point_id] = {name: fmean(several) for name, several in values.items() if several}
    return found


def _deviations(values: Sequence[float]) -> list[float]:
    logs = [math.log(value) for value in values]
    middle = fmean(logs)
    return [one - middle for one in logs]


def explained(data: Dataset, cells: Sequence[Cell]) -> tuple[Explained, ...]:
    """Return what each witness explains of these cells of a campaign; nothing where too few launches were made."""
    known = {record.launch_id: around(record) for record in data.records}
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    used: dict[str, int] = defaultdict(int)
    for cell in cells:
        quantity, name = cell.case.file.main_quantity, cell.case.file.main
        measured = [(one, per_launch(one.quantities[name], quantity)) for one in cell.samples]
        for witness in WITNESSES:
            both = [
                (near[witness], value)
                for one, value in measured
                if witness in (near := known.get(one.launch_id, {}).get(cell.point_id, {})) and value > 0
            ]
            if len(both) < LAUNCHES_MIN:
                continue
            state, value = zip(*both, strict=True)
            pairs[witness] += zip(_deviations(state), _deviations(value), strict=True)
            used[witness] += 1
    return tuple(_explained(witness, pairs[witness], used[witness]) for witness in pairs)


def _explained(witness: str, pairs: Sequence[tuple[float, float]], cells: int) -> Explained:
    xx, yy, xy = (math.fsum(terms) for terms in zip(*((x * x, y * y, x * y) for x, y in pairs), strict=True))
    return Explained(
        witness=witness,
        cells=cells,
        attempts=len(pairs),
        share=xy * xy / (xx * yy) if xx and yy else 0.0,
        slope=xy / xx if xx else 0.0,
    )
