# SPDX-License-Identifier: BSD-3-Clause
"""`make new-pattern` writes two files, which are those of the shortest pattern under another name."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with the script and two patterns, of which the second is the shorter one."""
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci/new-pattern", tmp_path / "ci")
    shutil.copy(ROOT / "Makefile", tmp_path)
    patterns = tmp_path / "harness/patterns"
    patterns.mkdir(parents=True)
    (patterns / "longer").mkdir()
    (patterns / "brief").mkdir()
    (patterns / "longer/longer.c").write_text("/* 1 */\n/* 2 */\n/* 3 */\nlonger\n")
    (patterns / "longer/longer.pattern.yml").write_text("title: Longer\norder: 30\n")
    (patterns / "brief/brief.c").write_text('DRV_PATTERN(brief); /* "brief", not briefly */\n')
    (patterns / "brief/brief.pattern.yml").write_text("title: Brief\norder: 20\nfirst_screen: {at: 8}\naxis: bytes\n")
    return tmp_path


def make(tree: Path, name: str, begin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the verb with this name, and the pattern to begin with."""
    command = ["make", "-s", "new-pattern"]
    environment = {**os.environ, "NAME": name, "FROM": begin}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=30, check=False)


def test_two_files_are_written(tree: Path) -> None:
    done = make(tree, "incast")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["harness/patterns/incast/incast.c", "harness/patterns/incast/incast.pattern.yml"]
    patterns = tree / "harness/patterns"
    assert (patterns / "incast/incast.c").read_text() == 'DRV_PATTERN(incast); /* "incast", not briefly */\n'
    assert (patterns / "incast/incast.pattern.yml").read_text() == 'title: "incast"\norder: 40\naxis: bytes\n'


def test_another_pattern_to_begin_with(tree: Path) -> None:
    """One of the patterns, or one of those of the driver's tests, whose schema stands elsewhere."""
    assert make(tree, "incast", "longer").returncode == 0
    assert (tree / "harness/patterns/incast/incast.c").read_text().endswith("incast\n")
    tests = tree / "harness/driver/tests/patterns"
    tests.mkdir(parents=True)
    for name in ("closed_loop.c", "closed_loop.pattern.yml", "ring.c"):
        shutil.copy(ROOT / "harness/driver/tests/patterns" / name, tests)
    assert make(tree, "gather", "closed-loop").returncode == 0
    code = (tree / "harness/patterns/gather/gather.c").read_text()
    assert "DRV_PATTERN(gather);" in code
    assert "closed_loop" not in code
    head, _, _ = (tree / "harness/patterns/gather/gather.pattern.yml").read_text().partition("title")
    assert "$schema=../../../results/schema/" in head
    for absent in ("ring", "nowhere", "../patterns/longer", "a;b"):
        assert make(tree, "other", absent).returncode == 2, absent
    assert not list((tree / "harness/patterns").glob("other*"))


def test_nothing_is_overwritten_and_no_name_reaches_a_shell(tree: Path) -> None:
    for name in ("", "brief", "In", "a+b", "../x", "a b", "a;touch x", "_a"):
        assert make(tree, name).returncode == 2, name
    assert sorted(path.name for path in tree.iterdir()) == ["Makefile", "ci", "harness"]
    assert (tree / "harness/patterns/brief/brief.c").read_text().startswith("DRV_PATTERN(brief)")


def test_without_a_pattern_there_is_nothing_to_begin_with(tree: Path) -> None:
    shutil.rmtree(tree / "harness/patterns")
    done = make(tree, "incast")
    assert done.returncode == 2
    assert "no pattern" in done.stderr


def test_the_page_and_the_help_name_it() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## To add a pattern")[1].split("\n## ")[0]
    assert "make new-pattern NAME=" in page
    listed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    assert "new-pattern" in [line.split()[0] for line in listed.stdout.splitlines() if line.strip()]
