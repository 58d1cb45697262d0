# SPDX-License-Identifier: BSD-3-Clause
"""What a sweep can decide, before it is run: launches against the size of its families.

The smallest p that n paired launches can have is 2/2^n, where all rounds agree. Among m comparisons of which k are
found, a k-th of the smallest level will do (families.py): n launches are enough where 2/2^n <= k q/m, so that one
difference alone among 200, 1,000 and 8,000 asks for 13, 16 and 19 of them, and half of a family for 7.

A plan promises verdicts where a tenth of a family's comparisons, rounded up, is enough: nine launches, or fewer for a
small family. It promises ranks where the test of leading groups can have a small enough p (families.py): nine launches
for up to 26 layers of a case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt

from cadge_analysis import messages, units
from cadge_analysis.stats.inference.families import level_of
from cadge_analysis.stats.inference.look_plan import looks_planned
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST
from cadge_analysis.stats.inference.sequential import ERROR, LookPlan, fixed
from cadge_analysis.stats.inference.signed_rank import launches_needed, two_sided
from cadge_analysis.stats.inference.student import reach
from cadge_results import Plan, PlanPoint

say = partial(messages.say, "stats")

EXPECTED = 0.1
"""Verdicts are promised where they need no larger share of a family to differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFamily:
    """One pattern at one place in a wait mode: how many comparisons with a baseline it holds, and launches of each.

    `layers`: the most that are compared in one case.
    """

    pattern: str
    place: str
    wait: str
    comparisons: int
    launches: int
    layers: int = 2


def least_found(looks: LookPlan, look: int, size: int, error: float = ERROR) -> int | None:
    """Return how many comparisons of a family have to be found at a look, if in each of them all rounds agree.

    None where all of them would not be enough.
    """
    rank = ceil(two_sided(looks.looks[look], 0) / looks.share(look) / level_of(1, size, error) * (1 - 1e-9))
    return max(1, rank) if rank <= size else None


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
            found.append(
                PlannedFamily(
                    pattern=pattern,
                    place=place,
                    wait=wait,
                    comparisons=comparisons,
                    launches=fewest,
                    layers=max(len(one) for one in compared),
                )
            )
    return tuple(sorted(found, key=lambda one: (-one.comparisons, one.pattern, one.place, one.wait)))


def _ranked(plan: Plan) -> Iterator[PlanPoint]:
    for point in plan.points:
        is_measured = point.subject.kind == "layer" and point.state == "planned" and not point.subject.twin
        if is_measured and plan.pattern_of(point).does_rank(point.workload):
            yield point


def said(family: PlannedFamily) -> str:
    """Say what the launches of a family that is promised verdicts can decide, in one sentence."""
    size, looks = family.comparisons, fixed(family.launches)
    least = least_found(looks, 0, size)
    alone = looks.launches_needed(0, level_of(1, size))
    made = f"{family.launches} launches"
    if least == 1:
        return say("plan_power.decides_each", made=made, where=_where(family))
    return say("plan_power.decides", made=made, where=_where(family), least=least, alone=alone)


def _where(family: PlannedFamily) -> str:
    size = family.comparisons
    of = f"the {units.grouped(size)} comparisons" if size > 1 else "the one comparison"
    return f"among {of} of {family.pattern}, {family.place}, {family.wait}"


def _at_looks(looks: LookPlan, family: PlannedFamily) -> Iterator[str]:
    """Yield what each look can decide of a family, up to the first that decides a single difference."""
    for look, launches in enumerate(looks.looks):
        least = least_found(looks, look, family.comparisons)
        if least is None:
            yield f"nothing after {launches}"
        elif least == 1:
            yield say("plan_power.single_difference", launches=launches)
            return
        else:
            yield say("plan_power.several_differences", least=least, launches=launches)


def launches_to_promise(family: PlannedFamily) -> int:
    """Return with how many launches a family gets verdicts where a tenth of its comparisons, rounded up, differ."""
    rank = ceil(family.comparisons * EXPECTED * (1 - 1e-9))
    return launches_needed(level_of(rank, family.comparisons))


def launches_to_rank(family: PlannedFamily) -> int:
    """Return with how many launches a layer can lead its case alone; see `families.not_beaten`."""
    return launches_needed(2 * ERROR / (family.layers - 1))


def _in_all(plan: Plan, family: PlannedFamily) -> int:
    looks = looks_planned(plan)
    return looks.looks[-1] if looks else family.launches


def sentences(plan: Plan) -> tuple[str, ...]:
    """Say what a plan's largest family that is promised verdicts can decide; then which families are promised none.

    Empty where it compares nothing.
    """
    families, looks = families_of(plan), looks_planned(plan)
    if families and plan.epochs >= EPOCHS_LEAST:
        times = reach(level_of(1, families[0].comparisons), plan.epochs - 1) / sqrt(plan.epochs)
        return (say("plan_power.over_epochs", epochs=plan.epochs, where=_where(families[0]), times=times),)
    promised = [one for one in families if _in_all(plan, one) >= launches_to_promise(one)]
    few = [one for one in families if one not in promised]
    unranked = [one for one in families if _in_all(plan, one) < launches_to_rank(one)]
    found = []
    if promised:
        text = said(promised[0])
        if looks:
            text = say("plan_power.looks_decide", where=_where(promised[0]), looks=_at_looks(looks, promised[0]))
        found.append(text if len(promised) == 1 else say("plan_power.largest_family", text=text, n=len(promised)))
    for what, short, needed in (("verdicts", few, launches_to_promise), ("ranks", unranked, launches_to_rank)):
        if short:
            launches, enough, n = min(_in_all(plan, one) for one in short), max(map(needed, short)), len(short)
            lacking = {"what": what, "n": n, "families": len(families), "launches": launches, "enough": enough}
            found.append(say("plan_power.too_few_launches", **lacking))
    return tuple(found)
