# SPDX-License-Identifier: BSD-3-Clause
"""Agents that a test is the controller of."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed_helpers import AGENT, make_block, make_launch

from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed
from cadge_results import Block
from cadge_results.formats.event import read_event

Json = dict[str, Any]
CAMPAIGN = f"c{os.getpid()}"
"""Of this worker's own: an agent ends what it finds of its campaign on its host, and here all workers are on one."""


class Agent:
    """An agent process that this test is the controller of."""

    def __init__(self, block: Json, host: str, work: Path, build: Path, prefix: list[str]) -> None:
        self.work = work
        work.mkdir(exist_ok=True)
        (work / "token").touch(mode=0o600)
        (work / "token").write_text("known to these tests alone\n")
        (work / "block.json").write_text(json.dumps(block))
        argv = [sys.executable, str(AGENT), "run", "--block", str(work / "block.json"), "--host", host]
        argv += ["--work", str(work), "--build", str(build)]
        self.process = subprocess.Popen([*prefix, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events: list[Json] = []

    def say(self, **message: object) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def read(self) -> Iterator[Json]:
        """Events, acknowledging records."""
        assert self.process.stdout
        for line in self.process.stdout:
            event = json.loads(line)
            read_event(line, source="the agent")  # as the controller does
            self.events.append(event)
            if event["event"] == "launch_record":
                self.say(ack=event["launch_id"])
            yield event

    def until(self, kind: str) -> Json:
        return next(event for event in self.read() if event["event"] == kind)

    def records(self) -> dict[str, Json]:
        """Run to the end; returns the records by launch."""
        for _ in self.read():
            pass
        self.process.wait(30)
        return {e["launch_id"]: e["record"] for e in self.events if e["event"] == "launch_record"}

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        argv = [sys.executable, str(AGENT), "clean", "--work", str(self.work), "--campaign", CAMPAIGN]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, timeout=60)


Start = Callable[..., Agent]


def block_here(here: Testbed, *launches: Json, deadline_s: float = 120) -> Json:
    first = random.randrange(20000, 30000)
    block = make_block(here, CAMPAIGN, "b1", list(launches), deadline_s)
    block = {**block, "ports": [first, first + 99]}
    Block.from_object(block, source="a block of these tests")
    return block


def one(name: str, **settings: object) -> Json:
    return make_launch(name, ["localhost", "localhost"], **settings)


def agents_of(block: Json, start: Start, build: Path | None) -> list[Agent]:
    """Start the agents of a block on its emulated hosts, the leader first."""
    if os.geteuid() != 0:
        pytest.skip("enters the hosts' namespaces directly, as root")
    supervisor = testbeds.status()["pid"]
    names = [host["name"] for host in block["hosts"]]
    inside = {name: ["nsenter", "-t", str(host_process(supervisor, name)), "--net", "--uts", "--"] for name in names}
    return [start(block, name, inside[name], build) for name in names]


def host_process(supervisor: int, host: str) -> int:
    """A process of an emulated host, seen from outside."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    for child in children:
        name = subprocess.run(["nsenter", "-t", child, "--uts", "hostname"], capture_output=True, text=True, check=True)
        if name.stdout.strip() == host:
            return int(child)
    raise AssertionError(f"no process of {host}")


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.05)
