# SPDX-License-Identifier: BSD-3-Clause
"""Whether paired differences of neighbouring rounds are alike, over all cells of a campaign, and what follows from it.

Signed ranks take one round's difference for independent of the next. Where it is not, they are wrong more often than
they say: with a correlation of 0.1, 0.3 and 0.5 between neighbours nine launches in 5.5, 11 and 22 % at 5 %, twelve in
6.4, 12 and 22 % (harness/bench/verdicts/false_verdicts.py).

One cell's few rounds do not decide; a campaign's cells together do. In each cell the differences are ranked, and the
ranks' serial correlation taken (Wald and Wolfowitz, Annals of Mathematical Statistics 14, 1943, p. 378: by ranks, so
that one stalled launch says no more than another). Its expectation among n rounds in any order is -1/n exactly; for an
autoregression r the bias is about -(1 + 3 r)/n (Kendall, Biometrika 41, 1954, p. 403). Both are taken out, and cells
weigh by their rounds. Ranks show slightly less correlation than the values have (6/pi asin(r/2) for r in a Gaussian
pair): that is undone too.

Cells are not independent: differences from one baseline correlate by 1/2, so that estimates from them share 1/4 of
their variance, 1/n, however many cells there are. The standard error of k cells is no less than the root of
(1 / (4 * baselines) + 3 / (4 k)) / n; few cells that happen to agree say no more.

The rule: where the correlation is clearly there, by CLEARLY standard errors, and above WARNED, verdicts are judged at a
STRICTER-th of the error, which is said (with 0.3 nine launches are then wrong in 3.2 %, twelve in 4.3 %); above
WITHHELD there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import pi, sin, sqrt

WARNED = 0.1
WITHHELD = 0.3
STRICTER = 5
CLEARLY = 2.0
ROUNDS_LEAST = 5
"""Cells of fewer rounds say nothing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serial:
    """The correlation of neighbouring differences, its standard error, and how many cells it is from."""

    correlation: float
    error: float
    cells: int

    @property
    def used(self) -> float:
        """The correlation that tests and intervals allow for; 0 where it changes nothing."""
        return self.correlation if self.is_clear and self.correlation > WARNED else 0.0

    @property
    def withheld(self) -> bool:
        """True where it is too large for verdicts."""
        return self.is_clear and self.correlation > WITHHELD

    @property
    def is_clear(self) -> bool:
        """True where it is surely there."""
        return self.correlation > CLEARLY * self.error


def error_for(correlation: float, error: float) -> float:
    """Return the error to judge at, where rounds have this correlation that tests allow for (`Serial.used`)."""
    return error / STRICTER if correlation else error


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal ones share the middle of their ranks."""
    ordered = sorted(range(len(values)), key=lambda at: values[at])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and values[ordered[end + 1]] == values[ordered[start]]:
            end += 1
        for place in range(start, end + 1):
            ranks[ordered[place]] = (start + end) / 2
        start = end + 1
    return ranks


def _of_cell(differences: Sequence[float]) -> float | None:
    """Return a cell's own serial correlation of ranks, without its bias; None where there is none to see."""
    n = len(differences)
    ranks = _ranks(differences)
    middle = (n - 1) / 2
    square = sum((rank - middle) ** 2 for rank in ranks)
    if n < ROUNDS_LEAST or not square:
        return None
    found = sum((a - middle) * (b - middle) for a, b in pairwise(ranks)) / square
    return (found + 1 / n) / (1 - 3 / n)


def serial_correlation(differences: Iterable[Sequence[float]], *, baselines: int = 1) -> Serial | None:
    """Return the correlation between neighbouring rounds' differences, over cells; None where none says anything.

    Each cell is the paired log-ratios in the order of rounds. baselines: against how many independent ones all cells
    stand together; where it is not known, one.
    """
    weighed = [(found, len(one)) for one in differences if (found := _of_cell(one)) is not None]
    if not weighed:
        return None
    cells, total = len(weighed), sum(weight for _, weight in weighed)
    mean = sum(found * weight for found, weight in weighed) / total
    spread = sum((weight * (found - mean)) ** 2 for found, weight in weighed)
    return Serial(
        correlation=2 * sin(pi / 6 * max(-1.0, min(1.0, mean))),
        error=max(sqrt(spread) / total, sqrt((0.25 / baselines + 0.75 / cells) * cells / total)),
        cells=cells,
    )
