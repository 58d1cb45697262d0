# SPDX-License-Identifier: BSD-3-Clause
"""What each test costs is written down: with its fixtures and its children, and shown in order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ci.cost import machine, most

ROOT = Path(__file__).parents[2]
TESTS = """\
import subprocess, sys

BURN = "import time\\nwhile time.process_time() < 0.4: pass"

def test_idle(): pass

def test_child(): subprocess.run([sys.executable, "-c", BURN], check=True)
"""


def test_costs_are_written_and_shown(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    costs = tmp_path / "costs"
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "ci.cost",
        "-p",
        "no:cacheprovider",
        "-q",
        str(tmp_path / "test_it.py"),
    ]
    done = subprocess.run(
        argv,
        cwd=ROOT,
        env={**os.environ, "CADGE_TEST_COSTS": str(costs), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    used = {row[2].rpartition("::")[2]: float(row[0]) for row in map(str.split, costs.read_text().splitlines())}
    assert set(used) == {"test_idle", "test_child"}
    assert used["test_child"] >= 0.4 > used["test_idle"]
    before = "cpu  1 0 1 10 0 0 0 0 0 0"
    argv = [sys.executable, "ci/cost.py", costs, before]
    lines = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0].startswith("test: 2 tests used ")
    assert lines[1].endswith("::test_child")
    assert lines[2].endswith("::test_idle")


def test_no_more_than_ten_are_shown() -> None:
    lines = most([f"{number}\t1\ttest_{number}\n" for number in range(12)])
    assert lines[0] == "12 tests used 66 s of processor time; the 10 that used most:"
    assert [line.split()[-1] for line in lines[1:]] == [f"test_{number}" for number in range(11, 1, -1)]


def test_others_and_the_host_are_told_from_us() -> None:
    """100 s of two processors: 60 s of ours, 10 s of others, 20 s idle, 10 s taken by the host."""
    hz = os.sysconf("SC_CLK_TCK")
    after = f"cpu  {40 * hz} {10 * hz} {20 * hz} {15 * hz} {5 * hz} 0 0 {10 * hz} 0 0"
    said = machine("cpu  0 0 0 0 0 0 0 0 0 0", after, 60.0)
    assert said == "60 s of processor time in all; of the processors, others used 10%, the host took 10%"
