# SPDX-License-Identifier: BSD-3-Clause
"""What the agent finds wrong with a host before anybody measures there."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent.faults import FaultError  # type: ignore[import-not-found, unused-ignore]
from cadge_agent.host import build, fit, ports  # type: ignore[import-not-found, unused-ignore]
from cadge_agent.host.facts import programs  # type: ignore[import-not-found, unused-ignore]
from cadge_results import NodeFacts
from cadge_results.formats.event import HostReport, read_event

HERE = {
    "name": "n1",
    "device": "lo",
    "address": "127.0.0.1",
    "raw_device": "",
    "cpus": [],
    "management_address": "127.0.0.1",
}


def texts(found: Any) -> list[str]:  # noqa: ANN401 - faults of the agent
    return [one["text"] for one in found]


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that a program listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        yield listener.getsockname()[1]


def test_a_build_for_a_newer_libc_names_the_newest_version_that_is_missing(tmp_path: Path) -> None:
    """The loader has a line for each version, with two paths in it."""
    driver = tmp_path / "bin/cadge-driver"
    driver.parent.mkdir()
    lines = [f"{driver}: /lib/libc.so.6: version `GLIBC_2.{n}' not found (required by {driver})" for n in (4, 34, 33)]
    driver.write_text("#!/bin/sh\ncat >&2 <<'END'\n" + "\n".join(lines) + "\nEND\nexit 1\n")
    driver.chmod(0o755)
    with pytest.raises(FaultError) as refused:
        build.ask_driver("n1", tmp_path, "")
    libc = r"glibc [0-9.]+|"  # Python may not know it
    found = refused.value.fault
    assert re.fullmatch(rf".+ does not run on n1: it needs GLIBC_2\.34, and the libc there is ({libc})", found["text"])
    assert found["fix"] == build.OLDEST


def test_threads_of_one_core_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the inventory gives both to endpoints, and another core is left."""
    for cpu in range(6):
        core = tmp_path / f"cpu{cpu}/topology"
        core.mkdir(parents=True)
        (core / "thread_siblings_list").write_text(f"{cpu % 3},{cpu % 3 + 3}\n")
    monkeypatch.setattr(fit, "PROCESSORS", tmp_path)
    monkeypatch.setattr(fit.os, "sched_getaffinity", lambda _pid: set(range(6)))
    monkeypatch.setattr(fit, "quota", lambda: None)
    assert texts(fit.processor_faults({**HERE, "cpus": [0, 1, 2]})) == []
    (found,) = fit.processor_faults({**HERE, "cpus": [0, 1, 3]})
    said = "n1: processors 0 and 3 are threads of one core: two endpoints there slow each other down"
    assert (found["level"], found["text"]) == ("warn", said)
    assert texts(fit.processor_faults({**HERE, "cpus": [0, 1, 2, 3]})) == [], "there is no core left to take"


def test_devices() -> None:
    assert texts(fit.network_faults(HERE)) == []
    found = fit.network_faults({**HERE, "device": "no0", "raw_device": "no1"})
    assert [(one["level"], one["text"].partition(";")[0]) for one in found] == [
        ("fail", "n1 has no device no0"),
        ("warn", "n1 has no device no1"),
    ]


def test_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2, 3, 8})
    assert texts(fit.processor_faults({**HERE, "cpus": [2, 8]})) == []
    (one,) = fit.processor_faults({**HERE, "cpus": [2, 5, 9]})
    assert one["text"] == "n1 has no processors 5, 9 for this user; it has 0-3, 8"
    assert one["fix"] == "Set its cadge_cpus in the inventory"


def test_programs_beside_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "made-up"
    own.touch(0o755)
    monkeypatch.setattr("cadge_agent.host.facts.SYSTEM_PATH", f"{tmp_path}:/usr/bin:/bin")
    said = programs(["made-up", "never-heard-of", "sh"])
    assert said["never-heard-of"] == {"unknown": "not found"}
    assert said["made-up"] == {"version": {"unknown": "no package"}, "file": str(own), "build_id": None}
    assert said["sh"]["file"] == str(Path("/bin/sh").resolve())
    if shutil.which("dpkg-query"):
        assert said["sh"]["version"].startswith("dash "), "Debian's, with the version of its package"
    assert programs([]) == {}


def test_ports_that_others_have(taken: int) -> None:
    assert ports.taken_ports(["127.0.0.1"], taken, taken) == [taken]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        number = datagrams.getsockname()[1]
        assert number in ports.taken_ports(["127.0.0.1"], number, number)
    assert ports.taken_ports(["192.0.2.1"], taken, taken) == [], "an address of nobody's has no ports"


def test_ports_that_a_launch_cannot_do_without() -> None:
    def said(taken: list[int]) -> list[str]:
        return texts(ports.port_faults("n1", taken, 18600, 18699))

    assert said([]) == said([18600, 18692, 18699]) == []
    assert said([18692, 18693, 18694, 18695]) == ["n1: other programs have all of the ports 18692-18695"]
    assert said([18696, 18697, 18698, 18699]) == ["n1: other programs have all of the ports 18696-18699"]
    assert said(list(range(18600, 18669))) == [
        "n1: other programs have 69 of the ports 18600-18699; 23 are left for layers"
    ]


def test_a_stranger_that_drips_holds_no_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "REACH_S", 0.5)

    def drip() -> None:
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError):
            while True:
                peer.sendall(b"c")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, daemon=True).start()
        target = {"host": "n2", "address": "127.0.0.1", "port": listener.getsockname()[1], "variable": "cadge_address"}
        begun_s = time.monotonic()
        (said,) = texts(ports.reach("n1", [target])["faults"])
    assert "no answer" in said
    assert time.monotonic() - begun_s < 8, "256 letters would take 12.8 s"


def test_hosts_are_reached_by_their_names(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "REACH_S", 0.2)
    greeters = ports.Greeters("n2")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = greeters.listen("127.0.0.1", range(free.getsockname()[1] + 1, free.getsockname()[1] + 50))
        closed = free.getsockname()[1]
    try:
        with pytest.raises(OSError, match="assign"):
            greeters.listen("192.0.2.1", range(port, port + 1))
        assert greeters.listen("127.0.0.1", range(taken, taken + 1)) == 0

        def target(host: str, number: int) -> dict[str, Any]:
            return {"host": host, "variable": "cadge_address", "address": "127.0.0.1", "port": number}

        said = ports.reach("n1", [target("n2", port), target("n3", port), target("n4", closed), target("n5", taken)])
    finally:
        greeters.close()
    assert said["reached"] == ["n2"]
    assert texts(said["faults"]) == [
        f"n1 finds another host or program than n3 at 127.0.0.1, port {port}",
        f"n1 does not reach n4 at 127.0.0.1, port {closed}: connection refused",
        f"n1 does not reach n5 at 127.0.0.1, port {taken}: no answer within 0 s",
    ]
    assert said["faults"][1]["fix"] == (
        "Open the ports of the inventory between these hosts, or set cadge_address of n4 in the inventory"
    )


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (None, r"n1 has no build: there is no .*/bin/cadge-driver"),
        (b"\x7fELF\x02\x01\x01" + bytes(57), r"the build is for another kind of machine than n1, which is "),
        (b"#!/bin/sh\necho libone.so.1 is missing >&2\nexit 127\n", r"does not run on n1: libone.so.1 is missing$"),
        (b"#!/bin/sh\nkill -9 $$\n", r"does not run on n1: exit status -9$"),
        (b"#!/bin/sh\necho hello\n", r"is not a driver of this tool: it answered 'hello\\n'$"),
        (b"#!/bin/sh\necho 3\n", r"is not a driver of this tool: it answered '3\\n'$"),
    ],
)
def test_a_driver_that_does_not_start(driver: bytes | None, said: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    if driver is not None:
        (tmp_path / "bin/cadge-driver").write_bytes(driver)
        (tmp_path / "bin/cadge-driver").chmod(0o755)
    with pytest.raises(FaultError) as refused:
        build.ask_driver("n1", tmp_path, "")
    text = refused.value.fault["text"]
    assert re.search(said, text), text
    assert refused.value.fault["fix"]


def test_layers_that_cannot_be_loaded() -> None:
    good = {"trouble": None, "library": "One", "version": "1"}
    lacks = {**good, "trouble": "layer 'b' cannot be loaded: libb.so: cannot open shared object file"}
    (one,) = build.layer_faults("n1", {"a": good, "b": lacks, "c": {**lacks}})
    assert (one["level"], one["text"]) == ("warn", "n1 cannot use b, c: libb.so: cannot open shared object file")
    assert [one["level"] for one in build.layer_faults("n1", {"b": lacks, "c": {**good, "trouble": "x"}})] == [
        "fail"
    ] * 2


@pytest.mark.parametrize(("folder", "removed"), [("look-12ab-n1", True), ("a user's", False)])
def test_a_look_whose_controller_is_gone_leaves_nothing(folder: str, removed: bool, tmp_path: Path) -> None:
    """Nobody else would remove its folder then; any other folder stays whatever it is told."""
    work = tmp_path / folder
    work.mkdir()
    (work / "hosts.json").write_text(json.dumps({"hosts": [HERE], "ports": [18600, 18699], "programs": []}))
    argv = [sys.executable, str(Path(ports.__file__).parents[2]), "look", "--host", "n1", "--work", str(work)]
    argv += ["--hosts", str(work / "hosts.json"), "--build", str(work / "build")]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (5, "agent: the controller's lease ended\n")
    assert work.exists() != removed
    looked = read_event(done.stdout, source="the agent")
    assert isinstance(looked, HostReport)
    assert NodeFacts.from_object(looked.node, source="facts").host == "n1"
    assert looked.driver is None
    assert [fault.about for fault in looked.faults] == ["build"]
