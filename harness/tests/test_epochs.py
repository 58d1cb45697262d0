# SPDX-License-Identifier: BSD-3-Clause
"""Epochs: each makes the testbed anew and all launches on it; no two share a making, whatever is resumed."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cadge_harness.errors import UnfitError
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import PlanSite
from cadge_harness.plan.timemodel import TimeModel
from cadge_harness.testbed import testbeds
from cadge_results import Campaign, LaunchRecord, Plan, Store, SweepFile
from cadge_results.store.belongs import record_problem
from cadge_results.store.looks import due_epoch

from .conftest import WORKLOADS, Answer, FakeRunner, make_record, make_testbed
from .test_cli_campaign import BUILD, by_root, command, surroundings
from .test_disturbed_again import hinder
from .test_two_sweeps import alone, ask

assert surroundings is not None, "the fixture, as pytest finds it"
assert alone is not None

Cadge = Callable[..., Answer]
SWEEP = """\
schema: cadge.sweep/2
title: two layers, two epochs
layers: [a-one, b-two]
baseline: a-one
places: [within, between]
patterns: [{pattern: rpc, request_bytes: [8B, 64B]}]
launches: 3
epochs: 2
floors: false
twin: none
seed: 7
duration: {default: 20ms}
"""
RUN = ("run", "--sweep", "anew", "--no-report")
EACH = 12
"""Launches of an epoch: two layers at two places, three times."""


@pytest.fixture
def made(checkout: Checkout, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What becomes of testbeds while the sweep above is run: `made N` and `gone N`, by the number of the making."""
    assert runner
    (checkout.root / "harness/sweeps/anew.yml").write_text(SWEEP)
    happened: list[str] = []

    def resolve(*_args: object, start: bool = True, **named: object) -> testbeds.Testbed:
        if not start:
            return make_testbed()
        assert named["anew"] is True
        number = sum(one.startswith("made") for one in happened)
        happened.append(f"made {number}")
        return replace(make_testbed(), notes=(str(number),))

    monkeypatch.setattr(testbeds, "resolve", resolve)
    monkeypatch.setattr(testbeds, "release", lambda one: happened.append(f"gone {one.notes[0]}"))
    return happened


def planned(catalogue: Catalogue, site: PlanSite, **changes: object) -> Plan:
    sweep = SweepFile.from_object(yaml.safe_load(SWEEP) | changes, source="anew")
    return make_plan(sweep, catalogue, WORKLOADS, site)


def last(checkout: Checkout) -> Campaign:
    return Store(checkout.campaigns).open("last")


def test_each_epoch_has_all_launches_in_blocks_of_its_own(catalogue: Catalogue, site: PlanSite) -> None:
    plan = planned(catalogue, site)
    assert plan.epochs == 2
    assert [launch.epoch for launch in plan.launches] == [0] * EACH + [1] * EACH
    assert {(launch.round, launch.epoch) for launch in plan.launches} == {(n, n // 3) for n in range(6)}
    often = Counter((name, launch.epoch) for launch in plan.launches for name in launch.point_ids)
    assert set(often.values()) == {3}
    epochs = {launch.launch_id: launch.epoch for launch in plan.launches}
    assert [{epochs[name] for name in block.launch_ids} for block in plan.blocks] == [{0}, {0}, {1}, {1}]
    assert len({launch.seed for launch in plan.launches}) == len(plan.launches)
    once = planned(catalogue, site, epochs=1)
    assert once.epochs == 1
    assert "epochs" not in once.to_object()["sweep"]
    assert all("epoch" not in launch.model_dump(mode="json") for launch in once.launches)


def test_what_epochs_take_is_planned(catalogue: Catalogue, site: PlanSite) -> None:
    """Every epoch has its blocks and its play, and all but the first one a testbed to make; no rounds are added."""
    times = TimeModel()
    once, twice = (planned(catalogue, site, epochs=number, budget="5min") for number in (1, 2))
    more_s = twice.estimate.wall_s - once.estimate.wall_s
    blocks_s = sum(block.wall_ms for block in twice.blocks[2:]) / 1000
    assert more_s == pytest.approx((times.testbed_ms + times.campaign_ms) / 1000 + blocks_s, abs=0.2)
    assert once.later
    assert not twice.later
    tight = planned(catalogue, site, epochs=2, budget="45s", duration={"default": "1s"})
    assert 44 < tight.estimate.wall_s <= 45
    assert {point.duration_ms < 1000 for point in tight.points} == {True}


def test_the_launches_of_all_epochs_are_enough_for_a_control(catalogue: Catalogue, site: PlanSite) -> None:
    for launches, epochs, is_there in ((3, 1, False), (3, 2, True), (6, 1, True)):
        plan = planned(catalogue, site, launches=launches, epochs=epochs, twin="by seed")
        assert any(point.subject.twin for point in plan.points) == is_there


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("epochs: 2", "epochs: 0", "anew.yml:8:9: epochs: must be a whole number from 1 to 30, not 0"),
        ("epochs: 2", "epochs: two", "anew.yml:8:9: epochs: must be a whole number from 1 to 30, not 'two'"),
        ("epochs: 2", "epochs: 31", "anew.yml:8:9: epochs: must be a whole number from 1 to 30, not 31"),
        ("epochs: 2", "epochs: 1.5", "anew.yml:8:9: epochs: must be a whole number from 1 to 30, not 1.5"),
        ("launches: 3", "looks: [9, 12]", "epochs and looks exclude each other"),
    ],
)
def test_wrong_epochs(checkout: Checkout, cadge: Cadge, runner: FakeRunner, old: str, new: str, said: str) -> None:
    assert runner
    (checkout.root / "harness/sweeps/anew.yml").write_text(SWEEP.replace(old, new))
    answer = cadge(*RUN)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_looks_of_the_command_line_do_not_go_with_epochs(cadge: Cadge, made: list[str]) -> None:
    answer = cadge(*RUN, "--looks", "9,12")
    assert answer.code == 2
    assert "--looks: epochs and looks exclude each other" in answer.err
    assert not made


def test_the_testbed_is_made_once_an_epoch(checkout: Checkout, cadge: Cadge, made: list[str]) -> None:
    answer = cadge(*RUN)
    assert answer.code == 0, answer.err
    assert made == ["made 0", "gone 0", "made 1", "gone 1"]
    campaign = last(checkout)
    assert campaign.meta.status == "finished"
    assert [record.launch.epoch for record in campaign.launches()] == [one.epoch for one in campaign.plan.launches]
    assert answer.err.count("epoch 1 of 2") == 1
    assert "epoch 2 of 2: 24 of 24 launches" in answer.err
    assert "2 epochs" in cadge("plan", "--sweep", "anew").out
    assert json.loads(cadge("plan", "--sweep", "anew", "--json").out)["data"]["epochs"] == 2
    rows = [line.split(",") for line in cadge("export", "--table", "launches").out.splitlines()]
    at = rows[0].index("epoch")
    assert Counter(row[at] for row in rows[1:]) == {"0": EACH, "1": EACH}


@pytest.mark.parametrize("stored", [5, EACH, EACH + 5])
def test_resume_goes_on_in_the_epoch_on_a_testbed_of_its_own(
    checkout: Checkout, cadge: Cadge, made: list[str], runner: FakeRunner, stored: int
) -> None:
    """What an epoch lacks is made on a testbed made anew. It has two makings then, and shares none with another."""
    runner.stop_after = stored
    assert cadge(*RUN).code == 6
    campaign = last(checkout)
    assert campaign.meta.status == "interrupted"
    assert due_epoch(campaign) == stored // EACH
    before = list(made)
    assert sum(one.startswith("made") for one in before) == 1 + (stored >= EACH)
    runner.stop_after = None
    assert cadge("resume", "--no-report").code == 0
    again = 1 + stored // EACH
    assert made[len(before) :] == [f"{what} {number}" for number in range(again, 3) for what in ("made", "gone")]
    assert runner.made == [launch.launch_id for launch in campaign.plan.launches]
    assert last(checkout).meta.status == "finished"
    assert due_epoch(last(checkout)) is None


def test_failed_launches_are_repeated_epoch_by_epoch(cadge: Cadge, made: list[str], runner: FakeRunner) -> None:
    def change(record: dict[str, object]) -> dict[str, object]:
        launch = record["launch"]
        assert isinstance(launch, dict)
        bad = launch["layer"] == "b-two" and launch["place"] == "within"
        return record | ({"result": None, "status": "failed", "reason": "made up"} if bad else {})

    runner.change = change
    assert cadge(*RUN).code == 1
    runner.change = lambda record: record
    done = len(made)
    assert cadge("resume", "--failed", "--no-report").code == 0
    assert made[done:] == ["made 2", "gone 2", "made 3", "gone 3"]


def test_launches_are_repeated_as_often_in_each_epoch(
    checkout: Checkout, cadge: Cadge, made: list[str], runner: FakeRunner
) -> None:
    """What other work disturbed in the first epoch leaves the others their repeats."""
    (checkout.root / "harness/sweeps/anew.yml").write_text(SWEEP + "repeat_disturbed: 1\n")
    hinder(runner, lambda number: number in {1, EACH + 1})
    assert cadge(*RUN).code == 0
    campaign = last(checkout)
    planned = [launch.launch_id for launch in campaign.plan.launches]
    assert Counter(runner.made) == Counter([*planned, planned[1], planned[EACH + 1]])
    assert campaign.meta.status == "finished"
    assert made == [f"{what} {number}" for number in range(4) for what in ("made", "gone")], "none serves two epochs"


def test_a_testbed_that_cannot_be_made_again_interrupts(
    checkout: Checkout, cadge: Cadge, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = testbeds.resolve

    def once(*args: object, **named: object) -> testbeds.Testbed:
        if "gone 0" in made:
            raise UnfitError("no room for another")
        return resolve(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(testbeds, "resolve", once)
    answer = cadge(*RUN)
    assert answer.code == 3
    assert "no room for another" in answer.err
    campaign = last(checkout)
    assert (campaign.meta.status, len(campaign.launch_ids())) == ("interrupted", EACH)
    monkeypatch.setattr(testbeds, "resolve", resolve)
    assert cadge("resume", "--no-report").code == 0


def test_a_record_of_another_epoch_is_none_of_the_launch(checkout: Checkout, cadge: Cadge, made: list[str]) -> None:
    assert cadge(*RUN).code == 0
    assert made
    campaign = last(checkout)
    record, launch = [*campaign.launches()][-1], campaign.plan.launches[-1]
    assert record_problem(record, launch, campaign.plan) is None
    moved = record.model_copy(update={"launch": record.launch.model_copy(update={"epoch": 0})})
    assert "epoch" in str(record_problem(moved, launch, campaign.plan))
    raw = make_record(record.launch.to_object())
    assert LaunchRecord.from_object(raw, source="made up").launch.epoch == 1


# -- on real hosts

REAL = """\
schema: cadge.sweep/2
title: an epoch has its own hosts
layers: sockets-tcp
places: between
waits: block
patterns: [{pattern: rpc, request_bytes: 64B}]
launches: 2
epochs: 2
floors: false
twin: none
duration: {default: 20ms}
"""


def data_bytes(record: LaunchRecord) -> int:
    """Return what the data network of the first host had sent before a launch, since that network was made."""
    counters = record.counters[0].before
    return counters["data0"].tx_bytes if "data0" in counters else 0


@by_root
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not (BUILD / "bin/cadge-driver").is_file(), reason=f"{BUILD} holds no programs")
def test_hosts_are_made_anew_for_each_epoch(alone: dict[str, str], tmp_path: Path) -> None:
    """Also beside a testbed of the user's own, which stays as it is and is not measured on."""
    (tmp_path / "real.yml").write_text(REAL)
    code, up = ask(alone, "testbed", "up")
    assert code == 0
    argv = command("run", "--sweep", str(tmp_path / "real.yml"), "--results", str(tmp_path / "results"), "--no-report")
    run = subprocess.Popen(argv, env=alone, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
    hosts: dict[int, str] = {}
    while run.poll() is None:
        for file in Path(alone["CADGE_STATE"]).glob("own-*/testbed.json"):
            with contextlib.suppress(OSError):
                pid = json.loads(file.read_text())["pid"]
                hosts[pid] = str(Path(f"/proc/{pid}/ns/net").readlink())
        time.sleep(0.05)
    said = run.communicate()[0]
    assert run.returncode == 0, said
    assert len(hosts) == 2, "one making each"
    assert up["pid"] not in hosts
    assert ask(alone, "testbed", "status")[1]["pid"] == up["pid"]
    assert not list(Path(alone["CADGE_STATE"]).glob("own-*"))
    campaign = Store(tmp_path / "results").open("last")
    assert campaign.meta.status == "finished"
    records = list(campaign.launches())
    assert [record.launch.epoch for record in records] == [0, 0, 1, 1]
    sent = [data_bytes(record) for record in records]
    assert sent[0] < sent[1]
    assert sent[2] < sent[1], "its devices are new"
    assert sent[2] < sent[3]
