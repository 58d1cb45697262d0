# SPDX-License-Identifier: BSD-3-Clause
"""Two real sweeps at once on one machine: each on hosts of its own, and the end of one takes nothing from the other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cadge_results import Campaign, Store

from .test_cli_campaign import BUILD, by_root, command, surroundings

pytestmark = [
    by_root,
    pytest.mark.skipif(not (BUILD / "bin/cadge-driver").is_file(), reason=f"{BUILD} holds no programs"),
]
assert surroundings is not None, "the fixture, as pytest finds it"

SWEEP = """\
schema: cadge.sweep/2
title: {title}
layers: sockets-tcp
places: between
waits: block
patterns: [{{pattern: rpc, request_bytes: 64KiB}}]
hosts: 2
launches: {launches}
floors: false
twin: none
duration: {{default: {duration}}}
"""


class Sweep:
    """A sweep that runs, in a process of its own, into results of its own."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str], *more: str, longer: bool = False) -> None:
        self.launches = 20 if longer else 4
        self.store = Store(folder / name)
        path = folder / f"{name}.yml"
        path.write_text(SWEEP.format(title=name, launches=self.launches, duration="2s" if longer else "100ms"))
        argv = command("run", "--sweep", str(path), "--results", str(folder / name), "--no-report", *more)
        self.process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    @property
    def campaign(self) -> Campaign:
        return self.store.open("last")

    def until_launches(self, count: int) -> None:
        """Wait until so many are stored."""
        deadline = time.monotonic() + 120
        while not self.store.campaigns() or len(self.campaign.launch_ids()) < count:
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def end(self, *, kill: bool = False) -> tuple[int, str]:
        if kill:
            self.process.kill()
        said = self.process.communicate(timeout=180)[0]
        return self.process.returncode, said


def with_one_layer(folder: Path) -> Path:
    """Return a build that has the one layer of these sweeps: each host of a testbed is brought it, and looks at it."""
    for name in ("bin/cadge-driver", "layers/sockets-tcp.so"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / name, folder / name)
    return folder


@pytest.fixture
def alone(tmp_path: Path, surroundings: dict[str, str]) -> Iterator[dict[str, str]]:
    """Surroundings in which nothing is up, and nothing stays."""
    state = Path(f"/run/cadge-two-{os.getpid()}")
    environment = {**surroundings, "CADGE_STATE": str(state), "CADGE_LOCK": str(tmp_path), "TESTBED": "emulated"}
    environment["CADGE_BUILD"] = str(with_one_layer(tmp_path / "build"))
    yield environment
    subprocess.run(command("testbed", "down"), env=environment, check=False, capture_output=True)
    kept = {"lock", "local.json"}
    assert {path.name for path in state.iterdir()} <= kept
    for name in kept:
        (state / name).unlink(missing_ok=True)
    state.rmdir()


def ask(environment: dict[str, str], *argv: str) -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        command(*argv, "--json"), env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    return done.returncode, {**(answer["data"] or {}), "problems": answer["problems"]}


def judge(sweep: Sweep) -> None:
    """All of it is there and sound: nobody's bytes were laid to its layers."""
    outcomes = sweep.campaign.outcomes()
    assert sweep.campaign.meta.status == "finished"
    assert Counter(item.status for item in outcomes) == {"valid": sweep.launches}, {item.reason for item in outcomes}


Begin = Callable[..., Sweep]
LOCAL = SWEEP.replace("places: between", "places: within").replace("hosts: 2\n", "")


@pytest.fixture
def begin(tmp_path: Path, alone: dict[str, str]) -> Iterator[Begin]:
    """Begin sweeps, which have ended when the test has."""
    made: list[Sweep] = []

    def make(name: str, *more: str, longer: bool = False) -> Sweep:
        made.append(Sweep(name, tmp_path, alone, *more, longer=longer))
        return made[-1]

    yield make
    for sweep in made:
        if sweep.process.poll() is None:
            sweep.end(kill=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sweeps_beside_each_other_on_one_loopback_take_no_port_from_each_other(
    alone: dict[str, str], begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(alone, "TESTBED", "local")
    monkeypatch.setitem(globals(), "SWEEP", LOCAL)
    sweeps = [begin(name, "--no-queue", "--seed", "1") for name in ("one", "two")]
    for sweep in sweeps:
        code, text = sweep.end()
        assert code == 0, text
        judge(sweep)
    assert {sweep.campaign.plan.estimate.ports for sweep in sweeps} == {(18600, 18699), (18700, 18799)}
    assert len({sweep.campaign.campaign_id.partition("-")[2] for sweep in sweeps}) == 2
    for sweep in sweeps:
        beside = {f"process {one.process.pid} of" for one in sweeps if one is not sweep}
        assert all(any(who in problem for problem in sweep.campaign.meta.problems) for who in beside)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_that_is_killed_takes_nothing_from_the_one_beside_it(
    tmp_path: Path, alone: dict[str, str], begin: Begin
) -> None:
    first = begin("first", longer=True)
    first.until_launches(2)
    second = begin("second", "--no-queue")
    second.until_launches(2)
    code, said = ask(alone, "testbed", "down")
    assert code == 3
    assert f"process {first.process.pid} " in str(said["problems"])
    _, now = ask(alone, "testbed", "status")
    (own,) = now["own"]  # type: ignore[misc]
    assert f"process {second.process.pid} " in own["users"][0]
    first.end(kill=True)
    code, text = second.end()
    assert code == 0, text
    judge(second)
    assert any("another sweep measured on this machine" in problem for problem in second.campaign.meta.problems)
    _, now = ask(alone, "testbed", "status")
    assert (now["owner"], now["own"]) == ("nobody", [])
    code, said = ask(alone, "resume", "last", "--results", str(tmp_path / "first"), "--no-report")
    assert code == 0, said
    judge(first)
    assert ask(alone, "testbed", "status")[1]["state"] == "down", "it went with its last user"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
def test_two_sweeps_leave_a_testbed_that_was_started_by_hand(alone: dict[str, str], begin: Begin) -> None:
    """It has more hosts than they ask for."""
    code, up = ask(alone, "testbed", "up", "--hosts", "3")
    assert code == 0
    first = begin("first", "--no-queue", longer=True)
    first.until_launches(1)
    second = begin("second", "--no-queue")
    second.until_launches(1)
    assert len(ask(alone, "testbed", "status")[1]["own"]) == 1  # type: ignore[arg-type]
    for sweep in (first, second):
        code, text = sweep.end()
        assert code == 0, text
        judge(sweep)
        assert sweep.campaign.meta.testbed.hosts == ("h1", "h2")
    _, now = ask(alone, "testbed", "status")
    assert (now["pid"], now["owner"], now["users"], now["own"]) == (up["pid"], "user", [], [])
    assert ask(alone, "testbed", "down")[0] == 0
