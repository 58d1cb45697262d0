# SPDX-License-Identifier: BSD-3-Clause
"""The Python binding, against itself and against programs in C."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.spare
SOURCE = Path(__file__).resolve().parents[1] / "engine/python/pgr.py"
UPPER, RAISE, LONG = 1, 2, 3


@pytest.fixture
def pgr(installed: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The binding, with the library that was installed."""
    monkeypatch.setenv("PGR_LIBRARY", str(installed / "lib/libpgr.so.2"))
    spec = importlib.util.spec_from_file_location("pgr", SOURCE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "pgr", module)
    spec.loader.exec_module(module)
    return module


def fail(_arguments: bytes) -> bytes:
    raise KeyError("no falcon")


@pytest.fixture(params=["udp", "shm"])
def both(request: pytest.FixtureRequest, pgr: ModuleType) -> Iterator[tuple[Any, Any]]:
    address = "127.0.0.1" if request.param == "udp" else None
    with pgr.Endpoint(request.param, address) as server, pgr.Endpoint(request.param, address) as client:
        server.serve(UPPER, bytes.upper)
        server.serve(RAISE, fail)
        server.serve(LONG, lambda arguments: arguments * 1000)
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


def test_what_cannot_be_opened(pgr: ModuleType) -> None:
    with pytest.raises(pgr.Error, match="there is no wire named pigeon"):
        pgr.Endpoint("pigeon")
    with pytest.raises(pgr.Error, match="IPv4 or IPv6 address, not 'nowhere'"):
        pgr.Endpoint("udp", "nowhere")


def test_a_server_in_c(pgr: ModuleType, installed: Path) -> None:
    program = installed.parent / "build/pgr-loop"
    with subprocess.Popen([program, "serve", "127.0.0.1", "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        with pgr.Endpoint("udp", "127.0.0.1") as client:
            peer = client.bind(address)
            assert peer.call(1, b"two words") == b"2"
            assert peer.call(1, b"word " * 50_000, within_s=10) == b"50000"
            with pytest.raises(pgr.Error, match="no such procedure"):
                peer.call(99)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_a_client_in_c(pgr: ModuleType, installed: Path) -> None:
    with pgr.Endpoint("udp", "127.0.0.1") as server:
        server.serve(1, lambda arguments: b"%d" % len(arguments.split()))
        command = [installed.parent / "build/pgr-loop", "count", server.address, "10000", "a b c"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
            while process.poll() is None:
                server.poll()
                server.wait(0.01)
            assert process.stdout
            assert process.stdout.read() == "3\n"
        assert server.drain() in (0, 1)
