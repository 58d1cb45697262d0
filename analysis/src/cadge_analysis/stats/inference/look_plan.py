# SPDX-License-Identifier: BSD-3-Clause
"""How the error is shared among the looks that a sweep names."""

from __future__ import annotations

from collections.abc import Sequence

from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, LookPlan
from cadge_results import Plan
from cadge_results.store.belongs import looks_of


def shared(looks: Sequence[int]) -> LookPlan:
    """Return the plan of these looks: after 9, 12, 18 and 30 launches FOUR_LOOKS, at others equal shares."""
    if tuple(looks) == FOUR_LOOKS.looks:
        return FOUR_LOOKS
    return LookPlan(tuple(looks), (1.0,) * len(looks))


def looks_planned(plan: Plan) -> LookPlan | None:
    """Return the looks that a campaign was planned with; None where its sweep names none."""
    looks = looks_of(plan.sweep)
    return shared(looks) if looks else None
