# SPDX-License-Identifier: BSD-3-Clause
"""`cadge quick`, and how a campaign ends in the terminal: what is measured, said and stored, and likely mistakes."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cadge_cli.commands import quick as commands_quick
from cadge_cli.commands import run as commands_run
from cadge_harness.paths import Checkout
from cadge_harness.run import machine_lock
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import TestbedKind
from cadge_results import Campaign, Store

from .conftest import HARNESS, Answer, FakeRunner, make_testbed

Cadge = Callable[..., Answer]
ALL = ("a-one", "b-two", "c-three")
ONE_US = re.compile(r" 1\.00 [µu]s \[1\.00,\s1\.00\]")


@pytest.fixture
def quick(checkout: Checkout, runner: FakeRunner, cadge: Cadge, monkeypatch: pytest.MonkeyPatch) -> Cadge:
    """`cadge quick` of the checkout, whose sweep names its three layers, on this machine."""
    assert runner is not None
    text = (HARNESS / "sweeps/quick.yml").read_text()
    line = next(line for line in text.splitlines() if line.startswith("layers:"))
    text = text.replace(line, f"layers: [{', '.join(ALL)}]").replace("baseline: sockets-tcp", "baseline: a-one")
    (checkout.sweeps / "quick.yml").write_text(text)
    here = replace(make_testbed(TestbedKind.LOCAL, 1), name="local")
    asked: list[str] = []

    def resolve(kind: str, *_args: object, **_named: object) -> object:
        asked.append(kind)
        return here

    monkeypatch.setattr(testbeds, "resolve", resolve)
    monkeypatch.setattr(commands_run, "busy", lambda: "")

    def call(*argv: str) -> Answer:
        answer = cadge("quick", *argv)
        assert set(asked) <= {"local"}
        return answer

    return call


def last(checkout: Checkout) -> Campaign:
    return Store(checkout.campaigns).open("last")


def bars(data: dict[str, Any]) -> list[list[str]]:
    """Return the layers of each question, best first."""
    return [[bar["name"] for bar in one["bars"]] for one in data["picture"]["questions"]]


def test_it_measures_stores_and_shows(quick: Cadge, checkout: Checkout) -> None:
    answer = quick()
    assert answer.code == 0
    campaign = last(checkout)
    assert (campaign.meta.sweep, campaign.meta.status, campaign.meta.testbed.kind) == ("quick", "finished", "local")
    cells = {
        (point.subject.layer, point.workload.pattern) for point in campaign.plan.points if point.state == "planned"
    }
    layers = {(layer, pattern) for layer in ALL[:2] for pattern in ("rpc", "stream")}
    assert layers <= cells
    assert {layer for layer, _ in cells - layers} == campaign.plan.floors.keys()
    assert not campaign.layout.report.exists()
    assert not list(checkout.root.rglob("*.html"))
    lines = answer.out.splitlines()
    assert len(lines) <= commands_quick.LINES_MOST + 2
    assert max(map(len, lines[:-2])) <= 80
    assert [line.split()[0] for line in lines[:-2] if line.startswith("  ")] == [*ALL[:2], *ALL[:2]]
    # a point's 1,000 samples are of 1,000 ns each
    assert len([line for line in lines if ONE_US.search(line)]) == 2


def test_a_layer_that_cannot_run_is_named_with_the_reason(quick: Cadge) -> None:
    said = [line for line in quick().err.splitlines() if line.startswith("c-three")]
    assert said == ["c-three cannot run here: not built: libthree is missing (pkg-config three)"]


def test_as_json_it_has_numbers(quick: Cadge) -> None:
    answer = json.loads(quick("--json").out)
    assert (answer["ok"], answer["code"]) == (True, 0)
    assert bars(answer["data"]) == [list(ALL[:2])] * 2
    (rpc, _) = answer["data"]["picture"]["questions"]
    assert (rpc["unit"], [bar["value"] for bar in rpc["bars"]]) == ("µs", [1.0, 1.0])
    assert answer["data"]["since"] == ""


def test_layers_that_are_named_are_measured_and_no_other(quick: Cadge, checkout: Checkout) -> None:
    answer = json.loads(quick("b-two", "--json").out)
    assert bars(answer["data"]) == [["b-two"]] * 2
    named = {point.subject.layer for point in last(checkout).plan.points if point.subject.kind == "layer"}
    assert named == {"b-two"}
    assert quick("b-two,a-one", "b-two").code == 0
    named = {point.subject.layer for point in last(checkout).plan.points if point.subject.kind == "layer"}
    assert named == {"a-one", "b-two"}


def test_mistakes_measure_nothing(
    quick: Cadge, checkout: Checkout, runner: FakeRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = quick("b-too")
    assert answer.code == 2
    assert "b-two" in answer.err
    answer = quick("c-three")
    assert answer.code == 5
    assert "libthree is missing" in answer.err
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        answer = quick("--results", str(folder))
        assert answer.code in (2, 3)
        assert str(file) in answer.err
    monkeypatch.delenv("CADGE_RESULTS", raising=False)
    shutil.rmtree(checkout.root / "build")
    answer = quick()
    assert answer.code in (3, 5)
    assert "make build" in answer.err
    assert runner.made == []
    assert not checkout.campaigns.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said_at_once(quick: Cadge, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    answer = quick("--results", str(closed))
    assert answer.code == 3
    assert str(closed) in answer.err


def test_a_failure_is_in_the_answer_and_in_the_exit_code(quick: Cadge, runner: FakeRunner, checkout: Checkout) -> None:
    def unsound(record: dict[str, Any]) -> dict[str, Any]:
        if record["launch"]["layer"] == "a-one":
            record["result"]["attempts"][0]["checks"] = [{"name": "payload", "ok": False, "detail": "byte 3 differs"}]
        return record

    runner.change = unsound
    answer = quick()
    assert answer.code == 1
    counts = [item.status for item in last(checkout).outcomes()].count("unsound")
    assert counts == last(checkout).plan.launches[-1].round + 1
    assert answer.out.splitlines()[-1].endswith(f"because {counts} attempts are unsound")
    assert "byte 3 differs" in answer.out


def test_stopped_in_the_middle_it_is_resumed(
    quick: Cadge, cadge: Cadge, runner: FakeRunner, checkout: Checkout
) -> None:
    runner.stop_after = 4
    answer = quick()
    assert answer.code == 6
    campaign = last(checkout)
    assert f"resume {campaign.campaign_id}" in answer.out
    assert len(campaign.launch_ids()) == 4
    runner.stop_after = None
    assert cadge("resume", "--no-report").code == 0
    assert last(checkout).campaign_id == campaign.campaign_id
    assert not last(checkout).missing_launch_ids()


def test_a_second_time_it_says_what_changed(quick: Cadge, checkout: Checkout) -> None:
    assert "Against" not in quick().out
    first = last(checkout).campaign_id
    said = [line for line in quick().out.splitlines() if line.startswith("Against ")]
    assert len(said) == 1
    assert said[0].startswith(f"Against {first}, ")


def test_who_measures_is_said_while_it_waits(quick: Cadge, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(machine_lock.lock_name())
        other.listen()
        answer = quick("--no-queue")
        assert answer.code == 0
        assert f"{os.getpid()}" in answer.err
        monkeypatch.setattr(machine_lock, "_await_end", lambda *_args: other.close())
        answer = quick()
    assert answer.code == 0
    assert f"{os.getpid()}" in answer.err


@pytest.mark.usefixtures("checkout")
def test_run_ends_with_the_picture_and_what_its_exit_code_is_for(cadge: Cadge, runner: FakeRunner) -> None:
    failed: list[str] = []
    runner.change = lambda record: _fail_once(record, failed)
    answer = cadge("run", "--sweep", "tiny", "--json")
    assert answer.code == 1, answer.err
    data = json.loads(answer.out)["data"]
    assert bars(data) == [["a-one", "b-two"]] * 2
    failed.clear()
    answer = cadge("run", "--sweep", "tiny")
    lines = answer.out.splitlines()
    assert lines[-1] == "the report is complete; exit 1 because 1 attempt is unsound"
    report = next(number for number, line in enumerate(lines) if line.startswith("report "))
    shown = [number for number, line in enumerate(lines) if ONE_US.search(line)]
    assert len(shown) == 4
    assert max(shown) < report
    assert [line for line in lines if line.startswith(f"Against {data['campaign_id']}")]


def _fail_once(record: dict[str, Any], failed: list[str]) -> dict[str, Any]:
    if record["launch"]["layer"] == "a-one" and not failed:
        failed.append(record["launch"]["launch_id"])
        record["result"]["attempts"][0]["checks"] = [{"name": "payload", "ok": False, "detail": "byte 3 differs"}]
    return record
