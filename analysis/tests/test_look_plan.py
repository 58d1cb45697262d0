# SPDX-License-Identifier: BSD-3-Clause
"""How looks spend the error, and what is said before a run of what they can decide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.inference.look_plan import decidable, spending
from cadge_analysis.stats.inference.plan_power import PlannedFamily
from cadge_analysis.stats.inference.sequential import ERROR, FOUR_LOOKS, fixed


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


@pytest.mark.parametrize(
    ("comparisons", "text"),
    [
        (1, ["a single difference after 9 launches"]),
        (
            40,
            [
                "one whose smallest round is 0.82 times its span after 9",
                "one whose smallest round is 0.2 times its span after 12",
                "a single difference after 18 launches",
            ],
        ),
    ],
)
def test_what_looks_can_decide(comparisons: int, text: list[str]) -> None:
    family = PlannedFamily(pattern="rpc", place="within", wait="poll", comparisons=comparisons, launches=9)
    assert list(decidable(FOUR_LOOKS, family)) == text
