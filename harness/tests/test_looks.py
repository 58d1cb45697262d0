# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns that are looked at: what is undecided goes on, by stored decisions, also after any interruption."""

from __future__ import annotations

import html
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

import cadge_cli.looks
from cadge_cli.commands import run as commands_run
from cadge_cli.words import say
from cadge_harness.paths import Checkout
from cadge_harness.plan.timemodel import TimeModel
from cadge_harness.run import request
from cadge_results import Campaign, CampaignWriter, PlanBlock, Store
from cadge_results.store.checksum import Checksum, beside
from cadge_results.store.looks import looks_state

from .conftest import Answer, FakeRunner

Cadge = Callable[..., Answer]
LOOKED_AT = """\
schema: cadge.sweep/2
title: one size that is told apart, and one that is not
layers: [a-one, b-two]
baseline: a-one
places: within
patterns:
  - {pattern: rpc, request_bytes: [8B, 64B, 4KiB]}
looks: [9, 12, 18, 30]
twin: none
floors: false
seed: 7
duration: {default: 20ms}
"""
TOLD_APART = LOOKED_AT.replace(", 4KiB", "")
RUN = ("run", "--sweep", "looked-at", "--no-report")
ALIKE_BYTES = 4096


def histogram(value: int) -> str:
    made = HdrHistogram(1, 10**11, 3)
    made.record_value(value, 1000)
    text: bytes = made.encode()
    return text.decode()


def measured(record: dict[str, object]) -> dict[str, object]:
    """Let b-two take twice as long as a-one, but for the size in which both are as long as chance will have it."""
    launch, result = record["launch"], record["result"]
    assert isinstance(launch, dict)
    assert isinstance(result, dict)
    for attempt in result["attempts"]:
        size = attempt["workload"]["parameters"]["request_bytes"]
        value = round(random.Random(f"{launch['launch_id']}/{size}").gauss(10_000, 700))
        if launch["layer"] == "b-two" and size != ALIKE_BYTES:
            value *= 2
        samples = {"endpoint": 0, "histogram": histogram(value), "count": 1000, "sum_ns": value * 1000}
        samples |= {"min_ns": value, "max_ns": value, "sum_sq_ns2": str(1000 * value**2), "first_ns": [value]}
        attempt["quantities"] = {"latency": [samples]}
    return record


@pytest.fixture
def looked_at(checkout: Checkout, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout with the sweep above, and a runner that measures what it asks for; plans are an idle machine's."""
    monkeypatch.setattr(request, "probed", lambda _driver, _base: TimeModel())
    (checkout.root / "harness/sweeps/looked-at.yml").write_text(LOOKED_AT)
    runner.change = measured
    return checkout


def last(checkout: Checkout) -> Campaign:
    return Store(checkout.campaigns).open("last")


def shape(campaign: Campaign) -> dict[str, object]:
    """Return all that was planned and decided, but for what holds the campaign's name."""
    decisions = [one.model_copy(update={"campaign_id": "", "records_sha256": ""}) for one in campaign.decisions()]
    return {"launches": campaign.plan.launches, "blocks": campaign.plan.blocks, "decisions": decisions}


def sizes(campaign: Campaign, block: PlanBlock) -> set[int]:
    """Return the sizes that a block measures."""
    names = {name for one in campaign.plan.launches if one.block == block.block_id for name in one.point_ids}
    return {campaign.plan.by_id[name].workload.integer("request_bytes") for name in names}


def test_what_is_undecided_goes_on(looked_at: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    answer = cadge(*RUN, "--json")
    assert answer.code == 0, answer.err
    campaign = last(looked_at)
    every = {8, 64, ALIKE_BYTES}
    assert [sizes(campaign, block) for block in campaign.plan.blocks] == [
        every,  # nine launches, with a tenth of the error, decide two of three only if the third is decided too
        every,
        {ALIKE_BYTES},
        {ALIKE_BYTES},
    ]
    assert [len(block.launch_ids) for block in campaign.plan.blocks] == [18, 6, 12, 24]
    assert runner.made == [launch.launch_id for launch in campaign.plan.launches]
    assert campaign.meta.status == "finished"
    assert [one.counts() for one in campaign.decisions()] == [(0, 3), *[(2, 1)] * 3]
    assert {one.says for family in campaign.decision(2).families for one in family.decided} == {"slower"}
    data = json.loads(answer.out)["data"]
    assert (data["look"], data["looks"], data["look_next"]) == (4, [9, 12, 18, 30], "done")
    assert "look 3 of 4, after 18 launches: 2 of 3 comparisons decided" in answer.err
    status = json.loads(cadge("status", "--json").out)["data"]
    assert (status["look"], status["launches"]) == (4, {"planned": 60, "stored": 60})
    checked = json.loads(cadge("verify", "--json").out)["data"]
    assert (checked["damaged"], checked["not_of_cadge"]) == ([], [])
    assert checked["files"] == 3 + 60 + 4 + 4 + 3


def test_all_decided_ends_it(looked_at: Checkout, cadge: Cadge) -> None:
    (looked_at.root / "harness/sweeps/looked-at.yml").write_text(TOLD_APART)
    said = " ".join(cadge("plan", "--sweep", "looked-at").out.split())
    assert "this is the first look; looks after 12, 18, 30" in said
    assert "looks can decide among the 2 comparisons of rpc, within, poll: 2 differences after 9" in said
    assert cadge(*RUN).code == 0
    campaign = last(looked_at)
    state = looks_state(campaign)
    assert state is not None
    assert (state.look, state.step, state.why) == (1, "done", "all is decided")
    assert len(campaign.plan.launches) == 18
    answer = cadge("resume", "--json")
    assert json.loads(answer.out)["data"]["made"] == 0
    assert cadge("report").code == 0
    page = html.unescape(campaign.layout.report.read_text())
    assert "early, after 9 launches" in page, "an estimate that ended a campaign is marked"
    assert "look 1 of 4, after 9 launches: all is decided" in page
    assert "Looked at after 9, 12, 18 and 30 launches" in page


def test_what_failed_is_not_waited_for(looked_at: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    """Comparisons of a layer that gave no number are undecided, and more launches would not change that."""

    def fail(record: dict[str, object]) -> dict[str, object]:
        launch = record["launch"]
        assert isinstance(launch, dict)
        failed = {"status": "failed", "result": None, "reason": "it does not start", "reason_code": "DEADLINE"}
        return record | failed if launch["layer"] == "b-two" else measured(record)

    runner.change = fail
    assert cadge(*RUN).code == 1
    campaign = last(looked_at)
    state = looks_state(campaign)
    assert state is not None
    assert (state.look, state.step, state.why) == (1, "done", "no more launches would decide the rest")
    assert campaign.decision(1).counts() == (0, 3)


def test_a_kill_after_the_last_decision(
    looked_at: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (looked_at.root / "harness/sweeps/looked-at.yml").write_text(TOLD_APART)
    with monkeypatch.context() as patch:
        patch.setattr(commands_run, "_closed", lambda *_given: sys.exit("broken off"))
        with pytest.raises(SystemExit, match="broken off"):
            cadge(*RUN)
    assert last(looked_at).meta.status == "running"
    made = len(runner.made)
    assert cadge("resume", "--no-report").code == 0
    assert (last(looked_at).meta.status, len(runner.made)) == ("finished", made)


def test_the_budget_ends_it(looked_at: Checkout, cadge: Cadge) -> None:
    assert cadge(*RUN, "--budget", "25s").code == 0
    campaign = last(looked_at)
    state = looks_state(campaign)
    assert state is not None
    assert (state.look, state.step) == (1, "done")
    assert "beyond the budget of 25 s" in state.why
    assert campaign.later_looks()[-1].ended == state.why
    assert "beyond the budget of 25 s" in cadge("status").out
    assert cadge("resume", "--no-report").code == 0
    assert last(looked_at).later_looks() == campaign.later_looks()


def test_a_slow_machine_is_in_time(looked_at: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    """The budget holds for what a campaign takes, not for what was planned."""
    begun = datetime.now(UTC)

    def slowly(record: dict[str, object]) -> dict[str, object]:
        result = measured(record)["result"]
        assert isinstance(result, dict)
        result["started_utc"] = f"{begun + timedelta(seconds=10 * (len(runner.made) + 1)):%Y-%m-%dT%H:%M:%S.%fZ}"
        return record

    runner.change = slowly
    assert cadge(*RUN, "--budget", "5min").code == 0
    campaign = last(looked_at)
    assert campaign.decision(1).pace == pytest.approx(180 / campaign.stored_plan.estimate.wall_s, rel=0.1)
    assert [len(part.launches) for part in campaign.later_looks()] == [6, 0]
    assert "beyond the budget of 5 min" in (campaign.later_look(3).ended or "")


@pytest.mark.usefixtures("looked_at")
def test_resume_goes_on_by_what_was_decided(
    cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Broken off within looks, between two, and between a decision and what is planned from it."""
    whole, broken = ("--results", str(tmp_path / "whole")), ("--results", str(tmp_path / "broken"))
    assert cadge(*RUN, *whole).code == 0
    runner.made.clear()
    runner.stop_after = 5
    assert cadge(*RUN, *broken).code == 6
    runner.stop_after = None
    runner.before_launch = lambda index: os.kill(os.getpid(), signal.SIGINT) if index == 17 else None
    assert cadge("resume", "--no-report", *broken).code == 130

    def campaign() -> Campaign:
        return Store(tmp_path / "broken").open("last")

    assert (campaign().missing_launch_ids(), campaign().decisions(), campaign().meta.status) == ((), (), "interrupted")
    assert "continue with: cadge resume" in cadge("status", *broken).out
    runner.before_launch = lambda _index: None
    with monkeypatch.context() as patch:
        patch.setattr(cadge_cli.looks, "next_look", lambda *_given: sys.exit("broken off"))
        with pytest.raises(SystemExit, match="broken off"):
            cadge("resume", "--no-report", *broken)
    state = looks_state(campaign())
    assert state is not None
    assert (state.step, len(campaign().decisions())) == ("plan", 1)
    first = campaign().layout.decision(1).read_bytes()
    runner.stop_after = 20
    assert cadge("resume", "--no-report", *broken).code == 6
    runner.stop_after = None
    assert cadge("resume", "--no-report", *broken).code == 0
    assert shape(campaign()) == shape(Store(tmp_path / "whole").open("last"))
    assert campaign().layout.decision(1).read_bytes() == first
    assert len(runner.made) == len(set(runner.made)) == 60


def test_what_was_decided_stands_where_launches_are_made_again(
    looked_at: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    runner.stop_after = 20
    assert cadge(*RUN).code == 6
    campaign = last(looked_at)
    before = campaign.layout.decision(1).read_bytes()
    first = campaign.plan.launches[0].launch_id
    with CampaignWriter.resume(campaign.path) as writer:
        writer.set_aside([first], "disturbed")
    runner.stop_after = None
    runner.change = lambda record: measured(record) | {"log_tail": ["another time"]}
    assert cadge("resume", "--no-report").code == 0
    assert last(looked_at).layout.decision(1).read_bytes() == before
    answer = cadge("verify")
    assert answer.code == 0
    assert "launches were repeated since look 1; its decision holds" in answer.out


def test_verify_makes_decisions_again(looked_at: Checkout, cadge: Cadge) -> None:
    (looked_at.root / "harness/sweeps/looked-at.yml").write_text(TOLD_APART)
    assert cadge(*RUN).code == 0
    campaign = last(looked_at)
    path = campaign.layout.decision(1)
    changed = path.read_text().replace('"slower"', '"faster"')
    for file in (path, beside(path)):
        file.chmod(0o644)
    path.write_text(changed)
    beside(path).write_text(Checksum.of(changed.encode(), path.name).line())
    answer = cadge("verify")
    assert answer.code == 7
    assert "decisions/look-1.json" in answer.out
    assert say("looks.decide_otherwise") in answer.out
    assert "--repair" not in answer.out


@pytest.mark.long
def test_what_was_decided_can_be_published_and_checked(looked_at: Checkout, cadge: Cadge, tmp_path: Path) -> None:
    """From the archive: its decisions are made again from its redacted records, and its report has the same bytes."""
    assert cadge(*RUN).code == 0
    site = tmp_path / "site"
    answer = cadge("publish", "last", "--to", str(site), "--yes")
    assert answer.code == 0, answer.err
    (archive,) = site.glob("runs/*/*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked")
    (top,) = (tmp_path / "unpacked").iterdir()
    (copied,) = (path for path in top.iterdir() if (path / "campaign.json").is_file())
    assert len(Campaign(copied).decisions()) == len(last(looked_at).decisions()) > 0
    answer = cadge("verify", str(copied))
    assert answer.code == 0, answer.out + answer.err
    answer = cadge("report", str(copied), "-o", str(tmp_path / "again.html"))
    assert answer.code == 0, answer.err
    assert (tmp_path / "again.html").read_bytes() == (top / "report.html").read_bytes()
