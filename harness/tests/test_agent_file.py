# SPDX-License-Identifier: BSD-3-Clause
"""The agent as one file: the same bytes from the same sources, run by a Python that has nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from cadge_harness.run import agent_file


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first = agent_file.agent_bytes()
    for path in agent_file.SOURCES.rglob("*.py"):
        os.utime(path)
    path = agent_file.write_agent(tmp_path)
    assert path.read_bytes() == first
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert "__main__.py" in names
        assert all(name == "__main__.py" or name.startswith("cadge_agent/") for name in names)


def test_it_is_run_by_its_name_and_by_a_python_without_packages(tmp_path: Path) -> None:
    path = agent_file.write_agent(tmp_path)
    for argv in ([str(path)], [sys.executable, "-I", "-S", str(path)]):
        done = subprocess.run([*argv, "facts", "--host", "n1"], capture_output=True, text=True, check=True, timeout=60)
        node = json.loads(done.stdout)
        assert (node["schema"], node["host"]) == ("cadge.node/1", "n1")
