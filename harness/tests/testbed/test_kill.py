# SPDX-License-Identifier: BSD-3-Clause
"""Kill -9 of anything at any moment loses no finished launch and leaves nothing running.

CADGE_KILLS is the number of kills (20), CADGE_KILL_SEED repeats a series.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from testbed_helpers import make_block, make_launch, node_folder, processes, read_json

from cadge_harness import testbed
from cadge_harness.testbed_model import Testbed

KILLS = int(os.environ.get("CADGE_KILLS", "20"))
CONTROLLER = Path(__file__).with_name("kill_controller.py")
VICTIMS = ("cadge", "ansible-playbook", "worker", "ssh", "sshd session", "sshd listener", "agent", "driver")
GONE_S = 10.0


def children_of(pids: set[int]) -> set[int]:
    """All descendants."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(errors="replace")
        except OSError:
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    wave = set(pids)
    while wave:
        wave = {pid for pid, parent in parents.items() if parent in wave} - found
        found |= wave
    return found


class Series:
    """One campaign that is killed, resumed and killed again."""

    def __init__(self, used: Testbed, folder: Path, build: Path, launches: int) -> None:
        self.folder = folder
        self.name = f"kill-{os.getpid()}-{time.monotonic_ns()}"
        folder.mkdir()
        shutil.copytree(build, folder / "build")
        self.ledger = folder / "ledger"
        made = []
        for number in range(launches):
            hosts = random.choice([["h1", "h2"], ["h1", "h1"], ["h1"]])
            made.append(make_launch(f"l{number}", hosts, sleep_ms=60, ledger=self.ledger, deadline_ms=5000))
        (folder / "blocks.json").write_text(
            json.dumps([make_block(used, self.name, "b0", made[::2]), make_block(used, self.name, "b1", made[1::2])])
        )
        self.launches = launches

    def start(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(
                [sys.executable, "-u", str(CONTROLLER), str(self.folder)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stored(self) -> set[str]:
        return {path.stem for path in (self.folder / "store").glob("*.json")}

    def finished(self) -> set[str]:
        """Launches whose record lies anywhere: with the controller or on a host."""
        names = self.stored()
        for host in ("h1", "h2"):
            for part in ("done", "collected"):
                names |= {path.stem for path in (node_folder(self.name, host) / part).glob("*.json")}
        return names

    def runs(self) -> dict[str, int]:
        """How often each launch ran to its end."""
        counts: dict[str, int] = {}
        for name in self.ledger.read_text().split() if self.ledger.exists() else []:
            counts[name] = counts.get(name, 0) + 1
        return counts

    def left(self) -> dict[int, str]:
        return processes(self.name, str(self.folder))

    def victims(self, controller: int) -> dict[str, list[int]]:
        """Process numbers by what they are, now."""
        found: dict[str, list[int]] = {name: [] for name in VICTIMS}
        found["cadge"] = [controller]
        playbooks = []
        for pid, line in self.left().items():
            if "ansible-playbook" in line and "setpriv" not in line:
                playbooks.append(pid)
            elif line.startswith("ssh ") and "agent.py" in line:
                found["ssh"].append(pid)
            elif "agent.py run" in line:
                found["agent"].append(pid)
            elif "cadge-driver" in line:
                found["driver"].append(pid)
        under = children_of(set(playbooks))
        found["ansible-playbook"] = [pid for pid in playbooks if pid not in under]
        found["worker"] = [pid for pid in playbooks if pid in under]
        for pid in children_of({testbed.status()["pid"]}):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if line.startswith(("sshd", "/usr/sbin/sshd")):
                found["sshd listener" if "listener" in line else "sshd session"].append(pid)
        return found


def await_gone(series: Series, what: str) -> None:
    deadline = time.monotonic() + GONE_S
    while left := series.left():
        assert time.monotonic() < deadline, f"left {GONE_S:.0f} s after {what}: {left}"
        time.sleep(0.1)


@pytest.mark.skipif(os.geteuid() != 0, reason="kills processes of the hosts, which takes root")
@pytest.mark.timeout(120 + 60 * KILLS)
def test_kills_lose_nothing_and_leave_nothing(emulated: Testbed, tmp_path: Path, fake_build: Path) -> None:
    seed = int(os.environ.get("CADGE_KILL_SEED") or random.randrange(1 << 30))
    print(f"CADGE_KILL_SEED={seed}")
    chance = random.Random(seed)
    random.seed(seed)
    series = Series(emulated, tmp_path / "series", fake_build, 40 * KILLS)
    killed: dict[str, int] = dict.fromkeys(VICTIMS, 0)
    for number in range(KILLS):
        controller = series.start()
        try:
            kill_one(series, controller, chance, killed, number)
        finally:
            if controller.poll() is None:
                controller.kill()
            controller.wait()
    # what is missing is made, what is there is not made again
    before, ran = series.finished(), series.runs()
    blocks = read_json(series.folder / "blocks.json")
    wanted = [launch["launch_id"] for block in blocks for launch in block["launches"]]
    keep = set(wanted[: len(wanted) // 10]) | before
    for block in blocks:
        block["launches"] = [launch for launch in block["launches"] if launch["launch_id"] in keep]
    (series.folder / "blocks.json").write_text(json.dumps(blocks))
    last = series.start()
    assert last.wait(280) == 0, (series.folder / "log").read_text()[-3000:]
    await_gone(series, "the last run")
    assert series.stored() == keep
    after = series.runs()
    assert {name: after[name] for name in ran if name in before} == {n: ran[n] for n in ran if n in before}
    assert not node_folder(series.name, "h1").exists()
    assert not node_folder(series.name, "h2").exists()
    print(f"killed: {killed}; launches finished before the last run: {len(before)}")


def kill_one(
    series: Series, controller: subprocess.Popen[bytes], chance: random.Random, killed: dict[str, int], number: int
) -> None:
    """Let it run for a random time, kill one thing, and see that nothing is lost and nothing stays."""
    measuring = chance.random() < 0.8
    pause, which = chance.uniform(0, 2.0), chance.random()
    before = len(series.stored())
    deadline = time.monotonic() + 60
    while measuring and len(series.stored()) == before and controller.poll() is None:
        assert time.monotonic() < deadline, (series.folder / "log").read_text()[-3000:]
        time.sleep(0.05)
    time.sleep(pause)
    found = series.victims(controller.pid)
    there = [name for name in VICTIMS if found[name]]
    least = min(killed[name] for name in there)  # so that each gets its turn
    choice = [name for name in there if killed[name] == least]
    name = choice[int(which * len(choice))]
    victim = chance.choice(found[name])
    finished = series.finished()
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        return
    killed[name] += 1
    what = f"kill {number} of {name} ({victim})"
    print(what)
    if name in ("driver", "sshd listener"):  # the campaign goes on
        time.sleep(1.0)
        controller.send_signal(signal.SIGINT)
    try:
        controller.wait(60)
    except subprocess.TimeoutExpired:
        pytest.fail(f"the controller did not end after {what}: {(series.folder / 'log').read_text()[-3000:]}")
    await_gone(series, what)
    assert finished <= series.finished(), f"lost by {what}: {finished - series.finished()}"
