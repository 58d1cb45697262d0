# SPDX-License-Identifier: BSD-3-Clause
"""A stall that was planted at one end: whether calls at a rate of their own show it, and a closed loop does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import median, quantile
from cadge_analysis.stats.load import Cell, Dataset

STALL = "delay.stall_ns"
P99 = 990
SHOWN_NS = 2_500_000
"""With 5 ms in every 100 ms one call in twenty is due in a stall, and one in a hundred waits for 4 ms of it."""
CLOSED_MOST = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class StallReading:
    """The p99 with the stall and without: medians over launches of each launch's own, in ns."""

    load_with_ns: float
    load_without_ns: float
    closed_ratio: float
    """Of the closed loop's p99, with by without, round by round."""
    launches: int
    disturbed: int

    @property
    def shown(self) -> bool:
        """Whether the open loop shows it."""
        return self.load_with_ns > SHOWN_NS

    @property
    def own(self) -> bool:
        """Whether the machine stalls as long by itself: then nothing can be said."""
        return self.load_without_ns > SHOWN_NS

    @property
    def closed_alike(self) -> bool:
        """Whether the closed loop shows nothing."""
        return 1 / CLOSED_MOST <= self.closed_ratio <= CLOSED_MOST


def _p99(cell: Cell) -> Mapping[RoundKey, int]:
    main = cell.case.file.main
    return {one.round: quantile(one.quantities[main].counts, P99) for one in cell.samples if main in one.quantities}


def stalled(data: Dataset) -> StallReading | None:
    """Return what a campaign of the sweep selftest-stall says; None where a side has no launch."""
    sides: dict[tuple[str, bool], Mapping[RoundKey, int]] = {}
    disturbed = 0
    for cell in data.cells:
        sides[cell.case.file.loop, STALL in dict(cell.series.settings)] = _p99(cell)
        disturbed += sum(one.disturbed for one in cell.samples)
    loads = [list(sides.get(("open", stalls), {}).values()) for stalls in (True, False)]
    closed = [sides.get(("closed", stalls), {}) for stalls in (True, False)]
    both = sorted(set(closed[0]) & set(closed[1]))
    if not all(loads) or not both:
        return None
    return StallReading(
        load_with_ns=median(loads[0]),
        load_without_ns=median(loads[1]),
        closed_ratio=median([closed[0][key] / closed[1][key] for key in both]),
        launches=len(both),
        disturbed=disturbed,
    )
