# SPDX-License-Identifier: BSD-3-Clause
"""A layer over verbs in short, on the emulated machine with soft RDMA devices; and what it says of mistakes."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MACHINE = ROOT / "ci/rdma-machine"
SHORT = "library_stated payload_intact depth_max put_get_fetch_add quiet_is_visible semantics_proved describe_path_true"
NEEDED = ("qemu-system-x86_64", "busybox", "cpio", "modprobe", "depmod", "xz", "rdma")


def run(*command: str | Path, environment: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command of ci/ in the checkout."""
    return subprocess.run(
        ["env", *environment, *command], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )


@pytest.mark.long  # emulating a machine takes longer than any other test; make long has the whole suite there
@pytest.mark.paired
def test_a_layer_over_verbs_from_one_device_to_another() -> None:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or platform.machine() != "x86_64":
        pytest.skip(f"an emulated machine takes x86_64 and {', '.join(missing) or 'nothing else'}")
    if not (ROOT / "build/layers/rdma-verbs.so").exists():
        pytest.skip("rdma-verbs is not built")
    done = run("ci/rdma/run", "rdma-verbs", environment=(f"ONLY={SHORT}", "WAITS=poll", "SECONDS_EACH=240"))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| rdma-verbs |")]
    passed = int(row.split("|")[3])
    assert passed == len(SHORT.split()) + 2, row  # opens_and_limits goes before, ends_clean after


@pytest.mark.parametrize(
    "arguments", [(), ("--",), ("--seconds", "--", "true"), ("--seconds", "soon", "--", "true"), ("true",)]
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = run(MACHINE, *arguments)
    assert done.returncode == 2
    assert "ci/rdma-machine [--seconds N] -- COMMAND" in done.stderr


def test_a_layer_that_there_is_not() -> None:
    done = run("ci/rdma/run", "rdma-nothing")
    assert done.returncode == 2
    assert done.stderr == "rdma: there is no layer rdma-nothing\n"
