# SPDX-License-Identifier: BSD-3-Clause
"""Values of the kernel: set for a launch, read back, and restored, whoever is killed."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import CAMPAIGN, Agent, Start, block_here, host_process, one, wait_until
from testbed_helpers import AGENT, BUILT, make_launch, processes, read_json, signal_processes

from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed
from cadge_results.formats.record import HostKernel

Json = dict[str, Any]
Pair = Callable[..., tuple[Agent, Agent]]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="sets values of the kernel, which takes root")

OF_HOST, OF_MACHINE = "kernel.net.ipv4.tcp_rmem", "kernel.vm.stat_interval"
SMALL = "4096 8192 16384"
MACHINE_FILE = Path("/proc/sys/vm/stat_interval")
SET = {OF_HOST: SMALL, OF_MACHINE: "2"}


def values(host: str | None = None) -> str:
    """Return both values on a host, or on this machine."""
    inside = ["nsenter", "-t", str(host_process(testbeds.status()["pid"], host)), "--net", "--"] if host else []
    argv = [*inside, "cat", "/proc/sys/net/ipv4/tcp_rmem", str(MACHINE_FILE)]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return "; ".join(" ".join(line.split()) for line in said.splitlines())


@pytest.fixture(autouse=True)
def machine() -> Iterator[str]:
    """The value of this machine, which one test at a time sets, and which is restored in any case."""
    with MACHINE_FILE.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = MACHINE_FILE.read_text().strip()
        assert before != "2"
        yield before
        now = MACHINE_FILE.read_text().strip()
        MACHINE_FILE.write_text(before)
        assert now == before


def with_values(launch: Json, given: Json) -> Json:
    return {**launch, "settings": {**launch["settings"], **given}}


def clean(agent: Agent) -> Json:
    argv = [sys.executable, str(AGENT), "clean", "--work", str(agent.work), "--campaign", CAMPAIGN]
    found: Json = json.loads(subprocess.run(argv, check=True, capture_output=True, timeout=60).stdout)
    return found


def test_each_launch_has_its_values(pair: Pair, emulated: Testbed, tmp_path: Path, machine: str) -> None:
    assert emulated is not None
    before = {host: values(host) for host in ("h1", "h2")}
    wrong = {OF_MACHINE: "2", OF_HOST: "many"}
    leader, follower = pair(
        with_values(make_launch("l1", ["h1", "h2"]), SET),
        make_launch("l2", ["h1", "h2"]),
        with_values(make_launch("l3", ["h1", "h2"]), wrong),
        with_values(make_launch("l4", ["h1", "h2"]), {"kernel.net.core.no_such": "1"}),
    )
    records = leader.records()
    follower.records()
    assert {host: values(host) for host in ("h1", "h2")} == before
    of_host = before["h1"].partition(";")[0]
    assert records["l1"]["status"] == "done"
    kernel = [HostKernel.model_validate(one) for one in records["l1"]["kernel"]]
    assert [(one.host, one.before, one.during, one.after) for one in kernel] == [
        ("h1", {OF_HOST: of_host, OF_MACHINE: machine}, SET, SET),  # the leader sets what is the machine's
        ("h2", {OF_HOST: of_host}, {OF_HOST: SMALL}, {OF_HOST: SMALL}),
    ]
    assert (records["l2"]["status"], "kernel" in records["l2"]) == ("done", False)
    refused = [
        (records[name]["status"], records[name]["reason_code"], records[name]["reason"]) for name in ("l3", "l4")
    ]
    assert refused == [
        ("refused", "NODE_LACKS", f"h1: {OF_HOST} cannot be set to many: Invalid argument"),
        ("refused", "NODE_LACKS", "h1: kernel.net.core.no_such cannot be read: No such file or directory"),
    ]
    assert not (tmp_path / "kernel").exists()


def test_what_killed_agents_left_is_restored(pair: Pair, emulated: Testbed, tmp_path: Path) -> None:
    """Both agents at once, so that neither can restore what the other set."""
    assert emulated is not None
    before = {host: values(host) for host in ("h1", "h2")}
    leader, follower = pair(with_values(make_launch("l1", ["h1", "h2"], mode="hang"), SET))
    leader.until("launch_started")
    wait_until(lambda: values("h1") == values("h2") == f"{SMALL}; 2")
    for agent in (leader, follower):
        agent.process.kill()
    for agent in (leader, follower):
        agent.process.wait(30)
    assert values("h1") == values("h2") == f"{SMALL}; 2"
    assert len(list((tmp_path / "kernel").iterdir())) == 3
    again = pair(
        with_values(make_launch("l2", ["h1", "h2"]), {OF_HOST: "4096 8192 8192"})
    )  # the next agents restore first
    record = again[0].records()["l2"]
    again[1].records()
    assert [one["before"][OF_HOST] for one in record["kernel"]] == [before["h1"].partition(";")[0]] * 2
    assert {host: values(host) for host in ("h1", "h2")} == before
    assert not (tmp_path / "kernel").exists()


@pytest.mark.parametrize("how", ["stop", "lease", "term", "kill and clean"])
def test_an_agent_that_ends_early_restores(start: Start, here: Testbed, how: str, tmp_path: Path, machine: str) -> None:
    mode = {"sleep_ms": 500} if how == "stop" else {"mode": "hang"}
    agent = start(block_here(here, with_values(one("l1", **mode), {OF_MACHINE: "2"}), one("l2")))
    agent.until("launch_started")
    wait_until(lambda: MACHINE_FILE.read_text().strip() == "2")
    if how == "stop":
        agent.say(stop="enough")
        assert set(agent.records()) == {"l1"}
    elif how == "lease":
        assert agent.process.stdin
        agent.process.stdin.close()
    elif how == "term":
        agent.process.terminate()
    else:
        agent.process.kill()
    agent.process.wait(30)
    if how == "kill and clean":
        assert MACHINE_FILE.read_text().strip() == "2"
        assert clean(agent)["restored"] == [OF_MACHINE]
    assert MACHINE_FILE.read_text().strip() == machine
    assert not (tmp_path / "kernel").exists()


def test_one_campaign_at_a_time_sets_values_of_a_machine(
    start: Start, here: Testbed, tmp_path: Path, machine: str
) -> None:
    first = start(block_here(here, with_values(one("l1", mode="hang", deadline_ms=100000), {OF_MACHINE: "2"})))
    first.until("launch_started")
    wait_until(lambda: MACHINE_FILE.read_text().strip() == "2")
    block = block_here(here, with_values(one("l2"), {OF_MACHINE: "3"}), one("l3"))
    block["campaign_id"] = f"{CAMPAIGN}-2"
    second = Agent(block, "localhost", tmp_path / "second-host", first_build(first), [])
    found = second.records()
    assert (found["l2"]["status"], found["l2"]["reason_code"], found["l3"]["status"]) == ("failed", "SYSTEM", "done")
    assert found["l2"]["reason"] == "localhost: another campaign on this machine has set values of the kernel now"
    assert MACHINE_FILE.read_text().strip() == "2"
    second.close()
    first.process.terminate()
    first.process.wait(30)
    assert MACHINE_FILE.read_text().strip() == machine


def first_build(agent: Agent) -> Path:
    """Return the build that an agent was given."""
    words = [str(word) for word in agent.process.args]  # type: ignore[union-attr]
    return Path(words[words.index("--build") + 1])


@pytest.mark.skipif(not (BUILT / "layers/sockets-tcp.so").exists(), reason="nothing is built")
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("local", OF_MACHINE, "2"), pytest.param("emulated", OF_HOST, SMALL, marks=pytest.mark.long)],
)
def test_a_campaign_whose_controller_and_agents_are_killed_goes_on(
    request: pytest.FixtureRequest, state: Path, tmp_path: Path, kind: str, name: str, value: str
) -> None:
    assert state is not None
    host = "h1" if kind == "emulated" and request.getfixturevalue("emulated") else None
    before = values(host)
    launches = 9 if host else 2
    asked = ["--layers", "sockets-tcp", "--patterns", "stream", "--launches", f"{launches}", "--testbed", kind]
    asked += ["--places", "between" if host else "within", "--duration", "300ms", "--mode", "block", "--no-queue"]
    first = cadge(tmp_path, "ab", "default", f"{name}={value}", *asked)
    results = tmp_path / "results"

    def agents(number: int) -> None:
        signal_processes(number, tuple(path.name for path in results.iterdir()), "agent.pyz", "run")

    def stopped_while_set() -> bool:
        """Stop the agents where they have set the value, and the controller, which would clean up after them."""
        assert first.poll() is None
        if value not in values(host).split("; "):
            return False
        first.send_signal(signal.SIGSTOP)
        agents(signal.SIGSTOP)
        if value in values(host).split("; "):
            return True
        agents(signal.SIGCONT)
        first.send_signal(signal.SIGCONT)
        return False

    wait_until(stopped_while_set, 60)
    [campaign] = results.iterdir()
    agents(signal.SIGKILL)
    first.kill()
    first.communicate()
    wait_until(lambda: not processes(campaign.name), 60)
    assert value in values(host).split("; ")
    again = cadge(tmp_path, "resume", "--no-queue", "--no-report", "--fail-on", "slower", "--json")
    said, _ = again.communicate(timeout=300)
    assert values(host) == before
    answer = json.loads(said)
    found = [read_json(path) for path in sorted((campaign / "launches").glob("*.json"))]
    set_there = [one["kernel"] for one in found if one["launch"]["settings"]]
    hosts = ["h1", "h2"] if host else ["localhost"]
    old = before.split("; ")[0 if host else 1]
    one = {"before": {name: old}, "during": {name: value}, "after": {name: value}}
    assert set_there == [[{"host": each, **one} for each in hosts]] * launches
    assert not any("kernel" in one for one in found if not one["launch"]["settings"])
    [cell] = answer["data"]["comparison"]["pairs"]
    if host:
        assert cell["measured_ratio"] < 0.7
        withheld = answer["data"]["comparison"]["withheld"]  # where other work disturbed too many launches
        assert (cell["verdict"], answer["code"]) == (("cannot tell", 5) if withheld else ("slower", 8))


def cadge(folder: Path, *argv: str) -> subprocess.Popen[str]:
    """Start a command with a store, a queue and a home of its own: another campaign would restore what was left."""
    own = {"NO_COLOR": "1", "CADGE_LOCK": str(folder / "lock"), "HOME": str(folder)}
    words = [sys.executable, "-m", "cadge_cli.cli", *argv, "--results", str(folder / "results")]
    with (folder / "log").open("a") as log:
        return subprocess.Popen(words, env=os.environ | own, stdout=subprocess.PIPE, stderr=log, text=True)


def test_a_journal_of_an_earlier_boot_is_dropped(start: Start, here: Testbed, tmp_path: Path, machine: str) -> None:
    agent = start(block_here(here, with_values(one("l1", mode="hang"), {OF_MACHINE: "2"})))
    agent.until("launch_started")
    wait_until(lambda: MACHINE_FILE.read_text().strip() == "2")
    agent.process.kill()
    agent.process.wait(30)
    [journal] = (tmp_path / "kernel").iterdir()
    journal.rename(journal.with_name(journal.name.replace(".", ".0", 1)))
    MACHINE_FILE.write_text(machine)
    assert clean(agent)["restored"] == []
    assert not (tmp_path / "kernel").exists()
