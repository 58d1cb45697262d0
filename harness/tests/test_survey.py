# SPDX-License-Identifier: BSD-3-Clause
"""The controller's part of looking at hosts: it asks in order, and has deadlines of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cadge_harness.run import survey as module
from cadge_harness.run.lease import LeaseServer, Peer
from cadge_harness.run.survey import Survey, survey
from cadge_harness.testbed.model import Testbed
from cadge_results.formats.event import Event

from .conftest import make_testbed

Json = dict[str, Any]


class FakeAgent(threading.Thread):
    """Speaks as the agent of a host does; a frozen one says hello and nothing more."""

    def __init__(self, path: Path, host: str, *, frozen: bool = False, ahead_ns: int = 0) -> None:
        super().__init__(daemon=True)
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(str(path))
        self.host, self.frozen, self.ahead_ns = host, frozen, ahead_ns
        self.orders: list[str] = []
        self.ended = ""

    def say(self, **line: object) -> None:
        self.connection.sendall((json.dumps(line) + "\n").encode())

    def run(self) -> None:
        self.say(hello="agent", host=self.host, block_id="look")
        if not self.frozen:
            greets = {"cadge_address": 18696, "cadge_management_address": 18697, "nonsense": 1}
            said = {"build": "/b", "driver": None, "layers": {}, "taken_ports": [], "faults": [], "node": {}}
            self.say(event="looked", host="another", greets=greets, **said)
        with self.connection, self.connection.makefile() as lines:
            self.ended = "stopped" if any(map(self.obey, lines)) else "its lease ended"

    def obey(self, line: str) -> bool:
        """Do what the controller says; returns whether that was to stop."""
        order = json.loads(line)
        (what,) = order
        self.orders.append(what)
        if what == "clock":
            now_ns = time.time_ns() + self.ahead_ns
            self.say(event="clock", host=self.host, number=order["clock"], realtime_ns=now_ns)
        elif what == "reach":
            self.reach = order["reach"]
            self.say(event="reached", host=self.host, reached=[], faults=[])
        return str(what) == "stop"


Script = Callable[[Path], None]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Testbed, Script], Survey]:
    """Look at hosts with a script in Ansible's place, which is given the lease's socket."""

    def surveyed(testbed: Testbed, script: Script) -> Survey:
        def play(
            _testbed: Testbed,
            names: list[str],
            given: Mapping[str, object],
            work: Path,
            *,
            on_event: Callable[[Peer, Event], None],
            on_gone: Callable[[Peer], None],
            serve: Callable[[LeaseServer, subprocess.Popen[bytes]], None],
        ) -> int:
            assert names == ["look"]
            assert str(given["cadge_campaign"]).startswith("look-")
            (work / "ansible.log").write_text("first words\nlast words\n\n")
            server = LeaseServer(tmp_path / "lease", on_event, on_gone)
            process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
            server.watch_process(process.pid)

            def run() -> None:
                script(tmp_path / "lease")
                assert process.stdin
                process.stdin.close()

            thread = threading.Thread(target=run)
            thread.start()
            serve(server, process)
            thread.join(10)
            server.close()
            return process.wait(10)

        monkeypatch.setattr(module, "play", play)
        build = tmp_path / "build"
        (build / "bin").mkdir(parents=True)
        (build / "bin/cadge-driver").touch()
        return survey(testbed, build)

    return surveyed


def ansible(path: Path, *events: Json) -> socket.socket:
    """Speak as Ansible does."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    for event in events:
        connection.sendall((json.dumps(event) + "\n").encode())
    return connection


LOOK: Json = {"event": "task", "name": module.LOOK_TASK}


def test_a_frozen_host_holds_up_no_other(
    played: Callable[[Testbed, Script], Survey], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.3)
    agents: list[FakeAgent] = []

    def script(lease: Path) -> None:
        with ansible(lease, LOOK):
            agents.extend([FakeAgent(lease, "h1"), FakeAgent(lease, "h2", frozen=True)])
            agents.append(FakeAgent(lease, "h3", ahead_ns=5_000_000_000))
            for agent in agents:
                agent.start()
            for agent in agents:
                agent.join(10)

    begun_s = time.monotonic()
    found = played(make_testbed(hosts=3), script)
    assert time.monotonic() - begun_s < 5
    assert sorted(found.looked) == ["h1", "h3"], "whatever a host calls itself"
    assert [agent.ended for agent in agents] == ["stopped", "its lease ended", "stopped"]
    assert agents[0].orders == agents[2].orders == ["clock"] * 5 + ["reach", "stop"]
    assert [(one["host"], one["variable"], one["address"], one["port"]) for one in agents[0].reach] == [
        ("h3", "cadge_address", "198.19.0.13", 18696),
        ("h3", "cadge_management_address", "198.18.0.13", 18697),
    ]
    (fault,) = found.faults["h2"]
    assert (fault.about, fault.level) == ("login", "fail")
    assert (fault.text, fault.fix) == (
        "h2 logs in, but gave no answer for 0 s",
        "Check once by hand: ssh h2 true",
    )
    assert abs(found.offsets["h1"].offset_ns) <= found.offsets["h1"].error_ns
    assert abs(found.offsets["h3"].offset_ns - 5_000_000_000) <= found.offsets["h3"].error_ns < 1_000_000_000


def test_what_ansible_says_of_hosts_that_it_does_not_get_to(played: Callable[[Testbed, Script], Survey]) -> None:
    def failed(host: str, task: str, message: str, event: str = "failed") -> Json:
        return {"event": event, "host": host, "task": task, "message": message}

    def script(lease: Path) -> None:
        denied = "Task failed: alice@h1: Permission denied (publickey)."
        with ansible(
            lease,
            failed("h1", module.PYTHON_TASK, denied, "unreachable"),
            failed("h2", module.PYTHON_TASK, "/usr/bin/python3 is Python 3.6.8"),
            failed("h3", module.PYTHON_TASK, "there is no \x1b[31mpython3"),
            failed("h4", "Unpack what is brought", "No space left on device"),
            failed("h4", module.REMOVE_TASK, "time is up"),
        ):
            pass

    found = played(make_testbed(hosts=5), script)
    said = {host: [(one.about, one.level, one.text) for one in faults] for host, faults in found.faults.items()}
    assert said == {
        "h1": [("login", "fail", "h1 refuses the login: permission denied")],
        "h2": [("python", "fail", "h2: /usr/bin/python3 is Python 3.6.8, and 3.9 or later is needed")],
        "h3": [("python", "fail", r"h3: there is no \x1b[31mpython3")],
        "h4": [
            ("build", "fail", "the disk of h4 is full: No space left on device (task 'Unpack what is brought')"),
            ("login", "warn", "h4: a folder of Cadge's stays in ~/.cache/cadge there: time is up"),
        ],
        "h5": [("login", "fail", "h5 was not looked at: last words")],
    }
    assert all(one.fix for faults in found.faults.values() for one in faults)
