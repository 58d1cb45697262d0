# SPDX-License-Identifier: BSD-3-Clause
"""The tutorial's commands, run as they stand there, on this machine's own testbed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "harness/TUTORIAL.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.startswith(".venv/bin/cadge ")
]


def verbs() -> list[str]:
    return [line.split()[1] for line in COMMANDS]


def test_the_tutorial_goes_from_a_look_to_a_comparison() -> None:
    assert verbs() == ["doctor", "layers", "plan", "run", "compare", "why", "compare"]


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_commands_of_the_tutorial_do_what_it_says(tmp_path: Path) -> None:
    """A second campaign is made before the last one, which compares two."""
    environment = {**os.environ, "CADGE_RESULTS": str(tmp_path)}

    def run(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    said = [run(line) for line in COMMANDS[:-1]]
    measured = next(line for line in COMMANDS if line.split()[1] == "run")
    (earlier,) = (path.name for path in tmp_path.glob("2*Z-*"))
    assert (tmp_path / earlier / "report.html").is_file()
    assert "faster" in said[verbs().index("compare")]
    assert "path" in said[verbs().index("why")]
    run(measured)
    assert "what the machine did between the campaigns" in run(COMMANDS[-1].replace("EARLIER", earlier))
