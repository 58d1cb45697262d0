# SPDX-License-Identifier: BSD-3-Clause
"""How slow the machine was at each launch, from what the launches next to it in time took.

Each launch is compared with the other launches of its own cells: the median, over its points, of how much longer than
the cell's median they took. A launch's index is the median of that over its neighbours in time, without the two series
that are compared: an index that holds a part of what it corrects would take differences away. It is a logarithm: 0.1 is
ten per cent slower than usual.

That is a running median of residuals (Tukey, Exploratory Data Analysis, 1977, chapter 7), on each side NEIGHBOURS / 2
launches; whether it helps is measured, see harness/bench/estimators.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log

from cadge_analysis.stats.compare import numbers_of
from cadge_analysis.stats.intervals import median
from cadge_analysis.stats.load import Dataset, Series, series_of

NEIGHBOURS = 8
"""Launches on both sides together."""


@dataclass(frozen=True)
class MachineIndex:
    """The launches of a campaign in the order of time, each with its series and how much slower than usual it was."""

    launches: tuple[tuple[str, Series, float], ...]

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return {name: place for place, (name, _, _) in enumerate(self.launches)}

    def at(self, launch_id: str, without: Collection[Series], *, neighbours: int = NEIGHBOURS) -> float:
        """Return the index of a launch; 0 where none of other series stands near it."""
        here = self._place.get(launch_id)
        if here is None:
            return 0.0
        found: list[float] = []
        for way in (range(here - 1, -1, -1), range(here + 1, len(self.launches))):
            taken = 0
            for place in way:
                _, series, slower = self.launches[place]
                if series not in without:
                    found.append(slower)
                    taken += 1
                    if 2 * taken >= neighbours:
                        break
        return median(found) if found else 0.0


def machine_index(data: Dataset) -> MachineIndex:
    """Return the index of a campaign, from all of its cells."""
    slower: dict[str, list[float]] = defaultdict(list)
    for cell in data.planned:
        numbers = numbers_of(cell)
        if numbers is None or len(numbers.by_round) < 2 or min(numbers.by_round.values()) <= 0:
            continue
        usual = log(numbers.central.value)
        way = -1 if numbers.more_is_better else 1
        for sample in cell.samples:
            slower[sample.launch_id].append(way * (log(numbers.by_round[sample.round]) - usual))
    # made again after a stop, a launch stands where it was made
    started = {
        record.launch_id: (record.result.started_utc if record.result else "", at)
        for at, record in enumerate(data.records)
    }
    series = {record.launch_id: series_of(record.launch.subject) for record in data.records}
    ordered = sorted(slower, key=lambda name: started[name])
    return MachineIndex(tuple((name, series[name], median(slower[name])) for name in ordered))
