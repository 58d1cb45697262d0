# SPDX-License-Identifier: BSD-3-Clause
"""A against A cell by cell over all campaigns: all rounds of a cell together, and what that can find."""

from __future__ import annotations

import random

import pytest
from scipy.stats import wilcoxon

from cadge_analysis.selftest.across import CampaignsCheck, across


def campaigns(
    chance: random.Random, *, cells: int = 200, shifted: int = 0, follow: float = 0.0, many: int = 5, rounds: int = 9
) -> list[dict[int | str, list[float]]]:
    """So many cells differ from themselves by twice their rounds' spread, in all campaigns."""

    def series(shift: float) -> list[float]:
        state, found = chance.gauss(0, 1), []
        for _ in range(rounds):
            found.append(state + shift)
            state = follow * state + (1 - follow**2) ** 0.5 * chance.gauss(0, 1)
        return found

    return [{cell: series(2.0 if cell < shifted else 0.0) for cell in range(cells)} for _ in range(many)]


def test_a_cell_is_judged_by_all_of_its_rounds() -> None:
    """Thirteen rounds of two campaigns: as thirteen of one, by SciPy's signed rank."""
    first, second = [0.3, 0.7, -0.1, 0.9, 0.4, 0.6], [0.5, 0.8, 1.1, 1.2, -0.2, 0.65, 1.3]
    seen = across([{"a": first}, {"a": second}], 0.05)
    assert (seen.cells, seen.rounds, seen.called, seen.possible) == (1, 13, 1, True)
    assert seen.p == pytest.approx(wilcoxon([*first, *second], method="exact").pvalue)


def test_nine_rounds_could_call_nothing_and_five_campaigns_can() -> None:
    chance = random.Random(1)
    one = across(campaigns(chance, shifted=1, many=1), 0.01)
    assert (one.called, one.possible) == (0, False)
    all_of_them = across(campaigns(chance, shifted=3), 0.01)
    assert (all_of_them.called, all_of_them.possible, all_of_them.rounds) == (3, True, 45)


@pytest.mark.parametrize("follow", [0.0, 0.2])
def test_next_to_nothing_is_called_where_nothing_differs(follow: float) -> None:
    chance = random.Random(2)
    called = [across(campaigns(chance, follow=follow), 0.01).called for _ in range(30)]
    assert sum(one > 1 for one in called) == 0
    assert sum(called) <= 2


def test_rounds_that_are_too_much_alike_give_no_answer() -> None:
    assert across(campaigns(random.Random(3), follow=0.9), 0.01).withheld


def test_a_cell_that_is_not_in_all_campaigns_has_fewer_rounds() -> None:
    made = campaigns(random.Random(5), cells=4)
    del made[0][3]
    made[1][2] = []
    seen = across(made, 0.01)
    assert (seen.cells, seen.rounds) == (4, 45)
    assert across([], 0.01) == CampaignsCheck(cells=0, rounds=0, called=0, p=1.0, possible=False, serial=None)
