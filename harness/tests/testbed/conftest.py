# SPDX-License-Identifier: BSD-3-Clause
"""One emulated testbed for all tests of this folder, and a build whose driver measures nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cadge_harness.testbed import emulated as testbed_emulated
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for testbed_helpers: pytest's importlib mode leaves sys.path alone


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the slowest begin first, each on a worker of its own: a worker is given two tests at the start."""
    slow = [item for item in items if item.get_closest_marker("slow")]
    rest = [item for item in items if not item.get_closest_marker("slow")]
    pairs = zip(slow, rest, strict=False)
    items[:] = [item for pair in pairs for item in pair] + slow[len(rest) :] + rest[len(slow) :]


def why_not_emulated() -> str | None:
    """Why no emulated testbed can be made here; None where it can."""
    able, why = testbed_emulated.may_be_root()
    return testbed_emulated.probe() if able else why


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """A folder with a short name, for unix sockets, and out of pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="ct-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def state(short_folder: Path) -> Iterator[Path]:
    """A state folder of the tests' own, so that a testbed in use is left alone."""
    folder = short_folder / "state"
    before = os.environ.get("CADGE_STATE")
    os.environ["CADGE_STATE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["CADGE_STATE"]
    else:
        os.environ["CADGE_STATE"] = before


@pytest.fixture(scope="session")
def can_emulate() -> None:
    """Skip where namespaces cannot be made."""
    if why := why_not_emulated():
        pytest.skip(f"no emulated testbed can be made here: {why}")


@pytest.fixture(scope="session")
def emulated(state: Path, can_emulate: None) -> Iterator[Testbed]:
    """An emulated testbed of two hosts."""
    del state, can_emulate
    yield testbeds.resolve("emulated")
    testbeds.down()


@pytest.fixture
def own_state(short_folder: Path, can_emulate: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder of this test's own, for a testbed that it makes itself."""
    del can_emulate
    folder = short_folder / f"own-{time.monotonic_ns()}"
    monkeypatch.setenv("CADGE_STATE", str(folder))
    yield folder
    testbeds.down()


@pytest.fixture(scope="session")
def inside(emulated: Testbed) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in the testbed's network namespace, or on one of its hosts."""

    def run(*argv: str, host: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        code = "import sys; from cadge_harness.testbed import testbeds as t; "
        code += "sys.exit(t.exec_command(sys.argv[2:], sys.argv[1]))"
        command = [sys.executable, "-c", code, host or "", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=check, timeout=120)

    del emulated
    return run


@pytest.fixture(scope="session")
def fake_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build whose driver is fake_driver.py and whose one layer is an empty file."""
    build = tmp_path_factory.mktemp("build")
    (build / "bin").mkdir()
    (build / "layers").mkdir()
    for name in ("cadge-driver", "cadge-floor"):
        shutil.copy(HERE / "fake_driver.py", build / "bin" / name)
        (build / "bin" / name).chmod(0o755)
    (build / "layers" / "null.so").touch()
    (build / "layers" / "lost.absent").write_text("pkg-config knows no package named lost\n")
    return build
