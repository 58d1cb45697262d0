# SPDX-License-Identifier: BSD-3-Clause
"""Several epochs: two or three can only withhold a verdict of launches; four or more are tested themselves."""

from __future__ import annotations

import random
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

import pagereader
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_1samp, ttest_ind

from cadge_analysis import messages, report
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, CellVerdict, judge_campaign
from cadge_analysis.stats.inference import plan_power, signed_rank
from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.epochs import OverEpochs, of_epochs
from cadge_analysis.stats.inference.paired_verdicts import verdict
from cadge_analysis.stats.inference.rounds import RoundKey, do_agree
from cadge_analysis.stats.inference.sequential import fixed
from cadge_analysis.stats.inference.shift import Shift, between_epochs, unpaired
from cadge_analysis.stats.inference.verdict import bounds
from cadge_analysis.stats.intervals import difference, over_launches, over_rounds, ratio
from cadge_analysis.tables import TABLES
from cadge_analysis.versus.against import against
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign

BASE, OTHER, THIRD = "sockets-tcp", "native-ucx", "native-ofi"
VALUES = st.lists(st.floats(-1, 1).map(lambda value: round(value, 2)), min_size=3, max_size=6)


def flat(groups: list[list[float]]) -> tuple[list[float], list[int]]:
    return [value for group in groups for value in group], [len(group) for group in groups]


def estimates_of(groups: list[list[float]]) -> list[float]:
    return [signed_rank.estimate(group) for group in groups]


@given(st.lists(VALUES, min_size=4, max_size=7), st.floats(-0.3, 0.3))
def test_the_test_over_epochs_is_that_of_scipy(groups: list[list[float]], shift: float) -> None:
    values, sizes = flat(groups)
    plan, found = of_epochs(fixed(len(values)), sizes), estimates_of(groups)
    assert isinstance(plan, OverEpochs)
    assert plan.epochs(values) == tuple(found)
    assert plan.estimate(values) == pytest.approx(fmean(found))
    if max(found) - min(found) < 0.01:
        return
    theirs = ttest_1samp(found, 0.0)
    assert plan.p(0, values) == pytest.approx(theirs.pvalue, rel=1e-9)
    assert plan.p_not_below(0, values) == pytest.approx(ttest_1samp(found, 0.0, alternative="less").pvalue, rel=1e-9)
    low, high = theirs.confidence_interval(0.99)
    assert plan.interval(0, values, 0.01) == pytest.approx((low, high), abs=1e-9)
    within = -0.35 + shift, 0.35 + shift
    sides = [
        ttest_1samp(found, end, alternative=side).pvalue for end, side in zip(within, ("greater", "less"), strict=True)
    ]
    assert plan.p_outside(0, values, within) == pytest.approx(min(1.0, 2 * max(sides)), rel=1e-9)


@given(st.lists(VALUES, min_size=2, max_size=7), st.sampled_from([0.2, 0.05, 0.01]))
def test_interval_and_p_say_the_same(groups: list[list[float]], level: float) -> None:
    values, sizes = flat(groups)
    plan = of_epochs(fixed(len(values)), sizes)
    ends, p = plan.interval(0, values, level), plan.p(0, values)
    if abs(p - level) < 1e-9:
        return
    leaves_out_zero = ends is not None and (ends[0] > 0 or ends[1] < 0)
    # launches may all lie on one side and their epochs' estimates on it as well: then only the launches decide
    assert leaves_out_zero == (p <= level) or not do_agree(estimates_of(groups))
    low, high = bounds(0.3)
    inside = ends is not None and low < ends[0] and ends[1] < high
    assert inside == (plan.p_outside(0, values, (low, high)) <= level)


@given(st.lists(VALUES, min_size=2, max_size=3), st.sampled_from([0.2, 0.05]))
def test_few_epochs_only_take_verdicts_away(groups: list[list[float]], level: float) -> None:
    values, sizes = flat(groups)
    plain, plan = fixed(len(values)), of_epochs(fixed(len(values)), sizes)
    assert plan.p(0, values) >= plain.p(0, values)
    assert plan.p_not_below(0, values) >= plain.p_not_below(0, values)
    ends, own = plan.interval(0, values, level), plain.interval(0, values, level)
    assert (ends is None) == (own is None)
    if ends and own:
        found = estimates_of(groups)
        assert ends == (min(own[0], *found), max(own[1], *found))


def test_one_epoch_is_as_before() -> None:
    plan = fixed(9)
    assert of_epochs(plan, [9]) is plan
    assert of_epochs(plan, [9, 0, 0]) is plan
    assert plan.epochs([1.0] * 9) == ()
    assert verdict(dict(enumerate([0.2 + 0.01 * k for k in range(9)])), 0.05, plan).epochs == ()


def test_two_epochs_on_both_sides_are_undecided() -> None:
    """All launches together say that it is slower; one of the epochs says that it is not."""
    first, second = [0.2 + 0.001 * k for k in range(9)], [-0.01 - 0.001 * k for k in range(4)]
    pairs = dict(enumerate([*first, *second]))
    assert verdict(pairs, 0.05, fixed(13)).says == "slower"
    found = verdict(pairs, 0.05, of_epochs(fixed(13), [9, 4]))
    assert (found.says, found.epochs_disagree, found.more) == ("cannot tell", True, None)
    assert found.epochs == pytest.approx((0.204, -0.0115))
    assert found.low is not None
    assert found.low <= -0.0115
    near = dict(enumerate([*first, *[0.1 + 0.001 * k for k in range(4)]]))
    agreed = verdict(near, 0.05, of_epochs(fixed(13), [9, 4]))
    assert (agreed.says, agreed.epochs_disagree) == ("slower", False)
    little = dict(enumerate([0.004 * (-1) ** (k // 9) + 0.0001 * k for k in range(18)]))
    same = verdict(little, 0.05, of_epochs(fixed(18), [9, 9]))
    assert (same.says, same.epochs_disagree) == ("same", True)


def test_from_four_on_only_epochs_count() -> None:
    """A hundred launches each that agree to a thousandth say nothing where the epochs do not agree."""
    chance = random.Random(1)
    moved = [0.15, -0.02, 0.1, 0.06]
    values = [middle + chance.gauss(0, 0.001) for middle in moved for _ in range(100)]
    found = verdict(dict(enumerate(values)), 0.05, of_epochs(fixed(400), [100] * 4))
    assert verdict(dict(enumerate(values)), 0.05, fixed(400)).says == "slower"
    assert (found.says, found.epochs_disagree, found.launches) == ("cannot tell", False, 400)
    assert found.p == pytest.approx(ttest_1samp(found.epochs, 0.0).pvalue)
    alike = [0.09 + chance.gauss(0, 0.001) + 0.002 * (k // 9) for k in range(36)]
    assert verdict(dict(enumerate(alike)), 0.05, of_epochs(fixed(36), [9] * 4)).says == "slower"


# -- between campaigns, and single values

SIDES = st.lists(VALUES, min_size=1, max_size=6)


def between(ours: list[list[float]], theirs: list[list[float]]) -> Shift:
    first, second = ([[exp(value) for value in epoch] for epoch in side] for side in (ours, theirs))
    found = between_epochs(first, second)
    assert found is not None
    return found


@given(SIDES, SIDES, st.sampled_from([0.3, 0.05, 0.01]))
def test_between_campaigns_epochs_are_compared_by_t(
    ours: list[list[float]], theirs: list[list[float]], level: float
) -> None:
    """Launches of an epoch are one value; a side of one epoch says nothing of how epochs scatter."""
    found, sides = between(ours, theirs), [estimates_of(ours), estimates_of(theirs)]
    if len(ours) == len(theirs) == 1:
        assert found == unpaired([exp(value) for value in ours[0]], [exp(value) for value in theirs[0]])
        return
    assert found.log_ratio == pytest.approx(fmean(sides[1]) - fmean(sides[0]), abs=1e-9)
    assert found.launches == (sum(map(len, ours)), sum(map(len, theirs)))
    if any(len(one) > 1 and max(one) - min(one) < 0.01 for one in sides):  # SciPy warns of these
        return
    oracle = ttest_ind(sides[1], sides[0])
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-6, abs=1e-12)
    assert found.interval(level) == pytest.approx(oracle.confidence_interval(1 - level), abs=1e-6)
    assert between(theirs, ours).interval(level) == pytest.approx(found.mirrored().interval(level))


@given(SIDES, SIDES, st.floats(0.0005, 0.5), st.sampled_from([((0.0,), 0.0), ((0.03,), 0.02), ((0.0, 0.1), 0.01)]))
def test_with_drift_interval_and_p_of_epochs_say_the_same(
    ours: list[list[float]], theirs: list[list[float]], level: float, drift: tuple[tuple[float, ...], float]
) -> None:
    one = ShiftEstimate(between(ours, theirs), *drift, freedom=4.5)
    ends, (low, high) = one.interval(level), bounds(0.3)
    if any(abs(p - level) < 1e-9 for p in (one.p, one.p_outside(low, high))):
        return
    assert (ends is not None and not ends[0] <= 0 <= ends[1]) == (one.p <= level)
    assert (ends is not None and low < ends[0] and ends[1] < high) == (one.p_outside(low, high) <= level)
    back = one.mirrored()
    assert (back.p, back.log_ratio) == (one.p, -one.log_ratio)


def by_round(epochs: list[list[float]]) -> dict[RoundKey, float]:
    values = [(at, value) for at, epoch in enumerate(epochs) for value in epoch]
    return {RoundKey(number, 0, at): value for number, (at, value) in enumerate(values)}


def test_the_interval_of_a_single_value_counts_epochs() -> None:
    few = [[10.0 + k / 10 for k in range(9)], [12.0 + k / 10 for k in range(9)]]
    alike, wide = over_launches([one for epoch in few for one in epoch]), over_rounds(by_round(few))
    assert over_rounds(by_round(few[:1])) == over_launches(few[0])
    assert (wide.value, wide.launches, wide.coverage) == (alike.value, 18, alike.coverage)
    assert alike.low is not None
    assert alike.high is not None
    assert (wide.low, wide.high) == (min(alike.low, 10.4), max(alike.high, 12.4))
    many = [[value + k / 1000 for k in range(9)] for value in (10.0, 12.0, 11.0, 13.0)]
    found = over_rounds(by_round(many))
    logs = [log(epoch[4]) for epoch in many]
    ends = ttest_1samp(logs, 0.0).confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((exp(fmean(logs)), exp(ends[0]), exp(ends[1])))
    assert (found.coverage, found.launches) == (0.95, 36)
    with_zero = over_rounds(by_round([[0.0], [1.0], [2.0], [3.0]]))
    assert (with_zero.value, with_zero.low) == pytest.approx(
        (1.5, ttest_1samp([0, 1, 2, 3], 0).confidence_interval()[0])
    )


def test_a_ratio_of_rounds_counts_epochs() -> None:
    ratios = [[1.1] * 3, [1.2] * 3, [1.3] * 3, [1.2] * 3]
    ours, base = by_round(ratios), by_round([[2.0] * 3] * 4)
    found = ratio({key: 2 * value for key, value in ours.items()}, base)
    logs = [log(epoch[0]) for epoch in ratios]
    ends = ttest_1samp(logs, 0.0).confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((exp(fmean(logs)), exp(ends[0]), exp(ends[1])))
    above = difference({key: 2 * value for key, value in ours.items()}, base)
    assert above.value == pytest.approx(0.4)
    assert above.low == pytest.approx(ttest_1samp([0.2, 0.4, 0.6, 0.4], 0.0).confidence_interval(0.95)[0])


# -- in campaigns


def world(moves: list[dict[str, float]], each: int) -> Any:  # noqa: ANN401
    """Layers that each epoch moves by so many times; a launch scatters by 1 %."""

    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        layer = synthetic.flat(point)["layer"]
        scatter = random.Random(f"{number}/{point['point_id']}").uniform(0.99, 1.01)
        factor = moves[number // each].get(layer, 1.0) * scatter
        attempt |= {"operations": 2000, "elapsed_ns": round(20_000_000 * factor)}
        synthetic.set_samples(attempt, [(round(10_000 * factor), 2000)])

    return hook


def made(folder: Path, moves: list[dict[str, float]], each: int = 9, seed: int = 1) -> Campaign:
    options = synthetic.Options(
        seed=seed,
        layers=(BASE, OTHER, THIRD),
        sizes=(8,),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        launches=each * len(moves),
        epochs=len(moves),
        samples=100,
        floors=False,
        troubles=False,
        attempt_hook=world(moves, each),
    )
    return synthetic.make(folder, options)


def judged(campaign: Campaign) -> tuple[CampaignVerdicts, dict[str, CellVerdict]]:
    return judged_data(load.read(campaign))


def judged_data(data: load.Dataset) -> tuple[CampaignVerdicts, dict[str, CellVerdict]]:
    found = judge_campaign(compare.compare(data))
    return found, {one.cell.series.layer: one for one in found.by_point.values()}


def test_a_campaign_whose_epochs_disagree(tmp_path: Path) -> None:
    """One layer is faster in the first epoch and slower in the second, one 30 % slower in both."""
    campaign = made(tmp_path, [{OTHER: 0.8, THIRD: 1.3}, {OTHER: 1.1, THIRD: 1.4}])
    found, by_layer = judged(campaign)
    assert found.epochs == 2
    one, third = by_layer[OTHER], by_layer[THIRD]
    assert (one.says, one.verdict.epochs_disagree) == ("cannot tell", True)
    assert one.epochs == pytest.approx((0.8, 1.1), rel=0.01)
    assert one.ratio is not None
    assert one.ratio.low is not None
    assert one.ratio.high is not None
    assert one.ratio.low <= one.epochs[0] < one.epochs[1] <= one.ratio.high
    assert (third.says, third.verdict.epochs_disagree) == ("slower", False)
    (group,) = found.groups.values()
    assert {series.layer for series in group.members} == {BASE, OTHER}, "neither leads in both epochs"
    rows = {row["layer"]: row for row in TABLES["cells"].rows(campaign)}
    assert [float(ratio) for ratio in rows[OTHER]["verdict_epochs"].split()] == pytest.approx(one.epochs, rel=1e-3)
    assert rows[OTHER]["verdict_epochs_disagree"] is True
    assert rows[BASE]["verdict_epochs"] is None
    for name in ("values", "attempts", "launches", "samples"):
        assert {(row["round"] // 9, row["epoch"]) for row in TABLES[name].rows(campaign)} == {(0, 0), (1, 1)}


def test_without_epochs_the_same_campaign_decides(tmp_path: Path) -> None:
    """So that what is undecided above is so because of its epochs."""
    moves = [{OTHER: 1.02, THIRD: 1.3}, {OTHER: 1.4, THIRD: 1.4}]
    found, by_layer = judged(made(tmp_path, moves))
    assert found.epochs == 2
    assert by_layer[OTHER].says == by_layer[THIRD].says == "slower"


def test_a_campaign_of_four_epochs_is_judged_over_them(tmp_path: Path) -> None:
    moves = [{OTHER: middle, THIRD: 1.3 * middle} for middle in (0.97, 1.08, 1.01, 1.04)]
    campaign = made(tmp_path, moves, each=5)
    found, by_layer = judged(campaign)
    assert found.epochs == 4
    one, third = by_layer[OTHER], by_layer[THIRD]
    assert one.says == "cannot tell"
    assert third.says == "slower"
    logs = [log(ratio) for ratio in third.epochs]
    assert third.verdict.p == pytest.approx(ttest_1samp(logs, 0.0).pvalue, rel=1e-6)
    assert third.ratio is not None
    assert third.ratio.value == pytest.approx(exp(fmean(logs)))
    spread = ttest_1samp(logs, 0.0).confidence_interval(1 - third.verdict.level)
    assert (third.ratio.low, third.ratio.high) == pytest.approx((exp(spread[0]), exp(spread[1])), rel=1e-6)
    assert found.serial is None, "how launches follow one another does no harm"
    assert plan_power.sentences(load.read(campaign).plan) == plan_power.sentences(campaign.plan)
    (said,) = plan_power.sentences(campaign.plan)
    assert f"{t.ppf(1 - 0.05 / 2 / 2, 3) / 2:.1f} times" in said


def test_campaigns_of_several_epochs_are_compared_over_them(tmp_path: Path) -> None:
    """Launches agree to a per cent, epochs do not: of machines compared so, each launch by itself would decide."""
    moves = [{OTHER: middle, THIRD: middle} for middle in (0.9, 1.15, 1.0, 1.05)]
    moved = [{OTHER: 1.12 * one[OTHER], THIRD: 2 * one[THIRD]} for one in moves]
    sides = [
        Side(str(seed), load.read(made(tmp_path / str(seed), each, each=3, seed=seed)))
        for seed, each in enumerate((moves, moved))
    ]
    found = against(*sides, 0.05, across_hosts=True)
    by_layer = {one.series: one for one in found.changes}
    other = by_layer[OTHER]
    assert (other.judged.verdict, other.judged.more, other.shift.shift.launches) == ("cannot tell", None, (12, 12))
    assert unpaired(*(list(side.by_round.values()) for side in other.sides)).p < 0.05  # type: ignore[union-attr]
    assert by_layer[THIRD].judged.verdict == "slower"
    assert found.is_over_epochs


def test_layers_of_one_campaign_are_compared_over_its_epochs(tmp_path: Path) -> None:
    moves = [{OTHER: middle} for middle in (0.9, 1.15, 1.0, 1.05)]
    data = load.read(made(tmp_path, moves, each=3))
    first, second = (
        Side("one", data, series) for name in (BASE, OTHER) for series in data.layers if series.layer == name
    )
    found = against(first, second, 0.05)
    assert found.holds == messages.say("versus", "conditions.holds_epochs", boots=1)
    (one,) = found.changes
    assert one.judged.verdict == "cannot tell"
    _, by_layer = judged_data(data)
    assert one.shift.p == pytest.approx(by_layer[OTHER].verdict.p)
    assert one.change == pytest.approx(exp(by_layer[OTHER].verdict.log_ratio or 0.0))


def test_a_report_opened_again_knows_its_epochs(tmp_path: Path) -> None:
    """Verdicts made from a page's numbers are those of the campaign, and it says what they stand for."""
    campaign = made(tmp_path, [{OTHER: 0.8}, {OTHER: 1.1}])
    page = report.html(report.page_of(load.read(campaign)))
    again = report.html(report.page_again(page, "report.html", None))
    for text in (page, again):
        (row,) = (one for one in pagereader.full_rows(pagereader.read(text)) if one.layer == OTHER)
        assert "undecided" in row.fields["verdict"].text
        assert messages.say("cells", "shown.epochs_disagree") in " ".join(row.fields["verdict"].smalls)
        assert messages.say("report", "opening.holds_beside", epochs=2) in pagereader.read(text).text
        assert messages.say("report", "opening.holds") not in pagereader.read(text).text
