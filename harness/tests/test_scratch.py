# SPDX-License-Identifier: BSD-3-Clause
"""Folders of a run: gone with it, or swept by the next one where its process was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cadge_harness.run.playbook import scratch_folder, sweep

HOLD = """\
import sys, pathlib
from cadge_harness.run.playbook import scratch_folder
with scratch_folder(pathlib.Path(sys.argv[1])) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_it_goes_with_its_run(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        assert folder.parent == tmp_path
        assert folder.name.startswith("run-")
        (folder / "lease").touch()
        sweep(tmp_path)
        assert folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_that_of_a_killed_process_is_swept_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    held = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folders = [Path(process.stdout.readline().strip()) for process in held if process.stdout]
    assert all(folder.is_dir() for folder in folders)
    held[0].kill()
    held[0].communicate()
    assert folders[0].is_dir()
    sweep(tmp_path)
    assert not folders[0].exists()
    assert folders[1].is_dir()
    held[1].communicate()
    assert not folders[1].exists()


def test_what_was_never_finished_goes_after_a_day(tmp_path: Path) -> None:
    for name in ("run-old", "new-run-old", "run-young", "new-run-young", "mine"):
        (tmp_path / name).mkdir()
        if not name.endswith("young"):
            os.utime(tmp_path / name, (1, 1))
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"run-young", "new-run-young", "mine"}
