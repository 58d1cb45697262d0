# SPDX-License-Identifier: BSD-3-Clause
"""The playbooks pass ansible-lint's production profile, with nothing skipped: what `make check`, too, shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_production_profile(tmp_path: Path) -> None:
    tools = Path(sys.prefix) / "bin"
    done = subprocess.run(
        [tools / "ansible-lint", "--offline", "--nocolor", "--profile", "production", "-c", ".ansible-lint"],
        cwd=ROOT / "playbooks",
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "ANSIBLE_HOME": str(tmp_path / "ansible")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
