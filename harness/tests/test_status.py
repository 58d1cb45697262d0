# SPDX-License-Identifier: BSD-3-Clause
"""Progress: plain lines where there is no terminal, a live display where there is one; status from outside."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from cadge_cli.output import Output, is_terminal, table
from cadge_cli.progress import (
    LiveProgress,
    PlainProgress,
    attempts_words,
    launch_troubles,
    make_progress,
    summary_line,
)
from cadge_harness.paths import Checkout
from cadge_harness.run.runstate import RunState, attempt_counts
from cadge_harness.words import clock
from cadge_results import Campaign, CampaignWriter, LaunchRecord, Store

from .conftest import WORKLOADS, Answer, FakeRunner

Cadge = Callable[..., Answer]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def campaign(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> Campaign:
    """A campaign that was stopped after five launches."""
    runner.stop_after = 5
    assert cadge("run", "--sweep", "tiny", "--no-report").code == 6
    return Store(checkout.campaigns).open("last")


def state_of(campaign: Campaign, now: Clock) -> RunState:
    return RunState(campaign.plan, campaign.campaign_id, "emulated", now())


def test_plain_progress_says_little(campaign: Campaign) -> None:
    now, stream = Clock(), io.StringIO()
    progress = make_progress(state_of(campaign, now), Output(stderr=stream), now)
    assert isinstance(progress, PlainProgress)
    progress.stage("Deploy the build")
    progress.stage("Copy the agent")
    for record in campaign.launches():
        progress.begin_launch(record.launch_id)
        now.now_s += 1
        progress.add(record)
    progress.close()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "prepare the hosts"
    assert lines[1].startswith(f"measure: {len(campaign.plan.launches)} launches, about ")
    assert len(lines) == 2, "it spoke although nothing happened"
    now.now_s += 31
    progress.add(next(campaign.launches()))
    assert (
        stream.getvalue()
        .splitlines()[2]
        .startswith(f"6 of {len(campaign.plan.launches)} launches, 36 s so far, about ")
    )


def test_failures_are_said_at_once_and_once(campaign: Campaign) -> None:
    now, stream = Clock(), io.StringIO()
    progress = make_progress(state_of(campaign, now), Output(stderr=stream), now)
    record = next(campaign.launches()).model_copy(update={"status": "failed", "reason": "peer lost", "result": None})
    progress.add(record)
    progress.add(record)
    assert stream.getvalue().count("failed: peer lost") == 1
    assert attempt_counts(record) == {"failed": len(record.launch.points)}


def test_troubles_name_checks() -> None:
    from .test_crosscheck import record as make

    good = make(deltas={"data0": 10**9})
    assert launch_troubles(good, WORKLOADS.patterns) == []
    raw = good.to_object()
    assert isinstance(raw["result"], dict)
    raw["result"]["checks"] = [{"name": "clock", "ok": False, "detail": "drift of 120 ppm"}]
    bad = LaunchRecord.from_object(raw, source="t")
    assert launch_troubles(bad, WORKLOADS.patterns) == ["unsound: clock: drift of 120 ppm"]
    raw["result"]["checks"] = []
    assert isinstance(raw["result"]["attempts"], list)
    assert isinstance(raw["result"]["attempts"][0], dict)
    raw["result"]["attempts"][0]["checks"] = [{"name": "payload", "ok": False, "detail": "3 differ"}]
    worse = LaunchRecord.from_object(raw, source="t")
    assert launch_troubles(worse, WORKLOADS.patterns) == ["rpc 65536 B unsound: payload: 3 differ"]
    raw["result"]["checks"] = [{"name": "clock", "ok": False, "detail": "drift of 120 ppm"}]
    assert attempt_counts(LaunchRecord.from_object(raw, source="t")) == {"unsound": 1}


def test_troubles_say_what_the_machine_was_up_to() -> None:
    from .test_crosscheck import record as make

    raw = make(deltas={"data0": 10**9}).to_object()
    assert isinstance(raw["result"], dict)
    assert isinstance(raw["result"]["attempts"], list)
    (first, *_) = raw["result"]["attempts"]
    assert isinstance(first, dict)
    raw["result"]["attempts"] = [{**first, "status": "failed", "reason": "too late"}]
    for stolen_ns, said in (
        (999_999_999, ""),
        (20_440_000_000, " (a hypervisor took 20.4 s of processor time meanwhile)"),
    ):
        raw["load"] = [{"host": "h1", "steal_ns": 5}, {"host": "h2", "steal_ns": stolen_ns}]
        made = LaunchRecord.from_object(raw, source="t")
        assert launch_troubles(made, WORKLOADS.patterns) == [f"rpc 65536 B failed: too late{said}"]
        whole = LaunchRecord.from_object({**raw, "status": "failed", "reason": "gone"}, source="t")
        assert launch_troubles(whole, WORKLOADS.patterns) == [f"failed: gone{said}"]


def test_the_estimate_follows_the_pace(campaign: Campaign) -> None:
    now = Clock()
    state = state_of(campaign, now)
    plan_s = sum(launch.wall_ms for launch in campaign.plan.launches) / 1000
    assert state.left_s(now()) == pytest.approx(plan_s)
    for record in campaign.launches():
        state.begin_launch(record.launch_id, now())
        wall = next(item.wall_ms for item in campaign.plan.launches if item.launch_id == record.launch_id)
        now.now_s += 2 * wall / 1000
        state.add(record, attempt_counts(record))
    left_s = plan_s - state.wall_done_ms / 1000
    assert state.left_s(now()) == pytest.approx(2 * left_s)


def drain(descriptor: int, chunks: list[bytes]) -> None:
    """Read a terminal until its other end is closed."""
    with contextlib.suppress(OSError):
        while chunk := os.read(descriptor, 1 << 16):
            chunks.append(chunk)


def test_a_terminal_gets_a_live_display(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    master, slave = pty.openpty()
    chunks: list[bytes] = []
    reader = threading.Thread(target=drain, args=(master, chunks))
    reader.start()
    now = Clock()
    with os.fdopen(slave, "w") as stream:
        assert is_terminal(stream)
        progress = make_progress(state_of(campaign, now), Output(stderr=stream), now)
        progress.stage("measure")
        for record in campaign.launches():
            progress.begin_launch(record.launch_id)
            progress.add(record)
        progress.note("a note")
        progress.close()
    reader.join(timeout=10)
    os.close(master)
    shown = b"".join(chunks).decode()
    assert campaign.campaign_id in shown
    assert "a note" in shown
    assert "cadge resume" in shown
    assert shown.count("\x1b[") > 3


def test_attempts_of_floors_are_counted_apart(campaign: Campaign) -> None:
    """Verdicts, and sentences on what was disturbed, count those of layers."""
    now = Clock()
    state = state_of(campaign, now)
    made = {"layer": 0, "floor": 0}
    kinds = {launch.launch_id: launch.subject.kind for launch in campaign.plan.launches}
    for record in campaign.launches():
        counts = attempt_counts(record)
        made[kinds[record.launch_id]] += sum(counts.values())
        state.add(record, counts)
    assert made["floor"]
    assert (sum(state.attempts.values()), sum(state.floor_attempts.values())) == (made["layer"], made["floor"])
    words = attempts_words(state.attempts, state.floor_attempts)
    assert [int(word) for word in re.findall(r"\d+", words)] == [
        *(state.attempts[name] for name in sorted(state.attempts)),
        *(state.floor_attempts[name] for name in sorted(state.floor_attempts)),
    ]
    assert summary_line(state, now()).endswith(words)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_live_display_has_a_line_for_each_thing_and_of_a_short_campaign_one(
    campaign: Campaign, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    now = Clock()
    state = state_of(campaign, now)
    state.begin_launch(campaign.plan.launches[0].launch_id, now())
    drawn = {}
    for brief in (False, True):
        progress = LiveProgress(state, Output(stderr=io.StringIO(), brief=brief), now)
        progress.close()
        console = Console(file=io.StringIO(), width=columns, force_terminal=True, color_system=None)
        with console.capture() as capture:
            console.print(progress._render())
        drawn[brief] = [line.rstrip() for line in capture.get().splitlines()]
        assert max(map(len, drawn[brief])) <= columns
    assert len(drawn[True]) == 1
    (one,) = drawn[True]
    assert re.fullmatch(r"[━╸╺ ]+0 of .*", one)
    said = summary_line(state, now())
    assert [line for line in drawn[False] if line.startswith(said.partition(",")[0])]


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("CI", "true"), ("TERM", "dumb")])
def test_where_no_live_display_is_wanted(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("NO_COLOR", "CI"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    _master, slave = pty.openpty()
    with os.fdopen(slave, "w") as stream:
        assert not is_terminal(stream)
    os.close(_master)


def test_status_from_another_terminal(campaign: Campaign, cadge: Cadge) -> None:
    data = json.loads(cadge("status", "--json").out)["data"]
    assert data["campaign_id"] == campaign.campaign_id
    assert data["state"] == "interrupted"
    assert data["launches"] == {"planned": len(campaign.plan.launches), "stored": 5}
    assert data["left_s"] > 0
    assert sum(data["outcomes"].values()) == len(campaign.outcomes())
    answer = cadge("status", campaign.campaign_id[:15])
    assert f"continue with: cadge resume {campaign.campaign_id}" in answer.out
    with CampaignWriter.resume(campaign.path):
        assert json.loads(cadge("status", "--json").out)["data"]["state"] == "running"
    assert json.loads(cadge("status", "--json").out)["data"]["state"] == "broken off"


def test_watching_ends_with_the_campaign(campaign: Campaign, cadge: Cadge) -> None:
    answer = cadge("status", "--watch")
    assert (answer.code, answer.err) == (0, "")
    assert campaign.campaign_id in answer.out


def test_words() -> None:
    assert [clock(value) for value in (0.4, 59, 60, 3599, 3600)] == ["0 s", "59 s", "1:00", "59:59", "1:00:00"]
    assert table([("a", "b"), ("long", "x")]) == ["a     b", "long  x"]
    assert table([]) == []


def test_an_encoding_that_lacks_letters(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        Output(stderr=stream).say("8 µs")
    assert (tmp_path / "out").read_text() == "8 \\xb5s\n"


def test_the_report_is_announced_before_it_is_made(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    assert checkout
    assert runner
    answer = cadge("run", "--sweep", "tiny", "--layers", "a-one")
    last = Store(checkout.campaigns).open("last")
    attempts = sum(len(launch.point_ids) for launch in last.plan.launches)
    assert [line for line in answer.err.splitlines() if line.startswith(f"report: {attempts} attempts")], answer.err
    assert not [one for one in cadge("resume", "--no-report").err.splitlines() if one.startswith("report: ")]


def test_a_launch_whose_points_all_fail_is_one_line(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    assert checkout

    def failing(record: dict[str, object]) -> dict[str, object]:
        result = record["result"]
        assert isinstance(result, dict)
        for attempt in result["attempts"]:
            attempt |= {"status": "failed", "reason_code": "DEADLINE", "reason": "nothing came"}
            for key in ("elapsed_ns", "operations", "bytes", "quantities", "checks"):
                attempt.pop(key, None)
        return record

    runner.change = failing
    answer = cadge("run", "--sweep", "tiny", "--layers", "a-one", "--no-report")
    assert answer.code == 1
    launches = [line for line in answer.err.splitlines() if "nothing came" in line]
    assert 0 < len(launches) <= len(runner.made)
    assert all(line.count("nothing came") == 1 for line in launches)
    assert any("1 more point" in line for line in launches)
