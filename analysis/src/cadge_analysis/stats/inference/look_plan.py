# SPDX-License-Identifier: BSD-3-Clause
"""How the error is spent over the looks that a sweep names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.stats.inference.families import level_of
from cadge_analysis.stats.inference.plan_power import PlannedFamily, families_of
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, LookPlan
from cadge_results import Plan
from cadge_results.store.belongs import looks_of

say = partial(messages.say, "stats")


def spending(looks: Sequence[int]) -> LookPlan:
    """Return the plan of these looks. After 9, 12, 18 and 30 launches it is FOUR_LOOKS, which was simulated.

    At others each look has the same nominal level (Pocock, Biometrika 64, 1977, p. 191), as large as the error over all
    of them allows, exactly: so that looks after few launches, whose p cannot be small, are not in vain.
    """
    if tuple(looks) == FOUR_LOOKS.looks:
        return FOUR_LOOKS
    return LookPlan(tuple(looks), (1.0,) * len(looks))


def looks_planned(plan: Plan) -> LookPlan | None:
    """Return the looks that a campaign was planned with; None where its sweep names none."""
    looks = looks_of(plan.sweep)
    return spending(looks) if looks else None


def sentence(plan: Plan) -> str | None:
    """Say what the looks of a plan can decide in its largest family; None without looks, or where nothing is compared.

    As plan_power.sentence does for one look; a look's p is that over all looks, so an early one decides less.
    """
    looks, families = looks_planned(plan), families_of(plan)
    if looks is None or not families:
        return None
    size = families[0].comparisons
    of = f"the {units.grouped(size)} comparisons" if size > 1 else "the one comparison"
    where = f"among {of} of {families[0].pattern}, {families[0].place}"
    more = " " + say("look_plan.largest_family", n=len(families)) if len(families) > 1 else ""
    return say("look_plan.looks_decide", where=where, looks=decidable(looks, families[0]), more=more)


def decidable(looks: LookPlan, family: PlannedFamily) -> Iterator[str]:
    """Yield what each look can decide of a family, up to the first at which signs decide a single difference."""
    level = level_of(1, family.comparisons)
    for look, launches in enumerate(looks.looks):
        away = looks.distance_needed(look, level)
        if away == 0:
            yield say("look_plan.single_difference", launches=launches)
            return
        if away is None:
            yield f"nothing after {launches}"
        else:
            yield say("look_plan.far_difference", away=away, launches=launches)
