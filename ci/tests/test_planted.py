# SPDX-License-Identifier: BSD-3-Clause
"""The adapter that `ci/planted` slows down still has the places that it changes, and compiles."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_slowed_adapter_posts_by_its_own_function(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    slowed = runpy.run_path(str(ROOT / "ci/planted"))["slowed"]
    source = tmp_path / "tcp.c"
    source.write_text(slowed((ROOT / "layers/sockets/tcp.c").read_text(encoding="utf-8")), encoding="utf-8")
    argv = [
        "gcc",
        "-D_GNU_SOURCE",
        "-std=gnu11",
        "-Wall",
        "-Werror",
        "-I",
        ROOT / "layers",
        "-I",
        ROOT / "layers/include",
    ]
    subprocess.run([*argv, "-c", source, "-o", tmp_path / "tcp.o"], check=True, timeout=60)
    symbols = subprocess.run(["nm", tmp_path / "tcp.o"], check=True, capture_output=True, text=True).stdout
    assert " t paused_post" in symbols
