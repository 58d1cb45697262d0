# SPDX-License-Identifier: BSD-3-Clause
"""The engine as a library of its own, for all tests that use it so."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ENGINE = Path(__file__).resolve().parents[1] / "engine"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library was installed, once for all processes of a test run; its build folder is beside it."""
    folder = tmp_path_factory.getbasetemp() / "pgr"
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parents[1] / "pgr"
    folder.mkdir(exist_ok=True)
    if subprocess.run(["pkg-config", "--exists", "libsodium"], check=False).returncode != 0:
        pytest.skip("pkg-config finds no libsodium")
    # Optimised it takes twice the time; the layers of the engine are.
    command = ["make", "-C", str(ENGINE), "install", "CFLAGS=-O0", f"BUILD={folder}/build", f"PREFIX={folder}/usr"]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
            assert done.returncode == 0, done.stderr
            assert "warning" not in done.stderr, done.stderr
            (folder / "made").touch()
    return folder / "usr"


@pytest.fixture(scope="session")
def pgr(installed: Path) -> Iterator[ModuleType]:
    """The Python binding, with the library that was installed."""
    spec = importlib.util.spec_from_file_location("pgr", ENGINE / "python/pgr.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGR_LIBRARY", str(installed / "lib/libpgr.so.2"))
        patch.setitem(sys.modules, "pgr", module)
        spec.loader.exec_module(module)
        yield module
