# SPDX-License-Identifier: BSD-3-Clause
"""How looks share the error, and what each of them can decide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.inference.look_plan import shared
from cadge_analysis.stats.inference.plan_power import least_found
from cadge_analysis.stats.inference.sequential import ERROR, FOUR_LOOKS, fixed


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5, unique=True).map(sorted))
def test_all_looks_together_spend_no_more_than_the_error(looks: list[int]) -> None:
    plan = shared(looks)
    assert plan.looks == tuple(looks)
    assert sum(plan.attained(look, ERROR) for look in range(len(looks))) <= ERROR
    # and a look is worth less than one that stands alone after as many launches
    assert plan.p(0, [1.0] * looks[0]) >= fixed(looks[0]).p(0, [1.0] * looks[0])


def test_the_four_looks_are_those_that_were_simulated() -> None:
    assert shared([9, 12, 18, 30]) is FOUR_LOOKS
    assert shared([9, 12, 18]).parts == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("comparisons", "least"), [(1, [1, 1, 1, 1]), (40, [32, 2, 1, 1]), (4000, [3125, 196, 3, 1])])
def test_what_looks_can_decide(comparisons: int, least: list[int | None]) -> None:
    assert [least_found(FOUR_LOOKS, look, comparisons) for look in range(4)] == least
