# SPDX-License-Identifier: BSD-3-Clause
"""A against A cell by cell over all campaigns: rounds that begin anew, exact chances, and what it can find."""

from __future__ import annotations

import random
from itertools import product
from math import comb

import pytest

from cadge_analysis.selftest.across import Across, across
from cadge_analysis.stats.inference.signs import two_sided, ways_above

pytestmark = pytest.mark.spare


def campaigns(
    chance: random.Random, *, cells: int = 200, shifted: int = 0, follow: float = 0.0, many: int = 5, rounds: int = 9
) -> list[dict[int, list[float]]]:
    """So many cells differ from themselves by twice their rounds' spread, in all campaigns."""

    def series(shift: float) -> list[float]:
        state, found = chance.gauss(0, 1), []
        for _ in range(rounds):
            found.append(state + shift)
            state = follow * state + (1 - follow**2) ** 0.5 * chance.gauss(0, 1)
        return found

    return [{cell: series(2.0 if cell < shifted else 0.0) for cell in range(cells)} for _ in range(many)]


def test_ways_are_those_of_a_fair_coin_where_rounds_are_independent() -> None:
    assert ways_above(9) == pytest.approx([comb(9, k) / 2**9 for k in range(10)])
    assert ways_above(1, correlation=0.4) == pytest.approx([0.5, 0.5])
    sticky = ways_above(9, correlation=0.5)
    assert sum(sticky) == pytest.approx(1)
    assert sticky[0] == pytest.approx(sticky[-1])
    assert sticky[0] > 5 / 2**9


def test_a_cell_is_judged_by_all_of_its_rounds() -> None:
    """Thirteen rounds of two campaigns, two on one side: as thirteen of one, since none is like another."""
    seen = across([{"a": [1, 1, -1, 1, 1, 1]}, {"a": [1, 1, 1, 1, -1, 1, 1]}], 0.05)
    assert (seen.cells, seen.rounds, seen.called, seen.possible) == (1, 13, 1, True)
    assert seen.p == pytest.approx(two_sided(13, 2))
    zeros = across([{"a": [1, 1, 0, 1, 1, 1]}, {"a": [1, 1, 1, 1, 0, 1, 1]}], 0.05)
    assert zeros.p == pytest.approx(seen.p), "no difference counts against one"


def test_blocks_begin_anew() -> None:
    """With rounds that follow each other a walk that begins anew strays less than one that goes on: by all ways."""
    made = campaigns(random.Random(4), cells=300, follow=0.3)
    seen = across(made, 0.01)
    assert seen.serial is not None
    used = seen.serial.used
    assert 0.2 < used < 0.5
    block = ways_above(9, correlation=used)
    sums = [0.0] * 46
    for ways in product(range(10), repeat=5):
        chance = 1.0
        for k in ways:
            chance *= block[k]
        sums[sum(ways)] += chance
    least = min(
        min(
            sum(value > 0 for one in made for value in one[cell]), sum(value < 0 for one in made for value in one[cell])
        )
        for cell in made[0]
    )
    assert seen.p == pytest.approx(2 * sum(sums[: least + 1]))
    assert seen.p < 2 * sum(ways_above(45, correlation=used)[: least + 1])


def test_nine_rounds_could_call_nothing_and_five_campaigns_can() -> None:
    chance = random.Random(1)
    one = across(campaigns(chance, shifted=1, many=1), 0.01)
    assert (one.called, one.possible) == (0, False)
    all_of_them = across(campaigns(chance, shifted=3), 0.01)
    assert (all_of_them.called, all_of_them.possible, all_of_them.rounds) == (3, True, 45)


@pytest.mark.parametrize("follow", [0.0, 0.2])
def test_next_to_nothing_is_called_where_nothing_differs(follow: float) -> None:
    chance = random.Random(2)
    called = [across(campaigns(chance, follow=follow), 0.01).called for _ in range(60)]
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
    assert across([], 0.01) == Across(cells=0, rounds=0, called=0, p=1.0, possible=False, serial=None)
