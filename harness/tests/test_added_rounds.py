# SPDX-License-Identifier: BSD-3-Clause
"""A sweep that ends before its budget gets further rounds of everything: by the clock alone, whole rounds, once."""

from __future__ import annotations

import html
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cadge_cli.looks
from cadge_cli.commands import run as commands_run
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.looks import RESERVE, CampaignTime, more_rounds
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import PlanSite
from cadge_harness.plan.timemodel import TimeModel, report_ms
from cadge_harness.run import request
from cadge_results import Campaign, CampaignWriter, LaterLook, Plan, Store, StoreFullError, SweepFile
from cadge_results.publish.published import Rules, copy
from cadge_results.store.looks import added_rounds, next_step

from .conftest import WORKLOADS, Answer, FakeRunner

Cadge = Callable[..., Answer]
SWEEP = """\
schema: cadge.sweep/2
title: two layers, and time
layers: [a-one, b-two]
baseline: a-one
places: within
patterns:
  - {pattern: rpc, request_bytes: [8B, 64B]}
launches: 6
twin: a-one
floors: false
seed: 7
budget: 60s
duration: {default: 20ms}
"""
RUN = ("run", "--sweep", "in-time", "--no-report")
EACH = 3
"""Launches of a round: two layers, and the A/A control."""


@pytest.fixture
def in_time(checkout: Checkout, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout with the sweep above on a machine that takes a second and a half a launch."""
    monkeypatch.setattr(request, "probed", lambda _driver, _base: TimeModel())
    (checkout.root / "harness/sweeps/in-time.yml").write_text(SWEEP)
    at_pace(runner, 1.5)
    return checkout


def at_pace(runner: FakeRunner, each_s: float, slow: str = "", times: float = 1) -> None:
    """Let each launch take so long until the next one begins, and those of a slow layer so many times as long."""
    begins = datetime.now(UTC)

    def change(record: dict[str, object]) -> dict[str, object]:
        nonlocal begins
        result, launch = record["result"], record["launch"]
        assert isinstance(result, dict)
        assert isinstance(launch, dict)
        result["started_utc"] = f"{begins:%Y-%m-%dT%H:%M:%S.%fZ}"
        took_s = each_s * (times if launch["layer"] == slow else 1)
        begins += timedelta(seconds=took_s)
        result["wall_ns"] = round(took_s * 1e9)
        return record

    runner.change = change


def last(checkout: Checkout) -> Campaign:
    return Store(checkout.campaigns).open("last")


def made_of(campaign: Campaign) -> dict[int, int]:
    """Return how many launches each round has."""
    return Counter(launch.round for launch in campaign.plan.launches if launch.launch_id in campaign.launch_ids())


def planned(catalogue: Catalogue, site: PlanSite, *, add_rounds: bool = True, **changes: object) -> Plan:
    sweep = SweepFile.from_object(
        {
            "schema": "cadge.sweep/2",
            "title": "in time",
            "patterns": [{"pattern": "rpc", "request_bytes": ["8B", "4KiB"]}],
            "launches": 6,
            "budget": "5min",
            "duration": "40ms",
            **changes,
        },
        source="test",
    )
    return make_plan(sweep, catalogue, WORKLOADS, site, add_rounds=add_rounds)


# --- the rule -------------------------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(spent_s=st.floats(0, 400), pace=st.floats(0.0, 30))
def test_as_many_rounds_as_fit(spent_s: float, pace: float, catalogue: Catalogue, site: PlanSite) -> None:
    plan = planned(catalogue, site)
    part = more_rounds(plan, 2, 12, took=CampaignTime(spent_s=spent_s, pace=pace))
    count = len({one.round for one in part.launches})
    each = [one for one in plan.launches if one.round == 1]
    around_ms = sum(one.wall_ms for one in plan.blocks) - sum(one.wall_ms for one in plan.launches)

    def ends_ms(rounds: int) -> float:
        attempts = sum(len(one.point_ids) for one in [*plan.launches, *each * rounds])
        wall_ms = rounds * pace * sum(one.wall_ms for one in each)
        return spent_s * 1000 + max(1, pace) * (around_ms + TimeModel().campaign_ms) + wall_ms + report_ms(attempts)

    room_ms = 300_000 * (1 - RESERVE)
    assert count == 0 or ends_ms(count) <= room_ms + 1
    assert count == 6 or ends_ms(count + 1) > room_ms - 1
    assert (part.ended is None) == bool(count) == bool(part.blocks)
    assert part.launches_after == 6 + max(count, 1)


def test_added_rounds_have_all_points(catalogue: Catalogue, site: PlanSite) -> None:
    """Floors, layers and the A/A control alike, once each, with seeds that go on."""
    plan = planned(catalogue, site)
    assert {one.subject.kind for one in plan.launches} == {"layer", "floor"}
    assert any(one.subject.twin for one in plan.launches)
    part = more_rounds(plan, 2, 12, took=CampaignTime(spent_s=0, pace=1.0))
    every = {point.point_id for point in plan.points if point.state == "planned"}
    attempts = Counter((name, one.round) for one in part.launches for name in one.point_ids)
    assert attempts == {(name, turn): 1 for name in every for turn in range(6, 12)}
    longer = planned(catalogue, site, launches=12, budget="10min")
    assert {one.seed for one in part.launches} == {one.seed for one in longer.launches if one.round >= 6}


def test_where_no_round_is_added(catalogue: Catalogue, site: PlanSite) -> None:
    """Without a budget, where launches were asked for, and where looks say what goes on."""
    assert [one.launches for one in planned(catalogue, site).later] == [12]
    assert planned(catalogue, site, budget=None).later == ()
    assert planned(catalogue, site, add_rounds=False).later == ()
    assert planned(catalogue, site, launches=1000, budget="10h").later[-1].launches == 1000
    assert [one.launches for one in planned(catalogue, site, looks=[6, 9]).later] == [9]


# --- carried out ----------------------------------------------------------------------------------------------------


def test_time_that_is_left_is_used(in_time: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    answer = cadge("run", "--sweep", "in-time", "--json")
    assert answer.code == 0, answer.err
    campaign, data = last(in_time), json.loads(answer.out)["data"]
    rounds = campaign.plan.rounds
    assert 6 < rounds < 12
    assert made_of(campaign) == dict.fromkeys(range(rounds), EACH)
    assert runner.made == [launch.launch_id for launch in campaign.plan.launches]
    assert (campaign.meta.status, data["rounds_added"]) == ("finished", rounds - 6)
    assert campaign.decisions() == ()
    assert campaign.later_looks()[-1].ended
    # 60 s, less what Ansible, the report and the reserve take
    assert 4.5 * rounds < 60 < 4.5 * (rounds + 1) + 20
    assert f"{rounds - 6} rounds added" in cadge("status").out
    status = json.loads(cadge("status", "--json").out)["data"]
    assert (status["state"], status["rounds_added"], "look" in status) == ("finished", rounds - 6, False)
    checked = cadge("verify")
    assert checked.code == 0, checked.out
    page = html.unescape(campaign.layout.report.read_text())
    assert f"{rounds - 6} rounds of all launches, as the budget had time left" in page
    assert f"{rounds} launches of each point" in page


def test_the_cap(in_time: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    at_pace(runner, 0.1)
    assert cadge(*RUN).code == 0
    campaign = last(in_time)
    assert (campaign.plan.rounds, next_step(campaign)) == (12, "done")
    assert json.loads(cadge("resume", "--json").out)["data"]["made"] == 0


def test_the_clock_asks_no_layer(
    in_time: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exchange the launches of two layers, the slow for the fast: the clock says the same. So no side is favoured."""
    (in_time.root / "harness/sweeps/in-time.yml").write_text(SWEEP.replace("twin: a-one", "twin: none"))
    found: list[CampaignTime] = []

    def noted(plan: Plan, look: int, most_rounds: int, *, took: CampaignTime) -> LaterLook:
        found.append(took)
        return more_rounds(plan, look, most_rounds, took=CampaignTime(spent_s=1000, pace=1))

    monkeypatch.setattr(cadge_cli.looks, "more_rounds", noted)
    for slow in ("a-one", "b-two"):
        at_pace(runner, 1.0, slow, times=9)
        assert cadge(*RUN, "--results", str(tmp_path / slow)).code == 0
    first, second = found
    assert first.spent_s == pytest.approx(60, abs=1.5), "stored times have whole seconds"
    assert second.spent_s == pytest.approx(first.spent_s, abs=1.5)
    assert second.pace == pytest.approx(first.pace, rel=0.03)


def test_no_time_left(in_time: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    at_pace(runner, 4.0)
    assert cadge(*RUN).code == 0
    campaign = last(in_time)
    (part,) = campaign.later_looks()
    assert (campaign.plan.rounds, part.launches) == (6, ())
    assert "of a budget of 1 min" in (part.ended or "")
    # neither another command nor launches that are made again open it once more
    assert json.loads(cadge("resume", "--json").out)["data"]["made"] == 0
    with CampaignWriter.resume(campaign.path) as writer:
        writer.set_aside([campaign.plan.launches[0].launch_id], "disturbed")
    at_pace(runner, 0.1)
    assert cadge("resume", "--no-report").code == 0
    assert (last(in_time).plan.rounds, last(in_time).meta.status) == (6, "finished")


def test_launches_that_were_asked_for_are_all(in_time: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    at_pace(runner, 0.1)
    assert "up to 12 launches of each point (--launches 6 adds none)" in " ".join(
        cadge("plan", "--sweep", "in-time").out.split()
    )
    assert "adds none" not in cadge("plan", "--sweep", "in-time", "--launches", "6").out
    assert cadge(*RUN, "--launches", "6").code == 0
    assert (last(in_time).plan.rounds, last(in_time).later_looks()) == (6, ())


# --- broken off -----------------------------------------------------------------------------------------------------


def shape(campaign: Campaign) -> dict[str, object]:
    return {"launches": campaign.plan.launches, "blocks": campaign.plan.blocks, "stored": campaign.launch_ids()}


def test_broken_off_in_an_added_round_and_before_one(
    in_time: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal in the planned rounds, a kill between them and the clock's word, and a stop in the middle of a round."""
    at_pace(runner, 0.1)
    runner.before_launch = lambda index: os.kill(os.getpid(), signal.SIGINT) if index == 17 else None
    assert cadge(*RUN).code == 130
    assert (last(in_time).missing_launch_ids(), last(in_time).later_looks()) == ((), ())
    assert last(in_time).meta.status == "interrupted"
    assert "continue with: cadge resume" in cadge("status").out
    runner.before_launch = lambda _index: None
    with monkeypatch.context() as patch:
        patch.setattr(cadge_cli.looks, "more_rounds", lambda *_given, **_named: sys.exit("broken off"))
        with pytest.raises(SystemExit, match="broken off"):
            cadge("resume", "--no-report")
    assert (next_step(last(in_time)), last(in_time).meta.status) == ("plan", "running")
    runner.stop_after = 18 + EACH + 1
    assert cadge("resume", "--no-report").code == 6
    (part,) = last(in_time).later_looks()
    assert made_of(last(in_time))[7] == 1
    assert f"{18 + EACH + 1} of 36 launches" in cadge("status").out
    runner.stop_after = None
    at_pace(runner, 30.0)  # what was planned is made, on however slow a machine
    assert cadge("resume", "--no-report").code == 0
    assert last(in_time).later_looks()[0] == part
    assert made_of(last(in_time)) == dict.fromkeys(range(12), EACH)
    assert len(runner.made) == len(set(runner.made)) == 12 * EACH
    assert cadge("verify").code == 0


def test_a_kill_after_the_clock_ended_it(
    in_time: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_pace(runner, 4.0)
    with monkeypatch.context() as patch:
        patch.setattr(commands_run, "_closed", lambda *_given: sys.exit("broken off"))
        with pytest.raises(SystemExit, match="broken off"):
            cadge(*RUN)
    at_pace(runner, 0.1)
    assert last(in_time).meta.status == "running"
    assert cadge("resume", "--no-report").code == 0
    assert (last(in_time).meta.status, last(in_time).plan.rounds) == ("finished", 6)


def test_a_full_disk_while_rounds_are_planned(
    in_time: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a machine that is slow when it goes on: two troubles at once."""
    at_pace(runner, 0.1)

    def full(_writer: CampaignWriter, _part: object) -> None:
        raise StoreFullError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(CampaignWriter, "add_look", full)
        answer = cadge(*RUN)
    assert (answer.code, "no space left" in answer.err) == (3, True)
    assert (next_step(last(in_time)), last(in_time).plan.rounds) == ("plan", 6)
    assert cadge("resume", "--no-report").code == 0
    assert last(in_time).plan.rounds == 12


def test_launches_that_failed_do_not_stop_the_clock(in_time: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    """A layer that hangs takes its whole deadline in each round, which no record's length says."""

    def fail(record: dict[str, object]) -> dict[str, object] | None:
        launch = record["launch"]
        assert isinstance(launch, dict)
        failed = {"status": "failed", "result": None, "reason": "it hangs", "reason_code": "DEADLINE"}
        return record | failed if launch["layer"] == "b-two" else in_step(record)

    at_pace(runner, 4.0)  # of a-one and its control alone: 8 s a round
    in_step = runner.change
    runner.change = fail
    assert cadge(*RUN).code == 1
    assert last(in_time).plan.rounds == 6


def test_native_tools_know_their_rounds(catalogue: Catalogue, site: PlanSite) -> None:
    from cadge_harness.native.cells import by_size

    assert by_size(planned(catalogue, site), 3).later == ()


# --- the copy that is published -------------------------------------------------------------------------------------


@pytest.mark.parametrize("withheld", [(), ("b-two",), ("a-one", "b-two")])
def test_the_published_copy_is_whole(
    withheld: tuple[str, ...], in_time: Checkout, cadge: Cadge, tmp_path: Path
) -> None:
    assert cadge(*RUN).code == 0
    campaign = last(in_time)
    assert added_rounds(campaign) > 0
    made = copy(campaign, tmp_path / campaign.campaign_id, Rules(withheld=dict.fromkeys(withheld, "its licence")))
    copied = Campaign(made.campaign.path)
    kept = [one for one in campaign.plan.launches if one.subject.layer not in withheld]
    assert [one.launch_id for one in copied.plan.launches] == [one.launch_id for one in kept]
    assert copied.launch_ids() == {one.launch_id for one in kept}
    answer = cadge("verify", str(copied.path))
    assert answer.code == 0, answer.out
