# SPDX-License-Identifier: BSD-3-Clause
"""Families and verdicts: BY, the leading group, four verdicts, what more launches would do."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.campaign_verdicts import judge_campaign
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference import families, paired_verdicts, plan_power
from cadge_analysis.stats.inference.plan_power import PlannedFamily, launches_needed
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, LookPlan, fixed
from cadge_analysis.stats.load import read
from cadge_results import Campaign

DELTA = 0.05
PAIRS = st.dictionaries(st.integers(0, 40), st.floats(-1, 1), max_size=32)
MIRRORED = {"faster": "slower", "slower": "faster"}


def rounds_of(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_one_cell_among_many_needs_so_many_launches() -> None:
    """A sign test decides one among 200, 1,000 and 8,000 with 13, 16 and 19 launches; by BY it takes three more."""
    assert [launches_needed(0.05 / size) for size in (200, 1000, 8000)] == [13, 16, 19]
    assert [launches_needed(families.level_of(1, size)) for size in (40, 200, 1000, 8000)] == [13, 16, 19, 22]
    assert launches_needed(0.05) == 6
    assert launches_needed(0.05, against=1) == 9


def test_what_a_plan_can_decide_is_what_by_decides() -> None:
    for launches, size in ((9, 40), (9, 1000), (12, 40), (13, 40)):
        needed = plan_power.alike_needed(launches, size)
        assert needed is not None
        best = 2 / 2**launches
        assert families.differing([best] * needed + [1.0] * (size - needed)) == needed
        assert families.differing([best] * (needed - 1) + [1.0] * (size - needed + 1)) == 0
    assert plan_power.alike_needed(5, 40) is None


@pytest.mark.parametrize(
    ("comparisons", "launches", "text"),
    [
        (40, 9, "9 launches decide a difference among the 40 comparisons of p, self, poll where all rounds agree and "
         "the smallest is at least 0.38 times the span from it to the largest, and smaller ones if all rounds agree "
         "in at least 14 comparisons; one alone needs 13"),
        (2000, 9, "9 launches decide a difference among the 2\u202f000 comparisons of p, self, poll where all rounds "
         "agree and the smallest is at least 1.4 times the span from it to the largest, and smaller ones if all rounds "
         "agree in at least 1\u202f278 comparisons; one alone needs 20"),
        (2000, 6, "6 launches cannot decide anything among the 2\u202f000 comparisons of p, self, poll: a single "
         "difference needs 20"),
        (12, 7, "7 launches decide differences among the 12 comparisons of p, self, poll if all rounds agree in at "
         "least 12 of them; one alone needs 11"),
        (40, 13, "13 launches decide a difference among the 40 comparisons of p, self, poll if all rounds agree, even "
         "where it is the only one"),
        (40, 30, "30 launches decide a difference among the 40 comparisons of p, self, poll if at least 26 rounds "
         "agree, even where it is the only one"),
        (1, 9, "9 launches decide a difference among the one comparison of p, self, poll if at least 8 rounds agree"),
        (1, 1, "1 launch cannot decide anything among the one comparison of p, self, poll: a single difference "
         "needs 6"),
    ],
)  # fmt: skip
def test_the_sentence(comparisons: int, launches: int, text: str) -> None:
    family = PlannedFamily(pattern="p", place="self", wait="poll", comparisons=comparisons, launches=launches)
    assert plan_power.said(family) == text


def test_the_families_of_a_plan(campaign: Campaign) -> None:
    """They are those that it is judged by; without a declared baseline as large, for one layer is taken for it."""
    plan = campaign.plan
    found = plan_power.families_of(plan)
    judged = judge_campaign(compare(read(campaign))).families
    sizes = {(one.key.pattern, one.key.place, one.key.wait): len(one.cells) for one in judged}
    assert {(one.pattern, one.place, one.wait): one.comparisons for one in found} == sizes
    free = plan.model_copy(update={"sweep": {}})
    assert [one.comparisons for one in plan_power.families_of(free)] == [one.comparisons for one in found]
    other = plan.model_copy(update={"sweep": {"baseline": "sockets-unix"}})
    assert {one.place for one in plan_power.families_of(other)} == {"within"}
    assert {one.place for one in found} == {"within", "between"}
    for family in found:
        points = [
            point
            for point in plan.points
            if point.subject.kind == "layer"
            and point.state == "planned"
            and point.workload.pattern == family.pattern
            and (point.subject.place, point.subject.wait) == (family.place, family.wait)
            and plan.pattern_of(point).does_rank(point.workload)
        ]
        cases = {repr(sorted(point.workload.values.items())) for point in points}
        assert family.comparisons == len(points) - len(cases)
        assert family.launches == len({launch.round for launch in plan.launches})
    said = plan_power.sentence(plan)
    assert said is not None
    assert said.endswith(f"(the largest of {len(found)} families)")


def test_by_is_by() -> None:
    """A worked example: 15 p, H(15) = 3.318; level k is k * 0.05 / 49.77."""
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
    p_values += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    assert families.level_of(1, 15) == pytest.approx(0.05 / 15 / 3.318229)
    assert families.differing(p_values) == 3
    assert families.differing([]) == 0


def leading_group(sides: Mapping[Any, Sequence[float]], looks: LookPlan) -> tuple[Any, ...]:
    """Return who may be the best by logarithms of what each layer measured, round by round."""
    look = looks.reached(min(map(len, sides.values())))
    if look is None:
        return tuple(sides)

    def better(one: Any, other: Any) -> float:  # noqa: ANN401
        pairs = list(zip(sides[one], sides[other], strict=True))[: looks.looks[look]]
        return families.better_p(looks, look, [mine - theirs for mine, theirs in pairs])

    return families.not_beaten(tuple(sides), better)


def test_the_best_is_rarely_left_out_and_the_worse_often() -> None:
    """500 campaigns of 8 layers, two of them best: the group holds a given one in 95 %, and never none."""
    chance = random.Random(2)
    kept = worse = alone = 0
    for _ in range(500):
        drift = [chance.gauss(0, 0.1) for _ in range(18)]
        sides = {
            name: [drift[at] + chance.gauss(0 if name < 2 else 0.15, 0.06) for at in range(18)] for name in range(8)
        }
        group = leading_group(sides, fixed(18))
        assert group
        kept += 0 in group
        worse += 7 in group
        alone += len(group) == 1
    assert kept >= 475
    assert worse <= 150
    assert alone <= 25  # of two equal ones none is "fastest"


def test_the_fastest_is_alone() -> None:
    sides = {"a": [0.0] * 12, "b": [0.1] * 12, "c": [0.1] * 12}
    assert leading_group(sides, fixed(12)) == ("a",)
    assert leading_group(sides, fixed(3)) == ("a", "b", "c")  # so few can show nothing
    assert leading_group({"a": [1.0]}, fixed(9)) == ("a",)
    assert leading_group({name: [0.0] * 12 for name in "ab"}, fixed(12)) == ("a", "b")


def test_four_verdicts() -> None:
    slower = paired_verdicts.verdict(rounds_of(*[0.2 + 0.01 * k for k in range(9)]), DELTA, fixed(9))
    assert (slower.says, slower.early, slower.more) == ("slower", False, None)
    assert slower.p == pytest.approx(2 / 512 / (1 + 0.2 / 0.08) ** 8)
    near = paired_verdicts.verdict(rounds_of(-0.1, *[0.2] * 8), DELTA, fixed(9))
    assert near.p == pytest.approx(20 / 512)  # signs alone
    faster = paired_verdicts.verdict(rounds_of(*[-0.2] * 9), DELTA, FOUR_LOOKS)
    assert (faster.says, faster.early, faster.launches) == ("faster", True, 9)
    same = paired_verdicts.verdict(rounds_of(*[0.01 * (-1) ** k for k in range(9)]), DELTA, fixed(9))
    assert same.says == "same"
    surely_but_little = paired_verdicts.verdict(rounds_of(*[0.01] * 9), DELTA, fixed(9))
    assert surely_but_little.says == "same"
    assert surely_but_little.p < 2 / 512
    open_ = paired_verdicts.verdict(rounds_of(*[0.2, -0.1, 0.3, 0.2, -0.2, 0.2, 0.1, 0.4, 0.3]), DELTA, fixed(9))
    assert open_.says == "cannot tell"
    assert open_.more is not None
    assert 5 < open_.more < 60
    none_yet = paired_verdicts.verdict(rounds_of(*[0.2] * 7), DELTA, FOUR_LOOKS)
    assert (none_yet.says, none_yet.more, none_yet.low) == ("cannot tell", 2, None)
    too_alike = paired_verdicts.verdict(rounds_of(*[0.2] * 9), DELTA, FOUR_LOOKS, withheld=True)
    assert (too_alike.says, too_alike.withheld, too_alike.more) == ("cannot tell", True, None)


def test_a_family_asks_for_more() -> None:
    """Nine rounds that agree decide one comparison, and not one that is near zero among 40; 13 do, by Bonferroni 11."""
    values = [0.001, 0.3, 0.2, 0.1, 0.25, 0.15, 0.3, 0.2, 0.05, 0.2, 0.1, 0.2, 0.3]
    pairs = rounds_of(*values)
    assert paired_verdicts.verdict(rounds_of(*values[:9]), DELTA, fixed(9), 1).says == "slower"
    few = paired_verdicts.verdict(rounds_of(*values[:9]), DELTA, fixed(9), 40)
    assert few.says == "cannot tell"
    assert few.low == pytest.approx(0.001 - 0.299 * ((2 / 512 / (0.05 / 40)) ** (1 / 8) - 1))
    assert few.more is not None
    assert few.more < 9
    assert paired_verdicts.verdict(pairs, DELTA, fixed(11), 40).says == "slower"
    others = {k: rounds_of(*[0.3 * (-1) ** at for at in range(13)]) for k in range(39)}
    assert paired_verdicts.verdicts({**others, 39: pairs}, DELTA, fixed(13))[39].says == "slower"
    assert paired_verdicts.verdicts({**others, 39: pairs}, DELTA, fixed(12))[39].says == "cannot tell"


def test_what_is_far_away_needs_no_more_launches() -> None:
    """Thirty times as slow, give or take a third, is told from nine launches among hundreds."""
    far = rounds_of(*[3.4 + 0.1 * (-1) ** k * k / 3 for k in range(9)])
    nothing = {k: rounds_of(*[0.03 * at * (-1) ** at for at in range(9)]) for k in range(400)}
    found = paired_verdicts.verdicts({**nothing, 400: far}, DELTA, fixed(9))
    assert [key for key, one in found.items() if one.says == "slower"] == [400]
    found = paired_verdicts.verdicts({**nothing, 400: far}, DELTA, FOUR_LOOKS, correlation=0.3)
    assert [key for key, one in found.items() if one.says == "slower"] == [400]


def test_correlation_widens() -> None:
    pairs = rounds_of(*[0.2 + 0.01 * k for k in range(11)], -0.2)
    assert paired_verdicts.verdict(pairs, DELTA, FOUR_LOOKS).says == "slower"
    wider = paired_verdicts.verdict(pairs, DELTA, FOUR_LOOKS, correlation=0.3)
    assert (wider.says, wider.correlation) == ("cannot tell", 0.3)
    assert wider.low == -0.2


@given(PAIRS, st.sampled_from([FOUR_LOOKS, fixed(9), fixed(2)]), st.sampled_from([1, 40]))
def test_exchanged_sides_give_the_mirrored_verdict(pairs: dict[int, float], looks: object, family: int) -> None:
    there = paired_verdicts.verdict(pairs, DELTA, looks, family)  # type: ignore[arg-type]
    back = paired_verdicts.verdict({key: -value for key, value in pairs.items()}, DELTA, looks, family)  # type: ignore[arg-type]
    assert MIRRORED.get(there.says, there.says) == back.says
    assert (there.p, there.p_same, there.more) == (back.p, back.p_same, back.more)
    assert (there.low is None) == (back.low is None)
    assert there.low is None or there.low == -back.high  # type: ignore[operator]
    assert (there.log_ratio or 0) == -(back.log_ratio or 0)


@given(st.lists(st.lists(st.floats(-0.4, 0.4), min_size=9, max_size=9), min_size=1, max_size=12))
def test_intervals_agree_with_by(members: list[list[float]]) -> None:
    """A member is decided where BY says so, and its interval says the same."""
    family = {at: dict(enumerate(values)) for at, values in enumerate(members)}
    found = paired_verdicts.verdicts(family, DELTA, fixed(9))
    count = families.differing([one.p for one in found.values()])
    level = families.level_of(max(1, count), len(members))
    for one in found.values():
        if one.says != "same":
            assert (one.says in MIRRORED) == (count > 0 and one.p <= level * (1 + 1e-9))


@pytest.mark.long
def test_false_verdicts_are_as_rare_as_stated() -> None:
    """400 families of 20 that share a baseline, looked at four times, half of them different: false ones at most 5 %.

    Also: no difference of more than delta is called the same, and at the four looks together no family of no
    differences names one in more than 5 %.
    """
    chance = random.Random(9)
    false_share = named = 0.0
    for _ in range(400):
        base = [chance.gauss(0, 0.05) for _ in range(18)]
        shifts = [0.0] * 10 + [0.25] * 10
        family = {at: {k: one + chance.gauss(0, 0.05) - base[k] for k in range(18)} for at, one in enumerate(shifts)}
        found = paired_verdicts.verdicts(family, DELTA, FOUR_LOOKS)
        said = [at for at, one in found.items() if one.says in MIRRORED]
        false_share += sum(at < 10 for at in said) / max(1, len(said))
        named += sum(at >= 10 for at in said)
        assert not any(found[at].says == "same" for at in range(10, 20))
    assert false_share / 400 <= 0.05
    assert named / 400 > 8


def test_how_many_more_is_about_right() -> None:
    """Where two thirds of rounds agree in truth, so many launches decide in about four of five campaigns."""
    needed = plan_power.launches_to_decide(2 / 3, 0.05)
    assert needed is not None
    chance = random.Random(4)
    decided = sum(
        paired_verdicts.verdict(
            {k: log(1.2) * (1 if chance.random() < 2 / 3 else -1) for k in range(needed)}, DELTA, fixed(needed)
        ).says
        == "slower"
        for _ in range(1000)
    )
    assert decided / 1000 == pytest.approx(0.8, abs=0.06)
    assert plan_power.launches_to_decide(0.5, 0.05) is None
    assert plan_power.launches_to_decide(0.51, 0.05) is None
