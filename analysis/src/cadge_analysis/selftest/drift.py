# SPDX-License-Identifier: BSD-3-Clause
"""How often intervals hold the truth under the drift that this machine had, by simulation from measured rounds.

The paired log-ratios of a long campaign, freed of their median, are what the machine does to a difference that is not
there. Campaigns of 9, 18 and 30 launches are drawn from them in blocks of neighbouring rounds (circular moving blocks:
Künsch, Annals of Statistics 17, 1989, p. 1217; Politis and Romano, 1992), so that what neighbours share stays in them.
Each is given the interval that verdicts use, that of signed ranks, at the level that the correlation of neighbours in
the whole campaign asks for (stats/inference/serial.py).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import fmean

from cadge_analysis.stats.inference.modes import has_two_levels
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.inference.sequential import ERROR, fixed
from cadge_analysis.stats.inference.serial import Serial, error_for, serial_correlation
from cadge_analysis.stats.intervals import TARGET_COVERAGE, median
from cadge_analysis.stats.load import Dataset, Series
from cadge_analysis.stats.numbers import CellNumbers

LAUNCHES = (9, 18, 30)
BLOCK = 10
DRAWS = 2000
SHORT_MOST = 0.03
"""Intervals that are to hold the truth in 95 % may fall short by so much, all pairs of a number of launches together.

Of 600 independent rounds alone one pair's share scatters by 1.3 %: how neighbours happen to fall into blocks.
"""
ROUNDS_LEAST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """One pair of series, and campaigns of so many launches: the share of intervals that hold the truth."""

    pair: tuple[str, str]
    launches: int
    share: float
    error: float
    """Its standard error, of the draws alone."""
    rounds: int
    """From how many rounds it was drawn."""
    correlation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledPairs:
    """All pairs, and campaigns of so many launches."""

    launches: int
    share: float

    @property
    def enough(self) -> bool:
        """Whether it falls no shorter than SHORT_MOST."""
        return self.share >= TARGET_COVERAGE - SHORT_MOST


def together(found: Sequence[Coverage]) -> tuple[PooledPairs, ...]:
    """Return the mean share of all pairs, by launches."""
    by_launches = {launches: [one.share for one in found if one.launches == launches] for launches in LAUNCHES}
    return tuple(PooledPairs(launches=n, share=fmean(shares)) for n, shares in by_launches.items() if shares)


def differences(data: Dataset) -> Mapping[tuple[str, str], list[float]]:
    """Return the paired log-ratios of each layer's series to its first one, by rounds, less their median."""
    found: dict[tuple[str, str], list[float]] = {}
    base: dict[str, tuple[Series, Mapping[RoundKey, float]]] = {}
    measured = CellNumbers(data)
    for cell in sorted(data.cells, key=lambda one: (one.series, one.case.sort_key)):
        numbers = measured.get(cell.point_id)
        if numbers is None or min(numbers.by_round.values()) <= 0:
            continue
        series, first = base.setdefault(cell.series.layer, (cell.series, numbers.by_round))
        both = sorted(set(first) & set(numbers.by_round))
        if series == cell.series or len(both) < ROUNDS_LEAST:
            continue
        ratios = [log(numbers.by_round[key] / first[key]) for key in both]
        middle = median(ratios)
        found[series.label, cell.series.label] = [one - middle for one in ratios]
    return found


def coverage(data: Dataset, *, draws: int = DRAWS, seed: int = 1) -> tuple[Coverage, ...]:
    """Return the coverage for each pair and number of launches; nothing where no pair has ROUNDS_LEAST rounds."""
    found = []
    for pair, values in differences(data).items():
        serial = serial_correlation([values])
        found += [_covered(pair, values, launches, serial, draws, seed) for launches in LAUNCHES]
    return tuple(found)


def _covered(
    pair: tuple[str, str], values: Sequence[float], launches: int, serial: Serial | None, draws: int, seed: int
) -> Coverage:
    level = error_for(serial.used if serial else 0.0, ERROR)
    looks = fixed(launches)
    chance = random.Random(f"{seed} {launches} {pair}")  # noqa: S311 - a simulation, not a secret
    held = 0
    for _ in range(draws):
        drawn = _drawn(values, launches, chance)
        ends = (min(drawn), max(drawn)) if has_two_levels(drawn) else looks.interval(0, drawn, level)
        held += ends is None or ends[0] <= 0 <= ends[1]
    share = held / draws
    return Coverage(
        pair=pair,
        launches=launches,
        share=share,
        error=sqrt(share * (1 - share) / draws),
        rounds=len(values),
        correlation=serial.correlation if serial else 0.0,
    )


def _drawn(values: Sequence[float], launches: int, chance: random.Random) -> list[float]:
    found: list[float] = []
    while len(found) < launches:
        begin = chance.randrange(len(values))
        found += [values[(begin + at) % len(values)] for at in range(min(BLOCK, launches - len(found)))]
    return found
