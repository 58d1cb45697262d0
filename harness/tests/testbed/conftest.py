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
from typing import Any

import pytest

from cadge_harness.testbed import emulated as testbed_emulated
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the helpers: pytest's importlib mode leaves sys.path alone

from agent_helpers import CAMPAIGN, Agent, Start, agents_of  # noqa: E402 - found by the line above
from testbed_helpers import AGENT, make_block  # noqa: E402

Json = dict[str, Any]


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
def own_namespaces() -> None:
    """Skip where an agent of this user cannot have a /dev/shm of its own: in a chroot only root can."""
    own = [] if os.geteuid() == 0 else ["--user"]
    tried = subprocess.run(["unshare", *own, "--mount", "--ipc", "true"], check=False, capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"this user cannot make namespaces here: {tried.stderr.strip()}")


@pytest.fixture(scope="session")
def emulated(state: Path, can_emulate: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    """An emulated testbed of two hosts, which see the folders of these tests."""
    del state, can_emulate
    testbeds.up(shared=(tmp_path_factory.getbasetemp(), AGENT.parent))
    used = testbeds.resolve("emulated")
    yield used
    testbeds.release(used)
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


@pytest.fixture
def here(state: Path) -> Testbed:
    """This machine as a testbed."""
    del state
    return testbeds.resolve("local")


@pytest.fixture
def start(tmp_path: Path, fake_build: Path) -> Iterator[Start]:
    """Start an agent on this machine."""
    started: list[Agent] = []

    def make(block: Json, host: str = "localhost", prefix: list[str] | None = None, build: Path | None = None) -> Agent:
        started.append(Agent(block, host, tmp_path / host, build or fake_build, prefix or []))
        return started[-1]

    yield make
    for agent in started:
        agent.close()


@pytest.fixture
def pair(emulated: Testbed, start: Start) -> Callable[..., tuple[Agent, Agent]]:
    """Start the agents of two emulated hosts."""

    def make(*launches: Json, done: int = 0, build: Path | None = None) -> tuple[Agent, Agent]:
        """Start the agents of a block; the first `done` of its launches are not in it any more, as at a resume."""
        block = make_block(emulated, CAMPAIGN, "b1", list(launches))
        block["launches"] = block["launches"][done:]
        leader, follower = agents_of(block, start, build)
        return leader, follower

    return make
