# SPDX-License-Identifier: BSD-3-Clause
"""Nothing that is shown changes unnoticed: the outputs of the scenes in `golden` are those that are kept.

Where an output may change, `ci/golden diff HEAD` shows how, and `ci/golden write` keeps it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from golden import kept
from golden.scenes import SCENES

HERE = Path(__file__).parent
SECOND = {
    "another_baseline", "bills", "bursts", "compare_changed", "disturbed", "everything", "known_differences", "load_",
    "native", "probed",
    "ranks", "service", "shares", "studies", "since_another_machine", "strips", "tails", "to_itself",
    "troubled", "two_launches",
    "unfinished",
}  # fmt: skip
"""Scenes that run hardly a statement of page/ and versus/ that the others do not: for `make long`."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in SECOND else []) for name in SCENES]
)
def test_outputs_are_those_that_are_kept(name: str, tmp_path: Path) -> None:
    made = SCENES[name](tmp_path)
    known = set(kept.SENTENCES.read_text(encoding="utf-8").splitlines())
    new = [one for one in kept.sentences({name: made}).splitlines() if one not in known]
    assert (new, kept.differing(name, made)) == ([], []), f"see: ci/golden diff HEAD {name}"


def test_every_output_that_is_kept_is_of_a_scene() -> None:
    names = {line.split()[1].partition("/")[0] for line in kept.SUMS.read_text(encoding="utf-8").splitlines()}
    assert names == set(SCENES)


def test_no_output_depends_on_hash_seed_time_zone_locale_terminal_or_folder(tmp_path: Path) -> None:
    strange = {"PYTHONHASHSEED": "77", "TZ": "Asia/Kathmandu", "LC_ALL": "C", "COLUMNS": "40", "TMPDIR": str(tmp_path)}
    path = os.pathsep.join((str(HERE), *sys.path))
    scenes = ("compare_machines", "one_of_all", "over_days", "settings")
    done = subprocess.run(
        [sys.executable, "-m", "golden", "check", *scenes],
        cwd=tmp_path, env={**os.environ, **strange, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_a_change_of_an_output_is_found(tmp_path: Path) -> None:
    made = SCENES["empty"](tmp_path)
    assert kept.differing("empty", made | {"text": made["text"] + "."}) == ["empty/text"]
    assert kept.differing("empty", {part: text for part, text in made.items() if part != "text"}) == ["empty/text"]
    assert kept.differing("empty", made | {"further": ""}) == ["empty/further"]
