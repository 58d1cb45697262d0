# SPDX-License-Identifier: BSD-3-Clause
"""Families and verdicts: the leading group, four verdicts, bounds, what more launches would do."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from math import expm1
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.campaign_verdicts import judge_campaign
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference import families, paired_verdicts, plan_power
from cadge_analysis.stats.inference.levels import Levels
from cadge_analysis.stats.inference.plan_power import PlannedFamily
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, LookPlan, fixed
from cadge_analysis.stats.load import read
from cadge_results import Campaign

DELTA = 0.05
PAIRS = st.dictionaries(st.integers(0, 40), st.floats(-1, 1), max_size=32)
MIRRORED = {"faster": "slower", "slower": "faster"}


def rounds_of(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


@pytest.mark.parametrize(
    ("comparisons", "launches", "least", "alone"),
    [(40, 9, 4, 11), (2000, 9, 157, 17), (2000, 6, 1250, 17), (12, 5, None, 9), (40, 13, 1, 11), (1, 6, 1, 6)],
)
def test_what_a_plan_can_decide_is_what_the_family_decides(
    comparisons: int, launches: int, least: int | None, alone: int
) -> None:
    looks = fixed(launches)
    assert plan_power.least_found(looks, 0, comparisons) == least
    assert looks.launches_needed(0, families.level_of(1, comparisons)) == alone
    best = 2 / 2**launches
    found = least or comparisons
    assert families.findings([best] * found + [1.0] * (comparisons - found)) == (found if least else 0)
    assert families.findings([best] * (found - 1) + [1.0] * (comparisons - found + 1)) == 0
    if least:
        family = PlannedFamily(pattern="p", place="self", wait="poll", comparisons=comparisons, launches=launches)
        assert plan_power.said(family).endswith(f"needs {alone}") == (least != 1)


@pytest.mark.parametrize(
    ("comparisons", "layers", "promised", "ranked"),
    [(1, 2, 6, 5), (4, 5, 8, 7), (8, 9, 9, 8), (14, 3, 9, 6), (99, 12, 9, 8), (1741, 26, 9, 9), (1741, 38, 9, 10)],
)
def test_verdicts_are_promised_where_a_tenth_of_a_family_is_enough(
    comparisons: int, layers: int, promised: int, ranked: int
) -> None:
    family = PlannedFamily(
        pattern="p", place="self", wait="poll", comparisons=comparisons, launches=promised, layers=layers
    )
    assert plan_power.launches_to_promise(family) == promised
    most = -(-comparisons // 10)
    least = [plan_power.least_found(fixed(launches), 0, comparisons) for launches in (promised - 1, promised)]
    assert least[0] is None or least[0] > most
    assert least[1] is not None
    assert least[1] <= most
    assert plan_power.launches_to_rank(family) == ranked
    for launches in (ranked - 1, ranked):
        leaders = families.not_beaten(range(layers), lambda one, _, n=launches: 2.0**-n if one == 0 else 1.0, launches)  # type: ignore[misc]
        assert (len(leaders) == 1) == (launches == ranked)


def test_a_plan_says_in_a_line_which_families_get_no_verdicts(campaign: Campaign) -> None:
    plan = campaign.plan
    every = plan_power.families_of(plan)
    for launches in (5, 6, plan.rounds):
        shorter = plan.model_copy(update={"launches": tuple(one for one in plan.launches if one.round < launches)})
        few = [one for one in plan_power.families_of(shorter) if launches < plan_power.launches_to_promise(one)]
        said = plan_power.sentences(shorter)
        assert len(few) == len(every)
        enough = max(plan_power.launches_to_promise(one) for one in every)
        assert said[0].startswith(f"no verdicts in {len(every)} of ")
        assert f" {enough} launches" in said[0]
    longer = tuple(one.model_copy(update={"round": one.round + 6}) for one in plan.launches)
    doubled = plan.model_copy(update={"launches": (*plan.launches, *longer)})
    assert plan_power.sentences(doubled)[0].endswith(f"(the largest of {len(every)} families)")


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


def leading_group(sides: Mapping[Any, Sequence[float]], looks: LookPlan) -> tuple[Any, ...]:
    """Return who may be the best by logarithms of what each layer measured, round by round."""
    look = looks.reached(min(map(len, sides.values())))
    if look is None:
        return tuple(sides)

    def better(one: Any, other: Any) -> float:  # noqa: ANN401
        pairs = list(zip(sides[one], sides[other], strict=True))[: looks.looks[look]]
        return looks.p_not_below(look, [mine - theirs for mine, theirs in pairs])

    return families.not_beaten(tuple(sides), better, len(next(iter(sides.values()))))


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
    assert (slower.p, slower.level) == (2 / 512, 0.05)
    near = paired_verdicts.verdict(rounds_of(-0.1, *[0.2] * 8), DELTA, fixed(9))
    assert near.p == pytest.approx(4 / 512)  # the smallest of nine ranks
    faster = paired_verdicts.verdict(rounds_of(*[-0.2] * 9), DELTA, FOUR_LOOKS)
    assert (faster.says, faster.early, faster.launches) == ("faster", True, 9)
    same = paired_verdicts.verdict(rounds_of(*[0.01 * (-1) ** k for k in range(9)]), DELTA, fixed(9))
    assert same.says == "same"
    surely_but_little = paired_verdicts.verdict(rounds_of(*[0.01] * 9), DELTA, fixed(9))
    assert surely_but_little.says == "same"
    assert surely_but_little.p == 2 / 512
    assert surely_but_little.bound == pytest.approx(expm1(0.01))
    open_ = paired_verdicts.verdict(rounds_of(*[0.2, -0.1, 0.3, 0.2, -0.2, 0.2, 0.1, 0.4, 0.3]), DELTA, fixed(9))
    assert (open_.says, open_.more) == ("cannot tell", None)
    none_yet = paired_verdicts.verdict(rounds_of(*[0.2] * 7), DELTA, FOUR_LOOKS)
    assert (none_yet.says, none_yet.more, none_yet.low) == ("cannot tell", 2, None)
    too_alike = paired_verdicts.verdict(rounds_of(*[0.2] * 9), DELTA, FOUR_LOOKS, withheld=True)
    assert (too_alike.says, too_alike.withheld, too_alike.more) == ("cannot tell", True, None)


def test_a_family_asks_for_more() -> None:
    """Nine rounds that agree decide one comparison, and not one among 40; eleven do, and where others differ nine."""
    values = [0.001, 0.3, 0.2, 0.1, 0.25, 0.15, 0.3, 0.2, 0.05, 0.2, 0.1, 0.2, 0.3]
    pairs = rounds_of(*values)
    assert paired_verdicts.verdict(rounds_of(*values[:9]), DELTA, fixed(9), 1).says == "slower"
    few = paired_verdicts.verdict(rounds_of(*values[:9]), DELTA, fixed(9), 40)
    assert (few.says, few.low, few.bound, few.more) == ("cannot tell", None, None, 2)
    assert paired_verdicts.verdict(pairs, DELTA, fixed(11), 40).says == "slower"
    others = {k: rounds_of(*[0.3 * (-1) ** at for at in range(13)]) for k in range(39)}
    assert paired_verdicts.verdicts({**others, 39: pairs}, DELTA, fixed(11))[39].says == "slower"
    assert paired_verdicts.verdicts({**others, 39: pairs}, DELTA, fixed(10))[39].says == "cannot tell"
    agree = {k: rounds_of(*[0.3 + 0.01 * at for at in range(9)]) for k in range(4)}
    found = paired_verdicts.verdicts({**others, **agree}, DELTA, fixed(9))
    assert [found[k].says for k in range(5)] == ["slower"] * 4 + ["cannot tell"]


def test_what_is_the_same_counts_among_the_findings() -> None:
    """Three that are the same make the level that a difference beside them stands up to."""
    same = {k: rounds_of(*[0.01 * (-1) ** at for at in range(9)]) for k in range(3)}
    family = {**same, 3: rounds_of(*[0.2 + 0.01 * at for at in range(9)]), **{k: {} for k in range(4, 40)}}
    found = paired_verdicts.verdicts(family, DELTA, fixed(9))
    assert [found[k].says for k in range(5)] == ["same"] * 3 + ["slower", "cannot tell"]
    assert {one.level for one in found.values()} == {4 * 0.05 / 40}
    alone = paired_verdicts.verdicts(
        {k: one for k, one in family.items() if k > 2} | {k: {} for k in range(3)}, DELTA, fixed(9)
    )
    assert alone[3].says == "cannot tell"


def test_correlation_asks_for_more() -> None:
    pairs = rounds_of(*[0.2 + 0.01 * k for k in range(8)], -0.205)
    assert paired_verdicts.verdict(pairs, DELTA, fixed(9)).says == "slower"
    stricter = paired_verdicts.verdict(pairs, DELTA, fixed(9), correlation=0.2)
    assert (stricter.says, stricter.correlation, stricter.level) == ("cannot tell", 0.2, 0.01)
    assert stricter.log_ratio == paired_verdicts.verdict(pairs, DELTA, fixed(9)).log_ratio


def test_on_two_levels_each_has_to_differ() -> None:
    sides = {0: [0.3] * 5 + [0.0] * 4, 1: [0.3] * 5 + [0.1] * 4}
    levels = {
        at: Levels(tuple(one), (0.01, -0.01, 0.02, -0.02, 0.0, 0.01, 0.02, -0.01, 0.0), (True, False))
        for at, one in sides.items()
    }
    family = {at: rounds_of(*one) for at, one in sides.items()}
    found = paired_verdicts.verdicts(family, DELTA, fixed(9), levels=levels)
    assert [(one.says, one.two_levels, one.more) for one in found.values()] == [
        ("cannot tell", True, None),
        ("slower", True, None),
    ]
    assert found[1].low == pytest.approx(0.08)
    assert paired_verdicts.verdicts({0: rounds_of(*[0.3] * 6, *[0.01] * 3)}, DELTA, fixed(9))[0].says == "slower"


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
def test_intervals_agree_with_the_family(members: list[list[float]]) -> None:
    """A member is decided where its family says so, and its interval says the same."""
    family = {at: dict(enumerate(values)) for at, values in enumerate(members)}
    found = paired_verdicts.verdicts(family, DELTA, fixed(9))
    level = families.level_of_choice([min(one.p, one.p_same) for one in found.values()], len(members))
    for one in found.values():
        assert one.level == level
        assert (one.says == "same") == (one.p_same <= level * (1 + 1e-9))
        if one.says != "same":
            assert (one.says in MIRRORED) == (one.p <= level * (1 + 1e-9))


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
