# SPDX-License-Identifier: BSD-3-Clause
"""How the error is spent over the looks that a sweep names."""

from __future__ import annotations

from collections.abc import Sequence

from cadge_analysis.stats.sequential import FOUR_LOOKS, LookPlan
from cadge_results import Plan
from cadge_results.looks import looks_of


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
