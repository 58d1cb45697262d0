# SPDX-License-Identifier: BSD-3-Clause
"""Wrong input and unfit machines: a sentence, a command where there is one, an exit code, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_cli.commands import run as commands_run
from cadge_cli.progress import LiveProgress, PlainProgress
from cadge_harness.errors import UnfitError
from cadge_harness.paths import Checkout, find_checkout
from cadge_harness.run.session import CampaignEnd, OnEvent
from cadge_harness.testbed import testbeds
from cadge_results import Store
from cadge_results.formats.event import Problem

from .conftest import Answer, FakeRunner, without_checksums

Cadge = Callable[..., Answer]
RUN = ("run", "--sweep", "tiny", "--no-report")


@pytest.fixture
def quiet(checkout: Checkout, runner: FakeRunner) -> Checkout:
    """A checkout on which `run` would work."""
    assert runner
    return checkout


def campaigns(checkout: Checkout) -> list[Path]:
    return list(checkout.campaigns.glob("*")) if checkout.campaigns.is_dir() else []


def refused(answer: Answer, code: int, said: str, checkout: Checkout) -> None:
    """Hold that a command was refused so, and that no campaign came of it."""
    assert (answer.code, answer.out) == (code, ""), answer.err
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert campaigns(checkout) == []


def test_unknown_layer(quiet: Checkout, cadge: Cadge) -> None:
    refused(cadge(*RUN, "--layers", "a-one b-tow"), 2, "unknown layer 'b-tow'; did you mean b-two?", quiet)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pattern: rpc", "pattern: pingpung", "tiny.yml:6:15: patterns.0.pattern: 'pingpung' is not allowed; did"),
        ("[8B, 4KiB]", "[8B, 4Kib]", "vectors.sizes.1: '4Kib' has an unknown unit; units of a size: B, KiB"),
        ("[8B, 4KiB]", "[8B, 4096]", "vectors.sizes.1: 4096 has no unit"),
        ("request_bytes: sizes", "request_bytes: size", "no vector is called 'size'; vectors here: sizes"),
        ("[8B, 4KiB]", "[8B, 4KiB", "malformed YAML"),
        ("launches: 3", "lunches: 3", "tiny.yml:7:1: lunches: unknown key; did you mean launches?"),
        ("launches: 3", "launches: 0", "tiny.yml:7:11: launches: must be a whole number from 1 to 1000, not 0; for ex"),
    ],
)  # fmt: skip
def test_wrong_sweeps(old: str, new: str, said: str, quiet: Checkout, cadge: Cadge) -> None:
    path = quiet.sweeps / "tiny.yml"
    path.write_text(path.read_text().replace(old, new))
    answer = cadge(*RUN)
    refused(answer, 2, said, quiet)


def test_no_build(quiet: Checkout, cadge: Cadge) -> None:
    quiet.driver.unlink()
    answer = cadge(*RUN)
    refused(answer, 3, f"{quiet.driver} does not exist: nothing was built", quiet)
    assert "  make build\n" in answer.err


def test_a_layer_that_was_not_built(quiet: Checkout, cadge: Cadge) -> None:
    refused(cadge(*RUN, "--layers", "c-three"), 5, "not built: libthree is missing (pkg-config three)", quiet)


def test_a_layer_file_in_the_wrong_place(quiet: Checkout, cadge: Cadge) -> None:
    shutil.copy(quiet.layers / "a/one.layer.yml", quiet.layers / "a/uno.layer.yml")
    refused(cadge(*RUN), 2, "style and substrate make a-one, but the file's place says a-uno", quiet)


def test_a_layer_without_the_transport_asked_for(quiet: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    """What a library has not is found by its launch, and ends as refused rows with the library's own reason."""

    def refuse(record: dict[str, object]) -> dict[str, object]:
        launch = record["launch"]
        assert isinstance(launch, dict)
        if launch["layer"] != "a-one" or launch["place"] != "between":
            return record
        why = {
            "status": "refused",
            "reason": "libone: no provider tcp;one for device data0",
            "reason_code": "TRANSPORT",
        }
        result = record["result"]
        assert isinstance(result, dict)
        return record | why | {"result": result | why | {"attempts": []}}

    runner.change = refuse
    answer = cadge(*RUN)
    assert answer.code == 0, answer.err
    outcomes = Store(quiet.campaigns).open("last").outcomes()
    found = {(item.status, item.reason_code) for item in outcomes if item.point.subject.layer == "a-one"}
    assert found == {("valid", None), ("refused", "TRANSPORT")}


def test_a_campaign_of_an_older_cadge(quiet: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    assert runner
    assert cadge(*RUN, "--no-report").code == 0
    campaign = Store(quiet.campaigns).open("last")
    without_checksums(campaign)
    plan = campaign.layout.plan
    plan.write_text('{"schema": "cadge.plan/1", "points": []}')
    for command in (("report",), ("export",), ("status",), ("resume", "--no-report"), ("verify",)):
        answer = cadge(*command)
        assert answer.code != 0
        assert f"{plan}: written as cadge.plan/1; this cadge reads version 2; cadge 0.1 reads it" in answer.err


def test_unwritable_results(quiet: Checkout, cadge: Cadge, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    refused(cadge(*RUN, "--results", str(blocked / "in")), 3, f"cannot write {blocked / 'in'}", quiet)
    if os.geteuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o555)
        refused(cadge(*RUN, "--results", str(closed)), 3, "Permission denied", quiet)


def test_sudo_that_needs_a_password(quiet: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch) -> None:
    def needs(*_args: object, **_named: object) -> None:
        raise UnfitError("sudo needs your password, and nobody can be asked", commands=("sudo -v", "make sweep"))

    monkeypatch.setattr(testbeds, "resolve", needs)
    answer = cadge(*RUN)
    refused(answer, 3, "sudo needs your password", quiet)
    assert "  sudo -v\n  make sweep\n" in answer.err


def test_a_world_writable_checkout_is_warned_of(quiet: Checkout, cadge: Cadge) -> None:
    quiet.root.chmod(0o777)
    answer = cadge(*RUN, "--json")
    assert answer.code == 0
    problems = json.loads(answer.out)["problems"]
    said = "is writable by every user of this machine; anyone could change what cadge runs: chmod o-w"
    assert problems == [f"{quiet.root} {said} {quiet.root}"]


def test_a_moved_checkout(monkeypatch: pytest.MonkeyPatch, cadge: Cadge, tmp_path: Path) -> None:
    monkeypatch.setenv("CADGE_ROOT", str(tmp_path))
    answer = cadge("layers")
    assert answer.code == 2
    assert "is no folder of Cadge" in answer.err
    monkeypatch.delenv("CADGE_ROOT")
    source = find_checkout().root / "harness/src"
    moved = tmp_path / "elsewhere"
    for name in ("cadge_cli", "cadge_harness"):
        shutil.copytree(source / name, moved / name, ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; sys.path.insert(0, sys.argv[1]); from cadge_cli import cli; sys.exit(cli.invoke(['layers']))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(moved)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 3, done.stderr
    assert "and Cadge is not there any more" in done.stderr
    assert "make setup" in done.stderr


def test_one_core_and_two_pollers(quiet: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from .conftest import make_testbed

    whole = make_testbed()
    narrow = replace(whole, hosts=tuple(replace(host, cpus=(0,)) for host in whole.hosts))
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: narrow)
    answer = cadge(*RUN)
    refused(answer, 5, "2 busy-polling threads would share 1 core and starve each other", quiet)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_really_full_disk(quiet: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path) -> None:
    """One of 160 KiB is too small; in one that others fill, the campaign stops with what fits, and goes on later."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "cadge-test", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")

    def fill(number: int) -> None:
        if number == 3:
            with contextlib.suppress(OSError), (disk / "filling").open("wb", buffering=0) as stream:
                while True:
                    stream.write(bytes(4096))

    try:
        refused(cadge(*RUN, "--results", str(disk)), 3, "MB free, and this campaign needs up to", quiet)
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        runner.before_launch = fill
        answer = cadge(*RUN, "--results", str(disk))
        runner.before_launch = lambda _number: None
        assert answer.code == 6, answer.err
        assert "no space to write" in answer.err
        stored = list(disk.glob("*/launches/*.json"))
        assert stored
        assert all(json.loads(path.read_text())["schema"] for path in stored)
        assert not list(disk.glob("*/launches/.*.part"))
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        assert cadge("resume", "--no-report", "--results", str(disk)).code == 0
        assert len(list(disk.glob("*/launches/*.json"))) > len(stored)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert campaigns(quiet) == []
    assert runner.made


def test_the_report_fails_and_the_campaign_stays(
    quiet: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = subprocess.CompletedProcess([], 1, "", "cadge: no figures\n")
    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda argv, **named: broken if "report" in argv else real(argv, **named))
    answer = cadge("run", "--sweep", "tiny", "--json")
    document = json.loads(answer.out)
    assert (answer.code, document["data"]["report"]) == (0, None)
    assert document["problems"] == ["no report was made: cadge: no figures"]
    assert len(campaigns(quiet)) == 1


@pytest.mark.parametrize("display", [PlainProgress, LiveProgress])
def test_a_problem_is_told_once(
    display: type[PlainProgress] | type[LiveProgress],
    quiet: Checkout,
    cadge: Cadge,
    runner: FakeRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When it happens; at the end it is only told where it was not told before, or to programs."""
    gone = "n1 cannot be reached: no route to host"

    def fails(_testbed: object, _blocks: object, _campaign: object, on_event: OnEvent, *_rest: object) -> CampaignEnd:
        on_event(Problem(host="n1", reason=gone))
        return CampaignEnd(ok=False, exit_code=4, problems=(gone, "told at the end"))

    assert runner
    monkeypatch.setattr(commands_run, "AnsibleRunner", lambda *_args, **_named: fails)
    monkeypatch.setattr(commands_run, "make_progress", lambda state, output: display(state, output, lambda: 0.0))
    answer = cadge(*RUN, "--json")
    assert json.loads(answer.out)["problems"] == [gone, "told at the end"]
    assert (answer.code, answer.err.count(gone), answer.err.count("told at the end")) == (4, 1, 1), answer.err
    assert len(campaigns(quiet)) == 1
