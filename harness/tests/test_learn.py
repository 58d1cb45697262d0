# SPDX-License-Identifier: BSD-3-Clause
"""The planner's times: what a testbed took for its last campaign is what the next one is planned with."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.learn import learned
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import site_of
from cadge_harness.plan.sweep import read_sweep
from cadge_harness.plan.timemodel import SLOWER_MOST, TimeModel, idle_times, probed, touched_bytes
from cadge_harness.testbed.model import TestbedKind
from cadge_results import Campaign, CampaignWriter, DamagedError, Store, Workload

from .conftest import WORKLOADS, Answer, FakeRunner, make_testbed

Cadge = Callable[..., Answer]
DISTURBED_MS = 5000
SLOW = TimeModel(
    start_ms={"direct": 800, "mpirun": 3000}, point_ms={"layer": 60, "floor": 40}, touched_bytes_per_ms=50_000
)


def take_as_long_as(
    times: TimeModel,
    runner: FakeRunner,
    day: int = 21,
    refused: str = "",
    counts: bool = False,
    disturbed_every: int = 0,
) -> None:
    """Let launches take what a model says, one after the other from three o'clock on.

    refused: a layer of which only the smallest points run; counts: system calls are counted in its first launch.
    disturbed_every: one launch in so many, of each subject, takes longer by `DISTURBED_MS` at its start and each point.
    """
    ran: Counter[str] = Counter()
    now = datetime(2026, 11, day, 3, tzinfo=UTC)
    seen: set[object] = set()

    def change(record: dict[str, object]) -> dict[str, object]:
        nonlocal now
        launch, result = record["launch"], record["result"]
        assert isinstance(launch, dict)
        assert isinstance(result, dict)
        duration_ms = {point["point_id"]: point["duration_ms"] for point in launch["points"]}
        result["started_utc"] = now.isoformat().replace("+00:00", "Z")
        subject = "{layer} {place} {wait}".format(**launch)
        ran[subject] += 1
        more_ms = DISTURBED_MS if disturbed_every and ran[subject] % disturbed_every == 2 else 0
        spent_ms = more_ms + float(times.launch_ms(launch["layer"], launch["launcher"], len(launch["points"])))
        for attempt in result["attempts"]:
            attempt["started_ns_since_launch"] = round(spent_ms * 1e6)
            workload = Workload.model_validate(attempt["workload"])
            touched = touched_bytes(WORKLOADS.file(workload.pattern), workload, launch["kind"])
            if launch["layer"] == refused and touched > 64:
                for name in ("elapsed_ns", "operations", "bytes", "quantities", "checks"):
                    del attempt[name]
                attempt |= {"status": "refused", "reason": "no", "reason_code": "NO_CAP"}
                continue
            spent_ms += more_ms + duration_ms[attempt["point_id"]] + times.point_around_ms(touched, launch["kind"])
            if counts and attempt["point_id"] not in seen:
                seen.add(attempt["point_id"])
                attempt["counted_operations"] = 7
                spent_ms += times.counting_ms
        result["wall_ns"] = round(spent_ms * 1e6)
        now += timedelta(milliseconds=spent_ms)
        return record

    runner.change = change


def carry_out(cadge: Cadge, checkout: Checkout, *, launches: int = 3) -> Campaign:
    """Carry out the tiny sweep."""
    sweep = checkout.sweeps / "tiny.yml"
    text = sweep.read_text().replace("launches: 3", f"launches: {launches}")
    sweep.write_text(text + ("floors: false\n" if launches == 1 else ""))
    answer = cadge("run", "--sweep", "tiny", "--no-report")
    assert answer.code == 0, answer.err
    return Store(checkout.campaigns).open("last")


def test_the_last_campaign_is_what_the_next_is_planned_with(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    take_as_long_as(SLOW, runner)
    campaign = carry_out(cadge, checkout)
    model = learned(Store(checkout.campaigns), make_testbed(), "other")
    assert model is not None
    assert model.basis == f"campaign {campaign.campaign_id}"
    assert model.launch_ms("a-one", "direct", 0) == pytest.approx(SLOW.launch_ms("a-one", "direct", 0), abs=5)
    assert model.launch_ms("b-two", "mpirun", 0) == pytest.approx(SLOW.launch_ms("b-two", "mpirun", 0), abs=5)
    assert model.point_ms["layer"] == pytest.approx(SLOW.point_ms["layer"], abs=1)
    carry_out(cadge, checkout)
    again = next(item for item in Store(checkout.campaigns).campaigns() if item.campaign_id != campaign.campaign_id)
    assert again.plan.estimate.basis == model.basis
    inside_ms = sum(block.wall_ms - model.block_ms for block in again.plan.blocks)
    records = list(again.launches())
    real_ms = sum(record.result.wall_ns / 1e6 for record in records if record.result)
    assert inside_ms == pytest.approx(real_ms, rel=0.05)


def test_what_was_refused_takes_no_time_again(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    """Neither in the sum nor in what surrounds other points; but its launch may take as long as if it ran."""
    slow = replace(SLOW, counting_ms=150)
    take_as_long_as(slow, runner, refused="a-one", counts=True)
    first = carry_out(cadge, checkout)
    model = learned(Store(checkout.campaigns), make_testbed(), "tiny")
    assert model is not None
    points = {point.point_id: point for point in first.plan.points if point.subject.layer == "a-one"}
    sizes = {
        name: point.workload.integer(WORKLOADS.file(point.workload.pattern).axis) for name, point in points.items()
    }
    assert model.refused == {name for name, size in sizes.items() if size > 8}
    assert model.point_ms["layer"] == pytest.approx(slow.point_ms["layer"], abs=1)
    assert model.counting_ms == pytest.approx(slow.counting_ms, abs=5)
    assert model.launch_ms("a-one", "direct", 0) == pytest.approx(slow.launch_ms("a-one", "direct", 0), abs=5)
    take_as_long_as(slow, runner, day=22, refused="a-one", counts=True)
    again = carry_out(cadge, checkout)
    walls = {one.round: one for one in again.plan.launches if one.subject.layer == "a-one"}
    one_ms = model.launch_ms("a-one", "direct", len(points) // 2) + 20 + slow.point_ms["layer"]
    assert walls[1].wall_ms == pytest.approx(one_ms, abs=10)
    assert walls[0].wall_ms == pytest.approx(one_ms + slow.counting_ms, abs=15)
    before = {one.round: one for one in first.plan.launches if one.subject.layer == "a-one"}
    assert walls[1].deadline_ms > before[1].deadline_ms
    real_ms = sum(record.result.wall_ns / 1e6 for record in again.launches() if record.result)
    inside_ms = sum(block.wall_ms - model.block_ms for block in again.plan.blocks)
    assert inside_ms == pytest.approx(real_ms, rel=0.05)


@pytest.mark.parametrize("often", [0, 4])
def test_other_work_in_some_launches_lengthens_no_plan(
    often: int, checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    """One launch in four waits for a processor, in its start and around each point: times are medians over launches."""
    take_as_long_as(SLOW, runner, disturbed_every=often)
    carry_out(cadge, checkout, launches=11)
    model = learned(Store(checkout.campaigns), make_testbed(), "tiny")
    assert model is not None
    for name, launcher in (("a-one", "direct"), ("b-two", "mpirun")):
        assert model.layer_ms[name] == pytest.approx(SLOW.start_ms[launcher], abs=5)
        assert model.start_ms[launcher] == pytest.approx(SLOW.start_ms[launcher], abs=5)
    assert model.point_ms["layer"] == pytest.approx(SLOW.point_ms["layer"], abs=1)
    assert model.point_ms["floor"] == pytest.approx(SLOW.point_ms["floor"], abs=1)


def test_the_same_sweep_says_more_than_another(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    take_as_long_as(SLOW, runner)
    first = carry_out(cadge, checkout)
    other = checkout.sweeps / "other.yml"
    other.write_text((checkout.sweeps / "tiny.yml").read_text())
    assert cadge("run", "--sweep", "other", "--no-report").code == 0
    model = learned(Store(checkout.campaigns), make_testbed(), "tiny")
    assert model is not None
    assert model.basis == f"campaign {first.campaign_id}"


def test_a_slower_testbed_gets_shorter_points_for_the_same_budget(catalogue: Catalogue) -> None:
    sweep, _text = read_sweep(Path(__file__).parents[1] / "sweeps" / "default.yml", WORKLOADS)
    sweep = sweep.model_copy(update={"budget": 300_000, "without": ()})
    fast = make_plan(sweep, catalogue, WORKLOADS, site_of(make_testbed()))
    slow = make_plan(sweep, catalogue, WORKLOADS, site_of(make_testbed(), SLOW))
    assert slow.estimate.wall_s <= 301
    assert slow.estimate.measure_s < fast.estimate.measure_s
    assert [launch.launch_id for launch in slow.launches] == [launch.launch_id for launch in fast.launches]


@pytest.mark.parametrize("what", ["a cluster", "too short", "unreadable", "none"])
def test_what_says_nothing_of_this_testbed_is_passed_over(
    what: str, checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    testbed = make_testbed()
    if what != "none":
        take_as_long_as(SLOW, runner)
        if what == "too short":
            carry_out(cadge, checkout, launches=1)
        else:
            carry_out(cadge, checkout)
    if what == "a cluster":
        testbed = make_testbed(TestbedKind.CLUSTER)
    if what == "unreadable":
        plan = Store(checkout.campaigns).open("last").layout.plan
        plan.chmod(0o644)
        plan.write_text("{}")
    assert learned(Store(checkout.campaigns), testbed, "tiny") is None


@pytest.mark.parametrize("what", ["interrupted", "of another testbed"])
def test_launches_of_this_machine_say_more_than_a_probe(
    what: str, checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    """What a launch takes is learned from them, what Ansible takes around them is not; a whole campaign goes first."""
    take_as_long_as(SLOW, runner)
    runner.stop_after = 12 if what == "interrupted" else None
    assert cadge("run", "--sweep", "tiny", "--no-report").code == (6 if what == "interrupted" else 0)
    testbed = make_testbed() if what == "interrupted" else make_testbed(TestbedKind.LOCAL, 1)
    store, base = Store(checkout.campaigns), idle_times(testbed.kind)
    model = learned(store, testbed, "tiny")
    assert model is not None
    assert model.basis == f"campaign {store.open('last').campaign_id}"
    assert model.start_ms["direct"] == pytest.approx(SLOW.start_ms["direct"], abs=5)
    assert model.point_ms["layer"] == pytest.approx(SLOW.point_ms["layer"], abs=1)
    assert (model.campaign_ms, model.block_ms) == (base.campaign_ms, base.block_ms)
    quick = TimeModel(start_ms={"direct": 300, "mpirun": 900}, point_ms={"layer": 9, "floor": 7})
    take_as_long_as(quick, runner, day=22)
    runner.stop_after = None
    whole = carry_out(cadge, checkout)
    later = learned(store, make_testbed(), "other")
    assert later is not None
    assert later.basis.startswith(f"campaign {whole.campaign_id}")
    assert later.start_ms["direct"] < SLOW.start_ms["direct"]


def test_a_campaign_that_went_away_is_no_failure(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    take_as_long_as(SLOW, runner)
    campaign = carry_out(cadge, checkout)
    shutil.rmtree(campaign.layout.launches)
    assert learned(Store(checkout.campaigns), make_testbed(), "other") is None


def test_launches_that_were_made_another_day_do_not_follow(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    """What was resumed, or is made again, began long after the launch before it, and long before the one after it."""
    take_as_long_as(SLOW, runner)
    runner.stop_after = 9
    assert cadge("run", "--sweep", "tiny", "--no-report").code == 6
    runner.stop_after = None
    take_as_long_as(SLOW, runner, day=22)
    assert cadge("resume", "--no-report").code == 0
    campaign = Store(checkout.campaigns).open("last")
    with CampaignWriter.resume(campaign.path) as writer:
        writer.set_aside([campaign.plan.blocks[-1].launch_ids[1]], "failed")
    take_as_long_as(SLOW, runner, day=23)
    assert cadge("resume", "--no-report").code == 0
    model = learned(Store(checkout.campaigns), make_testbed(), "other")
    assert model is not None
    for name, launcher in (("a-one", "direct"), ("b-two", "mpirun")):
        assert model.layer_ms[name] == pytest.approx(SLOW.start_ms[launcher], abs=5)


def test_a_damaged_launch_spoils_no_plan(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    take_as_long_as(SLOW, runner)
    campaign = carry_out(cadge, checkout)
    last = campaign.layout.launch(campaign.plan.blocks[-1].launch_ids[-1])
    last.chmod(0o644)
    last.write_text("{")
    for sweep in ("tiny", "other"):
        damaged: list[DamagedError] = []
        assert learned(Store(checkout.campaigns), make_testbed(), sweep, damaged) is None
        assert [error.damage.path for error in damaged] == [last]
    assert (
        f"not planned with its times: {last} is damaged: it ends early, after 1 byte (cadge verify {campaign.path}) "
        in " ".join(cadge("plan", "--sweep", "tiny").out.split())
    )


def test_the_probe_only_ever_lengthens(tmp_path: Path) -> None:
    base = TimeModel()
    slow = tmp_path / "slow"
    slow.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(0.01)\n")
    slow.chmod(0o755)
    assert probed(slow, base).start_ms["direct"] == pytest.approx(base.start_ms["direct"] * SLOWER_MOST)
    assert probed(Path("/bin/true"), base).start_ms["direct"] >= base.start_ms["direct"]
    assert probed(tmp_path / "absent", base) == base


def test_the_probe_starts_the_driver_as_launches_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    driver = tmp_path / "driver"
    driver.write_text(f"#!/bin/sh\n{{ env; pwd; }} >{told}\n")
    driver.chmod(0o755)
    monkeypatch.setenv("UCX_RNDV_THRESH", "0")
    monkeypatch.chdir(tmp_path)
    probed(Path("driver"), TimeModel())
    assert "UCX_RNDV_THRESH" not in told.read_text()
    assert str(tmp_path) not in told.read_text().splitlines()
