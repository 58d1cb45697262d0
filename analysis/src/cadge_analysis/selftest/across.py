# SPDX-License-Identifier: BSD-3-Clause
"""A against A, cell by cell over all campaigns: whether any cell differs from itself, with rounds enough to see it.

Nine rounds of one campaign cannot single out one of 200 cells at 1 %. All rounds of five campaigns together can, by
their signed ranks (signed_rank.py). Their correlation is estimated over all cells and campaigns, and allowed for, as
everywhere (serial.py). All cells are one family (families.py).

By simulation of 40 self-tests each, of 200 cells whose paired rounds spread by 10 %: of those in which nothing differs
none calls two cells; nor where nine rounds are wrong twice as often as they say because rounds follow each other, which
is allowed for, or because each campaign shifts each cell anew. Where cells have shifts that stay through all campaigns,
as large, 98 % do; where one layer's second copy is 2, 3 or 5 % slower in all of its 50 cells, 0, 18 and 100 %; where
all four layers' are, 15, 93 and 100 % (harness/bench/verdicts/alike_cells.py --tests 40, which has the other criteria
as well: any of them fails in 0, 88, 93, 100, 5, 23, 100, 43, 100 and 100 %).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from cadge_analysis.stats.inference import signed_rank
from cadge_analysis.stats.inference.families import findings, level_of
from cadge_analysis.stats.inference.serial import Serial, error_for, serial_correlation

Rounds = Mapping[Hashable, Sequence[float]]
"""Of one campaign: each cell's paired log-ratios in the order of rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignsCheck:
    """What came of it. `called`: cells that differ from themselves after correction; `rounds`: the most of a cell.

    `possible`: a single cell could have been called. `p`: the smallest of all.
    """

    cells: int
    rounds: int
    called: int
    p: float
    possible: bool
    serial: Serial | None

    @property
    def withheld(self) -> bool:
        """True where rounds are too much alike for an answer."""
        return self.serial is not None and self.serial.withheld


def across(campaigns: Sequence[Rounds], error: float) -> CampaignsCheck:
    """Judge every cell of some campaigns by all of its rounds."""
    found = [{name: tuple(values) for name, values in one.items() if values} for one in campaigns]
    serial = serial_correlation(
        (values for one in found for values in one.values()), baselines=max(1, sum(map(bool, found)))
    )
    error = error_for(serial.used if serial else 0.0, error)
    rounds: dict[Hashable, list[float]] = defaultdict(list)
    for one in found:
        for name, values in one.items():
            rounds[name] += values
    ps = [signed_rank.p_value(values) for values in rounds.values()]
    longest = max(map(len, rounds.values()), default=0)
    return CampaignsCheck(
        cells=len(ps),
        rounds=longest,
        called=findings(ps, error),
        p=min(ps, default=1.0),
        possible=bool(ps) and signed_rank.two_sided(longest, 0) <= level_of(1, len(ps), error),
        serial=serial,
    )
