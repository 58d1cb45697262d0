# SPDX-License-Identifier: BSD-3-Clause
"""How looks spend the error, and what is said before a run of what they can decide."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.look_plan import looks_planned, sentence, spending
from cadge_analysis.stats.plan_power import families_of
from cadge_analysis.stats.sequential import ERROR, FOUR_LOOKS, fixed
from cadge_results import Campaign, Plan


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5, unique=True).map(sorted))
def test_all_looks_together_spend_no_more_than_the_error(looks: list[int]) -> None:
    plan = spending(looks)
    assert plan.looks == tuple(looks)
    assert sum(plan.spent(plan.fewest(ERROR))) <= ERROR
    # and a look is worth less than one that stands alone after as many launches
    assert plan.p(0, 0) >= fixed(looks[0]).p(0, 0)


def test_the_four_looks_are_those_that_were_simulated() -> None:
    assert spending([9, 12, 18, 30]) is FOUR_LOOKS
    assert spending([9, 12, 18]).levels == (1.0, 1.0, 1.0)


def looked_at(plan: Plan, looks: list[int]) -> Plan:
    return plan.model_copy(update={"sweep": {**plan.sweep, "looks": looks}})


def test_what_looks_can_decide(campaign: Campaign) -> None:
    plan = looked_at(campaign.plan, [9, 12, 18, 30])
    size = families_of(plan)[0].comparisons
    assert size > 20
    said = sentence(plan)
    assert said is not None
    found = re.search(
        r"nothing after 9, at least (\d+) at a time after 12, a single difference after 18 launches", said
    )
    assert found, said
    assert 2 <= int(found[1]) < size
    assert sentence(campaign.plan) is None
    assert looks_planned(campaign.plan) is None
