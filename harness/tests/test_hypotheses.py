# SPDX-License-Identifier: BSD-3-Clause
"""The claims beside the studies: ten, each tested somewhere or with a reason why not; what is named is there."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError
from cadge_analysis.study import claims

from .conftest import Answer

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "analysis" / "studies"
SWEEPS = {path.stem for path in (ROOT / "harness" / "sweeps").glob("*.yml")}
PATTERNS = {path.name for path in (ROOT / "harness" / "patterns").iterdir()}


@pytest.mark.long
def test_all_are_listed(cadge: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CADGE_ROOT", str(ROOT))
    data = json.loads(cadge("study", "--claims", "--json").out)["data"]["hypotheses"]
    assert [one["number"] for one in data] == list(range(1, 12))
    assert all(bool(one["tested"]) != bool(one["cannot"]) for one in data)
    said = " ".join(cadge("study", "--claims").out.split())
    assert "7 %: Throughput that a copy by the receiver took, at most (study trapeze)" in said
    assert "2,000,000 1/s: " in said
    assert f"11 hypotheses, {sum(bool(one['tested']) for one in data)} tested here" in said


@pytest.mark.parametrize(
    ("change", "message", "values"),
    [
        ({"tested": [{"study": "nobody"}]}, "none_called", {"kind": "study", "name": "nobody"}),
        (
            {"tested": [{"study": "trapeze", "section": "The moon"}]},
            "study_has_none",
            {"study": "trapeze", "kind": "section", "name": "The moon"},
        ),
        ({"tested": [{"sweep": "nothing"}]}, "none_called", {"kind": "sweep", "name": "nothing"}),
        ({"tested": [{"pattern": "none"}]}, "none_called", {"kind": "pattern", "name": "none"}),
        ({"tested": [{"section": "The copy"}]}, "give_study_sweep_pattern", {}),
        (
            {"published": [{"study": "trapeze", "figure": "speed"}]},
            "study_has_none",
            {"study": "trapeze", "kind": "figure", "name": "speed"},
        ),
        ({"cannot": "no such card"}, "give_either_where_tested", {}),
        ({"tested": []}, "give_either_where_tested", {}),
    ],
)
def test_what_is_named_has_to_be_there(
    tmp_path: Path, change: dict[str, object], message: str, values: dict[str, str]
) -> None:
    shutil.copytree(STUDIES, tmp_path / "studies")
    path = tmp_path / "studies" / claims.HYPOTHESES
    document = yaml.safe_load(path.read_text())
    document["hypotheses"][0] |= change
    path.write_text(yaml.safe_dump(document))
    why = messages.say("study", f"hypothesis_file.{message}", **values)
    with pytest.raises(BadInputError, match=re.escape(why)):
        claims.read(tmp_path / "studies", SWEEPS, PATTERNS)


def test_without_the_file_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"hypotheses\.yml cannot be read"):
        claims.read(tmp_path, SWEEPS, PATTERNS)
