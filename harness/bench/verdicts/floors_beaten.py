# SPDX-License-Identifier: BSD-3-Clause
"""How often a report would call a layer faster than its floor where it is not, by simulation.

A family is a pattern in one place: --sizes sizes, each with a floor that --layers layers share. Launches spread by 5 %
from round to round, the floor's as the layers'. A layer is exactly as fast as its floor, which is the hardest case, or
above it. named: campaigns of four families in which any point is called faster, in %. found: of points that really are
faster, those that are called so.

    python harness/bench/verdicts/floors_beaten.py [--campaigns 400]
"""

import argparse
import random
from statistics import fmean

from cadge_analysis.stats.inference.paired_verdicts import verdicts
from cadge_analysis.stats.inference.sequential import fixed
from cadge_analysis.stats.inference.verdict import Verdict

SPREAD, FAMILIES = 0.05, 4
LAUNCHES = (9, 12, 18, 30)
ABOVE = {"all at their floor": 0.0, "all 2 % above": 0.02, "all 5 % above": 0.05}
FASTER = (0.05, 0.1, 0.2, 0.3)


def family(
    chance: random.Random, given: argparse.Namespace, launches: int, above: float
) -> dict[int, dict[int, float]]:
    """Return the paired log ratios of a family's points: of a size, they share the floor's launches."""
    floors = [[SPREAD * chance.gauss(0, 1) for _ in range(launches)] for _ in range(given.sizes)]
    return {
        size * given.layers + layer: {
            at: above + SPREAD * chance.gauss(0, 1) - of_floor for at, of_floor in enumerate(floors[size])
        }
        for size in range(given.sizes)
        for layer in range(given.layers)
    }


def called(points: dict[int, dict[int, float]], launches: int) -> set[int]:
    """Return the points that are called faster than their floor, by the rule of reports."""
    found = verdicts(points, 0.0, fixed(launches))
    return {point for point, one in found.items() if one.says == Verdict.FASTER}


def main() -> None:
    """Print a line for each case and number of launches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", default=400, type=int)
    parser.add_argument("--sizes", default=8, type=int)
    parser.add_argument("--layers", default=10, type=int)
    parser.add_argument("--seed", default=1, type=int)
    given = parser.parse_args()
    chance = random.Random(given.seed)  # noqa: S311 - repeatable on purpose
    for launches in LAUNCHES:
        for name, above in ABOVE.items():
            named = fmean(
                any(called(family(chance, given, launches, above), launches) for _ in range(FAMILIES))
                for _ in range(given.campaigns)
            )
            print(f"{name:24}{launches:4} launches: named {100 * named:5.1f}", flush=True)
        for shift in FASTER:
            share = []
            for _ in range(given.campaigns // 4):
                points = family(chance, given, launches, 0.0)
                points[0] = {at: one - shift for at, one in points[0].items()}
                share.append(0 in called(points, launches))
            print(f"one is {shift:.0%} faster{'':11}{launches:4} launches: found {100 * fmean(share):5.1f}", flush=True)


if __name__ == "__main__":
    main()
