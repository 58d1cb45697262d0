# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns from beginning to end with a fake runner: stored, interrupted, resumed, and nothing made twice."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cadge_cli import closing
from cadge_cli.commands import run as commands_run
from cadge_harness.paths import Checkout
from cadge_harness.run.runner import WORK
from cadge_harness.run.session import CampaignEnd
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed
from cadge_results import Campaign, Store, read_workloads
from cadge_results.parameter_tables import digest_of

from .conftest import Answer, FakeRunner, make_testbed

Cadge = Callable[..., Answer]
RUN = ("run", "--sweep", "tiny", "--no-report")

SLOW_RUN = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("made_up", sys.argv[1])
made_up = importlib.util.module_from_spec(spec)
sys.modules["made_up"] = made_up
spec.loader.exec_module(made_up)
from cadge_cli import cli
from cadge_cli.commands import run as commands_run
from cadge_harness.testbed import testbeds
fake = made_up.FakeRunner(before_launch=lambda _number: time.sleep(0.02))
commands_run.AnsibleRunner = lambda *_args, **_named: fake
testbeds.resolve = lambda *_args, **_named: made_up.make_testbed()
testbeds.release = lambda _testbed: None
sys.exit(cli.invoke(sys.argv[2:]))
"""


def last(checkout: Checkout) -> Campaign:
    return Store(checkout.campaigns).open("last")


def test_a_whole_campaign(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    answer = cadge(*RUN, "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    campaign = last(checkout)
    assert document["data"]["campaign_id"] == campaign.campaign_id
    assert document["data"]["missing_launches"] == 0
    assert runner.made == [launch.launch_id for launch in campaign.plan.launches]
    assert campaign.meta.status == "finished"
    assert campaign.meta.command[0] == "cadge"
    outcomes = campaign.outcomes()
    refused = sum(1 for point in campaign.plan.points if point.state == "refused")
    assert len(outcomes) == refused + sum(len(launch.point_ids) for launch in campaign.plan.launches)
    assert {item.status for item in outcomes} == {"valid", "refused"}
    assert (campaign.path / "blocks/b1/block.json").is_file()
    assert "about" in answer.err


def test_resume_makes_exactly_what_is_missing(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    runner.stop_after = 5
    answer = cadge(*RUN)
    assert answer.code == 6
    campaign = last(checkout)
    assert campaign.meta.status == "interrupted"
    assert f"cadge resume {campaign.campaign_id}" in answer.out
    missing = campaign.missing_launch_ids()
    before = {path.name: path.read_bytes() for path in campaign.layout.launches.iterdir()}
    plan = campaign.layout.plan.read_bytes()
    runner.made.clear()
    runner.stop_after = None
    assert cadge("resume", "--no-report").code == 0
    assert tuple(runner.made) == missing
    assert len(before) == 2 * 5, "each has a checksum beside it"
    assert all((campaign.layout.launches / name).read_bytes() == content for name, content in before.items())
    assert campaign.layout.plan.read_bytes() == plan
    assert last(checkout).meta.status == "finished"
    runner.made.clear()
    answer = cadge("resume", "--json")
    assert (answer.code, json.loads(answer.out)["data"]["made"], runner.made) == (0, 0, [])


def test_resume_cleans_up_after_a_kill_behind_the_last_launch(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    assert cadge(*RUN).code == 0
    work = last(checkout).path / WORK
    work.mkdir()  # it is removed only when the nodes are as they were
    runner.made.clear()
    assert cadge("resume", "--no-report").code == 0
    assert not work.exists()
    assert runner.made == []


def test_a_campaign_is_not_finished_before_its_nodes_are_clean(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    runner.ended = CampaignEnd(ok=False, exit_code=4, clean=False, problems=("h2 cannot be reached",))
    assert cadge(*RUN).code == 4
    campaign = last(checkout)
    assert campaign.missing_launch_ids() == ()
    assert campaign.meta.status == "interrupted"
    assert any(f"cadge resume {campaign.campaign_id}" in problem for problem in campaign.meta.problems)
    assert (campaign.path / WORK).exists()
    runner.ended = CampaignEnd(ok=True, exit_code=0)
    assert cadge("resume", "--no-report").code == 0
    assert last(checkout).meta.status == "finished"
    assert not (campaign.path / WORK).exists()


def test_resume_refuses_a_campaign_of_another_version(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    """Its launch files would say of a pattern what the driver does not know, or not say what it needs."""
    runner.stop_after = 1
    cadge(*RUN)
    runner.stop_after = None
    said = checkout.driver.read_text()
    before = read_workloads(checkout.harness)
    for folder in ("patterns", "floors"):
        for path in (checkout.harness / folder).rglob("*.pattern.yml"):
            text = path.read_text().replace("[none, write+read]", "[none, write+read, read]")
            path.unlink()
            path.write_text(text)
    after, answer = read_workloads(checkout.harness), said
    for name in (*before.patterns, *before.forms):
        answer = answer.replace(digest_of(before.file(name)), digest_of(after.file(name)))
    checkout.driver.write_text(answer)
    resumed = cadge("resume")
    assert (resumed.code, len(runner.made)) == (3, 1)
    assert "this campaign was planned by another version of Cadge" in resumed.err
    assert "rpc has other parameters" in resumed.err
    checkout.driver.write_text(said)
    for folder in ("patterns", "floors"):
        for path in (checkout.harness / folder).rglob("*.pattern.yml"):
            path.write_text(path.read_text().replace("[none, write+read, read]", "[none, write+read]"))
    assert cadge("resume", "--no-report").code == 0


def test_a_report_that_would_outlast_the_allocation_is_not_begun(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word for word in RUN if word != "--no-report"]
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: replace(make_testbed(hosts=2), time_left_s=0.0))
    answer = cadge(*words)
    assert answer.code == 0, answer.err
    assert runner.made
    assert not last(checkout).layout.report.exists()
    assert "the allocation ends in" in answer.err
    assert "make it later: " in answer.err
    assert "report: " not in answer.err


def test_resume_uses_the_hosts_that_the_campaign_began_on(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.stop_after = 1
    cadge(*RUN)
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed(hosts=1))
    answer = cadge("resume")
    assert answer.code == 2
    assert "began on h1, h2, and the testbed has h1: in one campaign a difference between hosts" in answer.err
    assert "resume on h1, h2, or start a new campaign" in answer.err
    assert "cadge run " in answer.err
    runner.stop_after = None
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed(hosts=3))
    assert cadge("resume", "--no-report").code == 0
    campaign = last(checkout)
    assert campaign.meta.status == "finished"
    used = {end.host for record in campaign.launches() for end in record.launch.endpoints}
    assert used == {"h1", "h2"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 6)])
def test_signals_stop_after_the_launch(
    number: int, code: int, checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    runner.before_launch = lambda index: os.kill(os.getpid(), number) if index == 3 else None
    answer = cadge(*RUN)
    assert answer.code == code
    assert "stopping after this launch" in answer.err
    assert len(last(checkout).launch_ids()) == 4
    assert last(checkout).meta.status == "interrupted"
    runner.before_launch = lambda _index: None
    assert cadge("resume", "--no-report").code == 0


def test_a_second_interruption_ends_at_once_and_stays_resumable(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    def twice(index: int) -> None:
        if index == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    runner.before_launch = twice
    assert cadge(*RUN).code == 130
    assert len(last(checkout).launch_ids()) == 2
    assert last(checkout).meta.status == "interrupted"
    runner.before_launch = lambda _index: None
    assert cadge("resume", "--no-report").code == 0


@pytest.mark.usefixtures("runner")
def test_lost_hosts_end_with_4_and_keep_what_was_made(
    checkout: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lost(FakeRunner):
        def __call__(self, *args: object, **named: object) -> CampaignEnd:
            super().__call__(*args, **named)  # type: ignore[arg-type]
            return CampaignEnd(ok=False, exit_code=4, problems=("h2 was lost",))

    lost = Lost(stop_after=4)
    monkeypatch.setattr(commands_run, "AnsibleRunner", lambda *_args, **_named: lost)
    answer = cadge(*RUN, "--json")
    document = json.loads(answer.out)
    assert (answer.code, document["code"], document["problems"]) == (4, 4, ["h2 was lost"])
    assert last(checkout).meta.problems == ("h2 was lost",)
    assert len(last(checkout).launch_ids()) == 4


@pytest.mark.usefixtures("runner")
def test_pairs_of_other_hosts_go_on_where_one_is_lost(
    checkout: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """h3 is lost in the middle, then h2; the pair that is left is measured, and a resume makes the rest."""
    used: list[set[str]] = []
    lost: list[tuple[str, ...]] = [("h3",), ("h3", "h2"), ()]

    class Losing(FakeRunner):
        def __call__(self, testbed: Testbed, blocks: list[Any], *others: Any) -> CampaignEnd:  # noqa: ANN401 - handed on
            used.append({host["name"] for block in blocks for host in block["hosts"]})
            gone = lost.pop(0) if lost else ()
            self.stop_after = len(self.made) + 2 if gone else None
            super().__call__(testbed, blocks, *others)
            problems = tuple(f"{name} is gone" for name in gone)
            return CampaignEnd(ok=not gone, exit_code=4 if gone else 0, problems=problems, lost=gone)

    losing = Losing()
    monkeypatch.setattr(commands_run, "AnsibleRunner", lambda *_args, **_named: losing)
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed(hosts=4))
    sweep = checkout.harness / "sweeps/tiny.yml"
    sweep.write_text(f"{sweep.read_text()}pairs: all\nlayers: [a-one]\nplaces: between\nfloors: false\ntwin: none\n")
    answer = cadge("run", "--sweep", "tiny", "--no-report", "--json")
    campaign = last(checkout)
    assert (answer.code, json.loads(answer.out)["problems"]) == (4, ["h3 is gone", "h2 is gone"])
    assert "h3, h2 cannot take part; Cadge continues with h1, h4" in answer.err
    assert used == [{"h1", "h2", "h3", "h4"}, {"h1", "h2", "h4"}, {"h1", "h4"}]
    missing = {launch.launch_id: launch for launch in campaign.plan.launches if launch.launch_id not in losing.made}
    assert set(campaign.missing_launch_ids()) == set(missing)
    assert all({end.host for end in launch.endpoints} & {"h2", "h3"} for launch in missing.values())
    assert len(losing.made) == len(set(losing.made)), "nothing is made twice"
    assert cadge("resume", "--no-report").code == 0
    assert sorted(losing.made) == sorted(launch.launch_id for launch in campaign.plan.launches)


def test_unsound_attempts_end_with_1(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    assert checkout

    def unsound(record: dict[str, object]) -> dict[str, object]:
        launch = record["launch"]
        assert isinstance(launch, dict)
        if launch["layer"] == "a-one" and launch["place"] == "between":
            link = {"xdp": True, "offloads": {}}
            return record | {"link": [{"host": "h1", "before": link, "after": link}]}
        return record

    runner.change = unsound
    answer = cadge(*RUN)
    assert answer.code == 1
    assert "h1: an XDP program is attached to the data link" in answer.out
    assert "unsound" in answer.out


@pytest.mark.usefixtures("runner")
def test_what_comes_twice_is_stored_once(checkout: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch) -> None:

    class Twice(FakeRunner):
        def __call__(self, testbed, blocks, campaign, on_event, on_launch, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
            def again(record: Mapping[str, object]) -> None:
                on_launch(record)
                on_launch(record)

            return super().__call__(testbed, blocks, campaign, on_event, again, stop)

    twice = Twice()
    monkeypatch.setattr(commands_run, "AnsibleRunner", lambda *_args, **_named: twice)
    assert cadge(*RUN).code == 0
    assert not last(checkout).meta.problems


def test_records_that_fit_no_format_are_not_stored(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    runner.change = lambda record: record | {"colour": "blue"}
    answer = cadge(*RUN)
    assert answer.code == 6
    assert "a launch was not stored: launch record: colour: unknown key" in answer.err
    assert not last(checkout).launch_ids()


@pytest.fixture
def room() -> Iterator[Callable[[int], None]]:
    """Limit how large files may grow, as a full disk would; undone afterwards."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda count: resource.setrlimit(resource.RLIMIT_FSIZE, (count, old[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_full_disk_stops_the_campaign_and_leaves_whole_files(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, room: Callable[[int], None]
) -> None:
    runner.before_launch = lambda index: room(1000) if index == 3 else None
    answer = cadge(*RUN)
    assert answer.code == 6
    assert "no space to write" in answer.err
    room(resource.RLIM_INFINITY)
    assert len(list(last(checkout).launches())) == 3
    assert len(runner.made) == 4, "the campaign went on although nothing could be stored"
    runner.before_launch = lambda _index: None
    assert cadge("resume", "--no-report").code == 0
    assert last(checkout).meta.status == "finished"


def test_a_killed_process_leaves_a_campaign_that_can_be_resumed(checkout: Checkout, cadge: Cadge) -> None:
    """Kill -9 of the whole command while launches arrive: every stored file is whole, nothing is locked."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_RUN, str(Path(__file__).with_name("conftest.py")), *RUN],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(list(checkout.campaigns.glob("*/launches/*.json"))) < 4:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    campaign = last(checkout)
    stored = len(list(campaign.launches()))
    assert 4 <= stored < len(campaign.plan.launches)
    assert json.loads(cadge("status", "--json").out)["data"]["state"] == "broken off"


def test_last_is_the_newest_campaign_with_launches(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    """What was begun and measured nothing has nothing to show; status and resume are about the newest all the same."""
    assert cadge(*RUN).code == 0
    first = last(checkout)
    runner.stop_after = len(runner.made)
    assert cadge(*RUN, "--seed", "8").code == 6
    names = {one.campaign_id for one in Store(checkout.campaigns).campaigns()}
    (empty,) = names - {first.campaign_id}
    assert last(checkout).campaign_id == first.campaign_id
    assert cadge("export").out.splitlines()[1].startswith(first.campaign_id)
    assert json.loads(cadge("status", "--json").out)["data"]["campaign_id"] == empty
    runner.stop_after = None
    assert cadge("resume", "--no-report").code == 0
    assert last(checkout).campaign_id == empty


@pytest.mark.usefixtures("checkout", "runner")
def test_a_self_test_is_chosen_where_a_campaign_begins(cadge: Cadge) -> None:
    assert cadge(*RUN).code == 0
    assert "--selftest" in cadge("run", "--help").out
    assert "--selftest" not in cadge("resume", "--help").out
    assert cadge("resume", "last", "--selftest", "last").code == 2


@pytest.mark.parametrize("stopped", [False, True])
def test_interrupted_is_said_where_somebody_interrupted(
    stopped: bool, checkout: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkout
    runner.stop_after = 3
    runner.ended = CampaignEnd(ok=False, exit_code=4)

    def interrupt(number: int) -> None:
        if stopped and number == 2:
            os.kill(os.getpid(), signal.SIGINT)

    runner.before_launch = interrupt
    answer = cadge(*RUN)
    assert answer.code == (130 if stopped else 6)
    assert answer.out.splitlines()[0].startswith("interrupted after " if stopped else "not complete after ")
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("code", "said"),
    [("kill -KILL $$", "its process ended by signal 9 (SIGKILL)"), ("exit 5", "its process ended with exit status 5")],
)
def test_a_report_that_dies_says_how(
    code: str, said: str, checkout: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    assert checkout
    assert runner
    dying = tmp_path / "python"
    dying.write_text(f"#!/bin/sh\n{code}\n")
    dying.chmod(0o755)
    monkeypatch.setattr(closing.sys, "executable", str(dying))
    assert f"cadge: no report was made: {said}\n" in cadge("run", "--sweep", "tiny").err
