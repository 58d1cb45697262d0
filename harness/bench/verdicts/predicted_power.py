# SPDX-License-Identifier: BSD-3-Clause
"""Whether what a plan predicts comes, by simulation: the share of comparisons decided, by size of the difference.

A pilot of so many rounds shows how launches scatter; a campaign of --launches follows, of the same machine: each of
--members layers beside one baseline, the scatter of each drawn anew from a lognormal distribution about --spread, a
third of the layers no different, the others by a Laplace distribution about 10 %. A line a case and class of size: how
many comparisons, which share the pilot predicted, and which share was decided.

    python harness/bench/verdicts/predicted_power.py [--campaigns 40]
"""

import argparse
import random
from collections import defaultdict
from math import expm1, inf

from cadge_analysis.prediction import SIZES, chance, of_pairs
from cadge_analysis.stats.inference.paired_verdicts import verdicts
from cadge_analysis.stats.inference.plan_power import PlannedFamily
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.inference.sequential import fixed
from cadge_analysis.stats.pairing import PairedRatios
from cadge_results.formats.plan import PlanPrediction

DELTA = 0.05
Campaign = dict[int, list[float]]


def campaign(draw: random.Random, members: int, launches: int, spread: float, *, stalls: bool) -> Campaign:
    """Return the paired differences of each layer, round by round."""

    def launch(scatter: float) -> float:
        return draw.gauss(0, scatter) + (draw.expovariate(5) if stalls and draw.random() < 0.03 else 0.0)

    base = [launch(spread * 0.5) for _ in range(launches)]
    found = {}
    for at in range(members):
        scatter = spread * 0.87 * draw.lognormvariate(0, 0.4)
        shift = draw.choice((-1, 1)) * draw.expovariate(10) if at % 3 else 0.0
        found[at] = [shift + launch(scatter) - one for one in base]
    return found


def pilot_says(pilot: Campaign, launches: int) -> PlanPrediction:
    """Return what a pilot predicts."""
    pairs = [PairedRatios({RoundKey(r): x for r, x in enumerate(one)}, fixed(len(one))) for one in pilot.values()]
    family = PlannedFamily(pattern="rpc", place="within", wait="poll", comparisons=len(pairs), launches=launches)
    predicted = of_pairs(pairs, family, "pilot")
    assert predicted is not None  # noqa: S101 - each layer has launches
    return predicted


def shares(
    draw: random.Random, *, campaigns: int, members: int, rounds: int, launches: int, spread: float, stalls: bool
) -> dict[float, list[tuple[float, bool]]]:
    """Return, by class of the estimate, what was predicted of each comparison and whether it was decided."""
    found: dict[float, list[tuple[float, bool]]] = defaultdict(list)
    for _ in range(campaigns):
        pilot = campaign(draw, members, rounds, spread, stalls=stalls)
        predicted = pilot_says(pilot, launches)
        came = campaign(draw, members, launches, spread, stalls=stalls)
        for one in verdicts({at: dict(enumerate(x)) for at, x in came.items()}, DELTA, fixed(launches)).values():
            size = expm1(abs(one.log_ratio or 0.0))
            most = next(end for end in (*SIZES, inf) if size <= end)
            found[most].append((chance(predicted, size), one.says != "cannot tell"))
    return found


def main() -> None:
    """Print one line for each case and class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", default=40, type=int)
    parser.add_argument("--members", default=30, type=int)
    parser.add_argument("--seed", default=1, type=int)
    given = parser.parse_args()
    print("pilot  launches  spread  stalls        size  comparisons  predicted  decided   in %")
    for rounds, launches, spread, stalls in (
        (3, 9, 0.03, False), (3, 9, 0.06, False), (9, 9, 0.03, False), (9, 9, 0.06, False), (9, 9, 0.12, False),
        (9, 12, 0.06, False), (9, 18, 0.06, False), (9, 9, 0.06, True), (9, 18, 0.06, True),
    ):  # fmt: skip
        draw = random.Random(given.seed)  # noqa: S311 - repeatable on purpose
        found = shares(
            draw, campaigns=given.campaigns, members=given.members, rounds=rounds, launches=launches, spread=spread,
            stalls=stalls,
        )  # fmt: skip
        for most in (*SIZES, inf):
            if held := found[most]:
                predicted, came = (100 * sum(part) / len(held) for part in zip(*held, strict=True))
                size = f"to {most:.0%}" if most < inf else "more"
                print(
                    f"{rounds:5}{launches:10}{spread:8}{stalls!s:>8}{size:>12}{len(held):13}{predicted:10.0f}{came:9.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
