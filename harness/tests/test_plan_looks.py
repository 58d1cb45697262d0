# SPDX-License-Identifier: BSD-3-Clause
"""Looks after the first one are planned from the plan and a decision alone: pure, complete, interleaved."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cadge_harness.plan.blocks import make_blocks
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.looks import compared, identity_of, most, next_look
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import PlanSite
from cadge_results import Decision, FormatError, JudgedFamily, LaterLook, Plan, PointComparison, SweepFile
from cadge_results.formats.base import digest

from .conftest import WORKLOADS, make_testbed

pytestmark = pytest.mark.spare

LOOKS = (3, 5, 9)
SHA256 = "0" * 64


def make(catalogue: Catalogue, site: PlanSite, **changes: object) -> Plan:
    raw: dict[str, Any] = {
        "schema": "cadge.sweep/2",
        "title": "looked at",
        "patterns": [
            {"pattern": "rpc", "request_bytes": ["8B", "4KiB"]},
            {"pattern": "stream", "bytes": "64KiB", "depth": 8},
        ],
        "looks": list(LOOKS),
        "twin": "none",
        "duration": {"default": "40ms", "least": "25ms"},
    }
    built = Catalogue(tuple(replace(info, absent=None) for info in catalogue.layers), catalogue.shims)
    return make_plan(SweepFile.from_object({**raw, **changes}, source="test"), built, WORKLOADS, site)


def decide(plan: Plan, goes_on: list[str], look: int = 1, **changes: object) -> Decision:
    """Return a decision after which these points go on: two and two are a comparison, and all lead together."""
    pairs = [
        PointComparison(point_id=one, baseline_id=other, says="cannot tell", level=0.01)
        for one, other in zip(goes_on[::2], goes_on[1::2], strict=False)
    ]
    family = JudgedFamily(
        pattern="rpc",
        place="within",
        wait="poll",
        quantity="latency",
        baseline="a-one",
        correlation=0.0,
        undecided=tuple(pairs),
    )
    made = Decision(
        schema_=Decision.schema_id(),
        campaign_id="c",
        plan_hash=plan.plan_hash,
        look=look,
        launches=LOOKS[look - 1],
        looks=LOOKS,
        levels=(1.0,) * len(LOOKS),
        error=0.05,
        same_within=0.05,
        seed=plan.seed,
        records=1,
        records_sha256=SHA256,
        families=(family,),
        leading=(tuple(goes_on),),
        tool_version="0",
    )
    return made.model_copy(update=changes)


def grown(plan: Plan, part: LaterLook) -> Plan:
    """Return a plan as the store has it after a look was planned."""
    return plan.model_copy(
        update={"blocks": (*plan.blocks, *part.blocks), "launches": (*plan.launches, *part.launches)}
    )


@pytest.fixture
def first(catalogue: Catalogue, site: PlanSite) -> Plan:
    """The plan of the first look, without floors."""
    return make(catalogue, site, floors=False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(data=st.data())
def test_a_look_measures_just_what_goes_on(data: st.DataObject, first: Plan) -> None:
    plan = first
    for look in (1, 2):
        chosen = data.draw(st.lists(st.sampled_from(sorted(compared(plan))), min_size=1, unique=True))
        decision = decide(plan, chosen, look)
        part = next_look(plan, decision, SHA256)
        turns = range(LOOKS[look - 1], LOOKS[look])
        assert part == next_look(plan, decide(plan, chosen[::-1], look), SHA256), "the order of findings says nothing"
        attempts = Counter((name, launch.round) for launch in part.launches for name in launch.point_ids)
        assert attempts == {(name, turn): 1 for name in chosen for turn in turns}
        round_0 = {name: launch for launch in plan.launches if launch.round == 0 for name in launch.point_ids}
        for launch in part.launches:
            for name in launch.point_ids:
                same = round_0[name]
                assert (launch.subject, launch.endpoints) == (same.subject, same.endpoints)
                assert launch.wall_ms <= same.wall_ms
            assert 0 < launch.wall_ms < launch.deadline_ms
        for block in part.blocks:
            rounds = [launch.round for launch in part.launches if launch.block == block.block_id]
            assert rounds == sorted(rounds), "round by round"
            assert {launch.subject.place for launch in part.launches if launch.block == block.block_id} == {block.place}
        plan = grown(plan, part)
        names = [launch.launch_id for launch in plan.launches]
        assert len(set(names)) == len(names)
        assert [block.block_id for block in plan.blocks] == [f"b{n + 1}" for n in range(len(plan.blocks))]
        seeds = [launch.seed for launch in plan.launches]
        assert len(set(seeds)) == len(seeds)


def test_launches_of_a_look_are_shuffled_anew_in_each_round(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make(catalogue, site, looks=[3, 30])
    decision = decide(plan, sorted(compared(plan)), looks=(3, 30), levels=(1.0, 1.0))
    part = next_look(plan, decision, SHA256)
    orders = Counter(
        tuple(identity_of(one) for one in part.launches if (one.block, one.round) == (block.block_id, turn))
        for block in part.blocks[:1]
        for turn in range(3, 30)
    )
    members = len(next(iter(orders)))
    assert members >= 2
    assert len(orders) > members


def test_rounds_go_on_as_if_there_were_no_looks(catalogue: Catalogue, site: PlanSite) -> None:
    """What a launch is called by, and its seed, depend on what is launched and its round, not on the look."""
    plan = make(catalogue, site, floors=False)
    longer = make(catalogue, site, floors=False, looks=[9, 10])
    part = next_look(plan, decide(plan, sorted(compared(plan))), SHA256)
    expected = {(identity_of(one), one.round): one.seed for one in longer.launches}
    found = {(identity_of(one), one.round): one.seed for one in part.launches}
    assert found
    assert {key: expected[key] for key in found} == found
    assert {one.launch_id.rsplit("-", 1)[1] for one in part.launches} == {
        digest([name, turn])[:8] for name, turn in found
    }


def test_rates_of_a_link_alternate_in_later_looks_too(catalogue: Catalogue, site: PlanSite) -> None:
    layers = ["a-one", {"layer": "a-one", "settings": {"link.rate": "1Gbit"}}]
    plan = make(catalogue, site, floors=False, layers=layers, places="between", looks=list(LOOKS))
    part = next_look(plan, decide(plan, sorted(compared(plan))), SHA256)
    for one, turns in ((plan, range(3)), (part, range(3, 5))):
        at = {launch.launch_id: (launch.round, launch.subject.setting("link.rate")) for launch in one.launches}
        blocks = [{at[name] for name in block.launch_ids} for block in one.blocks]
        assert [len(block) for block in blocks] == [1] * 2 * len(turns)
        assert [turn for block in blocks for turn, _ in block] == [turn for turn in turns for _ in range(2)]
        for first, second in zip(blocks[::2], blocks[1::2], strict=True):
            assert {rate for _, rate in first | second} == {None, "1Gbit"}
    sum_s = (part.wall_s, most(plan)[0].wall_s)
    assert sum_s[0] == pytest.approx(sum_s[1], abs=0.5)


def test_what_is_measured_twice_goes_on_twice(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make(catalogue, site, looks=[9, 12], twin="a-one")
    ours = [one.point_id for one in plan.points if one.subject.layer == "a-one" and one.point_id in compared(plan)]
    twins = {one.point_id for one in plan.points if one.subject.twin and one.state == "planned"}
    assert len(twins) * 2 == len(ours)
    others = sorted(compared(plan) - set(ours))
    changes: dict[str, Any] = {"looks": (9, 12), "levels": (1.0, 1.0), "launches": 9}
    part = next_look(plan, decide(plan, others, **changes), SHA256)
    assert not twins & {name for launch in part.launches for name in launch.point_ids}
    first = next(name for name in ours if name not in twins)
    part = next_look(plan, decide(plan, [first, others[0]], **changes), SHA256)
    measured = {name for launch in part.launches for name in launch.point_ids}
    assert len(measured) == 3
    assert len(measured & twins) == 1


def test_floors_are_measured_up_to_the_first_look(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make(catalogue, site)
    assert {launch.subject.kind for launch in plan.launches} == {"layer", "floor"}
    floors = {point.point_id for point in plan.points if point.subject.kind == "floor"}
    assert not floors & compared(plan)
    part = next_look(plan, decide(plan, sorted(compared(plan))), SHA256)
    assert {launch.subject.kind for launch in part.launches} == {"layer"}
    blocks = make_blocks(grown(plan, part), make_testbed(), "c", done={one.launch_id for one in plan.launches})
    assert [block.block_id for block in blocks] == [block.block_id for block in part.blocks]
    assert not any(launch.system_calls for block in blocks for launch in block.launches), "they are counted once"


def test_what_all_looks_take_at_most(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make(catalogue, site)
    assert plan.later == most(plan)
    assert [one.launches for one in plan.later] == [5, 9]
    everything = sorted(compared(plan))
    part = next_look(plan, decide(plan, everything), SHA256)
    assert part.wall_s == pytest.approx(plan.later[0].wall_s, abs=0.1)
    assert part.disk_bytes == plan.later[0].disk_bytes
    fewer = next_look(plan, decide(plan, everything[:2]), SHA256)
    assert fewer.wall_s < part.wall_s
    assert make(catalogue, site, looks=None, launches=3).later == ()


def test_no_look_begins_that_would_exceed_the_budget(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make(catalogue, site, budget="5min")
    everything = sorted(compared(plan))
    part = next_look(plan, decide(plan, everything), SHA256)
    assert part.ended is None
    late = next_look(plan, decide(plan, everything, pace=40.0), SHA256)
    assert (late.launches, late.blocks, late.wall_s) == ((), (), 0)
    assert "beyond the budget of 5 min" in (late.ended or "")


def test_the_first_look_leaves_half_of_the_budget(catalogue: Catalogue, site: PlanSite) -> None:
    duration = {"default": "10s", "least": "25ms"}
    plan = make(catalogue, site, budget="1min", duration=duration)
    assert 25 < plan.estimate.wall_s <= 30
    assert "the first look has half of the budget of 1 min, others have the rest" in plan.notices
    # but no point becomes shorter than the sweep wants it for that
    plan = make(catalogue, site, budget="1min", duration={"default": "10s", "least": "300ms"})
    assert 50 < plan.estimate.wall_s <= 60
    assert min(point.duration_ms for point in plan.points if point.state == "planned") >= 300


@pytest.mark.parametrize(
    "wrong",
    [
        {"families": (), "leading": ()},
        {"leading": (("f" * 16,),)},
        {"look": 3, "launches": 9},
        {"looks": (3, 5), "levels": (1.0, 1.0)},
    ],
)
def test_a_decision_of_something_else_is_refused(wrong: dict[str, Any], catalogue: Catalogue, site: PlanSite) -> None:
    plan = make(catalogue, site)
    with pytest.raises(FormatError, match="no look can be planned"):
        next_look(plan, decide(plan, sorted(compared(plan)), **wrong), SHA256)
