# SPDX-License-Identifier: BSD-3-Clause
"""The table of conformance: what the suite itself printed, counted, and every reason kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
SUITE = CHECKOUT / "build" / "bin" / "cadge-conformance"
TABLE = CHECKOUT / "ci" / "conformance_table.py"


def table(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TABLE, folder], capture_output=True, text=True, check=False)


def suite(folder: Path, layer: str, place: str, *more: str) -> str:
    if not SUITE.exists():
        pytest.skip("the conformance suite is not built")
    command = [SUITE, "--modules", CHECKOUT / "build" / "layers", "--layer", layer, "--place", place, "--wait", "poll"]
    log = subprocess.run([*command, "--cycles", "2", *more], capture_output=True, text=True, check=False).stdout
    (folder / f"{layer}.{place}.poll.tap").write_text(log)
    return log


def test_what_the_suite_printed_is_counted(tmp_path: Path) -> None:
    only = ("--only", "table_is_sound", "--only", "wait_after_connect")
    log = suite(tmp_path, "null-self", "self", *only)
    suite(tmp_path, "null-self", "between")
    passed = sum(line.startswith("ok ") and "# SKIP" not in line for line in log.splitlines())
    skipped = [line.partition("# SKIP ")[2] for line in log.splitlines() if line.startswith("ok ") and "# SKIP" in line]
    assert passed
    text = table(tmp_path).stdout
    cell = f"{passed} passed" + (f", {len(skipped)} do not apply" if skipped else "")
    assert f"| null-self | {cell} | \u2013 |" in text  # it does not claim to be a network
    for reason in skipped:
        assert f"{reason}: null-self self, poll" in text


def test_a_failure_stands_out(tmp_path: Path) -> None:
    log = suite(tmp_path, "null-self", "self", "--only", "table_is_sound")
    (tmp_path / "null-self.self.poll.tap").write_text(log.replace("ok 1 - table_is_sound", "not ok 1 - table_is_sound"))
    text = table(tmp_path).stdout
    assert "**1 failed**" in text
    assert "- null-self self, poll: table_is_sound" in text


def test_a_layer_that_does_not_open_there(tmp_path: Path) -> None:
    log = suite(tmp_path, "null-self", "self", "--only", "opens_and_limits")
    log = log.replace("- opens_and_limits", "- opens_and_limits # SKIP open refused (unsupported): no descriptor")
    (tmp_path / "null-self.self.poll.tap").write_text(log)
    text = table(tmp_path).stdout
    assert "| null-self | not offered |" in text
    assert "- open refused (unsupported): no descriptor: null-self self, poll" in text


def test_a_folder_without_logs(tmp_path: Path) -> None:
    done = table(tmp_path)
    assert done.returncode == 1
    assert "holds no logs" in done.stderr


def test_a_layer_on_a_provider_has_a_row_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mpi-p2p@mpich-5.0.2.between.poll.tap").write_text("1..2\nok 1 - message_max\nnot ok 2 - peer_dies\n")
    text = table(tmp_path).stdout
    assert "| mpi-p2p@mpich-5.0.2 | 1 passed, **1 failed** |" in text
    assert "- mpi-p2p@mpich-5.0.2 between, poll: peer_dies" in text
