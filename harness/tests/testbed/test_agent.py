# SPDX-License-Identifier: BSD-3-Clause
"""The agent by itself, with a driver that measures nothing, on this machine or on two emulated hosts."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import CAMPAIGN, Agent, Start, agents_of, block_here, host_process, one, wait_until
from testbed_helpers import AGENT, BUILT, make_block, make_launch, processes, read_json, real_launch, ring_launch

from cadge_harness.run.crosscheck import crosschecks
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed
from cadge_results import LaunchRecord

Json = dict[str, Any]


def test_launches_are_made_stored_and_reported(start: Start, here: Testbed, tmp_path: Path) -> None:
    agent = start(block_here(here, one("l1"), make_launch("l2", ["localhost"]), one("l3", mode="refuse")))
    records = agent.records()
    assert agent.process.returncode == 0
    assert [e["event"] for e in agent.events] == [
        "ready",
        *["launch_started", "launch_finished", "launch_record"] * 3,
        "block_finished",
    ]
    assert {name: record["status"] for name, record in records.items()} == {"l1": "done", "l2": "done", "l3": "refused"}
    assert records["l1"]["exit_codes"] == [0, 0]
    assert records["l2"]["exit_codes"] == [0]
    assert records["l3"]["reason"] == "it does not want to"
    assert records["l3"]["reason_code"] == "NO_CAP"
    assert (
        records["l1"]["counters"][0]["after"]["lo"]["tx_bytes"]
        > records["l1"]["counters"][0]["before"]["lo"]["tx_bytes"]
    )
    assert records["l1"]["link"][0]["before"]["xdp"] is False
    assert set(records["l1"]["link"][0]["after"]["offloads"]) >= {"tso", "gso", "gro"}
    for name, record in records.items():
        assert read_json(tmp_path / "localhost" / "collected" / f"{name}.json") == record
    assert list((tmp_path / "localhost" / "done").iterdir()) == []
    assert list((tmp_path / "localhost" / "logs").iterdir()) == []


def test_finished_launches_are_not_made_again(start: Start, here: Testbed, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    block = block_here(here, one("l1", pidfile=ledger), one("l2", pidfile=ledger))
    start({**block, "launches": block["launches"][:1]}).records()
    ran = ledger.read_text().split()
    agent = start(block)
    records = agent.records()
    assert set(records) == {"l1", "l2"}
    kept = {e["launch_id"]: e["kept"] for e in agent.events if e["event"] == "launch_finished"}
    assert kept == {"l1": True, "l2": False}
    assert agent.events[0]["todo"] == 1
    assert ledger.read_text().split()[: len(ran)] == ran
    assert len(ledger.read_text().split()) == 2 * len(ran)


def test_a_record_that_nobody_acknowledged_stays_done(start: Start, here: Testbed, tmp_path: Path) -> None:
    agent = start(block_here(here, one("l1")))
    assert agent.process.stdout
    for line in agent.process.stdout:
        if json.loads(line)["event"] == "launch_record":
            break
    agent.close()
    assert read_json(tmp_path / "localhost" / "done" / "l1.json")["status"] == "done"


@pytest.mark.parametrize(
    ("mode", "status", "code", "reason"),
    [
        ("crash", "failed", "PEER_LOST", r"endpoint 1 ended early by signal 6 \(SIGABRT\)"),
        ("hang", "failed", "DEADLINE", "did not end within 1000 ms"),
        ("silent", "failed", "LIBRARY", "ended with exit status 0 and left no result"),
    ],
)
@pytest.mark.first(1)
def test_a_launch_that_goes_wrong_says_how(
    start: Start, here: Testbed, mode: str, status: str, code: str, reason: str
) -> None:
    agent = start(block_here(here, one("bad", mode=mode, deadline_ms=1000), one("good")))
    records = agent.records()
    assert (records["bad"]["status"], records["bad"]["reason_code"]) == (status, code)
    assert re.search(reason, records["bad"]["reason"])
    assert records["good"]["status"] == "done"


@pytest.mark.parametrize(
    ("mode", "who", "code"), [("late_crash", 1, -6), ("late_exit", 1, 9), ("late_crash", 0, -6), ("late_exit", 0, 9)]
)
@pytest.mark.first(1)
def test_an_endpoint_that_ends_badly_after_its_results_is_not_valid(
    start: Start, here: Testbed, mode: str, who: int, code: int
) -> None:
    record = start(block_here(here, one("l1", mode=mode, who=who))).records()["l1"]
    assert record["status"] == "done"
    assert record["exit_codes"][who] == code
    assert judged(record)["ended_well"].startswith(f"endpoint {who} ended ")


def judged(record: Json) -> dict[str, str]:
    """What the controller says of a record of the fake driver, by check; "" where it is content."""
    facts = {"version": "0", "abi": 1, "revision": "r", "compiler": "c"}
    known = {key: value for key, value in record["result"].items() if key != "pid"}
    launch = {key: record["launch"][key] for key in ("kind", "layer", "place", "wait", "seed")}
    result = {**known, **launch, "driver": facts, "started_utc": "2026-11-21T03:00:00Z", "wall_ns": 1}
    found = LaunchRecord.from_object({**record, "result": result}, source="a record of the agent")
    return {check.name: check.detail for check in crosschecks(found)}


def test_counters_that_cannot_be_had_are_named(start: Start, here: Testbed) -> None:
    block = block_here(here, one("l1"))
    block["hosts"][0].update(device="absent0", raw_device="absent1")
    record = start(block).records()["l1"]
    (counters,) = record["counters"]
    assert counters["uncounted"] == ["absent0: there is no such interface", "absent1: there is no such interface"]
    assert "absent0" in judged(record)["counters_read"]


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "127.0.1.1"])
@pytest.mark.first(1)
def test_a_management_network_may_be_named(start: Start, here: Testbed, address: str) -> None:
    block = block_here(here, one("l1"))
    block["hosts"][0]["management_address"] = address
    record = start(block).records()["l1"]
    assert record["status"] == "done"
    assert record["counters"][0]["uncounted"] == []
    assert judged(record)["counters_read"] == ""


def test_a_layer_that_was_not_built_is_refused_with_the_builds_reason(start: Start, here: Testbed) -> None:
    record = start(block_here(here, one("l1", layer="lost"))).records()["l1"]
    assert (record["status"], record["reason_code"]) == ("refused", "BUILD_ABSENT")
    assert "pkg-config knows no package named lost" in record["reason"]


def test_a_launcher_that_nobody_knows_is_refused(start: Start, here: Testbed, tmp_path: Path) -> None:
    strange = launcher_at(tmp_path / "mpirun", {**OPEN_MPI, "SAYS": "Some other MPI 1.0"})
    block = block_here(here, {**one("l1"), "launcher": "mpirun"})
    record = start({**block, "mpirun": {"path": str(strange), "options": []}}).records()["l1"]
    assert record["reason_code"] == "NODE_LACKS"
    assert "is neither Open MPI nor HYDRA nor slurm; it says: Some other MPI 1.0" in record["reason"]


def test_mpirun_that_is_not_there_is_refused(start: Start, here: Testbed) -> None:
    block = block_here(here, {**one("l1"), "launcher": "mpirun"})
    record = start({**block, "mpirun": {"path": "no-such-mpirun", "options": []}}).records()["l1"]
    assert (record["status"], record["reason_code"]) == ("refused", "NODE_LACKS")


@pytest.mark.parametrize("who", [0, 1, 3])
@pytest.mark.first(1)
def test_a_launch_that_a_driver_refuses_to_read_is_a_fault_of_ours(start: Start, here: Testbed, who: int) -> None:
    record = start(block_here(here, many("l1", 4, mode="argument", who=who, deadline_ms=3000))).records()["l1"]
    assert (record["status"], record["reason_code"]) == ("failed", "ARGUMENT")
    assert record["reason"] == (
        f"a fault of cadge: endpoint {who} refused what it was given: "
        "cadge-driver: launch file: points[0]: rpc: depth: 8192 is more than 4096"
    )
    assert record["exit_codes"][who] == 2


def many(name: str, count: int, **settings: object) -> Json:
    return make_launch(name, ["localhost"] * count, **settings)


@pytest.mark.long
def test_one_path_for_one_endpoint_and_for_many(start: Start, here: Testbed, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    launches = [many("l1", 1, pidfile=pids), many("l5", 5, pidfile=pids), many("c5", 5, mode="crash", who=3)]
    records = start(block_here(here, *launches)).records()
    assert {name: record["status"] for name, record in records.items()} == {"l1": "done", "l5": "done", "c5": "failed"}
    assert len(pids.read_text().split()) == 6
    assert records["l5"]["exit_codes"] == [0] * 5
    assert records["l5"]["log_tail"] == [""] * 5
    assert records["c5"]["reason_code"] == "PEER_LOST"
    assert records["c5"]["reason"] == "endpoint 3 ended early by signal 6 (SIGABRT)"
    assert records["c5"]["exit_codes"][3] == -6


def test_drivers_are_of_one_session(start: Start, here: Testbed, tmp_path: Path) -> None:
    """The kernel may share processors out by session first, so that one endpoint would starve another."""
    pids = tmp_path / "pids"
    agent = start(block_here(here, many("l1", 2, mode="hang", pidfile=pids)))
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    found = [int(pid) for pid in pids.read_text().split()]
    assert {os.getsid(pid) for pid in found} == {os.getsid(agent.process.pid)}
    assert [os.getpgid(pid) for pid in found] == found
    agent.process.terminate()
    agent.process.wait(timeout=20)


@pytest.mark.long  # 64 programs in Python; the ring of 64 that sleep is the same with the real driver
def test_sixty_four_endpoints_on_a_host(start: Start, here: Testbed) -> None:
    record = start(block_here(here, many("l1", 64, deadline_ms=60000))).records()["l1"]
    assert (record["status"], record["reason"]) == ("done", None)
    assert record["exit_codes"] == [0] * 64
    first, last = record["launch"]["ports"]
    assert last - first >= 64


FAKE_MPIRUN = """#!/usr/bin/env python3
import json, os, subprocess, sys
argv = sys.argv[1:]
if argv == ["--version"]:
    sys.exit(print("SAYS"))
count = int(argv[argv.index("-n") + 1])
with open(sys.argv[0] + ".note", "w") as note:
    where = argv[argv.index("HOSTS") + 1] if "HOSTS" in argv else ""
    json.dump({"host": where, "script": argv[-1], "argv": argv[:-3], "environment": dict(os.environ)}, note)
ranks = [subprocess.Popen(argv[-3:], env={**os.environ, "RANK": str(rank)}) for rank in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
"""
OPEN_MPI = {"SAYS": "mpirun (Open MPI) 4.1.4", "HOSTS": "--host", "RANK": "OMPI_COMM_WORLD_RANK"}
HYDRA = {"SAYS": "HYDRA build details: 4.0.2", "HOSTS": "-hosts", "RANK": "PMI_RANK"}


def launcher_at(path: Path, said: dict[str, str]) -> Path:
    """Write a launcher that starts ranks and notes how it was spoken to; it starts them as one kind does."""
    text = FAKE_MPIRUN
    for word, means in said.items():
        text = text.replace(word, means)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("kind", "where"), [(OPEN_MPI, "localhost:5"), (HYDRA, "")], ids=["open-mpi", "hydra"])
def test_mpirun_starts_a_rank_for_each_endpoint(
    start: Start, here: Testbed, tmp_path: Path, kind: dict[str, str], where: str
) -> None:
    mpirun, note, pids = launcher_at(tmp_path / "mpirun", kind), tmp_path / "mpirun.note", tmp_path / "pids"
    block = block_here(here, {**many("l1", 5, pidfile=pids), "launcher": "mpirun"})
    agent = start({**block, "mpirun": {"path": str(mpirun), "options": []}})
    record = agent.records()["l1"]
    assert (record["status"], record["exit_codes"]) == ("done", [0, None, None, None, None])
    assert read_json(note)["host"] == where
    assert (
        record["started_by"] == f"{'HYDRA' if where == '' else 'Open MPI'} 4.{'0.2' if where == '' else '1.4'}, mpirun"
    )
    assert len(pids.read_text().split()) == 5


def test_a_taken_port_is_tried_once_more_elsewhere(start: Start, here: Testbed) -> None:
    block = block_here(here, one("l1"))
    first = block["ports"][0]
    block["launches"] = [
        {**one("l1", mode="busy_port", first_port=first), "campaign_id": CAMPAIGN},
        {**one("l2", mode="busy_port", first_port=0), "campaign_id": CAMPAIGN},
    ]
    records = start(block).records()
    assert records["l1"]["status"] == "done"
    assert records["l1"]["launch"]["ports"][0] > first
    assert records["l2"]["launch"]["ports"][0] == first


@pytest.mark.skipif(not (BUILT / "layers/sockets-tcp.so").exists(), reason="nothing is built")
def test_a_range_that_others_have_is_left_for_another(start: Start, here: Testbed) -> None:
    """With the real driver, which says so in its own words."""
    block = block_here(here, real_launch("l1", "sockets-tcp"))
    first, last = block["ports"]
    with contextlib.ExitStack() as taken:
        for port in range(first, first + (last - first) // 2 - 3):
            listener = taken.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):  # somebody else has it already
                listener.bind(("127.0.0.1", port))
                listener.listen(1)
        agent = start(block, build=BUILT)
        record = agent.records()["l1"]
    assert (record["status"], record["reason"]) == ("done", None)
    assert record["launch"]["ports"][0] > first
    stored = LaunchRecord.from_object(record, source="a record of the agent")
    assert stored.result
    assert [attempt.status for attempt in stored.result.attempts] == ["done"]


# what a driver itself starts outlives an agent that is killed, until the next check: see the test after this one
@pytest.mark.parametrize(
    ("how", "mode"),
    [("lease", "hang"), ("lease", "grandchild"), ("term", "hang"), ("term", "grandchild"), ("kill", "hang")],
)
@pytest.mark.first(1)
def test_everything_dies_with_the_lease(start: Start, here: Testbed, tmp_path: Path, how: str, mode: str) -> None:
    pids = tmp_path / "pids"
    agent = start(block_here(here, one("l1", mode=mode, pidfile=pids, sleep_ms=60000)))
    agent.until("launch_started")
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    if mode == "grandchild":
        wait_until(lambda: any("sleep 3600" in line for line in processes(f"{CAMPAIGN}:b1").values()))
    if how == "lease":
        assert agent.process.stdin
        agent.process.stdin.close()
    else:
        agent.process.send_signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
    agent.process.wait(10)
    assert agent.process.returncode == (-9 if how == "kill" else 5)
    wait_until(lambda: not processes(f"{CAMPAIGN}:b1"))
    assert not (tmp_path / "localhost" / "done" / "l1.json").exists()


def test_check_ends_what_a_killed_agent_left(start: Start, here: Testbed, tmp_path: Path, fake_build: Path) -> None:
    agent = start(block_here(here, one("l1", mode="grandchild", sleep_ms=60000)))
    agent.until("launch_started")
    wait_until(lambda: any("sleep 3600" in line for line in processes(f"{CAMPAIGN}:b1").values()))
    agent.process.kill()
    agent.process.wait(10)
    wait_until(lambda: all("sleep 3600" in line for line in processes(f"{CAMPAIGN}:b1").values()))
    assert processes(f"{CAMPAIGN}:b1")
    argv = [sys.executable, str(AGENT), "check", "--work", str(tmp_path / "localhost"), "--campaign", CAMPAIGN]
    argv += ["--host", "localhost", "--build", str(fake_build)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    wait_until(lambda: not processes(f"{CAMPAIGN}:b1"))
    assert json.loads(done.stdout)["revision"] == "fake"
    node = read_json(tmp_path / "localhost" / "node.json")
    assert node["schema"] == "cadge.node/1"
    assert node["kernel"]["release"] == os.uname().release
    assert node["interfaces"]["lo"]["xdp"] is False


def sysv_segments() -> set[int]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {int(line.split()[1]) for line in lines}


NO_NAMESPACES = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]


@pytest.mark.parametrize("kind", ["private", "folder"])
@pytest.mark.first(1)
def test_what_a_killed_driver_leaves_goes_and_what_others_keep_stays(
    start: Start, here: Testbed, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """Also files that are younger than the agent, that nobody maps, and that look like a library's."""
    if kind == "private":
        request.getfixturevalue("own_namespaces")
    elif os.geteuid() != 0:
        pytest.skip("takes a capability from root")
    note = tmp_path / "note"
    launch = one("l1", mode="shm", note=note, deadline_ms=1500)
    mine = [Path(f"/dev/shm/test-{os.getpid()}"), Path(f"/dev/shm/1:{os.geteuid()}:0-{os.getpid()}")]
    agent = start(block_here(here, launch), prefix=NO_NAMESPACES if kind == "folder" else None)
    try:
        agent.until("launch_started")
        for path in mine:
            path.write_text("kept")
        record = agent.records()["l1"]
        assert record["reason_code"] == "DEADLINE"
        assert record["shared_memory"][0]["kind"] == kind
        made = read_json(note)
        assert not any(Path(name).exists() for name in made["made"])
        assert made["segment"] not in sysv_segments()
        assert all(path.exists() for path in mine)
        said = [event["text"] for event in agent.events if event["event"] == "note"]
        assert bool(said) == (kind == "folder")  # what goes with its namespace was never in a place of the user's
        assert all(name in said[0] for name in made["made"] if said)
        assert not any(Path(folder).exists() for folder in record["shared_memory"][0]["variables"].values())
    finally:
        for path in mine:
            path.unlink(missing_ok=True)


def test_an_agent_outlives_the_loss_of_its_folder(start: Start, here: Testbed, tmp_path: Path) -> None:
    """As where something else tidies /dev/shm."""
    if os.geteuid() != 0:
        pytest.skip("takes a capability from root")
    agent = start(block_here(here, one("l1", mode="hang", deadline_ms=1500)), prefix=NO_NAMESPACES)
    agent.until("launch_started")
    folder = Path(read_json(tmp_path / "localhost" / "folders.json")[1])
    wait_until(lambda: any(folder.iterdir()))
    shutil.rmtree(folder)
    assert agent.records()["l1"]["reason_code"] == "DEADLINE"
    assert agent.process.returncode == 0


def test_shared_memory_is_shared_by_the_endpoints_of_a_host_and_outlives_no_kill(
    start: Start, here: Testbed, tmp_path: Path, own_namespaces: None
) -> None:
    del own_namespaces
    pids = tmp_path / "pids"
    agent = start(block_here(here, one("l1", mode="hang", pidfile=pids)))
    agent.until("launch_started")
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    own = {Path(f"/proc/{pid}/ns/mnt").readlink() for pid in [*pids.read_text().split(), "self"]}
    assert len(own) == 2, "the endpoints have one namespace, which is not ours"
    keeper = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()
    agent.process.kill()
    agent.process.wait(10)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in keeper))


def test_endpoints_have_the_agents_root_also_in_a_chroot(
    start: Start, here: Testbed, tmp_path: Path, fake_build: Path, own_namespaces: None
) -> None:
    """As in a machine that debootstrap made. Here the driver is in the chroot alone."""
    if os.geteuid() != 0:
        pytest.skip("takes chroot")
    del own_namespaces
    root = tmp_path / "root"
    root.mkdir()
    script = 'mount --rbind / "$0" && mount -t tmpfs none "$1" && shift && cd / && exec chroot "$0" "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, str(root), str(fake_build)]
    record = start(block_here(here, one("l1")), prefix=prefix).records()["l1"]
    assert (record["status"], record["log_tail"]) == ("done", ["", ""])
    assert record["shared_memory"][0]["kind"] == "private"


def test_a_lost_keeper_of_the_namespaces_is_replaced(
    start: Start, here: Testbed, tmp_path: Path, own_namespaces: None
) -> None:
    del own_namespaces
    pids = tmp_path / "pids"
    agent = start(block_here(here, one("l1", sleep_ms=1500, pidfile=pids), one("l2")))
    agent.until("launch_started")
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    children = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()
    keeper = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "cadge-keeper"]
    assert len(keeper) == 1
    os.kill(int(keeper[0]), signal.SIGKILL)
    records = agent.records()
    assert [(record["status"], record["reason"]) for record in records.values()] == [("done", None)] * 2


def test_a_user_without_rights_has_shared_memory_of_his_own(tmp_path: Path, here: Testbed, fake_build: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("becomes another user, as root")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    tried = subprocess.run([*user, "unshare", "--user", "--mount", "--ipc", "true"], check=False, capture_output=True)
    if tried.returncode != 0:
        pytest.skip(f"users cannot make namespaces here: {tried.stderr.decode().strip()}")
    del tmp_path
    folder = Path(tempfile.mkdtemp(prefix="ct-"))  # pytest's own is for root alone
    try:
        work, build = folder / "work", folder / "build"
        shutil.copytree(fake_build, build)
        shutil.copy(AGENT, folder / "agent.pyz")
        work.mkdir()
        (work / "token").write_text("secret\n")
        launches = [one("l1"), one("l2", mode="shm", note=work / "note", deadline_ms=1500)]
        (work / "block.json").write_text(json.dumps(block_here(here, *launches)))
        subprocess.run(["chown", "-R", "65534:65534", str(folder)], check=True)
        argv = [*user, "/usr/bin/python3", str(folder / "agent.pyz"), "run", "--block", str(work / "block.json")]
        argv += ["--host", "localhost", "--work", str(work), "--build", str(build)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
            assert agent.stdin
            assert agent.stdout
            records = {}
            for line in agent.stdout:
                event = json.loads(line)
                if event["event"] == "launch_record":
                    records[event["launch_id"]] = event["record"]
                    agent.stdin.write(json.dumps({"ack": event["launch_id"]}) + "\n")
                    agent.stdin.flush()
        assert [records[name]["shared_memory"][0]["kind"] for name in ("l1", "l2")] == ["private"] * 2
        assert (records["l1"]["status"], records["l2"]["reason_code"]) == ("done", "DEADLINE")
        assert not any(Path(name).exists() for name in read_json(work / "note")["made"])
    finally:
        shutil.rmtree(folder)


def test_stop_finishes_the_launch_that_runs(start: Start, here: Testbed) -> None:
    agent = start(block_here(here, one("l1", sleep_ms=500), one("l2")))
    agent.until("launch_started")
    agent.say(stop="enough")
    records = agent.records()
    assert agent.process.returncode == 0
    assert {name: record["status"] for name, record in records.items()} == {"l1": "done"}
    assert agent.events[-1]["stopped"] is True


def test_the_blocks_deadline_ends_it(start: Start, here: Testbed) -> None:
    agent = start(block_here(here, one("l1", mode="hang", deadline_ms=60000), deadline_s=2))
    agent.records()
    assert agent.process.returncode == 5
    assert not processes(f"{CAMPAIGN}:b1")


@pytest.mark.long
def test_an_agent_sleeps_while_a_launch_runs(start: Start, here: Testbed) -> None:
    agent = start(block_here(here, one("l1", sleep_ms=3000)))
    agent.until("launch_started")
    time.sleep(0.5)

    def switches() -> int:
        status = Path(f"/proc/{agent.process.pid}/status").read_text()
        return int(re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)[0])

    before = switches()
    time.sleep(1.5)
    assert switches() == before
    agent.records()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_is_said_and_the_record_still_arrives(
    start: Start, here: Testbed, tmp_path: Path, can_emulate: None
) -> None:
    del can_emulate
    done = tmp_path / "localhost" / "done"
    done.mkdir(parents=True)
    script = 'mount -t tmpfs -o size=4k tmpfs "$0" && head -c 4096 /dev/zero >"$0/full"; exec "$@"'
    agent = start(block_here(here, one("l1")), prefix=["unshare", "--mount", "sh", "-c", script, str(done)])
    records = agent.records()
    assert records["l1"]["status"] == "done"
    problems = [e["reason"] for e in agent.events if e["event"] == "problem"]
    assert any("No space left on device" in reason for reason in problems)


def test_a_bad_block_is_refused(start: Start, here: Testbed) -> None:
    agent = start({**block_here(here, one("l1")), "schema": "cadge.block/1"})
    agent.records()
    assert agent.process.returncode == 2


def test_a_management_address_of_nobody_is_no_taken_port(start: Start, here: Testbed) -> None:
    block = block_here(here, one("l1"))
    block["hosts"][0]["management_address"] = "192.0.2.1"
    agent = start(block)
    assert agent.records() == {}
    (reason,) = [event["reason"] for event in agent.events if event["event"] == "problem"]
    assert reason.startswith("localhost cannot listen at 192.0.2.1: Cannot assign requested address; set its")
    assert agent.process.returncode == 2


@pytest.mark.parametrize("what", ["launch", "block", "host", "endpoint"])
def test_a_name_that_leads_out_of_a_folder_is_refused(start: Start, here: Testbed, what: str, tmp_path: Path) -> None:
    block = block_here(here, one("l1"))
    if what == "launch":
        block["launches"][0]["launch_id"] = "../../l1"
    if what == "block":
        block["block_id"] = "b;1"
    if what == "host":
        block["hosts"].append({**block["hosts"][0], "name": "n1,n2"})
    if what == "endpoint":
        block["launches"][0]["endpoints"][1]["host"] = "n1:22\n"
    agent = start(block)
    assert agent.records() == {}
    assert agent.process.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["localhost"]


# ------------------------------------------------------------------------------------------------------------ two hosts


def test_two_hosts(pair: Callable[..., tuple[Agent, Agent]]) -> None:
    leader, follower = pair(
        make_launch("l1", ["h1", "h2"]),
        make_launch("l2", ["h1", "h1"]),
        make_launch("l3", ["h1", "h2"], mode="crash"),
        make_launch("l4", ["h1", "h2"]),
    )
    records = leader.records()
    follower.records()
    assert (leader.process.returncode, follower.process.returncode) == (0, 0)
    assert {n: r["status"] for n, r in records.items()} == {"l1": "done", "l2": "done", "l3": "failed", "l4": "done"}
    assert [c["host"] for c in records["l1"]["counters"]] == ["h1", "h2"]
    assert set(records["l1"]["counters"][1]["before"]) == {"data0", "mgmt0", "raw0", "lo"}
    assert records["l3"]["exit_codes"][1] == -6


@pytest.mark.long
def test_endpoints_of_two_hosts_in_turn(pair: Callable[..., tuple[Agent, Agent]]) -> None:
    hosts = ["h1", "h2", "h1", "h2", "h2"]
    leader, follower = pair(
        make_launch("l1", hosts),
        make_launch("l2", hosts, mode="crash", who=4),
        make_launch("l3", hosts, mode="argument", who=3, deadline_ms=3000),
    )
    records = leader.records()
    follower.records()
    assert records["l1"]["exit_codes"] == [0] * 5
    assert [count["host"] for count in records["l1"]["counters"]] == ["h1", "h2"]
    assert records["l2"]["reason"] == "endpoint 4 ended early by signal 6 (SIGABRT)"
    assert (records["l3"]["reason_code"], records["l3"]["exit_codes"][3]) == ("ARGUMENT", 2)


@pytest.fixture
def ring_build(tmp_path: Path) -> Path:
    """The real driver with the patterns of the tests."""
    if not (BUILT / "tests/cadge-driver").exists() or not (BUILT / "layers/sockets-tcp.so").exists():
        pytest.skip("the tests' driver is not built")
    (tmp_path / "ring/bin").mkdir(parents=True)
    (tmp_path / "ring/bin/cadge-driver").symlink_to(BUILT / "tests/cadge-driver")
    (tmp_path / "ring/layers").symlink_to(BUILT / "layers")
    return tmp_path / "ring"


def check_ring(record: Json, count: int) -> None:
    assert (record["status"], record["reason"]) == ("done", None)
    assert record["exit_codes"] == [0] * count
    stored = LaunchRecord.from_object(record, source="a record of the agent")
    assert stored.result
    assert [attempt.status for attempt in stored.result.attempts] == ["done"]
    assert len(stored.result.endpoints) == count


@pytest.mark.long
def test_a_ring_of_eight_that_sleep_on_four_hosts(
    own_state: Path, start: Start, ring_build: Path, request: pytest.FixtureRequest
) -> None:
    del own_state
    used = testbeds.resolve("emulated", hosts=4)
    request.addfinalizer(lambda: testbeds.release(used))
    names = [host.name for host in used.hosts]
    block = make_block(used, CAMPAIGN, "b1", [ring_launch("l8", used, names * 2)])
    leader, *followers = agents_of(block, start, ring_build)
    record = leader.records()["l8"]
    for follower in followers:
        follower.records()
        assert follower.process.returncode == 0
    check_ring(record, 8)
    assert [end["host"] for end in record["launch"]["endpoints"]] == names * 2 == ["h1", "h2", "h3", "h4"] * 2
    assert len({end["pid"] for end in record["result"]["endpoints"]}) == 8
    assert [count["host"] for count in record["counters"]] == names
    for count in record["counters"]:
        assert count["after"]["data0"]["rx_bytes"] > count["before"]["data0"]["rx_bytes"], count["host"]


@pytest.mark.long  # the ring of eight sees that too
def test_a_ring_of_sixty_four_that_sleep_on_one_host(start: Start, here: Testbed, ring_build: Path) -> None:
    record = start(block_here(here, ring_launch("l64", here, ["localhost"] * 64)), build=ring_build).records()["l64"]
    check_ring(record, 64)
    first, last = record["launch"]["ports"]
    assert last - first >= 64


@pytest.mark.skipif(
    shutil.which("mpirun") is None or not (BUILT / "layers/mpi-p2p.so").exists(), reason="there is no MPI here"
)
def test_a_ring_of_ranks_under_mpirun_itself(start: Start, here: Testbed, ring_build: Path) -> None:
    ranks = {"layer": "mpi-p2p", "launcher": "mpirun", "wait": "poll"}
    record = start(
        block_here(here, {**ring_launch("m3", here, ["localhost"] * 3), **ranks}), build=ring_build
    ).records()
    assert (record["m3"]["status"], record["m3"]["reason"]) == ("done", None), record["m3"]["log_tail"]
    assert [end["role"] for end in record["m3"]["result"]["endpoints"]] == ["node"] * 3
    assert record["m3"]["exit_codes"] == [0, None, None]


@pytest.mark.parametrize("kind", [OPEN_MPI, HYDRA], ids=["open-mpi", "hydra"])
def test_ranks_go_to_the_hosts_of_their_endpoints(
    pair: Callable[..., tuple[Agent, Agent]], emulated: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    kind: dict[str, str],
) -> None:  # fmt: skip
    """mpirun fills one host after the other. Their names are in a file of the testbed's ssh, which it has not here."""
    note = tmp_path / "mpirun.note"
    launcher_at(tmp_path / "mpirun", kind)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    leader, follower = pair({**make_launch("l1", ["h1", "h2", "h1", "h2"]), "launcher": "mpirun"})
    leader.records()
    follower.records()
    said = read_json(note)
    assert said["host"] == ",".join(f"{host.management_address}:2" for host in emulated.hosts[:2])
    assert said["script"].startswith(f"set -- 0 2 1 3; shift ${kind['RANK']}; ")
    assert re.search(r"0\|2\) .* exec .* 1\|3\) .* exec ", said["script"])


def test_a_host_that_no_launch_needs_waits_for_nobody(pair: Callable[..., tuple[Agent, Agent]]) -> None:
    """What is left of a block may be on one of its hosts alone."""
    launches = (make_launch("l0", ["h1", "h2"]), make_launch("l1", ["h1", "h1"]), make_launch("l2", ["h1"]))
    leader, follower = pair(*launches, done=1)
    begun_s = time.monotonic()
    assert set(leader.records()) == {"l1", "l2"}
    follower.records()
    assert (leader.process.returncode, follower.process.returncode) == (0, 0)
    assert time.monotonic() - begun_s < 30


@pytest.mark.parametrize("victim", ["leader", "follower"])
def test_the_loss_of_one_host_ends_the_other(pair: Callable[..., tuple[Agent, Agent]], victim: str) -> None:
    leader, follower = pair(make_launch("l1", ["h1", "h2"], mode="hang"))
    leader.until("launch_started")
    wait_until(lambda: len([line for line in processes(f"{CAMPAIGN}:b1").values() if "cadge-driver" in line]) >= 2)
    lost, left = (leader, follower) if victim == "leader" else (follower, leader)
    lost.process.kill()
    left.records()
    assert left.process.returncode == 4
    wait_until(lambda: not processes(f"{CAMPAIGN}:b1"))


def test_a_follower_obeys_nobody_without_the_token(pair: Callable[..., tuple[Agent, Agent]], tmp_path: Path) -> None:
    leader, follower = pair(make_launch("l1", ["h1", "h2"]))
    leader.close()
    follower.until("ready")
    (tmp_path / "h1" / "token").write_text("another\n")
    block = read_json(tmp_path / "h1" / "block.json")
    code = (
        "import json, pathlib, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from cadge_agent import errors, reactor\nfrom cadge_agent.fleet import auth\n"
        "block = json.loads(pathlib.Path(sys.argv[2]).read_text()); auth.CONNECT_S = 2\n"
        "try:\n"
        "    auth.connect_follower(block['hosts'][1], block, b'another', reactor.Reactor(30))\n"
        "except errors.HostLostError as error:\n"
        "    print(error); sys.exit(0)\n"
        "sys.exit(1)\n"
    )
    path = tmp_path / "h1" / "block.json"
    assert block["hosts"][1]["name"] == "h2"
    inside = ["nsenter", "-t", str(host_process(testbeds.status()["pid"], "h1")), "--net", "--"]
    argv = [*inside, sys.executable, "-c", code, str(AGENT), str(path)]
    stranger = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert stranger.stdout
    with stranger.stdout:
        said = stranger.stdout.read()
    assert stranger.wait(60) == 0
    assert "it holds another token" in said
    if stranger.stdin:
        stranger.stdin.close()
    assert follower.process.poll() is None
