# SPDX-License-Identifier: BSD-3-Clause
"""A against A over campaigns: what is drawn are campaigns, and what is asked is said with what came."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import sqrt
from statistics import pstdev

import pytest

from cadge_analysis.selftest.pooled import AlikeOutcome, pooled, spoken, spread_of_draws

NINE = 20 / 512
ALL_ALIKE, ODD, EVEN = 2 / 512, 20 / 512, 1.0
"""p of nine rounds of which none, one and four are on the smaller side."""


def one(
    name: str, called: int, cells: int = 200, *, p: float = ODD, families: int = 8, disturbed: bool = False
) -> AlikeOutcome:
    found = tuple((k % families, p if k < called else EVEN, NINE, 9) for k in range(cells))
    chance = random.Random(name)
    rounds = {k: [chance.gauss(0, 1) for _ in range(9)] for k in range(cells)}
    return AlikeOutcome(campaign_id=name, disturbed=disturbed, cells=found, rounds=rounds)


def five(*called: int, cells: int = 200) -> list[AlikeOutcome]:
    return [one(f"c{k}", n, cells, disturbed=k == 4) for k, n in enumerate(called)]


def test_a_sound_instrument_passes() -> None:
    found = pooled(five(6, 9, 8, 11, 7))
    of_all = found.of_all
    assert (of_all.cells, of_all.called, of_all.rate, of_all.nominal) == (1000, 41, 0.041, NINE)
    assert of_all.low < NINE < of_all.high
    assert found.passes
    assert found.after_correction == 0
    told = spoken(found)
    assert all(holds for _, holds, _ in told)
    assert told[2][2] == "3.0 %, 4.5 %, 4.0 %, 5.5 %, 3.5 % beside a load"
    assert told[3][2] == "0 of 1\u202f000 within a campaign; 0 of 200 by its rounds of all campaigns, up to 45"
    assert found.tails is None


def test_each_criterion_fails_by_itself() -> None:
    def fails(found: list[AlikeOutcome]) -> list[bool]:
        return [not holds for _, holds, _ in spoken(pooled(found))]

    assert fails(five(6, 9, 8, 11, 7, cells=199)) == [True, False, False, False]
    assert fails([one(f"c{k}", 8) for k in range(5)]) == [True, False, False, False], "none beside a load"
    assert fails([*five(6, 9, 8, 11, 7)[1:], one("small", 0, 1)]) == [True, False, False, False]
    assert fails(five(17, 18, 16, 17, 17)) == [False, True, False, False]
    assert fails(five(4, 7, 4, 5, 21)) == [False, False, True, False]
    assert fails(five(4, 7, 4, 5, 20)) == [False, False, False, False], "10 % itself is not above 10 %"
    # families of 2, both of which differ in all rounds alike: 0.0039 is below 2 x 0.01 / 2, and one alone too
    small = [
        one(f"c{k}", 4 if k < 1 else 8, p=ALL_ALIKE if k < 1 else ODD, families=100, disturbed=k == 4) for k in range(5)
    ]
    cells = [(k // 2, ALL_ALIKE if k < 4 else EVEN, NINE, 9) for k in range(200)]
    small[0] = AlikeOutcome(campaign_id="c0", disturbed=False, cells=tuple(cells))
    assert pooled(small).after_correction == 4
    assert fails(small) == [False, False, False, True]


def shifted(one: AlikeOutcome, cells: int) -> AlikeOutcome:
    """The second copy is slower in so many cells, by twice what rounds spread, which no campaign alone can tell."""
    rounds = {k: [value + 2 * (k < cells) for value in values] for k, values in one.rounds.items()}
    return replace(one, rounds=rounds)


def test_a_cell_that_differs_from_itself_in_every_campaign_fails() -> None:
    sound = five(6, 9, 8, 11, 7)
    found = pooled([shifted(one, 3) for one in sound])
    assert found.after_correction == 0
    assert found.across.called == 3
    assert not found.few_corrected
    assert spoken(found)[3][1:] == (
        False,
        "0 of 1\u202f000 within a campaign; 3 of 200 by its rounds of all campaigns, up to 45",
    )
    assert pooled([shifted(one, 1) for one in sound]).passes, "one in all is allowed"


def test_the_p99_is_told_and_not_asked_for() -> None:
    sound = five(6, 9, 8, 11, 7)
    found = pooled([replace(one, tails=wild.cells) for one, wild in zip(sound, five(*[60] * 5), strict=True)])
    assert found.passes
    assert found.tails is not None
    assert not found.tails.in_band
    assert "30.0 %, 300 of 1\u202f000, outside" in spoken(found)[1][2]


def test_the_spread_is_that_of_all_draws_of_campaigns() -> None:
    counts = [(3, 100), (9, 200), (2, 150)]
    rates = [
        sum(one for one, _ in drawn) / sum(cells for _, cells in drawn) for drawn in product(counts, repeat=len(counts))
    ]
    assert len(rates) == 27
    assert spread_of_draws(counts) == pytest.approx(pstdev(rates) * sqrt(3 / 2))


def test_cells_that_hang_together_are_not_counted_as_so_many() -> None:
    """The same share called, once spread over campaigns evenly and once in two of them alone: the band knows it."""
    even, lumped = pooled(five(8, 8, 8, 8, 8)), pooled(five(0, 20, 0, 20, 0))
    assert even.of_all.called == lumped.of_all.called
    widths = [one.of_all.high - one.of_all.low for one in (even, lumped)]
    assert widths[0] < 0.04 < 0.09 < widths[1]


def test_one_campaign_is_no_pool() -> None:
    with pytest.raises(ValueError, match="two campaigns or more"):
        pooled([one("a", 3), one("b", 0, 0)])


@pytest.mark.long
@pytest.mark.parametrize(
    ("level", "together", "least", "most"), [(NINE, 0.0, 0, 1), (NINE, 0.01, 0, 2.5), (0.096, 0.0, 75, 95)]
)
def test_how_often_a_rate_is_outside(level: float, together: float, least: float, most: float) -> None:
    """Per cent of self-tests; `together`: the correlation of two cells of a campaign."""
    chance, outside, made = random.Random(1), 0, 200
    for _ in range(made):
        campaigns = []
        for k in range(5):
            own = level
            if together:
                own = chance.betavariate(level * (1 / together - 1), (1 - level) * (1 / together - 1))
            campaigns.append(one(f"c{k}", sum(chance.random() < own for _ in range(200))))
        outside += not pooled(campaigns).of_all.in_band
    assert least <= 100 * outside / made <= most
