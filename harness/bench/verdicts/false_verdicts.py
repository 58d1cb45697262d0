# SPDX-License-Identifier: BSD-3-Clause
"""How often verdicts are wrong, by simulation: campaigns of some families, whose paired differences follow one another.

Each family has a baseline and --members others, of which the first half are the same as it and the other half --shift
slower. All share the baseline's launches, every layer drifts by itself (an autoregression over rounds), and one launch
in twenty stalls. Verdicts are given at each of the looks 9, 12, 18 and 30, at 5 %. A cell's own verdict that is wrong
at any look counts; for a family the share of wrong ones among those named, at the look where that is largest.

    nine: a sign test of nine launches at 5 %, as computed and as it came
    plain: four looks, as if rounds were independent; one cell
    allowed: four looks with the correlation that was estimated in the campaign up to that look; one cell
    family: the same by BY over the family, the share of wrong names
    first, found: shifted cells that the family names at the first look, and at the last
    withheld: looks at which the estimate was too large for verdicts

    python harness/bench/verdicts/false_verdicts.py [--campaigns 1000] [--members 20] [--families 4]
"""

import argparse
import random

from cadge_analysis.stats.inference.paired_verdicts import verdict, verdicts
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, fixed
from cadge_analysis.stats.inference.serial import serial_correlation
from cadge_analysis.stats.inference.signs import leaves

DELTA = 0.05
NAMED = {"faster", "slower"}
Family = dict[int, dict[int, float]]


def wander(chance: random.Random, rounds: int, correlation: float) -> list[float]:
    """Return one layer's logarithms, round by round: an autoregression, with a stall in one of twenty launches."""
    state, found = chance.gauss(0, 1), []
    for _ in range(rounds):
        found.append(0.05 * state + (chance.expovariate(5) if chance.random() < 0.05 else 0))
        state = correlation * state + (1 - correlation**2) ** 0.5 * chance.gauss(0, 1)
    return found


def family_of(chance: random.Random, members: int, correlation: float, shift: float) -> Family:
    """Return the paired differences of each member."""
    rounds = FOUR_LOOKS.looks[-1]
    base = wander(chance, rounds, correlation)
    return {
        at: {
            k: one - base[k] + (shift if 2 * at >= members else 0)
            for k, one in enumerate(wander(chance, rounds, correlation))
        }
        for at in range(members)
    }


def upto(family: Family, look: int) -> Family:
    """Return what a family is at a look."""
    return {at: {k: value for k, value in pairs.items() if k < look} for at, pairs in family.items()}


class Count:
    """What came of the campaigns of one correlation."""

    def __init__(self) -> None:
        self.nine = self.plain = self.allowed = self.family = self.first = self.found = self.withheld = 0.0
        self.correlation = 0.0

    def add(self, families: list[Family]) -> None:
        """Give the verdicts on the first family of a campaign at each look, and count."""
        members = len(families[0])
        plain = allowed = False
        worst = 0.0
        for look in FOUR_LOOKS.looks:
            now, *_ = all_now = [upto(one, look) for one in families]
            serial = serial_correlation(
                (list(pairs.values()) for one in all_now for pairs in one.values()), baselines=len(all_now)
            )
            used, withheld = (serial.used, serial.withheld) if serial else (0.0, False)
            if look == FOUR_LOOKS.looks[0]:
                self.nine += verdict(now[0], 0.0, fixed(look)).says in NAMED
            plain |= verdict(now[0], 0.0, FOUR_LOOKS).says in NAMED
            allowed |= verdict(now[0], 0.0, FOUR_LOOKS, correlation=used, withheld=withheld).says in NAMED
            found = verdicts(now, DELTA, FOUR_LOOKS, correlation=used, withheld=withheld)
            named = [at for at, one in found.items() if one.says in NAMED]
            if look == FOUR_LOOKS.looks[0]:
                self.first += sum(2 * at >= members for at in named) / (members - members // 2)
            worst = max(worst, sum(2 * at < members for at in named) / max(1, len(named)))
            self.withheld += withheld / len(FOUR_LOOKS.looks)
        self.plain += plain
        self.allowed += allowed
        self.family += worst
        self.found += sum(2 * at >= members for at in named) / (members - members // 2)
        self.correlation += serial.correlation if serial else 0.0


def main() -> None:
    """Print one line for each correlation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", default=1000, type=int)
    parser.add_argument("--members", default=20, type=int)
    parser.add_argument(
        "--families", default=4, type=int, help="of a campaign, from which the correlation is estimated"
    )
    parser.add_argument("--shift", default=0.1, type=float)
    parser.add_argument("--seed", default=1, type=int)
    given = parser.parse_args()
    print("correlation  seen   nine: computed, came   plain  allowed  family   first   found  withheld   in %")
    for correlation in (0.0, 0.1, 0.2, 0.3, 0.5, 0.7):
        chance, count, n = random.Random(given.seed), Count(), given.campaigns  # noqa: S311 - repeatable on purpose
        for _ in range(n):
            count.add([family_of(chance, given.members, correlation, given.shift) for _ in range(given.families)])
        (nine,) = leaves((9,), (1,), correlation=correlation)
        print(
            f"{correlation:11.1f} {count.correlation / n:5.2f} {100 * nine:15.1f} {100 * count.nine / n:6.1f}"
            f" {100 * count.plain / n:7.1f} {100 * count.allowed / n:8.1f} {100 * count.family / n:7.1f}"
            f" {100 * count.first / n:7.1f} {100 * count.found / n:7.1f} {100 * count.withheld / n:9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
