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
[OWN] = re.findall(r"^export CADGE_RESULTS=\S+$", PAGE, re.MULTILINE)
"""What makes `last` the tutorial's own campaign."""


def verbs() -> list[str]:
    return [line.split()[1] for line in COMMANDS]


def test_the_tutorial_goes_from_a_look_to_a_comparison() -> None:
    assert verbs() == ["doctor", "layers", "quick", "plan", "run", "compare", "compare", "compare"]


def test_last_is_the_tutorial_s_own_campaign() -> None:
    before, after = PAGE.split(OWN)
    assert "cadge run" not in before
    assert not re.search(r"\blast\b.*$", "\n".join(line for line in before.splitlines() if "cadge" in line))
    assert after.count("cadge compare last:") == 2


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_commands_of_the_tutorial_do_what_it_says(tmp_path: Path) -> None:
    """A second campaign is made before the last one, which compares two; `last` is none of those elsewhere."""
    environment = {**os.environ, "HOME": str(tmp_path), "CADGE_RESULTS": str(tmp_path / "others")}
    begun = False

    def run(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f"{OWN}; {line}" if begun else line],
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

    said = []
    measured = next(line for line in COMMANDS if line.split()[1] == "run")
    for line in COMMANDS[:-1]:
        begun = begun or line == measured
        said.append(run(line))
    own = tmp_path / Path(OWN).name
    (earlier,) = (path.name for path in own.glob("2*Z-*"))
    assert (own / earlier / "report.html").is_file()
    assert "faster" in said[verbs().index("compare")]
    assert "path" in said[next(at for at, line in enumerate(COMMANDS) if "--point" in line)]
    run(measured)
    assert "what the machine did between the campaigns" in run(COMMANDS[-1].replace("EARLIER", earlier))
