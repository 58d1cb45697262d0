# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns of this machine alone, without Ansible: what goes through, what is broken, killed and frozen."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import wait_until
from testbed_helpers import make_block, make_launch, node_folder, processes, signal_processes

from cadge_harness.run import ansible_io, lease
from cadge_harness.run import here as play
from cadge_harness.run.ansible_files import playbooks
from cadge_harness.run.ansible_io import RunOutcome
from cadge_harness.run.here import DONE_BY, steps
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed
from cadge_results.formats.event import BlockFinished, Event, LaunchStarted, Ready, Stage

Json = dict[str, Any]
CONTROLLER = Path(__file__).with_name("kill_controller.py")
PLAY = "cadge_harness.run.here"


class Campaign:
    """A campaign on this machine, and what came of it."""

    def __init__(self, work: Path, build: Path) -> None:
        self.work, self.build = work, build
        self.testbed: Testbed = testbeds.resolve("local")
        self.name = f"direct-{os.getpid()}-{time.monotonic_ns()}"
        self.folder = node_folder(self.name, "localhost")
        self.records: list[Json] = []
        self.events: list[Event] = []

    def run(self, *blocks: list[Json], on_event: Callable[[Event], None] = lambda _event: None) -> RunOutcome:
        def event(what: Event) -> None:
            self.events.append(what)
            on_event(what)

        return ansible_io.run_campaign(
            self.testbed,
            [make_block(self.testbed, self.name, f"b{number}", one) for number, one in enumerate(blocks)],
            self.work,
            event,
            self.records.append,
            threading.Event(),
            build=self.build,
            programs=("never-heard-of", "sh"),
            without_ansible=True,
        )

    @property
    def marks(self) -> tuple[str, str]:
        """What its processes have on their command line or in their environment."""
        return self.name, str(self.work)

    @property
    def stored(self) -> dict[str, str]:
        """What became of each launch."""
        return {one["launch"]["launch_id"]: one["status"] for one in self.records}

    def gone(self) -> None:
        """Nothing of it is left."""
        wait_until(lambda: not processes(*self.marks))
        assert not self.folder.exists()


def test_every_step_of_the_playbooks_is_known_here() -> None:
    found = [step for name in ("site", "cleanup") for step in steps(playbooks() / f"{name}.yml")]
    assert {(step.role, step.name) for step in found} == DONE_BY.keys()
    assert [step.name for step in found if step.of_each_block] == ["Run the agent"]


def test_a_new_step_of_a_role_is_not_passed_over(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "stored", lambda _path: [("cadge_prepare", "Paint the folder", False)])
    outcome = campaign.run([here("l1")])
    assert (outcome.ok, outcome.launches) == (False, 0)
    assert "cadge_prepare has a step that is not known here" in " ".join(outcome.problems)


def here(name: str, **settings: object) -> Json:
    return make_launch(name, ["localhost", "localhost"], **settings)


@pytest.fixture
def campaign(state: Path, tmp_path: Path, fake_build: Path) -> Campaign:
    del state
    return Campaign(tmp_path / "work", fake_build)


def test_every_launch_comes_home_and_nothing_is_left(campaign: Campaign) -> None:
    done = campaign.folder / "done"  # of a run whose controller was killed before it had the record
    done.mkdir(parents=True)
    (done / "early.json").write_text(json.dumps({"launch": {"launch_id": "early"}, "status": "done"}))
    outcome = campaign.run([here("l1"), here("l2", mode="crash")], [here("l3")])
    assert outcome.ok, outcome
    assert campaign.stored == {"l1": "done", "l2": "failed", "l3": "done", "early": "done"}
    assert [type(one) for one in campaign.events].count(BlockFinished) == 2
    (node, _) = (one.node for one in campaign.events if isinstance(one, Ready))
    assert isinstance(node, dict)
    assert node["programs"]["never-heard-of"] == {"unknown": "not found"}
    stages = [f"{one.role}: {one.name}" for one in campaign.events if isinstance(one, Stage)]
    said = (campaign.work / "ansible.log").read_text()
    assert said.splitlines() == [stage.removeprefix("cadge_") for stage in stages]
    assert (campaign.work / "token").read_text().strip() not in said
    campaign.gone()


def test_a_build_that_does_not_run_is_said_before_anything_is_measured(campaign: Campaign, tmp_path: Path) -> None:
    build = tmp_path / "broken"
    shutil.copytree(campaign.build, build)
    (build / "bin" / "cadge-driver").write_text("#!/bin/sh\necho 'no such library' >&2; exit 9\n")
    campaign.build = build
    outcome = campaign.run([here("l1")])
    assert (outcome.exit_code, outcome.clean, outcome.launches) == (3, True, 0)
    assert "no such library" in outcome.problems[0]
    campaign.gone()


@pytest.mark.parametrize("victim", [PLAY, "agent.pyz run"])
def test_what_is_killed_loses_no_launch_that_ended(campaign: Campaign, victim: str) -> None:
    launches = [here(f"l{number}", sleep_ms=100) for number in range(30)]

    def kill(event: Event) -> None:
        if isinstance(event, LaunchStarted) and event.launch_id == "l3":
            signal_processes(signal.SIGKILL, campaign.marks, victim, but="setpriv")

    outcome = campaign.run(launches, on_event=kill)
    assert (outcome.ok, outcome.exit_code, outcome.clean) == (False, 6, True), outcome
    assert {"l0", "l1", "l2"} <= campaign.stored.keys() < {launch["launch_id"] for launch in launches}
    assert set(campaign.stored.values()) == {"done"}
    campaign.gone()
    before = campaign.stored.keys()
    assert campaign.run([one for one in launches if one["launch_id"] not in before]).ok
    assert len(campaign.records) == len(campaign.stored) == 30
    campaign.gone()


def test_where_the_controller_is_killed_everything_ends_and_the_next_run_goes_on(
    campaign: Campaign, tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    shutil.copytree(campaign.build, folder / "build")
    launches = [here(f"l{number}", sleep_ms=100) for number in range(12)]
    (folder / "blocks.json").write_text(json.dumps([make_block(campaign.testbed, campaign.name, "b0", launches)]))
    argv = [sys.executable, str(CONTROLLER), str(folder), "local", "--without-ansible"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as controller:
        wait_until(lambda: len(list((folder / "store").glob("l*.json"))) > 2, 60)
        controller.kill()
    wait_until(lambda: not processes(campaign.name, str(folder)))
    assert campaign.folder.exists()
    assert subprocess.run(argv, stdout=subprocess.DEVNULL, check=False, timeout=120).returncode == 0
    assert {path.stem for path in (folder / "store").glob("l*.json")} == {one["launch_id"] for one in launches}
    campaign.gone()


@pytest.mark.long
def test_a_frozen_agent_is_said(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT_S", 0.4)
    monkeypatch.setattr(lease, "BEATS_IDLE", 1000)

    def freeze(event: Event) -> None:
        if isinstance(event, LaunchStarted) and event.launch_id == "l1":
            signal_processes(signal.SIGSTOP, campaign.marks, "agent.pyz run")

    outcome = campaign.run([here(f"l{number}", sleep_ms=300) for number in range(40)], on_event=freeze)
    assert any(one.startswith("no sign of life from localhost for 2 s: ") for one in outcome.problems), outcome
    assert (outcome.exit_code, outcome.clean) == (4, True)
    campaign.gone()
