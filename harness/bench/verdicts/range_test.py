# SPDX-License-Identifier: BSD-3-Clause
"""How often the range test is wrong, in units of what it states, by simulation: 1.00 is as often as stated.

Differences of two layers that are alike, of several shapes, whose neighbours correlate as stated; a line for each
number of launches, correlation and shape, with the rate at each level divided by that level.

    python harness/bench/verdicts/range_test.py [--draws 200000]
"""

import argparse
import random
from collections.abc import Callable
from math import exp, log
from statistics import NormalDist

from cadge_analysis.stats.inference.range_test import stretch
from cadge_analysis.stats.inference.sequential import fixed

LEVELS = (0.05, 0.02, 0.005, 0.002, 0.001, 0.0003)
NORMAL = NormalDist()


def normal(z: float, _: random.Random) -> float:
    """Return the normal draw as it is."""
    return z


def uniform(z: float, _: random.Random) -> float:
    """Return an evenly distributed one in its place."""
    return 2 * NORMAL.cdf(z) - 1


def double_exponential(z: float, _: random.Random) -> float:
    """Return one with longer tails in its place."""
    below = min(NORMAL.cdf(z), NORMAL.cdf(-z))
    return -log(2 * max(below, 1e-300)) * (1 if z > 0 else -1)


def uneven(z: float, chance: random.Random) -> float:
    """Return it with a spread of its own."""
    return z * exp(chance.gauss(0, 1))


SHAPES: tuple[Callable[[float, random.Random], float], ...] = (normal, uniform, double_exponential, uneven)


def walk(chance: random.Random, launches: int, correlation: float) -> list[float]:
    """Return normal draws whose neighbours correlate."""
    found = [chance.gauss(0, 1)]
    while len(found) < launches:
        found.append(correlation * found[-1] + (1 - correlation**2) ** 0.5 * chance.gauss(0, 1))
    return found


def main() -> None:
    """Print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", default=200_000, type=int)
    given = parser.parse_args()
    chance = random.Random(1)  # noqa: S311 - repeatable on purpose
    print("launches  correlation  shape              " + "".join(f"{level:>8g}" for level in LEVELS))
    for launches in (9, 12, 18):
        looks = fixed(launches)
        for correlation in (0.0, 0.1, 0.3, 0.5):
            for shape in SHAPES:
                wrong = [0] * len(LEVELS)
                for _ in range(given.draws):
                    values = [shape(z, chance) for z in walk(chance, launches, correlation)]
                    away = max(min(values), -max(values))
                    if away <= 0:
                        continue
                    p = looks.p(0, 0, stretch=stretch(values, away, correlation=correlation), correlation=correlation)
                    for at, level in enumerate(LEVELS):
                        wrong[at] += p <= level
                rates = (one / given.draws / level for one, level in zip(wrong, LEVELS, strict=True))
                named = shape.__name__.replace("_", " ")
                print(f"{launches:8} {correlation:12g}  {named:18}" + "".join(f"{r:8.2f}" for r in rates), flush=True)


if __name__ == "__main__":
    main()
