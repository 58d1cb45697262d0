# SPDX-License-Identifier: BSD-3-Clause
"""Who has no token ends no agent and keeps no leader out, whatever he sends or does not send, on either side."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

AGENT = Path(__file__).parents[1] / "agent"
TOKEN = b"known to these tests alone"
BLOCK = "b1"
_HEX = "0123456789abcdef" * 4


def lines_of(*messages: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in messages)


def _hello(nonce: object = _HEX[:32]) -> dict[str, object]:
    from cadge_agent import AGENT_VERSION

    return {"hello": AGENT_VERSION, "block": BLOCK, "nonce": nonce}


sys.path.insert(0, str(AGENT))
DEEP: object = 1
for _ in range(900):
    DEEP = [DEEP]
STRANGERS = {
    "nothing": b"",
    "an end of line": b"\n" * 5,
    "no JSON": b"GET / HTTP/1.1\r\n\r\n",
    "no object": b"[]\n",
    "no UTF-8": b"\xff\xfe\xfd\n",
    "100,000 brackets": b"[" * 100_000 + b"\n",
    "60,000 brackets": b"[" * 60_000 + b"\n",
    "900 brackets as a nonce": lines_of(_hello(DEEP), {"proof": DEEP}),
    "a lone surrogate as a nonce": lines_of(_hello("\ud800"), {"proof": "x"}),
    "a lone surrogate as a proof": lines_of(_hello(), {"proof": "\udfff"}),
    "a proof that is no ASCII": lines_of(_hello(), {"proof": "\u00e9" * 64}),
    "no proof": lines_of(_hello(), {}),
    "a number as a proof": lines_of(_hello(), {"proof": 1e308}),
    "60,000 digits": b'{"hello": ' + b"9" * 60_000 + b"}\n",
    "a line without an end": b"x" * (1 << 20),
    "a million lines": b"{}\n" * 1_000_000,
    "a hello, then nothing": lines_of(_hello()),
    "another block": lines_of({**_hello(), "block": "b2"}),
    "NUL": b"\0" * 65_000 + b"\n",
}


@pytest.fixture
def ports() -> tuple[int, int]:
    first = random.randrange(20000, 30000)
    return first, first + 99


FOLLOWER = """
import sys, types, pathlib
sys.path.insert(0, sys.argv[1])
from cadge_agent import reactor, site, errors
from cadge_agent.fleet import follower
ports = [int(sys.argv[2]), int(sys.argv[3])]
here = {"name": "h2", "management_address": "127.0.0.1"}
fake = types.SimpleNamespace(name="h2", node={}, host=here, block={"block_id": "b1", "ports": ports},
                             token_file=pathlib.Path(sys.argv[4]))
fake.listener = types.MethodType(site.HostSite.listener, fake)
said = types.SimpleNamespace(emit=lambda event: print(event["event"], flush=True))
print("led" if follower.Follower(fake, reactor.Reactor(60), said)._leader() else "none", flush=True)
"""
LEADER = """
import sys
sys.path.insert(0, sys.argv[1])
from cadge_agent import reactor, errors
from cadge_agent.fleet import auth
auth.CONNECT_S = float(sys.argv[4])
host = {"name": "h2", "management_address": "127.0.0.1"}
block = {"block_id": "b1", "ports": [int(sys.argv[2]), int(sys.argv[3])]}
try:
    auth.connect_follower(host, block, b"known to these tests alone", reactor.Reactor(60))
    print("found")
except errors.HostLostError as error:
    print("lost:", error)
"""


class Running:
    """A part of an agent in a process of its own; its lease ends with the test."""

    def __init__(self, code: str, ports: tuple[int, int], *more: object) -> None:
        argv = [sys.executable, "-c", code, str(AGENT), *map(str, (*ports, *more))]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        self.process.wait(30)


@pytest.fixture
def follower(ports: tuple[int, int], tmp_path: Path) -> Iterator[Running]:
    (tmp_path / "token").write_bytes(TOKEN + b"\n")
    agent = Running(FOLLOWER, ports, tmp_path / "token")
    assert agent.line() == "ready"
    yield agent
    agent.close()


def visit(port: int, said: bytes) -> socket.socket:
    """Say something at a port, and go on holding the connection; whoever closes it meanwhile may."""
    visitor = socket.create_connection(("127.0.0.1", port), timeout=5)
    with contextlib.suppress(OSError):
        visitor.sendall(said)
    return visitor


def leads(agent: Running, ports: tuple[int, int]) -> bool:
    """Whether the one with the token is let in."""
    leader = Running(LEADER, ports, 20)
    try:
        return leader.line() == "found" and agent.line() == "led"
    finally:
        leader.close()


@pytest.mark.parametrize("who", STRANGERS)
def test_no_stranger_ends_a_follower_or_keeps_the_leader_out(
    who: str, follower: Running, ports: tuple[int, int]
) -> None:
    with visit(ports[1], STRANGERS[who]):
        assert leads(follower, ports)


def test_many_strangers_that_say_nothing_keep_no_leader_out(follower: Running, ports: tuple[int, int]) -> None:
    """One after the other, each would be waited for."""
    held = [visit(ports[1], b"" if number % 2 else lines_of(_hello())) for number in range(100)]
    begun_s = time.monotonic()
    try:
        assert leads(follower, ports)
    finally:
        for one in held:
            one.close()
    assert time.monotonic() - begun_s < 20


def test_a_stranger_that_drips_is_not_waited_for(follower: Running, ports: tuple[int, int]) -> None:
    until_s = time.monotonic() + 12
    with visit(ports[1], b"{") as visitor:
        try:
            while time.monotonic() < until_s:
                visitor.sendall(b" ")
                time.sleep(0.2)
        except OSError:
            pass
        assert time.monotonic() < until_s, "it was let drip on"
    assert leads(follower, ports)


def test_a_stranger_that_floods_costs_no_memory(follower: Running, ports: tuple[int, int]) -> None:
    sent = 0
    with visit(ports[1], b"") as visitor:
        try:
            for _ in range(1000):
                visitor.sendall(b"x" * 65536)
                sent += 65536
        except OSError:
            pass
    rss_kib = int(Path(f"/proc/{follower.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 10
    assert sent < 32 << 20, "64 KiB without an end of line are enough to know"
    assert rss_kib < 100_000
    assert leads(follower, ports)


def served(listener: socket.socket, said: bytes) -> Callable[[], None]:
    def serve() -> None:
        held = []
        try:
            while True:
                peer, _ = listener.accept()
                held.append(peer)
                with contextlib.suppress(OSError):
                    peer.sendall(said)
        except OSError:
            for one in held:
                one.close()

    return serve


@pytest.mark.parametrize("who", STRANGERS)
def test_no_stranger_at_a_followers_port_ends_a_leader(who: str, ports: tuple[int, int], tmp_path: Path) -> None:
    """He has the first of the ports, and the follower listens at the next."""
    (tmp_path / "token").write_bytes(TOKEN + b"\n")
    said = STRANGERS[who].replace(b'"hello"', b'"answer"')
    with socket.create_server(("127.0.0.1", ports[1])) as listener:
        thread = threading.Thread(target=served(listener, said), daemon=True)
        thread.start()
        agent = Running(FOLLOWER, ports, tmp_path / "token")
        try:
            assert agent.line() == "ready"
            assert leads(agent, ports)
        finally:
            agent.close()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
