# SPDX-License-Identifier: BSD-3-Clause
"""Whether what a plan predicts comes, by simulation: the share of comparisons decided, by size of the difference.

A pilot of so many rounds shows how launches scatter; a campaign of --launches follows, of the same machine: each of
--members layers beside one baseline, the scatter of each drawn anew from a lognormal distribution about --spread, a
third of the layers no different, the others by a Laplace distribution about 10 %. Stalls: one launch in thirty. Levels:
every third layer is 20 % slower in half of its launches. A line a case and class of size: how many comparisons, which
share the pilot predicted, and which share was decided. After the cases, by class the case that is farthest off.

    python harness/bench/verdicts/predicted_power.py [--campaigns 40]
"""

import argparse
import random
from collections import defaultdict
from itertools import product
from math import exp, expm1, inf

from cadge_analysis.prediction import SIZES, chance_of_estimate, of_pairs
from cadge_analysis.stats.family_verdicts import judge_families
from cadge_analysis.stats.inference.modes import scatter_within
from cadge_analysis.stats.inference.plan_power import PlannedFamily
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.pairing import PairedRatios, paired
from cadge_results.formats.plan import PlanPrediction

DELTA = 0.05
UNLIKE = ("alike", "stalls", "levels")
Pairs = dict[int, PairedRatios]


def campaign(draw: random.Random, members: int, launches: int, spread: float, unlike: str) -> Pairs:
    """Return each layer's launches beside the baseline's."""

    def launch(scatter: float, at: int = 0) -> float:
        stalls = unlike == "stalls" and draw.random() < 0.03
        slow = unlike == "levels" and at % 3 == 2 and draw.random() < 0.5
        return draw.gauss(0, scatter) + (draw.expovariate(5) if stalls else 0.0) + (0.18 if slow else 0.0)

    sides = [[launch(spread * 0.5) for _ in range(launches)]]
    for at in range(members):
        scatter = spread * 0.87 * draw.lognormvariate(0, 0.4)
        shift = draw.choice((-1, 1)) * draw.expovariate(10) if at % 3 else 0.0
        sides.append([shift + launch(scatter, at) for _ in range(launches)])
    base, *others = [{RoundKey(number): exp(value) for number, value in enumerate(side)} for side in sides]
    scatter_of_all = scatter_within(sides)
    return {at: paired(one, base, scatter_of_all) for at, one in enumerate(others)}


def pilot_says(pilot: Pairs, launches: int) -> PlanPrediction:
    """Return what a pilot predicts."""
    family = PlannedFamily(pattern="rpc", place="within", wait="poll", comparisons=len(pilot), launches=launches)
    predicted = of_pairs([*pilot.values()], family, "pilot")
    assert predicted is not None  # noqa: S101 - each layer has launches
    return predicted


def shares(
    draw: random.Random, *, campaigns: int, members: int, rounds: int, launches: int, spread: float, unlike: str
) -> dict[float, list[tuple[float, bool]]]:
    """Return, by class of the estimate, what was predicted of each comparison and whether it was decided."""
    found: dict[float, list[tuple[float, bool]]] = defaultdict(list)
    for _ in range(campaigns):
        predicted = pilot_says(campaign(draw, members, rounds, spread, unlike), launches)
        came = campaign(draw, members, launches, spread, unlike)
        judged, _ = judge_families({"": came}, DELTA)
        for one in judged[""].verdicts.values():
            size = expm1(abs(one.log_ratio or 0.0))
            most = next(end for end in (*SIZES, inf) if size <= end)
            found[most].append((chance_of_estimate(predicted, size, one.launches), one.says != "cannot tell"))
    return found


def named(most: float) -> str:
    """Return a class for people."""
    return f"to {most:.0%}" if most < inf else "more"


def main() -> None:
    """Print one line for each case and class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", default=40, type=int)
    parser.add_argument("--members", default=30, type=int)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--unlike", choices=UNLIKE)
    given = parser.parse_args()
    print("pilot  launches  spread  unlike        size  comparisons  predicted  decided   in %")
    off: dict[float, list[float]] = defaultdict(list)
    cases = [*product((3, 9), (9,), (0.03, 0.06, 0.12)), (9, 12, 0.06), (9, 18, 0.06)]
    for (rounds, launches, spread), unlike in product(cases, UNLIKE if given.unlike is None else [given.unlike]):
        draw = random.Random(given.seed)  # noqa: S311 - repeatable on purpose
        found = shares(
            draw, campaigns=given.campaigns, members=given.members, rounds=rounds, launches=launches, spread=spread,
            unlike=unlike,
        )  # fmt: skip
        for most in (*SIZES, inf):
            if held := found[most]:
                predicted, came = (100 * sum(part) / len(held) for part in zip(*held, strict=True))
                line = f"{rounds:5}{launches:10}{spread:8}{unlike:>8}{named(most):>12}{len(held):13}"
                print(f"{line}{predicted:10.0f}{came:9.0f}", flush=True)
                off[most].append(predicted - came)
    print("farthest off, points:", ", ".join(f"{named(most)} {max(one, key=abs):+.0f}" for most, one in off.items()))


if __name__ == "__main__":
    main()
