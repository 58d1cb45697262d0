# SPDX-License-Identifier: BSD-3-Clause
"""Threads of an endpoint share only what they mean to, under ThreadSanitizer: queues, workers, jobs, connections."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "harness/driver"
LIBRARY = ROOT / "build/libcadge-harness.a"
pytestmark = pytest.mark.spare


def build(program: Path, sources: list[Path], harness: Path = DRIVER.parent) -> None:
    if not LIBRARY.exists():
        pytest.skip("the driver is not built: make build")
    flavour = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=thread", "-pthread"]
    libraries = [LIBRARY, "-l:libjansson.a", "-l:libsodium.a", "-l:libz.a", "-ldl"]
    tables = ROOT / "build/obj/harness/params"
    folders = (harness / "driver", harness / "driver/tests", harness / "patterns", ROOT / "layers/include", tables)
    includes = [f"-I{folder}" for folder in folders]
    built = subprocess.run(
        ["clang", *flavour, *includes, "-o", program, *sources, *libraries], capture_output=True, text=True, check=False
    )
    if "cannot find" in built.stderr or "tsan" in built.stderr:
        pytest.skip("clang has no ThreadSanitizer here")
    assert built.returncode == 0, built.stderr


# What runs in both threads is compiled here; all else comes from the library as it is.
REQUESTER = [
    *sorted(path.stem for path in DRIVER.glob("traffic/requester*.c")),
    *(
        "threads",
        "workers",
        "reply_thread",
        "progress",
        "responder",
        "responder_role",
        "demux",
        "record",
        "histogram",
        "payload",
        "check",
        "warmup",
    ),
]


def sources(*names: str) -> list[str]:
    """Return the files with these names, whatever room of the driver or folder of a pattern they are in."""
    harness = DRIVER.parent
    found = [[*DRIVER.glob(f"*/{name}.c"), *harness.glob(f"patterns/*/{name}.c")] for name in names]
    assert all(found), f"no such file, for one of {names}"
    return [str(path.relative_to(harness)) for paths in found for path in paths]


PROGRAMS = {
    "test_queue": [],
    "test_workers": sources("threads", "workers"),
    "test_jobs": sources("threads", "workers", "responder", "responder_role"),
    "test_worker_pool": sources("threads", "workers", "responder", "responder_role"),
    "test_client_threads": sources("client_threads", "shared_connection", *REQUESTER),
    "test_reply_thread": [*sources(*REQUESTER), "driver/tests/fake.c", "patterns/rpc/rpc.c"],
}

LONG = {"test_client_threads", "test_reply_thread"}
"""Those that take more time than all others together."""
FEW = {**os.environ, "CADGE_TEST_SHARE": "20"}
"""ThreadSanitizer finds an access without order in the first thousands as well."""


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.long] * (one in LONG)) for one in PROGRAMS])
@pytest.mark.first(1)
def test_threads_share_nothing_by_mistake(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    (test,) = [*DRIVER.glob(f"tests/{name}.c"), *DRIVER.parent.glob(f"patterns/*/tests/{name}.c")]
    build(program, [test, *(DRIVER.parent / source for source in PROGRAMS[name])])
    done = subprocess.run([program], env=FEW, capture_output=True, text=True, timeout=200, check=False)
    assert "ThreadSanitizer" not in done.stderr, done.stderr[-4000:]
    # whether all is right is what it says at full speed
    assert done.stdout.splitlines()[-1].startswith("1.."), done.stdout + done.stderr
