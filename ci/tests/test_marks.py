# SPDX-License-Identifier: BSD-3-Clause
"""ci/test looks for marks in the text of test_*.py: no other file may give one, but for what all of analysis/ has."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"\bmark\.(?:alone|paired|spare|still)\b")


@pytest.mark.parametrize("room", ["ci", "results", "harness", "analysis", "layers"])
def test_no_other_file_gives_marks(room: str) -> None:
    others = [path for path in (ROOT / room).rglob("*.py") if not path.name.startswith("test_")]
    found = [path for path in others if MARK.search(path.read_text(encoding="utf-8"))]
    assert not found
