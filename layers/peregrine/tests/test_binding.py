# SPDX-License-Identifier: BSD-3-Clause
"""The Python binding against itself. What it says to programs in C is in test_interoperability.py."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ENGINE = Path(__file__).resolve().parents[1] / "engine"
pytestmark = pytest.mark.spare
UPPER, RAISE, LONG, OWN = 1, 2, 3, 4


def fail(_arguments: bytes) -> bytes:
    raise KeyError("no falcon")


@pytest.fixture(params=["udp", "shm"])
def both(request: pytest.FixtureRequest, pgr: ModuleType) -> Iterator[tuple[Any, Any]]:
    address = "127.0.0.1" if request.param == "udp" else None
    with pgr.Endpoint(request.param, address) as server, pgr.Endpoint(request.param, address) as client:

        def own(arguments: bytes) -> bytes:
            raise pgr.Error(int(arguments))

        server.serve(UPPER, bytes.upper)
        server.serve(RAISE, fail)
        server.serve(LONG, lambda arguments: arguments * 1000)
        server.serve(OWN, own)
        yield server, client


def test_calls(both: tuple[Any, Any], pgr: ModuleType) -> None:
    server, client = both
    peer = client.bind(server.address)
    results: list[Any] = []
    for text in (b"", b"falcon", b"x" * 100_000):
        peer.start(UPPER, text, results.append)
    peer.start(LONG, b"0123456789", results.append)
    pgr.poll_all([server, client], lambda: len(results) == 4)
    assert sorted(results, key=len) == [b"", b"FALCON", b"0123456789" * 1000, b"X" * 100_000]
    assert not client._lent
    pgr.poll_all([server, client], lambda: not server._lent)


def test_errors(both: tuple[Any, Any], pgr: ModuleType) -> None:
    server, client = both
    peer = client.bind(server.address)
    results: list[Any] = []
    peer.start(RAISE, b"", results.append)
    with pytest.raises(KeyError, match="no falcon"):
        pgr.poll_all([server, client], lambda: False)
    pgr.poll_all([server, client], lambda: bool(results))
    assert (results[0].code, str(results[0])) == (-64, "failed by the procedure")
    with pytest.raises(pgr.Error, match="the deadline has passed"):
        peer.call(UPPER, b"nobody polls the server", within_s=0.05)
    number = peer.start(UPPER, b"", results.append)
    assert peer.cancel(number)
    pgr.poll_all([client], lambda: len(results) == 2)
    assert str(results[1]) == "cancelled"
    assert not peer.cancel(number)
    with pytest.raises(pgr.Error, match="a wrong argument"):
        client.bind("nonsense")


def test_a_code_of_the_procedures_own(both: tuple[Any, Any], pgr: ModuleType) -> None:
    server, client = both
    peer = client.bind(server.address)
    results: list[Any] = []
    peer.start(OWN, b"-77", results.append)
    pgr.poll_all([server, client], lambda: bool(results))
    assert results.pop().code == -77
    peer.start(OWN, b"-4", results.append)  # not one of a procedure
    with pytest.raises(pgr.Error, match="no answer from the server"):
        pgr.poll_all([server, client], lambda: False)
    pgr.poll_all([server, client], lambda: bool(results))
    assert results.pop().code == -64


@pytest.mark.parametrize("answer", [None, "text", bytes(1 << 24) + b"x", SystemExit])
def test_what_is_no_answer_fails_the_call(both: tuple[Any, Any], pgr: ModuleType, answer: object) -> None:
    server, client = both

    def procedure(_arguments: bytes) -> object:
        if answer is SystemExit:
            raise SystemExit
        return answer

    server.serve(9, procedure)
    results: list[Any] = []
    client.bind(server.address).start(9, b"", results.append, within_s=5)
    with pytest.raises((TypeError, SystemExit, pgr.Error)):
        pgr.poll_all([server, client], lambda: False)
    pgr.poll_all([server, client], lambda: bool(results))
    assert results[0].code == -64
    assert not server._lent


def test_a_binding_that_nobody_names_any_more(both: tuple[Any, Any], pgr: ModuleType) -> None:
    server, client = both
    results: list[Any] = []
    for _ in range(20):
        client.bind(server.address).start(UPPER, b"falcon", results.append)
    gc.collect()
    pgr.poll_all([server, client], lambda: len(results) == 20)
    assert results == [b"FALCON"] * 20


def test_what_is_closed(both: tuple[Any, Any], pgr: ModuleType) -> None:
    server, client = both
    peer = client.bind(server.address)
    results: list[Any] = []
    client.serve(1, bytes)
    number = peer.start(UPPER, b"", results.append)
    client.close()
    client.close()
    uses = (
        client.poll,
        client.drain,
        lambda: client.address,
        lambda: client.wait(0),
        lambda: client.bind(server.address),
        lambda: client.trust(server.address),
        lambda: client.serve(2, bytes),
        lambda: peer.start(UPPER, b"", results.append),
        lambda: peer.call(UPPER),
        lambda: peer.cancel(number),
    )
    for use in uses:
        with pytest.raises(pgr.Error, match="closed"):
            use()
    assert results == []


@pytest.mark.parametrize("what", ["close", "poll"])
def test_what_a_procedure_must_not_do(both: tuple[Any, Any], pgr: ModuleType, what: str) -> None:
    server, client = both
    server.serve(9, lambda _: getattr(server, what)() or b"")
    results: list[Any] = []
    client.bind(server.address).start(9, b"", results.append)
    with pytest.raises(pgr.Error, match="by what it runs"):
        pgr.poll_all([server, client], lambda: False)
    pgr.poll_all([server, client], lambda: bool(results))
    assert results[0].code == -64


def test_more_calls_than_slots(both: tuple[Any, Any], pgr: ModuleType) -> None:
    server, client = both
    peer = client.bind(server.address)
    results: list[Any] = []
    for _ in range(64):
        peer.start(UPPER, b"", results.append)
    with pytest.raises(pgr.Error) as caught:
        peer.start(UPPER, b"", results.append)
    assert caught.value.code == pgr.BUSY
    pgr.poll_all([server, client], lambda: len(results) == 64)


def test_calls_are_passed_on(both: tuple[Any, Any], pgr: ModuleType) -> None:
    front, client = both
    wire, address = ("udp", "127.0.0.1") if "127.0.0.1" in front.address else ("shm", None)
    results: list[Any] = []
    with pgr.Endpoint(wire, address) as back:
        onward = front.bind(back.address)
        front.serve(9, lambda arguments: pgr.PassOn(onward, UPPER, b"passed on: " + arguments))
        back.serve(UPPER, bytes.upper)
        peers = [client.bind(front.address) for _ in range(2)]
        peers[0].start(9, b"", results.append)
        pgr.poll_all([front, client, back], lambda: bool(results))
        assert str(results.pop()) == "no answer from the server"  # since nobody trusts the front
        back.trust(front.address)
        # more than the front has slots for: those wait there until it has some
        for n in range(80):
            peers[n % 2].start(9, b"falcon", results.append)
        pgr.poll_all([front, client], lambda: len(front._waiting) == 16)
        pgr.poll_all([front, client, back], lambda: len(results) == 80)
        assert results == [b"PASSED ON: FALCON"] * 80
        assert not front._waiting
        results.clear()
        stranger = client.bind(front.address)
        front.serve(10, lambda _: pgr.PassOn(stranger, UPPER, b""))
        peers[0].start(10, b"", results.append)
        with pytest.raises(pgr.Error, match="of the endpoint that it came to"):
            pgr.poll_all([front, client, back], lambda: False)


FORKED = """
import multiprocessing, sys
import pgr

wire, address, method = sys.argv[1], sys.argv[2] or None, multiprocessing.get_context("fork")

def closed(use):
    try:
        use()
    except pgr.Error as error:
        assert str(error) == "closed", error
    else:
        raise AssertionError("not closed")

def copied(client, peer, server, told):
    for use in (client.poll, lambda: client.wait(0), lambda: client.bind(server), lambda: client.serve(2, bytes),
                lambda: client.trust(server), lambda: peer.call(1, b""), lambda: peer.start(1, b"", print)):
        closed(use)
    client.close()
    with pgr.Endpoint(wire, address) as own:
        peer = own.bind(server)
        told.put(all(peer.call(1, b"child %d" % n) == b"CHILD %d" % n for n in range(200)))

def serve(told):
    with pgr.Endpoint(wire, address) as server:
        server.serve(1, bytes.upper)
        told.put(server.address)
        while True:
            if not server.poll():
                server.wait(0.01)

told = method.SimpleQueue()
serving = method.Process(target=serve, args=(told,), daemon=True)
serving.start()
server = told.get()
with pgr.Endpoint(wire, address) as client:
    peer = client.bind(server)
    peer.call(1, b"first")
    child = method.Process(target=copied, args=(client, peer, server, told))
    child.start()
    assert all(peer.call(1, b"parent %d" % n) == b"PARENT %d" % n for n in range(200))
    child.join()
    assert child.exitcode == 0, child.exitcode
    assert told.get()
    assert peer.call(1, b"last") == b"LAST"
serving.terminate()
"""


@pytest.mark.parametrize("wire", ["udp", "shm"])
def test_an_endpoint_is_closed_in_a_process_that_was_forked(installed: Path, wire: str) -> None:
    """In an interpreter of its own, which has one thread: pytest's may have more, and none of those survives a fork."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED, wire, "127.0.0.1" if wire == "udp" else ""],
        env={**os.environ, "PYTHONPATH": str(ENGINE / "python"), "PGR_LIBRARY": str(installed / "lib/libpgr.so.2")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_opened(pgr: ModuleType) -> None:
    with pytest.raises(pgr.Error, match="there is no wire named pigeon"):
        pgr.Endpoint("pigeon")
    with pytest.raises(pgr.Error, match="IPv4 or IPv6 address, not 'nowhere'"):
        pgr.Endpoint("udp", "nowhere")
    with pytest.raises(pgr.Error, match="a key has 16 bytes, not 6"):
        pgr.Endpoint("udp", "127.0.0.1", key=b"secret")
    with pytest.raises(pgr.Error, match="there is no port 65536"):
        pgr.Endpoint("udp", "127.0.0.1", port=65536)


def test_a_key_keeps_strangers_out(pgr: ModuleType) -> None:
    key = bytes(range(16))
    results: list[Any] = []
    with pgr.Endpoint("udp", "127.0.0.1", key=key) as server, pgr.Endpoint("udp", "127.0.0.1", key=key) as client:
        server.serve(UPPER, bytes.upper)
        with pgr.Endpoint("udp", "127.0.0.1", give_up_s=0.2) as stranger:
            for each in (client, stranger):
                each.bind(server.address).start(UPPER, b"falcon", results.append)
            pgr.poll_all([server, client, stranger], lambda: len(results) == 2)
    assert sorted(map(str, results)) == ["b'FALCON'", "refused"]
