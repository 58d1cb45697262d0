# SPDX-License-Identifier: BSD-3-Clause
"""Threads of one endpoint share only what they mean to, under ThreadSanitizer: hands, and a server's threads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "harness/driver"
LIBRARY = ROOT / "build/libcadge-harness.a"


@pytest.mark.parametrize("what", [["hands"], ["cluster", "handoff", "hands"]], ids=lambda what: what[0])
def test_threads_share_nothing_by_mistake(tmp_path: Path, what: list[str]) -> None:
    if not LIBRARY.exists():
        pytest.skip("the driver is not built: make build")
    program = tmp_path / what[0]
    flavour = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=thread", "-pthread"]
    libraries = [LIBRARY, "-l:libjansson.a", "-l:libsodium.a", "-l:libz.a", "-ldl"]
    includes = [f"-I{DRIVER}", f"-I{ROOT / 'layers/include'}"]
    sources = [DRIVER / f"tests/test_{what[0]}.c", *(DRIVER / f"{name}.c" for name in what)]
    built = subprocess.run(
        ["clang", *flavour, *includes, "-o", program, *sources, *libraries], capture_output=True, text=True, check=False
    )
    if "cannot find" in built.stderr or "tsan" in built.stderr:
        pytest.skip("clang has no ThreadSanitizer here")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, timeout=200, check=False)
    assert "ThreadSanitizer" not in done.stderr, done.stderr[-4000:]
    assert done.returncode == 0, done.stdout + done.stderr
