# SPDX-License-Identifier: BSD-3-Clause
"""What a sweep can decide, before it is run: launches against the size of its families.

The smallest p that the signs of n paired launches can have is 2/2^n, where all rounds agree. One difference that stands
alone among m comparisons needs a p of 0.05/m where no comparison may be wrong (Bonferroni), so 13, 16 and 19 launches
among 200, 1,000 and 8,000; by the rule that is used here (BY, see families.py) it is 16, 19 and 22. Where R of them
differ, R times that p will do: a family in which much differs is decided with fewer launches. Fewer will also do where
all launches lie far from zero, in units of their range (range_test.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, sqrt
from statistics import NormalDist

from cadge_analysis import messages, units
from cadge_analysis.stats.inference.families import level_of
from cadge_analysis.stats.inference.range_test import distance_needed
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.signs import most_fewer, two_sided
from cadge_results import Plan, PlanPoint

say = partial(messages.say, "stats")

LAUNCHES_MAX = 1000
"""Nobody is told to make more launches than this."""
POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFamily:
    """One pattern at one place in a wait mode: how many comparisons with a baseline it holds, and launches of each."""

    pattern: str
    place: str
    wait: str
    comparisons: int
    launches: int


def launches_needed(level: float, *, against: int = 0) -> int:
    """Return how many launches a sign test needs for a p of at most this, where so many of them disagree."""
    launches = 2 * against + 1
    while most_fewer(launches, level) < against:
        launches += 1
    return launches


def alike_needed(launches: int, size: int, error: float = ERROR) -> int | None:
    """Return how many of a family's comparisons have to differ in all rounds alike, if no other differs.

    None where all of them would not be enough. Many more in which nearly all rounds agree may do as well.
    """
    rank = ceil(two_sided(launches, 0) / level_of(1, size, error) * (1 - 1e-9))
    return rank if rank <= size else None


@lru_cache(maxsize=4096)
def launches_to_decide(share: float, level: float, *, power: float = POWER) -> int | None:
    """Return how many launches show that more than half lie on a side, where this share does; None: over LAUNCHES_MAX.

    Exact, by binomial sums; shown is a difference at the level with this probability. It is not monotone in the number
    of launches, since signs are whole numbers; this is the first number that will do.
    """
    if share <= 0.5:
        return None
    normal = NormalDist()  # where to begin: the normal distribution's number, less what it may be wrong by
    reach = normal.inv_cdf(1 - level / 2) / 2 + normal.inv_cdf(power) * sqrt(share * (1 - share))
    about = (reach / (share - 0.5)) ** 2
    launches = max(launches_needed(level), int(0.7 * about))
    while launches <= LAUNCHES_MAX:
        if _at_most(launches, most_fewer(launches, level), 1 - share) >= power:
            return launches
        launches += 1 + launches // 50  # beyond 50 to within a fiftieth
    return None


def power(launches: int, share: float, level: float = ERROR) -> float:
    """Return how surely so many launches show that more than half lie on a side, where this share does."""
    return _at_most(launches, most_fewer(launches, level), 1 - share)


def _at_most(launches: int, fewer: int, share: float) -> float:
    """Return the probability of no more than `fewer` of so many where each is one with this probability."""
    if fewer < 0:
        return 0.0
    if share <= 0:
        return 1.0
    chance = total = (1 - share) ** launches
    for k in range(fewer):
        chance *= (launches - k) / (k + 1) * share / (1 - share)
        total += chance
    return total


def families_of(plan: Plan) -> tuple[PlannedFamily, ...]:
    """Return the families of a plan, the largest first: those that it will be judged by (campaign_verdicts.py).

    Where a sweep declares no baseline one of its layers is taken for it; else cases without the baseline compare
    nothing.
    """
    rounds: dict[str, set[int]] = defaultdict(set)
    for launch in plan.launches:
        for name in launch.point_ids:
            rounds[name].add(launch.round)
    cases: dict[tuple[str, str, str], dict[object, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for point in _ranked(plan):
        key = (point.workload.pattern, point.subject.place, point.subject.wait)
        case = tuple(sorted(point.workload.values.items()))
        cases[key][case][point.subject.label] = len(rounds[point.point_id])
    found = []
    for (pattern, place, wait), held in cases.items():
        compared = [one for one in held.values() if plan.baseline is None or plan.baseline in one]
        comparisons = sum(len(one) - 1 for one in compared)
        if comparisons:
            fewest = min(launches for one in compared for launches in one.values())
            family = PlannedFamily(pattern=pattern, place=place, wait=wait, comparisons=comparisons, launches=fewest)
            found.append(family)
    return tuple(sorted(found, key=lambda one: (-one.comparisons, one.pattern, one.place, one.wait)))


def _ranked(plan: Plan) -> Iterator[PlanPoint]:
    for point in plan.points:
        is_measured = point.subject.kind == "layer" and point.state == "planned" and not point.subject.twin
        if is_measured and plan.pattern_of(point).does_rank(point.workload):
            yield point


def said(family: PlannedFamily) -> str:
    """Say what the launches of a family can decide, in one sentence."""
    size, launches = family.comparisons, family.launches
    of = f"the {units.grouped(size)} comparisons" if size > 1 else "the one comparison"
    where = f"among {of} of {family.pattern}, {family.place}, {family.wait}"
    level = level_of(1, size)
    alone = launches_needed(level)
    least = alike_needed(launches, size)
    made = f"{launches} launches" if launches > 1 else "1 launch"
    verb = "decide" if launches > 1 else "decides"
    away = distance_needed(launches, level)
    if away is None and least is not None:
        agree = say("plan_power.agree_in", least=least)
        return say("plan_power.decides", made=made, where=where, agree=agree, alone=alone)
    if away is None:
        return say("plan_power.cannot_decide", made=made, where=where, alone=alone)
    if away:
        far = say("plan_power.agree_far", away=away)
        if least is None or least > size:
            return say("plan_power.decides_far", made=made, verb=verb, where=where, far=far, alone=alone)
        nearer = say("plan_power.nearer", least=least)
        return say(
            "plan_power.decides_far_and_nearer",
            made=made,
            verb=verb,
            where=where,
            far=far,
            nearer=nearer,
            alone=alone,
        )
    fewer = most_fewer(launches, level_of(1, size))
    agree = "all rounds agree" if fewer == 0 else say("plan_power.rounds_agree", launches=launches - fewer)
    alone_too = say("plan_power.alone_too") if size > 1 else ""
    return f"{made} {verb} a difference {where} if {agree}{alone_too}"


def sentence(plan: Plan) -> str | None:
    """Say what a plan's largest family can decide; None where it compares nothing."""
    families = families_of(plan)
    if not families:
        return None
    text = said(families[0])
    return text if len(families) == 1 else say("plan_power.largest_family", text=text, n=len(families))
