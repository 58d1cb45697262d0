# SPDX-License-Identifier: BSD-3-Clause
"""How often verdicts are wrong where launches switch between two levels, by simulation.

A family of --members comparisons with one baseline. A share of them switches: each launch is on one of two levels, 10 %
apart, by the toss of a coin, so that there is no difference. Of the others, which spread as little, half are the same
as the baseline and half are --shift slower. A line for each number of launches, that share, and how wide a level is.

    hill: p as if every comparison had one hill, as it was before
    now: as verdicts are given
    signs: by signs alone

For each the share of campaigns with a wrong verdict, the share of wrong ones among those called (the mean over
campaigns, which the correction holds below 5 %), and how many of the slower ones are found; all in %. `seen`: the share
of switching comparisons that are seen to be.

    python harness/bench/verdicts/two_levels.py [--campaigns 400] [--members 40] [--shift 0.05]
"""

import argparse
import random
from collections.abc import Iterable, Sequence

from cadge_analysis.stats.inference.families import differing
from cadge_analysis.stats.inference.paired_verdicts import verdicts
from cadge_analysis.stats.inference.sequential import fixed
from cadge_analysis.stats.inference.signs import two_sided

APART = 0.1
RESOLUTION = 0.002
Family = Sequence[Sequence[float]]


def family_of(chance: random.Random, launches: int, members: int, switching: int, level: float, shift: float) -> Family:
    """Return paired differences: first of those that switch, then of those that are the same, then of slower ones."""
    slower = (members - switching) // 2

    def middle(at: int) -> float:
        if at < switching:
            return chance.choice((-APART / 2, APART / 2))
        return shift if at >= members - slower else 0.0

    return [[middle(at) + chance.gauss(0, level) for _ in range(launches)] for at in range(members)]


def called(ps: Sequence[float]) -> set[int]:
    """Return which comparisons BY calls different."""
    return set(sorted(range(len(ps)), key=lambda at: ps[at])[: differing(ps)])


def one_hill(values: Sequence[float], *, stretched: bool) -> float:
    """Return p by signs, and where all agree by the distance from zero, whatever else the family shows."""
    n, fewer = len(values), min(sum(value <= 0 for value in values), sum(value >= 0 for value in values))
    p = two_sided(n, fewer)
    if fewer or not stretched:
        return p
    away = min(abs(value) for value in values)
    return p * float((1 + away / max(max(values) - min(values), RESOLUTION)) ** (1 - n))


class Count:
    """What one rule came to."""

    def __init__(self) -> None:
        self.campaigns = self.any = self.found = 0
        self.share = 0.0

    def add(self, names: Iterable[int], first_slower: int) -> None:
        """Count a campaign's verdicts."""
        of_these = list(names)
        wrong = sum(at < first_slower for at in of_these)
        self.campaigns += 1
        self.any += wrong > 0
        self.share += wrong / max(1, len(of_these))
        self.found += len(of_these) - wrong

    def said(self, slower: int) -> str:
        """Return it as text."""
        found = 100 * self.found / self.campaigns / slower if slower else 0.0
        return f"{100 * self.any / self.campaigns:8.1f}{100 * self.share / self.campaigns:8.1f}{found:8.1f}"


def main() -> None:
    """Print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", default=400, type=int)
    parser.add_argument("--members", default=40, type=int)
    parser.add_argument("--shift", default=0.05, type=float)
    given = parser.parse_args()
    rules = " | ".join(f"{name:>5}: any   wrong   found" for name in ("hill", "now", "signs"))
    print(f"launches  switch  level | {rules}  seen")
    for launches in (6, 9, 12, 18):
        for share in (0.0, 0.1, 0.3, 1.0):
            for level in (0.005, 0.01, 0.02):
                chance = random.Random(7)  # noqa: S311 - repeatable on purpose
                switching = round(share * given.members)
                slower = (given.members - switching) // 2
                hill, now, signs, seen = Count(), Count(), Count(), 0
                for _ in range(given.campaigns):
                    family = family_of(chance, launches, given.members, switching, level, given.shift)
                    hill.add(called([one_hill(one, stretched=True) for one in family]), given.members - slower)
                    signs.add(called([one_hill(one, stretched=False) for one in family]), given.members - slower)
                    found = verdicts(
                        {at: dict(enumerate(one)) for at, one in enumerate(family)},
                        0.0,
                        fixed(launches),
                    )
                    now.add((at for at, one in found.items() if one.differs), given.members - slower)
                    seen += sum(found[at].two_levels for at in range(switching))
                shown = f"{100 * seen / given.campaigns / switching:6.0f}" if switching else "     -"
                print(
                    f"{launches:8} {share:7.1f} {level:6.3f} |  {hill.said(slower)} |  {now.said(slower)} | "
                    f" {signs.said(slower)}{shown}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
