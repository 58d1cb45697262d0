# SPDX-License-Identifier: BSD-3-Clause
"""What a script starts by the machine's Python needs Python alone: a fresh machine has no more."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTED = re.compile(r"(?<![/\w])python3 +(ci/\w+\.py)")


def imported(file: Path) -> set[str]:
    """Return the names of the packages that a program imports, at its top or within a function."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_what_the_machines_python_runs_needs_python_alone() -> None:
    scripts = [ROOT / "Makefile", *(path for path in (ROOT / "ci").iterdir() if path.is_file() and not path.suffix)]
    started = {
        (script.name, name)
        for script in scripts
        for name in STARTED.findall(re.sub(r"(?m)^\s*#.*$", "", script.read_text(encoding="utf-8", errors="replace")))
    }
    assert ("conformance", "ci/conformance_table.py") in started
    needs = {(*pair, name) for pair in started for name in imported(ROOT / pair[1]) - sys.stdlib_module_names}
    assert needs == set()
