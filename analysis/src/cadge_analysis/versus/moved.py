# SPDX-License-Identifier: BSD-3-Clause
"""What the machine itself did between two campaigns: floors and machine probes, which no layer has a part in.

Where floors take 8 % longer in the second campaign, layers that take 8 % longer there are no news of the layers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log

from cadge_analysis import words
from cadge_analysis.stats.attempt_columns import MACHINE_PROBES
from cadge_analysis.stats.intervals import median
from cadge_analysis.stats.load import Dataset
from cadge_analysis.versus.sides import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """How many times as long something took in the second campaign: the median, and the least and most of its parts."""

    what: str
    parts: int
    log_ratio: float
    least: float
    most: float

    @property
    def ratio(self) -> float:
        """How many times as long it took."""
        return exp(self.log_ratio)


def moved(first: Side, second: Side) -> tuple[Movement, ...]:
    """Return the floors by place, then the machine probes; nothing of what one of the campaigns did not measure."""
    return (*_floors(first, second), *_probes(first.data, second.data))


def _floors(first: Side, second: Side) -> Iterator[Movement]:
    ours, theirs = _floor_logs(first), _floor_logs(second)
    by_place: dict[str, list[float]] = defaultdict(list)
    for key in sorted(ours.keys() & theirs.keys()):
        by_place[key[1]].append(theirs[key] - ours[key])
    for place, logs in by_place.items():
        yield _moved(f"floors {place}", logs)


def _floor_logs(side: Side) -> dict[tuple[str, ...], float]:
    """Return the logarithm of what each floor program took, of rates that of the time."""
    found = {}
    for (kind, *key), numbers in side.everything.items():
        if kind == "floor" and numbers.central.value > 0:
            value = log(numbers.central.value)
            found[tuple(key)] = -value if numbers.more_is_better else value
    return found


def _probes(first: Dataset, second: Dataset) -> Iterator[Movement]:
    ours, theirs = _medians(first), _medians(second)
    for name, place in sorted(ours.keys() & theirs.keys(), key=lambda key: (MACHINE_PROBES.index(key[0]), key[1])):
        yield _moved(f"{words.PROBES[name]}, {place}", [log(theirs[name, place]) - log(ours[name, place])])


def _medians(data: Dataset) -> dict[tuple[str, str], float]:
    seen: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in data.records:
        for values in data.attempts[record.launch_id].every_around():
            for name, value in values.items():
                seen[name, record.launch.place].append(value)
    found = {key: median(values) for key, values in seen.items()}
    return {key: value for key, value in found.items() if value > 0}


def _moved(what: str, logs: list[float]) -> Movement:
    return Movement(what=what, parts=len(logs), log_ratio=median(logs), least=exp(min(logs)), most=exp(max(logs)))
