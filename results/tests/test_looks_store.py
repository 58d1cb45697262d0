# SPDX-License-Identifier: BSD-3-Clause
"""Decisions and later looks in the store: in order, of this plan, whole; the plan has what was planned since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_results import (
    Campaign,
    CampaignWriter,
    DamagedError,
    Decision,
    FormatError,
    JudgedFamily,
    LaterLook,
    Plan,
    PointComparison,
)
from cadge_results.errors import DamageKind
from cadge_results.formats.plan import PlanLook
from cadge_results.store.belongs import looks_of
from cadge_results.store.checksum import beside
from cadge_results.store.looks import added_rounds, looks_state, next_step
from cadge_results.store.verify import repair, verify

from .conftest import make_meta, make_plan, make_record

PAIR = PointComparison(point_id="a" * 16, baseline_id="b" * 16, says="cannot tell", level=0.05)


@pytest.fixture
def looked_at() -> Plan:
    """The small plan, of a sweep with looks after 2, 3 and 4 launches."""
    plan = make_plan().model_copy(update={"sweep": {"title": "tiny", "looks": [2, 3, 4]}})
    return plan.model_copy(update={"plan_hash": plan.expected_hash()})


@pytest.fixture
def writer(looked_at: Plan, tmp_path: Path) -> CampaignWriter:
    """A campaign whose first look was measured."""
    made = CampaignWriter.create(tmp_path, meta=make_meta(looked_at), plan=looked_at, sweep_text="title: tiny\n")
    for number in range(2):
        made.add_launch(make_record(looked_at, number))
    return made


def decide(campaign: Campaign, look: int, *undecided: PointComparison) -> Decision:
    count, digest = campaign.records_digest(look + 1)
    family = JudgedFamily(
        pattern="rpc",
        place="within",
        wait="poll",
        quantity="latency",
        baseline="x",
        correlation=0.0,
        undecided=undecided,
    )
    return Decision(
        schema_=Decision.schema_id(),
        campaign_id=campaign.campaign_id,
        plan_hash=campaign.stored_plan.plan_hash,
        look=look,
        launches=look + 1,
        looks=(2, 3, 4),
        levels=(1.0, 1.0, 1.0),
        error=0.05,
        same_within=0.05,
        seed=1,
        records=count,
        records_sha256=digest,
        families=(family,),
        tool_version="0.2.0",
    )


def plan_look(campaign: Campaign, look: int, **changes: object) -> LaterLook:
    """Plan one round more of the one launch."""
    first = campaign.stored_plan
    block, name = f"b{look}", f"b{look}-0000-0123abcd"
    launch = first.launches[0].model_copy(update={"launch_id": name, "block": block, "round": look})
    part = LaterLook(
        schema_=LaterLook.schema_id(),
        plan_hash=first.plan_hash,
        look=look,
        launches_before=look,
        launches_after=look + 1,
        decision_sha256=campaign.decision_sha256(look - 1) if looks_of(first.sweep) else None,
        blocks=(first.blocks[0].model_copy(update={"block_id": block, "launch_ids": (name,)}),),
        launches=(launch,),
        wall_s=1.0,
        disk_bytes=10,
    )
    return part.model_copy(update=changes)


def grow(writer: CampaignWriter) -> None:
    """Decide at the first look, plan the second one and measure it."""
    writer.add_decision(decide(writer.campaign, 1, PAIR))
    writer.add_look(plan_look(writer.campaign, 2))
    writer.add_launch(make_record(writer.campaign.plan, 2))


def state(campaign: Campaign) -> tuple[int, str, str]:
    found = looks_state(campaign)
    assert found is not None
    return found.look, found.step, found.why


def test_a_campaign_grows_look_by_look(writer: CampaignWriter, looked_at: Plan) -> None:
    with writer:
        assert state(writer.campaign) == (1, "decide", "")
        writer.add_decision(decide(writer.campaign, 1, PAIR))
        assert state(writer.campaign) == (1, "plan", "")
        writer.add_look(plan_look(writer.campaign, 2))
        assert state(writer.campaign) == (2, "measure", "")
        assert writer.campaign.missing_launch_ids() == ("b2-0000-0123abcd",)
        writer.add_launch(make_record(writer.campaign.plan, 2))
        writer.add_decision(decide(writer.campaign, 2))
    campaign = Campaign(writer.campaign.path)
    assert state(campaign) == (2, "done", "all is decided")
    assert campaign.stored_plan == looked_at
    assert campaign.plan.launches == (*looked_at.launches, *campaign.later_look(2).launches)
    assert campaign.plan.estimate.wall_s == looked_at.estimate.wall_s + 1
    assert campaign.plan.up_to(2).launches == looked_at.launches
    assert len(campaign.outcomes()) == 1 + 3 * 2
    assert verify(campaign).damages == []
    assert verify(campaign).files == 3 + 3 + 2 + 1
    with CampaignWriter.resume(campaign.path) as again:
        assert again.campaign.plan == campaign.plan


def test_the_last_look_and_the_budget_end_it(writer: CampaignWriter) -> None:
    with writer:
        grow(writer)
        writer.add_decision(decide(writer.campaign, 2, PAIR))
        writer.add_look(plan_look(writer.campaign, 3, launches=(), blocks=(), ended="no time"))
        assert state(writer.campaign) == (2, "done", "no time")


def test_what_does_not_follow_is_refused(writer: CampaignWriter) -> None:
    campaign = writer.campaign
    with writer:
        with pytest.raises(FormatError, match="does not follow"):
            writer.add_decision(decide(campaign, 2, PAIR))
        with pytest.raises(FormatError, match="does not follow"):
            writer.add_decision(decide(campaign, 1).model_copy(update={"plan_hash": "0" * 64}))
        grow(writer)
        writer.add_decision(decide(campaign, 2, PAIR))
        for wrong in ({"decision_sha256": campaign.decision_sha256(1)}, {"plan_hash": "0" * 64}):
            with pytest.raises(FormatError, match="was not planned from what"):
                writer.add_look(plan_look(campaign, 3, **wrong))
        with pytest.raises(FormatError, match="of names that there are already"):
            writer.add_look(plan_look(campaign, 3, launches=campaign.later_look(2).launches))


@pytest.mark.parametrize("changes", [{"launches": 4}, {"levels": (1.0,)}, {"look": 4}])
def test_a_decision_fits_its_looks(writer: CampaignWriter, changes: dict[str, object]) -> None:
    raw = decide(writer.campaign, 1).to_object()
    with pytest.raises(FormatError, match="look"):
        Decision.from_object({**raw, **changes}, source="t")


Damaging = Callable[[Path], None]


def cut(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:100])


def test_damaged_looks(writer: CampaignWriter) -> None:
    """What launches were made from has to come back; what nothing was made from yet is decided or planned again."""
    with writer:
        grow(writer)
        writer.add_decision(decide(writer.campaign, 2, PAIR))
    campaign, layout = writer.campaign, writer.campaign.layout
    for path in (layout.decision(2), layout.decision(1), layout.later_look(2)):
        cut(path)
    with pytest.raises(DamagedError, match="it ends early"):
        _ = Campaign(campaign.path).plan
    found = {(one.path, one.kind) for one in verify(Campaign(campaign.path)).damages}
    assert found == {(layout.decision(n), DamageKind.TRUNCATED) for n in (1, 2)} | {
        (layout.later_look(2), DamageKind.TRUNCATED)
    }
    assert repair(Campaign(campaign.path)).moved == [layout.decision(2)]


def test_a_kill_while_a_look_is_stored(writer: CampaignWriter) -> None:
    """A checksum alone is left of a file that was not written yet."""
    with writer:
        writer.add_decision(decide(writer.campaign, 1, PAIR))
        writer.add_look(plan_look(writer.campaign, 2))
    path = writer.campaign.layout.later_look(2)
    path.unlink()
    campaign = Campaign(writer.campaign.path)
    assert state(campaign) == (1, "plan", "")
    assert [(one.path, one.kind) for one in verify(campaign).damages] == [(path, DamageKind.MISSING)]
    with CampaignWriter.resume(campaign.path) as again:
        again.add_look(plan_look(again.campaign, 2))
    assert verify(Campaign(campaign.path)).damages == []
    path.unlink()
    repair(Campaign(campaign.path))
    assert not beside(path).exists()
    assert state(Campaign(campaign.path)) == (1, "plan", "")


# --- rounds that are added without a decision ---


@pytest.fixture
def with_time(tmp_path: Path) -> CampaignWriter:
    """A campaign without looks whose two planned rounds were measured, and which may have four."""
    later = (PlanLook(launches=4, wall_s=1.0, disk_bytes=10),)
    plan = make_plan().model_copy(update={"later": later})
    plan = plan.model_copy(update={"plan_hash": plan.expected_hash()})
    made = CampaignWriter.create(tmp_path, meta=make_meta(plan), plan=plan, sweep_text="title: tiny\n")
    for number in range(2):
        made.add_launch(make_record(plan, number))
    return made


def add_round(writer: CampaignWriter, look: int, **changes: object) -> None:
    writer.add_look(plan_look(writer.campaign, look, **changes))


def test_rounds_are_added_up_to_the_last_that_may_be(with_time: CampaignWriter) -> None:
    campaign = with_time.campaign
    with with_time:
        assert (next_step(campaign), looks_state(campaign)) == ("plan", None)
        add_round(with_time, 2)
        assert (next_step(campaign), added_rounds(campaign)) == ("measure", 1)
        with_time.add_launch(make_record(campaign.plan, 2))
        assert next_step(campaign) == "plan"
        add_round(with_time, 3)
        with_time.add_launch(make_record(campaign.plan, 3))
    again = Campaign(campaign.path)
    assert (next_step(again), added_rounds(again), again.plan.rounds) == ("done", 2, 4)
    assert verify(again).damages == []


def test_the_clock_ends_it_for_good(with_time: CampaignWriter) -> None:
    with with_time:
        add_round(with_time, 2, launches=(), blocks=(), ended="no time")
        assert (next_step(with_time.campaign), added_rounds(with_time.campaign)) == ("done", 0)
        add_round(with_time, 3)
    (damage,) = verify(Campaign(with_time.campaign.path)).damages
    assert damage.path == with_time.campaign.layout.later_look(3)


@pytest.mark.parametrize(
    "changes",
    [
        {"launches_before": 1},
        {"launches_after": 4},
        {"launches_after": 5},
        {"launches_before": 3, "launches_after": 4},
        {"launches_after": 5, "launches": (), "blocks": (), "ended": "no time"},
    ],
)
def test_rounds_that_do_not_follow_are_damage(with_time: CampaignWriter, changes: dict[str, object]) -> None:
    with with_time:
        add_round(with_time, 2, **changes)
    found = verify(Campaign(with_time.campaign.path)).damages
    assert [(one.path, one.kind) for one in found] == [(with_time.campaign.layout.later_look(2), DamageKind.SWAPPED)]
    repair(Campaign(with_time.campaign.path))
    assert next_step(Campaign(with_time.campaign.path)) == "plan"


def test_a_plan_that_lets_nothing_be_added(tmp_path: Path) -> None:
    plan = make_plan()
    with CampaignWriter.create(tmp_path, meta=make_meta(plan), plan=plan, sweep_text="title: tiny\n") as writer:
        writer.add_launch(make_record(plan, 0))
        writer.add_launch(make_record(plan, 1))
        assert next_step(writer.campaign) == "done"
        with pytest.raises(FormatError, match="was not planned from"):
            add_round(writer, 2, decision_sha256="0" * 64)
        add_round(writer, 2)
    assert [one.kind for one in verify(Campaign(writer.campaign.path)).damages] == [DamageKind.SWAPPED]


def test_a_look_needs_its_decision(writer: CampaignWriter) -> None:
    with writer:
        writer.add_decision(decide(writer.campaign, 1, PAIR))
        with pytest.raises(FormatError, match="was not planned from"):
            writer.add_look(plan_look(writer.campaign, 2, decision_sha256=None))


def test_a_block_without_launches_is_damage(with_time: CampaignWriter) -> None:
    """Who learns how long a testbed takes reads the first launch of every block."""
    campaign = with_time.campaign
    with with_time:
        block = plan_look(campaign, 2).blocks[0].model_copy(update={"launch_ids": ()})
        add_round(with_time, 2, launches=(), blocks=(block,), ended="no time")
    with pytest.raises(DamagedError, match="block b2 has no launch"):
        _ = Campaign(campaign.path).plan
    (damage,) = verify(Campaign(campaign.path)).damages
    assert damage.path == campaign.layout.later_look(2)
