# SPDX-License-Identifier: BSD-3-Clause
"""How often `cadge history` finds a change that is none, and finds one that is there, by simulation.

    python harness/bench/verdicts/change_points.py [--times 2000] [--campaigns 10,14,20,40] [--steps 2,3,5]

Series have a value a campaign, and noise of three kinds: normal; normal with one in ten far off (Student's t with two
degrees of freedom); and a drift from one campaign to the next, which is none of what the method assumes. `--steps` are
sizes of one change in the middle, in standard deviations of the normal noise; it is found where a cut is at most one
campaign beside it. Beside each share stands its 95 % interval (Wilson 1927).
"""

import argparse
from collections.abc import Callable
from math import sqrt

import numpy as np

from cadge_analysis.stats.inference.change_points import LEVEL, Floats, change_points, needed

Noise = Callable[[np.random.Generator, int], Floats]
NOISES: dict[str, Noise] = {
    "normal": lambda random, n: random.normal(size=n),
    "heavy": lambda random, n: random.standard_t(2, size=n),
    "drifting": lambda random, n: 0.5 * random.normal(size=n).cumsum() + random.normal(size=n),
}


def share(found: int, times: int) -> str:
    """Return a share with its interval."""
    z2 = 1.96**2
    middle = (found + z2 / 2) / (times + z2)
    half = 1.96 / (times + z2) * sqrt(found * (times - found) / times + z2 / 4)
    return f"{found / times:7.2%} [{middle - half:6.2%}, {middle + half:6.2%}]"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument(
        "--campaigns", type=lambda text: [int(one) for one in text.split(",")], default=[10, 14, 20, 40]
    )
    parser.add_argument("--steps", type=lambda text: [float(one) for one in text.split(",")], default=[2.0, 3.0, 5.0])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    print(f"level {LEVEL:.0%}, {needed(LEVEL)} campaigns at least; {given.times} series of each kind")
    print(f"\n{'noise':<9} {'campaigns':>9}  found without a change")
    for name, noise in NOISES.items():
        for n in given.campaigns:
            found = sum(bool(change_points(noise(random, n))) for _ in range(given.times))
            print(f"{name:<9} {n:>9}  {share(found, given.times)}", flush=True)
    print(f"\n{'noise':<9} {'campaigns':>9} {'step':>5}  found within one campaign")
    for name in ("normal", "heavy"):
        for n in given.campaigns:
            for step in given.steps:
                later = step * (np.arange(n) >= n // 2)
                times = max(1, given.times // 10)
                cuts = (change_points(NOISES[name](random, n) + later) for _ in range(times))
                found = sum(any(abs(one.at - n // 2) <= 1 for one in some) for some in cuts)
                print(f"{name:<9} {n:>9} {step:>5g}  {share(found, times)}", flush=True)


if __name__ == "__main__":
    main()
