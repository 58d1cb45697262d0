# SPDX-License-Identifier: BSD-3-Clause
"""The plugin that leaves further cases of a test to the long form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = """
import pytest

@pytest.mark.first(2)
@pytest.mark.parametrize("number", range(5))
def test_each(number): pass

@pytest.mark.first(1)
@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.long), 2, 3])
def test_some_were_long_before(number): pass

def test_alone(): pass
"""


@pytest.mark.parametrize(
    ("selected", "names"),
    [
        ("not long", ["test_each[0]", "test_each[1]", "test_some_were_long_before[2]", "test_alone"]),
        ("long", [*(f"test_each[{n}]" for n in (2, 3, 4)), *(f"test_some_were_long_before[{n}]" for n in (1, 3))]),
    ],
)
def test_the_first_cases_are_short(tmp_path: Path, selected: str, names: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  first(n): x\n  long: x\n")
    command = [sys.executable, "-m", "pytest", "-p", "ci.short_form", "-p", "no:cacheprovider", "--rootdir", tmp_path]
    done = subprocess.run(
        [*command, "-c", tmp_path / "pytest.ini", "--collect-only", "-q", "-m", selected, tmp_path / "test_it.py"],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # half of the time that it takes
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line] == names, done.stdout
