# SPDX-License-Identifier: BSD-3-Clause
"""What `cadge ab` finds, by simulation: how often it names a cell where nothing changed, and finds a planted change.

A campaign has --cells cells, each of A and B, which are normal about their logarithm and spread so that paired log
ratios do by --spread. It is looked at after 9, 12, 18 and 30 launches; a cell that is decided is measured no more, as
in a real one, and in the end all are judged as one family. Every cell has the planted change, or none has.

named: campaigns that call any cell slower or faster. found: cells that are called slower. same: those called the same.
launches: of each cell, on average.

    python harness/bench/verdicts/ab_power.py [--campaigns 400] [--cells 3] [--spread 0.05]
"""

import argparse
import random
from math import log1p, sqrt
from statistics import fmean

from cadge_analysis.stats.inference.levels import levels_of
from cadge_analysis.stats.inference.modes import scatter_within
from cadge_analysis.stats.inference.paired_verdicts import PairedVerdict, verdicts
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS
from cadge_analysis.stats.inference.serial import serial_correlation

DELTA = 0.05
PLANTED = (0.0, 0.03, 0.05, 0.1)
Side = list[float]


def judged(cells: list[tuple[Side, Side]], reached: list[int]) -> dict[int, PairedVerdict]:
    """Return the verdict on each cell, of as many launches as it has."""
    pairs = {
        at: dict(enumerate(b - a for a, b in zip(first[:n], second, strict=False)))
        for at, ((first, second), n) in enumerate(zip(cells, reached, strict=True))
    }
    sides = [(first[:n], second[:n]) for (first, second), n in zip(cells, reached, strict=True)]
    scatter = scatter_within([side for both in sides for side in both])
    levels = {at: found for at, (first, second) in enumerate(sides) if (found := levels_of(second, first, scatter))}
    serial = serial_correlation((list(one.values()) for one in pairs.values()), baselines=len(pairs))
    used, withheld = (serial.used, serial.withheld) if serial else (0.0, False)
    return verdicts(pairs, DELTA, FOUR_LOOKS, correlation=used, withheld=withheld, levels=levels)


def campaign(chance: random.Random, cells: int, spread: float, shift: float) -> tuple[list[str], list[int]]:
    """Return what is called of each cell of a campaign, and how many launches it took."""
    sigma, most = spread / sqrt(2), FOUR_LOOKS.looks[-1]
    drawn = [
        ([chance.gauss(0, sigma) for _ in range(most)], [chance.gauss(shift, sigma) for _ in range(most)])
        for _ in range(cells)
    ]
    reached = [0] * cells
    is_open = set(range(cells))
    for look in FOUR_LOOKS.looks:
        for at in is_open:
            reached[at] = look
        is_open = {at for at, one in judged(drawn, reached).items() if one.says == "cannot tell"}
    return [str(one.says) for one in judged(drawn, reached).values()], reached


def main() -> None:
    """Print a line for each planted change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", default=400, type=int)
    parser.add_argument("--cells", default=3, type=int)
    parser.add_argument("--spread", default=0.05, type=float)
    parser.add_argument("--seed", default=1, type=int)
    given = parser.parse_args()
    print(f"{'planted':>8}{'named':>8}{'found':>8}{'same':>8}{'launches':>10}   in %, launches")
    for planted in PLANTED:
        chance = random.Random(given.seed)  # noqa: S311 - repeatable on purpose
        made = [campaign(chance, given.cells, given.spread, log1p(planted)) for _ in range(given.campaigns)]
        named = fmean(not {"slower", "faster"}.isdisjoint(called) for called, _ in made)
        found, same = (fmean(one == word for called, _ in made for one in called) for word in ("slower", "same"))
        launches = fmean(one for _, reached in made for one in reached)
        print(f"{100 * planted:8.0f}{100 * named:8.1f}{100 * found:8.1f}{100 * same:8.1f}{launches:10.1f}")


if __name__ == "__main__":
    main()
