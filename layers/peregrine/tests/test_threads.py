# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints in several threads share nothing: the engine under ThreadSanitizer."""

from __future__ import annotations

import subprocess
from itertools import chain
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[1] / "engine"


@pytest.mark.parametrize("calls", [500, pytest.param(3000, marks=pytest.mark.long)])
@pytest.mark.long
def test_endpoints_in_threads_share_nothing(calls: int, tmp_path: Path) -> None:
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "libsodium"], capture_output=True, text=True, check=False
    )
    if flags.returncode != 0:
        pytest.skip("pkg-config finds no libsodium")
    program = tmp_path / "threads"
    rooms = [sorted((ENGINE / room).glob("*.c")) for room in ("base", "core", "wires")]
    sources = [*chain(*rooms), ENGINE / "tests/support/threads.c"]
    flavour = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=thread", "-pthread", f"-DCALLS={calls}u"]
    built = subprocess.run(
        ["clang", *flavour, "-o", program, *sources, *flags.stdout.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot find" in built.stderr or "tsan" in built.stderr:
        pytest.skip("clang has no ThreadSanitizer here")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, timeout=200, check=False)
    assert "ThreadSanitizer" not in done.stderr, done.stderr[-4000:]
    assert done.returncode == 0, done.stdout + done.stderr
