# SPDX-License-Identifier: BSD-3-Clause
"""Kill -9 of anything at any moment loses no finished launch, leaves nothing running, and touches nothing of others'.

CADGE_KILLS is the number of kills on both testbeds together (2, of which `make test` makes one; 100 in `make long`),
CADGE_KILL_SEED repeats a series.
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

from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed

KILLS = int(os.environ.get("CADGE_KILLS", "2"))
CONTROLLER = Path(__file__).with_name("kill_controller.py")
VICTIMS = (
    "cadge",
    "ansible-playbook",
    "worker",
    "ssh",
    "sshd session",
    "sshd listener",
    "agent",
    "keeper",
    "driver",
    "mpirun",
)
SURVIVED = ("sshd listener", "keeper", "driver", "mpirun")  # the campaign goes on without them
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


def is_keeper(pid: int) -> bool:
    """Whether a process is the agent's keeper of namespaces, which has the agent's command line."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "cadge-keeper"
    except OSError:
        return False


class Series:
    """One campaign that is killed, resumed and killed again."""

    def __init__(self, used: Testbed, folder: Path, build: Path, launches: int) -> None:
        self.folder = folder
        self.hosts = [host.name for host in used.hosts]
        self.kind = str(used.kind)
        self.name = f"kill-{os.getpid()}-{time.monotonic_ns()}"
        folder.mkdir()
        shutil.copytree(build, folder / "build")
        self.ledger = folder / "ledger"
        made = []
        for number in range(launches):
            first, last = self.hosts[0], self.hosts[-1]
            hosts = random.choice([[first, last], [first, first], [first]])
            launch = make_launch(f"l{number}", hosts, sleep_ms=60, ledger=self.ledger, deadline_ms=20000)
            if len(hosts) > 1 and shutil.which("mpirun") and random.random() < 0.2:
                launch["launcher"] = "mpirun"
            made.append(launch)
        (folder / "blocks.json").write_text(
            json.dumps([make_block(used, self.name, "b0", made[::2]), make_block(used, self.name, "b1", made[1::2])])
        )
        self.launches = launches

    def start(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(
                [sys.executable, "-u", str(CONTROLLER), str(self.folder), self.kind],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stored(self) -> set[str]:
        return {path.stem for path in (self.folder / "store").glob("*.json")}

    def finished(self) -> set[str]:
        """Launches whose record lies anywhere: with the controller or on a host."""
        names = self.stored()
        for host in self.hosts:
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
        playbooks, agents = [], []
        left = self.left()
        for pid, line in left.items():
            if "ansible-playbook" in line and "setpriv" not in line:
                playbooks.append(pid)
            elif line.startswith("ssh ") and "agent.pyz" in line:
                found["ssh"].append(pid)
            elif "agent.pyz run" in line:
                (found["keeper"] if is_keeper(pid) else agents).append(pid)
            elif line.split(" ", 1)[0].endswith(("mpirun", "orted", "prted", "prterun")):
                found["mpirun"].append(pid)
            elif "cadge-driver" in line and "ssh" not in line:
                found["driver"].append(pid)
        # What an agent starts has its command line until it has become a keeper or a driver.
        found["agent"] = [pid for pid in agents if pid not in children_of(set(agents))]
        under = children_of(set(playbooks))
        found["ansible-playbook"] = [pid for pid in playbooks if pid not in under]
        found["worker"] = [pid for pid in playbooks if pid in under]
        for pid in children_of({testbeds.status()["pid"]} if self.kind == "emulated" else set()):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if line.startswith(("sshd", "/usr/sbin/sshd")):
                if "listener" in line:
                    found["sshd listener"].append(pid)
                elif children_of({pid}) & left.keys():  # not one that outlives its connection for a moment
                    found["sshd session"].append(pid)
        return found


def await_gone(series: Series, what: str) -> None:
    deadline = time.monotonic() + GONE_S
    while left := series.left():
        assert time.monotonic() < deadline, f"left {GONE_S:.0f} s after {what}: {left}"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="kills processes of the hosts, which takes root")
@pytest.mark.timeout(240 + 60 * KILLS)
@pytest.mark.parametrize("kind", ["emulated", pytest.param("local", marks=pytest.mark.long)])
def test_kills_lose_nothing_and_leave_nothing(
    kind: str, request: pytest.FixtureRequest, state: Path, tmp_path: Path, fake_build: Path
) -> None:
    del state
    if kind == "emulated":
        request.getfixturevalue("can_emulate")
    used = request.getfixturevalue("emulated") if kind == "emulated" else testbeds.resolve("local")
    kills = KILLS * 3 // 5 if kind == "emulated" else KILLS - KILLS * 3 // 5
    seed = int(os.environ.get("CADGE_KILL_SEED") or random.randrange(1 << 30))
    print(f"CADGE_KILL_SEED={seed}")
    chance = random.Random(seed)
    random.seed(seed)
    series = Series(used, tmp_path / "series", fake_build, 40 * KILLS)
    killed: dict[str, int] = dict.fromkeys(VICTIMS, 0)
    controller = series.start()
    users = [Path(f"/dev/shm/user-{series.name}-{number}") for number in range(kills)]
    request.addfinalizer(lambda: [path.unlink(missing_ok=True) for path in users])
    try:
        for number in range(kills):
            if controller.poll() is not None:
                controller = series.start()
            users[number].write_text("of somebody else, and mapped by nobody")
            kill_one(series, controller, chance, killed, number)
        if controller.poll() is None:
            controller.send_signal(signal.SIGINT)
            assert controller.wait(60) == 6
    finally:
        if controller.poll() is None:
            controller.kill()
        controller.wait()
    await_gone(series, "the last kill")
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
    assert not any(node_folder(series.name, host.name).exists() for host in used.hosts)
    assert all(path.exists() for path in users)
    assert not list(Path("/dev/shm").glob("fake-*"))
    print(f"killed: {killed}; launches finished before the last run: {len(before)}")


def await_progress(series: Series, controller: subprocess.Popen[bytes], stored: int, what: str) -> None:
    """Wait until more than `stored` launches are stored."""
    deadline = time.monotonic() + 90
    while len(series.stored()) <= stored:
        assert controller.poll() is None, f"ended after {what}: {(series.folder / 'log').read_text()[-3000:]}"
        assert time.monotonic() < deadline, f"no launch after {what}: {(series.folder / 'log').read_text()[-3000:]}"
        time.sleep(0.05)


def kill_one(
    series: Series, controller: subprocess.Popen[bytes], chance: random.Random, killed: dict[str, int], number: int
) -> None:
    """Let it run for a random time, kill one thing, and see that nothing is lost and nothing stays."""
    measuring = chance.random() < 0.8
    pause, which = chance.uniform(0, 2.0), chance.random()
    before = len(series.stored())
    if measuring:
        await_progress(series, controller, before, "start")
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
    if name in SURVIVED:
        await_progress(series, controller, len(series.stored()), what)
        assert finished <= series.finished(), f"lost by {what}: {finished - series.finished()}"
        return
    try:
        controller.wait(20 if name == "worker" else 60)
    except subprocess.TimeoutExpired:
        if name == "worker":  # its task's result was delivered when it died, so nobody misses it
            await_progress(series, controller, len(series.stored()), what)
            return
        pytest.fail(f"the controller did not end after {what}: {(series.folder / 'log').read_text()[-3000:]}")
    await_gone(series, what)
    assert finished <= series.finished(), f"lost by {what}: {finished - series.finished()}"
