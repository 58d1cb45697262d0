# SPDX-License-Identifier: BSD-3-Clause
"""A against A, cell by cell over all campaigns: whether any cell differs from itself, with rounds enough to see it.

Nine rounds of one campaign stand up to 200 cells at 1 % only where they lie far away from zero (range_test.py), and by
their signs never. The rounds of five campaigns can, by their signs. Campaigns are blocks: rounds follow each other
within one, and start anew with the next, so that how many of a cell's differences lie above zero is a sum of
independent walks of signs (signs.py), exactly. Their correlation is estimated over all cells and campaigns, and allowed
for, as everywhere (serial.py). All cells are one family, by BY's rule (families.py).

By simulation of 400 self-tests each, of 200 cells whose paired rounds spread by 10 %: of those in which nothing differs
none calls two cells; nor where nine rounds are wrong twice as often as they say because rounds follow each other, which
is allowed for, or because each campaign shifts each cell anew. Where cells have shifts that stay through all campaigns,
as large, 48 % do; where one layer's second copy is 3 or 5 % slower in all of its 50 cells, 0.5 and 39 %; where all four
layers' are, 6 and 98 % (harness/bench/verdicts/alike_cells.py --tests 400, which has the other criteria as well:
together they fail in 0, 21, 76, 81, 4, 73, 94 and 100 %).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cadge_analysis.stats.inference.families import differing, level_of
from cadge_analysis.stats.inference.serial import Serial, serial_correlation
from cadge_analysis.stats.inference.signs import ways_above

Rounds = Mapping[Hashable, Sequence[float]]
"""Of one campaign: each cell's paired log-ratios in the order of rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
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


def across(campaigns: Sequence[Rounds], error: float) -> Across:
    """Judge every cell of some campaigns by all of its rounds."""
    found = [{name: tuple(values) for name, values in one.items() if values} for one in campaigns]
    serial = serial_correlation(
        (values for one in found for values in one.values()), baselines=max(1, sum(map(bool, found)))
    )
    correlation = serial.used if serial else 0.0
    blocks: dict[Hashable, list[Sequence[float]]] = defaultdict(list)
    for one in found:
        for name, values in one.items():
            blocks[name].append(values)
    ps = [_p(several, correlation) for several in blocks.values()]
    longest = max(blocks.values(), key=lambda several: sum(map(len, several)), default=[])
    lengths = tuple(sorted(map(len, longest)))
    return Across(
        cells=len(ps),
        rounds=sum(lengths),
        called=differing(ps, error),
        p=min(ps, default=1.0),
        possible=bool(ps) and 2 * _chances(lengths, correlation)[0] <= level_of(1, len(ps), error),
        serial=serial,
    )


def _p(blocks: Sequence[Sequence[float]], correlation: float) -> float:
    """Return the two-sided p of no difference; a zero counts against it."""
    sides: Counter[str] = Counter()
    for values in blocks:
        sides["below"] += sum(value <= 0 for value in values)
        sides["above"] += sum(value >= 0 for value in values)
    chances = _chances(tuple(sorted(map(len, blocks))), correlation)
    return min(1.0, 2 * sum(chances[: min(sides["below"], sides["above"]) + 1]))


@lru_cache(maxsize=512)
def _chances(lengths: tuple[int, ...], correlation: float) -> tuple[float, ...]:
    """Return the probability of each number of differences above zero, of blocks that are independent."""
    sums = [1.0]
    for length in lengths:
        block = ways_above(length, correlation=correlation)
        longer = [0.0] * (len(sums) + length)
        for at, chance in enumerate(sums):
            for more, further in enumerate(block):
                longer[at + more] += chance * further
        sums = longer
    return tuple(sums)
