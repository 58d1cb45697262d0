# SPDX-License-Identifier: BSD-3-Clause
"""An endpoint in Python and a program in C, in two processes, call each other."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.spare

COUNT = 1
PUT, GET = 1, 2
WRONG, NO_SUCH_KEY = -64, -65
KEY_BYTES = 64
SIZES = (0, 1, 8, 1400, 1409, 20_000, 1_000_000)


class Wire:
    """Opens endpoints here, and starts programs in C, on one wire."""

    def __init__(self, pgr: ModuleType, programs: Path, stack: ExitStack, wire: str, host: str | None) -> None:
        self.pgr, self.programs, self.stack, self.wire, self.host = pgr, programs, stack, wire, host

    def open(self) -> Any:  # noqa: ANN401 a class of a module that is loaded later
        return self.stack.enter_context(self.pgr.Endpoint(self.wire, self.host))

    def kv(self, verb: str, *words: str) -> list[str | Path]:
        return [self.programs / "pgr-kv", verb, self.wire, self.host or "-", *words]

    def run(self, verb: str, *words: str) -> tuple[subprocess.Popen[str], str]:
        """Start a server in C; returns it, and its address."""
        process = subprocess.Popen(self.kv(verb, "0", *words), stdout=subprocess.PIPE, text=True)
        assert process.stdout
        self.stack.callback(process.stdout.close)
        self.stack.callback(process.wait, 10)
        self.stack.callback(process.kill)
        return process, process.stdout.readline().strip()

    def ask(self, endpoints: list[Any], verb: str, *words: str) -> tuple[int, str]:
        """Run a client in C while endpoints here are polled; returns its exit status and what it wrote."""
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as said,
            subprocess.Popen(self.kv(verb, *words), stdout=said, stderr=subprocess.STDOUT) as process,
        ):
            deadline = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < deadline:
                for endpoint in endpoints:
                    endpoint.poll()
            process.kill()
            process.wait(10)
            said.seek(0)
            return process.returncode, said.read()


@pytest.fixture(params=["udp 127.0.0.1", "udp ::1", "shm"])
def wire(request: pytest.FixtureRequest, pgr: ModuleType, installed: Path) -> Iterator[Wire]:
    """Each wire that needs no privilege."""
    name, _, host = request.param.partition(" ")
    if host == "::1" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 here")
    with ExitStack() as stack:
        yield Wire(pgr, installed.parent / "build", stack, name, host or None)


def key(name: str) -> bytes:
    return name.encode().ljust(KEY_BYTES, b"\0")


def pattern(length: int) -> bytes:
    return bytes((n * 7 + n // 251) % 26 + 97 for n in range(length))


def store(pgr: ModuleType, endpoint: Any) -> dict[bytes, bytes]:  # noqa: ANN401 as Wire.open
    """Serve what pgr-kv does."""
    values: dict[bytes, bytes] = {}

    def put(arguments: bytes) -> bytes:
        values[arguments[:KEY_BYTES]] = arguments[KEY_BYTES:]
        return b""

    def get(arguments: bytes) -> bytes:
        if arguments not in values:
            raise pgr.Error(NO_SUCH_KEY)
        return values[arguments]

    endpoint.serve(PUT, put)
    endpoint.serve(GET, get)
    return values


def failure(call: Callable[[], object], pgr: ModuleType) -> int:
    with pytest.raises(pgr.Error) as caught:
        call()
    return int(caught.value.code)


@pytest.mark.long
def test_a_server_in_c(wire: Wire) -> None:
    client = wire.open()
    process, address = wire.run("serve")
    peer = client.bind(address)
    for size in SIZES:
        assert peer.call(PUT, key("falcon") + pattern(size), within_s=20) == b""
        assert peer.call(GET, key("falcon"), within_s=20) == pattern(size)
    assert failure(lambda: peer.call(GET, key("kestrel")), wire.pgr) == NO_SUCH_KEY
    assert failure(lambda: peer.call(GET, b"no key"), wire.pgr) == NO_SUCH_KEY
    assert failure(lambda: peer.call(PUT, b"no key"), wire.pgr) == WRONG
    with pytest.raises(wire.pgr.Error, match="no such procedure"):
        peer.call(99)
    process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(wire.pgr.Error, match="the deadline has passed"):
        peer.call(GET, key("falcon"), within_s=0.2)
    assert 0.2 <= time.monotonic() - began < 5
    process.send_signal(signal.SIGCONT)
    assert peer.call(GET, key("falcon"), within_s=20) == pattern(SIZES[-1])


def test_many_calls_at_once_of_a_server_in_c(wire: Wire) -> None:
    client = wire.open()
    peer = client.bind(wire.run("serve")[1])
    results: list[Any] = []
    for number in range(60):
        peer.start(PUT, key(str(number)) + pattern(number * 700), results.append)
    wire.pgr.poll_all([client], lambda: len(results) == 60)
    assert results == [b""] * 60
    found: dict[int, Any] = {}
    for number in range(60):
        peer.start(GET, key(str(number)), lambda result, number=number: found.update({number: result}))
    wire.pgr.poll_all([client], lambda: len(found) == 60)
    assert found == {number: pattern(number * 700) for number in range(60)}


def test_a_client_in_c(wire: Wire) -> None:
    server = wire.open()
    values = store(wire.pgr, server)
    assert wire.ask([server], "get", server.address, "falcon") == (1, "")
    for size in (0, 8, 1409, 100_000):
        text = pattern(size).decode()
        assert wire.ask([server], "put", server.address, "falcon", text) == (0, "")
        assert wire.ask([server], "get", server.address, "falcon") == (0, text + "\n")
    values[key("long")] = pattern(1_000_000)  # no command line is as long
    assert wire.ask([server], "get", server.address, "long") == (0, pattern(1_000_000).decode() + "\n")
    assert values[key("falcon")] == pattern(100_000)


def test_a_call_of_a_client_in_c_that_fails(wire: Wire) -> None:
    server = wire.open()
    status, said = wire.ask([server], "put", server.address, "falcon", "x")
    assert (status, said) == (2, "pgr-kv: no such procedure\n")


def test_a_front_in_python_before_a_server_in_c(wire: Wire) -> None:
    front, client = wire.open(), wire.open()
    back = front.bind(wire.run("serve", front.address)[1])
    front.serve(PUT, lambda arguments: wire.pgr.PassOn(back, PUT, arguments))
    front.serve(GET, lambda arguments: wire.pgr.PassOn(back, GET, arguments))
    text = pattern(50_000).decode()
    assert wire.ask([front], "put", front.address, "falcon", text) == (0, "")
    assert wire.ask([front], "get", front.address, "falcon") == (0, text + "\n")
    assert wire.ask([front], "get", front.address, "kestrel") == (1, "")
    results: list[Any] = []
    peer = client.bind(front.address)
    peer.start(GET, key("falcon"), results.append)
    peer.start(GET, key("kestrel"), results.append)
    wire.pgr.poll_all([front, client], lambda: len(results) == 2)
    results.sort(key=lambda result: isinstance(result, wire.pgr.Error))
    assert results[0] == text.encode()
    assert results[1].code == NO_SUCH_KEY


def test_a_front_in_c_before_a_server_in_python(wire: Wire) -> None:
    server, client = wire.open(), wire.open()
    values = store(wire.pgr, server)
    _, front = wire.run("front", server.address)
    assert wire.ask([server], "put", front, "falcon", "untrusted") == (2, "pgr-kv: no answer from the server\n")
    assert not values
    server.trust(front)
    text = pattern(50_000).decode()
    assert wire.ask([server], "put", front, "falcon", text) == (0, "")
    assert wire.ask([server], "get", front, "falcon") == (0, text + "\n")
    results: list[Any] = []
    client.bind(front).start(GET, key("kestrel"), results.append)
    wire.pgr.poll_all([server, client], lambda: bool(results))
    assert results[0].code == NO_SUCH_KEY


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_event_loop_in_c(pgr: ModuleType, installed: Path, host: str) -> None:
    if host == "::1" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 here")
    program = installed.parent / "build/pgr-loop"
    with subprocess.Popen([program, "serve", host, "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        with pgr.Endpoint("udp", host) as client:
            peer = client.bind(address)
            assert peer.call(COUNT, b"two words") == b"2"
            assert peer.call(COUNT, b"word " * 50_000, within_s=10) == b"50000"
            with pytest.raises(pgr.Error, match="no such procedure"):
                peer.call(99)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    with pgr.Endpoint("udp", host) as server:
        server.serve(COUNT, lambda arguments: b"%d" % len(arguments.split()))
        command = [program, "count", server.address, "10000", "a b c"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                server.poll()
                server.wait(0.01)
            assert process.stdout
            assert process.stdout.read() == "3\n"
        assert server.drain() in (0, 1)
