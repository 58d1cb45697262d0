# SPDX-License-Identifier: BSD-3-Clause
"""How often the self-test's A against A fails, by simulation: where all is well, and where it is not.

A self-test has five campaigns of nine rounds, in each of which 200 cells are measured twice: 50 of each of four layers.
A cell's paired log-ratios are normal with a spread of --spread, and one round in twenty stalls on one side. What is
wrong with them:

    nothing
    rounds follow   by so much that nine rounds are wrong twice as often as they say (a correlation of 0.23)
    campaigns       each cell has a shift of its own in each campaign, so large that as many are wrong
    cells           each cell has a shift of its own, the same in all campaigns, as large
    one by N %      one layer's second copy is slower, in all of its cells
    all by N %      every layer's is

    python harness/bench/verdicts/alike_cells.py [--tests 200] [--spread 0.1]

A line says in which share of the self-tests each criterion fails: the band of the rate, no campaign above 10 %, and
after correction at 1 % at most one cell; any of them; and how many cells were called over all campaigns, on average.
"""

import argparse
import random
from collections.abc import Iterator
from math import log1p
from statistics import fmean

from cadge_analysis.selftest.pooled import AlikeOutcome, PooledRates, pooled
from cadge_analysis.stats.inference.modes import has_two_levels
from cadge_analysis.stats.inference.paired_verdicts import verdict
from cadge_analysis.stats.inference.sequential import ERROR, fixed
from cadge_analysis.stats.inference.serial import error_for, serial_correlation

CAMPAIGNS, LAYERS, CELLS, ROUNDS = 5, 4, 50, 9
FOLLOW, OWN_SHIFT = 0.23, 0.265
"""What doubles the error of nine rounds: a correlation, and shifts as a share of the spread."""
CASES: dict[str, dict[str, float]] = {
    "nothing": {},
    "rounds follow": {"follow": FOLLOW},
    "campaigns": {"by_campaign": OWN_SHIFT},
    "cells": {"by_cell": OWN_SHIFT},
    **{f"one by {share} %": {"share": share / 100, "layers": 1} for share in (1, 2, 3, 5)},
    **{f"all by {share} %": {"share": share / 100, "layers": LAYERS} for share in (1, 2, 3, 5)},
}


def rounds_of(chance: random.Random, spread: float, shift: float, follow: float) -> tuple[float, ...]:
    """Return one cell's log-ratios in a campaign."""
    state, found = chance.gauss(0, 1), []
    for _ in range(ROUNDS):
        stall = chance.expovariate(5) * chance.choice((-1, 1)) if chance.random() < 0.05 else 0.0
        found.append(spread * state + shift + stall)
        state = follow * state + (1 - follow**2) ** 0.5 * chance.gauss(0, 1)
    return tuple(found)


def campaign(rounds: dict[tuple[int, int], tuple[float, ...]], name: str, *, disturbed: bool) -> AlikeOutcome:
    """Return what a campaign says: a family is a layer's share of the cells, its rounds are allowed for."""
    serial = serial_correlation(rounds.values())
    correlation = serial.used if serial else 0.0
    looks = fixed(ROUNDS)
    level = looks.attained(0, error_for(correlation, ERROR))

    def p(values: tuple[float, ...]) -> float:
        pairs = dict(enumerate(values))
        found = verdict(pairs, 0.0, looks, correlation=correlation).p
        return found if not has_two_levels(values) or min(values) > 0 or max(values) < 0 else 1.0

    cells = tuple((cell % 8, p(values), level, ROUNDS) for (_, cell), values in rounds.items())
    return AlikeOutcome(campaign_id=name, disturbed=disturbed, cells=cells, rounds=rounds)


def self_tests(chance: random.Random, tests: int, spread: float, wrong: dict[str, float]) -> Iterator[PooledRates]:
    """Yield what so many self-tests say where so much is wrong."""
    cells = [(layer, cell) for layer in range(LAYERS) for cell in range(CELLS)]
    for _ in range(tests):
        fixed_shift = {
            key: log1p(wrong.get("share", 0.0)) * (key[0] < wrong.get("layers", 0))
            + spread * wrong.get("by_cell", 0.0) * chance.gauss(0, 1)
            for key in cells
        }
        made = []
        for number in range(CAMPAIGNS):
            own = spread * wrong.get("by_campaign", 0.0)
            rounds = {
                key: rounds_of(chance, spread, shift + own * chance.gauss(0, 1), wrong.get("follow", 0.0))
                for key, shift in fixed_shift.items()
            }
            made.append(campaign(rounds, f"c{number}", disturbed=number == 0))
        yield pooled(made)


def main() -> None:
    """Print one line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", default=200, type=int)
    parser.add_argument("--spread", default=0.1, type=float)
    parser.add_argument("--seed", default=1, type=int)
    given = parser.parse_args()
    print("                cells wrong   fails in %: band   highest   corrected       any   called over all")
    for name, wrong in CASES.items():
        chance = random.Random(given.seed)  # noqa: S311 - repeatable on purpose
        found = list(self_tests(chance, given.tests, given.spread, wrong))
        band, highest, corrected, passed = (
            100 * fmean(values)
            for values in zip(
                *((not one.of_all.in_band, not one.none_high, not one.few_corrected, one.passes) for one in found),
                strict=True,
            )
        )
        print(
            f"{name:15} {100 * fmean(one.of_all.rate for one in found):9.1f} % {band:17.1f} {highest:9.1f}"
            f" {corrected:11.1f} {100 - passed:9.1f} {fmean(one.across.called for one in found):17.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
