# SPDX-License-Identifier: BSD-3-Clause
"""The engine as a library of its own: built and installed without Cadge, found by pkg-config, used by its examples."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.spare

ENGINE = Path(__file__).resolve().parents[1] / "engine"
WIRES = ("udp", "shm")


def run(*argv: str | Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=check, env={**os.environ, **environment}
    )


def declared_in(installed: Path) -> set[str]:
    header = (installed / "include/pgr.h").read_text(encoding="utf-8")
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return set(re.findall(r"^(?!typedef).*?\b(pgr_\w+)\(", code, flags=re.MULTILINE))


def test_the_manual_page_names_what_the_header_has(installed: Path) -> None:
    page = installed / "share/man/man3/pgr.3"
    text = page.read_text(encoding="utf-8")
    header = (installed / "include/pgr.h").read_text(encoding="utf-8")
    assert set(re.findall(r"^\.(?:It )?Fn (\w+)", text, flags=re.MULTILINE)) == declared_in(installed)
    assert set(re.findall(r"PGR_E_\w+", text)) == set(re.findall(r"^\t(PGR_E_\w+) =", header, flags=re.MULTILINE))
    if not shutil.which("groff"):
        pytest.skip("no groff here")
    assert run("groff", "-mdoc", "-ww", "-Tutf8", "-z", page).stderr == ""


def test_nothing_but_the_header_is_exported(installed: Path) -> None:
    if not shutil.which("nm"):
        pytest.skip("no nm here")
    listed = run("nm", "-D", "--defined-only", installed / "lib/libpgr.so").stdout
    versioned = [line.split()[-1].split("@@") for line in listed.splitlines() if not line.endswith(" A PGR_2")]
    assert {version for _, version in versioned} == {"PGR_2"}
    exported = {name for name, _ in versioned}
    assert exported == declared_in(installed)


def test_a_program_finds_it_by_pkg_config(installed: Path, tmp_path: Path) -> None:
    path = f"{installed}/lib/pkgconfig"
    flags = run("pkg-config", "--cflags", "--libs", "pgr", PKG_CONFIG_PATH=path).stdout.split()
    program = tmp_path / "echo"
    run("cc", "-o", program, ENGINE / "examples/echo.c", *flags)
    done = run(program, "udp", "127.0.0.1", "3", LD_LIBRARY_PATH=f"{installed}/lib")
    assert done.stdout == "6 bytes came back\n" * 3


def test_where_it_is_installed_may_be_said_when_it_is_installed(installed: Path, tmp_path: Path) -> None:
    program, prefix = tmp_path / "echo", tmp_path / "usr"
    run("make", "-C", ENGINE, "install", f"BUILD={installed.parent}/build", f"PREFIX={prefix}")  # built for another
    flags = run("pkg-config", "--cflags", "--libs", "pgr", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig").stdout.split()
    assert f"-I{prefix}/include" in flags
    run("cc", "-o", program, ENGINE / "examples/echo.c", *flags)
    assert run(program, "shm", "-", "1", LD_LIBRARY_PATH=f"{prefix}/lib").stdout == "6 bytes came back\n"


@pytest.mark.parametrize("wire", WIRES)
def test_echo(installed: Path, wire: str) -> None:
    done = run(installed.parent / "build/pgr-echo", wire, "127.0.0.1", "100")
    assert done.stdout.count("bytes came back") == 100


@pytest.fixture(params=WIRES)
def server(request: pytest.FixtureRequest, installed: Path) -> Iterator[tuple[str, str]]:
    """A running key-value server: its wire and its address."""
    program = installed.parent / "build/pgr-kv"
    process = subprocess.Popen([program, "serve", request.param, "127.0.0.1", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield request.param, process.stdout.readline().strip()
    process.send_signal(signal.SIGTERM)
    process.wait(10)
    process.stdout.close()


def test_key_value_server(server: tuple[str, str], installed: Path) -> None:
    wire, address = server
    program = installed.parent / "build/pgr-kv"

    def kv(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(program, verb, wire, "127.0.0.1", address, *arguments, check=False)

    assert kv("get", "falcon").returncode == 1
    assert kv("put", "falcon", "peregrine").returncode == 0
    assert kv("get", "falcon").stdout == "peregrine\n"
    assert kv("put", "falcon", "x" * 100_000).returncode == 0
    assert kv("get", "falcon").stdout == "x" * 100_000 + "\n"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_program_with_an_event_loop_of_its_own(host: str, installed: Path) -> None:
    if host == "::1" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 here")
    program = installed.parent / "build/pgr-loop"
    with subprocess.Popen([program, "serve", host, "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"127\.0\.0\.1:\d+|\[::1\]:\d+", address)
        for text, words in (("", 0), ("one falcon", 2), ("word " * 20_000, 20_000)):
            done = run(program, "count", address, "10000", text)
            assert done.stdout == f"{words}\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    began = time.monotonic()
    done = run(program, "count", address, "9000", "nobody counts", check=False)
    assert (done.returncode, done.stderr) == (1, "pgr-loop: nobody is there\n")
    assert time.monotonic() - began < 5
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((host, 0))
        began = time.monotonic()
        text = f"[{host}]:{silent.getsockname()[1]}" if ":" in host else f"{host}:{silent.getsockname()[1]}"
        done = run(program, "count", text, "300", "no answer comes", check=False)
    assert (done.returncode, done.stderr) == (1, "pgr-loop: the deadline has passed\n")
    assert 0.3 <= time.monotonic() - began < 5
    done = run(program, "count", "127.0.0.1", "300", "no port", check=False)
    assert (done.returncode, done.stderr) == (1, "pgr-loop: 127.0.0.1: a wrong argument\n")


def test_a_server_of_several_threads(installed: Path) -> None:
    program = installed.parent / "build/pgr-threads"
    with subprocess.Popen([program, "serve", "127.0.0.1", "0", "4"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        assert run(program, "call", address, "402").stdout == "101 101 100 100\n"
        assert run(program, "call", address, "4").stdout == "102 102 101 101\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_procedures_that_take_long_keep_nobody_waiting(installed: Path) -> None:
    began = time.monotonic()
    done = run(installed.parent / "build/pgr-workers", "4", "1000")
    assert done.stdout == "short done\n" + "long done\n" * 4
    assert 1 <= time.monotonic() - began < 3.5, "side by side: one after the other they take 4 s"
    done = run(installed.parent / "build/pgr-workers", "200", "1")
    assert done.stdout.count("long done") == 200


def test_usage(installed: Path) -> None:
    done = run(installed.parent / "build/pgr-kv", check=False)
    assert (done.returncode, done.stderr[:6]) == (2, "usage:")
    done = run(installed.parent / "build/pgr-echo", "pigeon", check=False)
    assert done.returncode == 1
    assert "no wire named pigeon" in done.stderr
