# SPDX-License-Identifier: BSD-3-Clause
"""A failed test is tried again where the host took the processors away, and nowhere else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """\
from pathlib import Path

import pytest
from ci import stolen_time

HERE = Path(__file__).parent
stolen_time.STAT = HERE / "stat"


def spend(stolen: int) -> None:
    '''Let a hundred ticks go by.'''
    steal = HERE / "steal"
    taken = stolen + (int(steal.read_text()) if steal.exists() else 0)
    steal.write_text(str(taken))
    user = 100 * taken // stolen - taken if stolen else 100
    stolen_time.STAT.write_text(f"cpu {user} 0 0 0 0 0 0 {taken} 0 0\\n")


def passes_at(number: int) -> None:
    tries = HERE / "tries"
    count = 1 + (int(tries.read_text()) if tries.exists() else 0)
    tries.write_text(str(count))
    spend(STOLEN)
    assert count >= number


@pytest.fixture(scope="module")
def made() -> None:
    passes_at(MADE)


@pytest.mark.MARK
def test_it(made: None) -> None:
    passes_at(PASSES)
"""


@pytest.mark.parametrize(
    ("mark", "workers", "stolen", "made", "passes", "tries", "code"),
    [
        ("paired", 0, 0, 1, 2, 2, 0),  # made; it passes
        ("paired", 0, 4, 1, 3, 2, 1),  # too little was taken: it fails
        ("paired", 1, 6, 1, 3, 4, 0),  # fails once, passes then; what is shared is made anew
        ("spare", 0, 50, 1, 3, 2, 1),  # it times nothing: it fails
        ("still", 0, 6, 2, 3, 3, 0),  # what is shared fails to be set up, once
        pytest.param("alone", 1, 50, 1, 99, 6, 1, marks=pytest.mark.long),  # three tries, no more
        ("alone", 0, 50, 99, 0, 3, 1),  # of what is shared, too
    ],
)
@pytest.mark.first(2)
def test_only_where_processors_were_taken(
    tmp_path: Path, mark: str, workers: int, stolen: int, made: int, passes: int, tries: int, code: int
) -> None:
    words = f"STOLEN, MADE, PASSES = {stolen}, {made}, {passes}\n"
    (tmp_path / "test_some.py").write_text(TESTS.replace("MARK", mark) + "\n\n" + words)
    (tmp_path / "stat").write_text("cpu 0 0 0 0 0 0 0 0 0 0\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-p", "ci.stolen_time", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, f"-n{workers}", "-c", tmp_path / "pytest.ini", "--rootdir", tmp_path, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={
            **os.environ,
            "CADGE_REPEATED": str(tmp_path / "repeated"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # half of the time that it takes
        },
    )
    assert ended.returncode == code, ended.stdout
    assert (tmp_path / "tries").read_text() == str(tries), ended.stdout
    again = tries > 2
    repeated = tmp_path / "repeated"
    lines = repeated.read_text().splitlines() if again else []
    assert repeated.exists() == again
    assert all(line == f"test_some.py::test_it: the host took {stolen}% of the processors" for line in lines)
    assert len(lines) == {2: 0, 3: 2 if code else 1, 4: 1, 6: 2}[tries]
    assert (f"TRIED AGAIN test_some.py::test_it: the host took {stolen}%" in ended.stdout) == again, ended.stdout
