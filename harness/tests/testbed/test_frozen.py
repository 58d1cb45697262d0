# SPDX-License-Identifier: BSD-3-Clause
"""An agent or an Ansible that is stopped, not dead: the controller notices, says who, and ends the campaign."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import CAMPAIGN, Start, block_here, one, wait_until
from testbed_helpers import AGENT, make_block, make_launch, node_folder, processes, signal_processes

from cadge_harness.run import ansible_io, lease
from cadge_harness.run.ansible_io import RunOutcome
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed
from cadge_results.formats.event import Event, LaunchStarted, Problem, Stage

NAME = f"frozen-{os.getpid()}"


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        (LaunchStarted, ("agent.pyz run",), "no sign of life from localhost for 2 s: "),
        pytest.param(Stage, ("ansible-playbook",), "no sign of life from Ansible for 10 s: ", marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_who_is_frozen_is_said(
    kind: type[Any],
    words: tuple[str, ...],
    said: str,
    state: Path,
    tmp_path: Path,
    fake_build: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del state
    # Ansible says nothing while it starts, which takes seconds on a busy machine.
    for name, value in (("BEAT_S", 0.4), ("BEATS_IDLE", 25 if kind is Stage else 1000)):
        monkeypatch.setattr(lease, name, value)
    events: list[Event] = []

    def on_event(event: Event) -> None:
        if isinstance(event, kind) and not any(isinstance(one, kind) for one in events):
            signal_processes(signal.SIGSTOP, (NAME, str(tmp_path)), *words)
        events.append(event)

    used = testbeds.resolve("local")
    block = make_block(used, NAME, "b0", [make_launch(f"l{n}", ["localhost"], sleep_ms=300) for n in range(40)])
    outcome: RunOutcome = ansible_io.run_campaign(
        used, [block], tmp_path / "work", on_event, lambda _: None, threading.Event(), build=fake_build
    )
    assert any(problem.startswith(said) for problem in outcome.problems), outcome.problems
    assert any(isinstance(event, Problem) and event.reason.startswith(said) for event in events)
    assert outcome.exit_code == 4
    assert outcome.clean, outcome.problems
    assert not node_folder(NAME, "localhost").exists()
    wait_until(lambda: not processes(NAME))


def test_a_frozen_agent_is_ended_by_whoever_cleans_its_host(
    start: Start, here: Testbed, tmp_path: Path, fake_build: Path
) -> None:
    """Over ssh nobody else does: its connection goes, and it does not see that."""
    agent = start(block_here(here, one("l1", mode="hang")))
    agent.until("launch_started")
    agent.process.send_signal(signal.SIGSTOP)
    argv = [sys.executable, str(AGENT), "check", "--work", str(tmp_path / "localhost"), "--campaign", CAMPAIGN]
    subprocess.run([*argv, "--host", "localhost", "--build", str(fake_build)], check=True, timeout=60)
    assert agent.process.wait(10) == -signal.SIGKILL
    wait_until(lambda: not processes(f"{CAMPAIGN}:b1"))


@pytest.mark.long
def test_who_answers_is_not_frozen(
    state: Path, tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del state
    monkeypatch.setattr(lease, "BEAT_S", 0.05)
    monkeypatch.setattr(lease, "BEATS_MISSED", 40)
    monkeypatch.setattr(lease, "BEATS_IDLE", 2000)
    used = testbeds.resolve("local")
    block = make_block(used, NAME, "b0", [make_launch("l0", ["localhost"], sleep_ms=4000)])
    outcome = ansible_io.run_campaign(
        used, [block], tmp_path / "work", lambda _: None, lambda _: None, threading.Event(), build=fake_build
    )
    assert outcome.ok, outcome.problems
    assert outcome.launches == 1
