# SPDX-License-Identifier: BSD-3-Clause
"""What a plan is predicted to find, and whether it comes."""

from __future__ import annotations

import random
from dataclasses import replace
from math import exp, expm1, inf
from statistics import fmean, median

import pytest
import synthetic

from cadge_analysis import prediction
from cadge_analysis.judged import judged
from cadge_analysis.page.parts.itself import itself
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.modes import scatter_within
from cadge_analysis.stats.inference.paired_verdicts import verdicts
from cadge_analysis.stats.inference.plan_power import PlannedFamily, families_of
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.inference.sequential import fixed
from cadge_analysis.stats.load import read
from cadge_analysis.stats.pairing import PairedRatios, paired
from cadge_results import Campaign, Plan

FAMILY = PlannedFamily(pattern="rpc", place="within", wait="poll", comparisons=20, launches=9)


def drawn(chance: random.Random, launches: int, shifts: list[float], spread: float = 0.06) -> list[PairedRatios]:
    """Return pairs of layers beside one baseline, of which half of the scatter is."""
    base = [chance.gauss(0, spread / 2**0.5) for _ in range(launches)]
    sides = [[shift + chance.gauss(0, spread / 2**0.5) - one for one in base] for shift in shifts]
    return [PairedRatios({RoundKey(at): x for at, x in enumerate(one)}, fixed(launches)) for one in sides]


@pytest.mark.parametrize("launches", [3, 9, 30])
def test_spreads_are_those_of_the_launches_and_not_of_their_number(launches: int) -> None:
    chance = random.Random(3)
    pairs = [one for _ in range(40) for one in drawn(chance, launches, [0.0, 0.1])]
    spreads = sorted(prediction.true_spreads([one.in_order for one in pairs]))
    assert median(spreads) == pytest.approx(0.06, rel=0.12)
    assert spreads[-8] / spreads[8] < 1.8, "all of them scatter alike"


def test_more_is_found_of_larger_differences_and_with_more_launches() -> None:
    predicted = prediction.of_pairs(drawn(random.Random(1), 9, [0.0] * 10 + [0.2] * 10), FAMILY, "c")
    assert predicted is not None
    assert predicted.level == pytest.approx(0.05 / 2, abs=0.011), "about half of them differ"
    by_size = [prediction.chance(predicted, size) for size in prediction.SIZES]
    assert by_size[1:] == sorted(by_size[1:])
    assert by_size[-1] == pytest.approx(1, abs=0.02)
    assert [prediction.chance(predicted, 0.05, launches) for launches in (6, 9, 18, 36)] == sorted(
        prediction.chance(predicted, 0.05, launches) for launches in (6, 9, 18, 36)
    )
    launches = prediction.launches_for_bound(predicted)
    assert launches is not None
    assert 12 < launches < 40
    assert prediction.bound_chance(predicted, launches) >= 0.8 > prediction.bound_chance(predicted, launches - 3)
    wide = predicted.model_copy(update={"spreads": (5.0,)})
    assert prediction.launches_for_bound(wide) is None
    assert prediction.of_pairs(drawn(random.Random(1), 2, [0.0] * 5), FAMILY, "c") is None


def test_so_many_are_decided_as_were_predicted() -> None:
    """Within ten points, in every class of size that has some; the long form is in harness/bench."""
    chance = random.Random(7)
    shifts = [0.0] * 7 + [0.07, -0.08, 0.09, 0.12, -0.15, 0.18, 0.2, -0.22, 0.11, 0.1, -0.1, 0.3, 0.4]
    found: dict[float, list[tuple[float, bool]]] = {}
    for _ in range(50):
        before = prediction.of_pairs(drawn(chance, 9, shifts, 0.05), FAMILY, "c")
        assert before is not None
        pairs = {at: one.pairs for at, one in enumerate(drawn(chance, 9, shifts, 0.05))}
        for one in verdicts(pairs, 0.05, fixed(9)).values():
            size = expm1(abs(one.log_ratio or 0))
            most = next(end for end in (0.02, 0.05, 0.10, inf) if size <= end)
            found.setdefault(most, []).append((prediction.chance_of_estimate(before, size), one.says != "cannot tell"))
    for most, held in found.items():
        assert len(held) > 40
        predicted, came = (fmean(part) for part in zip(*held, strict=True))
        assert predicted == pytest.approx(came, abs=0.1), most


def on_levels(chance: random.Random, launches: int, spread: float = 0.03) -> list[PairedRatios]:
    """Return 24 layers beside a baseline, each of them 20 % slower in half of its launches."""
    sides = [
        [chance.gauss(0, spread) + (0.18 if at and chance.random() < 0.5 else 0.0) for _ in range(launches)]
        for at in range(25)
    ]
    base, *others = [{RoundKey(number): exp(value) for number, value in enumerate(side)} for side in sides]
    return [paired(one, base, scatter_within(sides)) for one in others]


def test_layers_on_two_levels_are_predicted_by_what_judges_these() -> None:
    chance = random.Random(2)
    before = prediction.of_pairs(on_levels(chance, 18), replace(FAMILY, launches=18), "c")
    assert before is not None
    assert before.two_levels > 0.8
    parted = [one for one in before.like if one.apart]
    assert len(parted) > 18
    assert fmean(one.apart for one in parted) == pytest.approx(0.18, abs=0.02)
    assert median(one.spread for one in parted) == pytest.approx(0.03 * 2**0.5, rel=0.2), "within levels"
    came = []
    for _ in range(12):
        pairs = dict(enumerate(on_levels(chance, 18)))
        levels = {at: one.levels for at, one in pairs.items() if one.levels}
        judged_so = verdicts({at: one.pairs for at, one in pairs.items()}, 0.05, fixed(18), levels=levels)
        came += [one.says != "cannot tell" for one in judged_so.values()]
    assert prediction.chance(before, 0.0) == pytest.approx(fmean(came), abs=0.1)
    as_one_level = before.model_copy(
        update={"like": tuple(one.model_copy(update={"apart": 0.0, "upper": 0.0}) for one in before.like)}
    )
    assert prediction.chance(as_one_level, 0.1) > prediction.chance(before, 0.1) + 0.2


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    options = synthetic.Options(launches=9, samples=60, floors=False, troubles=False, waits=("poll",), sizes=(8, 64))
    return synthetic.make(tmp_path_factory.mktemp("stored"), options)


def test_a_plan_keeps_what_a_stored_campaign_says(campaign: Campaign) -> None:
    plan = campaign.plan
    predicted = prediction.predict(plan, [campaign])
    assert [(one.pattern, one.place, one.wait) for one in predicted] == [
        (one.pattern, one.place, one.wait) for one in families_of(plan)
    ]
    assert {one.campaign_id for one in predicted} == {campaign.campaign_id}
    known = plan.with_predicted(predicted)
    assert known.plan_hash == known.expected_hash() != plan.plan_hash
    assert Plan.from_object(known.to_object(), source="a test").predicted == predicted
    assert plan.with_predicted(prediction.predict(plan, [])) == plan, "nothing is stored"
    launches = tuple(one.model_copy(update={"epoch": one.round % 2}) for one in plan.launches)
    assert prediction.predict(plan.model_copy(update={"launches": launches}), [campaign]) == (), (
        "epochs scatter otherwise"
    )


def test_what_came_stands_beside_what_was_predicted(campaign: Campaign) -> None:
    comparison = compare(read(campaign))
    said = judged(comparison)
    plan = campaign.plan.with_predicted(prediction.predict(campaign.plan, [campaign]))
    classes = prediction.by_size(plan, said)
    assert sum(one.comparisons for one in classes) == said.comparisons
    assert sum(one.decided for one in classes) == said.decided
    assert all(0 <= one.predicted <= one.comparisons for one in classes)
    assert [one.most for one in classes] == sorted({one.most for one in classes} & {*prediction.SIZES, inf})
    assert prediction.by_size(campaign.plan, said) == ()
    facts = itself(comparison.data, None, predicted=classes)
    assert len(facts) == len(itself(comparison.data, None)) + 1
