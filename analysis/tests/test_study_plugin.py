# SPDX-License-Identifier: BSD-3-Clause
"""The code of a study: found in its folder, loaded by path, and refused where it does not fit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cadge_analysis.errors import BadInputError
from cadge_analysis.study import plugin, published

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "analysis/studies"
CODE = """\
from cadge_analysis.study.plugin import Frozen


class Spec(Frozen):
    answer: int


def sections(comparison, published, spec):
    return None
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study with code of its own."""
    folder = tmp_path / "mine"
    shutil.copytree(STUDIES / "darpc", folder)
    (folder / "cadge_study_mine").mkdir()
    (folder / "cadge_study_mine/__init__.py").write_text(CODE)
    with (folder / published.FILE).open("a") as file:
        file.write("\nown: {answer: 42}\n")
    return folder


def test_it_is_found_and_given_what_is_its_own(study: Path) -> None:
    own = plugin.load_own(study, published.read(study))
    assert own is not None
    assert own.spec.model_dump() == {"answer": 42}
    assert plugin.load_own(STUDIES / "darpc", published.read(STUDIES / "darpc")) is None


def test_a_changed_folder_is_not_the_one_that_was_loaded(study: Path, tmp_path: Path) -> None:
    """Two folders with packages of one name: each gets its own code."""
    plugin.load_own(study, published.read(study))
    other = tmp_path / "other"
    shutil.copytree(study, other)
    (other / "cadge_study_mine/__init__.py").write_text(CODE.replace("answer: int", "answer: int\n    more: int = 7"))
    own = plugin.load_own(other, published.read(other))
    assert own is not None
    assert own.spec.model_dump() == {"answer": 42, "more": 7}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (CODE.replace("answer: int", "answer: bool"), r"published\.yml: own: answer: must be true or false, not 42"),
        (
            CODE.replace("class Spec", "class Other"),
            r"cadge_study_mine: a study's package has the names Spec and sections",
        ),
        ("import nowhere_at_all\n", r"cadge_study_mine cannot be imported: .*nowhere_at_all"),
        ("def (:\n", r"cadge_study_mine cannot be imported: "),
    ],
)
def test_what_does_not_fit_is_refused(study: Path, code: str, says: str) -> None:
    (study / "cadge_study_mine/__init__.py").write_text(code)
    with pytest.raises(BadInputError, match=says):
        plugin.load_own(study, published.read(study))


def test_one_without_the_other_is_refused(study: Path) -> None:
    figures = published.read(study)
    with pytest.raises(BadInputError, match=r"`own` is missing, which cadge_study_mine reads"):
        plugin.load_own(study, figures.model_copy(update={"own": None}))
    (study / "cadge_study_more").mkdir()
    (study / "cadge_study_more/__init__.py").write_text(CODE)
    with pytest.raises(BadInputError, match=r"a study has one package cadge_study_NAME, not 2"):
        plugin.load_own(study, figures)
    for name in ("more", "mine"):
        shutil.rmtree(study / f"cadge_study_{name}")
    with pytest.raises(BadInputError, match=r"nothing reads `own`: no package cadge_study_NAME is here"):
        plugin.load_own(study, figures)


def test_the_analysis_needs_no_study(tmp_path: Path) -> None:
    """Without any study on the path, every module of the analysis is imported."""
    sources = [str(ROOT / part / "src") for part in ("analysis", "results")]
    code = f"""
import sys
sys.path[:] = {sources!r} + [path for path in sys.path if "studies" not in path]
import pkgutil, cadge_analysis
for module in pkgutil.walk_packages(cadge_analysis.__path__, "cadge_analysis."):
    if not module.name.endswith(("__main__", "simgrid_child")):
        __import__(module.name)
assert not [name for name in sys.modules if name.startswith("cadge_study")]
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
