# SPDX-License-Identifier: BSD-3-Clause
"""`make new-pattern` writes a folder of two files: the skeleton, or another pattern, under a new name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


SKELETON = "harness/driver/tests/patterns/closed_loop"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with the script, the skeleton and one pattern."""
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci/new-pattern", tmp_path / "ci")
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / SKELETON, tmp_path / SKELETON)
    brief = tmp_path / "harness/patterns/brief"
    brief.mkdir(parents=True)
    (brief / "brief.c").write_text('DRV_PATTERN(brief); /* "brief", not briefly */\n')
    (brief / "brief.pattern.yml").write_text("title: Brief\norder: 30\nfirst_screen: {at: 8}\naxis: bytes\n")
    return tmp_path


def make(tree: Path, name: str, begin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the verb with this name, and the pattern to begin with."""
    command = ["make", "-s", "new-pattern"]
    environment = {**os.environ, "NAME": name, "FROM": begin}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=30, check=False)


def test_two_files_are_written(tree: Path) -> None:
    done = make(tree, "gather")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["harness/patterns/gather/gather.c", "harness/patterns/gather/gather.pattern.yml"]
    code = (tree / "harness/patterns/gather/gather.c").read_text()
    assert "DRV_PATTERN(gather);" in code
    assert '#include "gather.params.h"' in code
    assert "closed_loop" not in code
    assert code.count("\n") < 200, "lines of C for a closed loop with two sizes"
    assert not re.search(r"values\[\d|record, \d", code), "a quantity is named by the enum, not by its number"
    text = (tree / "harness/patterns/gather/gather.pattern.yml").read_text()
    assert "$schema=../../../results/schema/" in text.partition("title")[0]
    assert 'title: "gather"\n' in text
    assert "order: 40\n" in text


def test_another_pattern_to_begin_with(tree: Path) -> None:
    assert make(tree, "incast", "brief").returncode == 0
    patterns = tree / "harness/patterns"
    assert (patterns / "incast/incast.c").read_text() == 'DRV_PATTERN(incast); /* "incast", not briefly */\n'
    assert (patterns / "incast/incast.pattern.yml").read_text() == 'title: "incast"\norder: 40\naxis: bytes\n'
    for absent in ("nowhere", "../patterns/brief", "a;b"):
        assert make(tree, "other", absent).returncode == 2, absent
    assert not list(patterns.glob("other*"))


def test_nothing_is_overwritten_and_no_name_reaches_a_shell(tree: Path) -> None:
    for name in ("", "brief", "In", "a+b", "../x", "a b", "a;touch x", "_a"):
        assert make(tree, name).returncode == 2, name
    assert sorted(path.name for path in tree.iterdir()) == ["Makefile", "ci", "harness"]
    assert (tree / "harness/patterns/brief/brief.c").read_text().startswith("DRV_PATTERN(brief)")


def test_the_first_pattern_of_a_tree(tree: Path) -> None:
    shutil.rmtree(tree / "harness/patterns")
    assert make(tree, "gather").returncode == 0
    assert "order: 10\n" in (tree / "harness/patterns/gather/gather.pattern.yml").read_text()


def test_the_page_and_the_help_name_it() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## To add a pattern")[1].split("\n## ")[0]
    assert "make new-pattern NAME=" in page
    listed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    assert "new-pattern" in [line.split()[0] for line in listed.stdout.splitlines() if line.strip()]


def test_a_pattern_that_goes_is_linked_out(tmp_path: Path) -> None:
    """The driver is linked anew where a folder went. The compiler here only makes its file."""
    for part in ("harness", "layers/include", "layers/peregrine/engine"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("tests", "__pycache__", "src"))
    stub = tmp_path / "stub"
    stub.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in -o) echo "$*" >"$2" ;; rcs) : >"$2" ;; esac; shift; done\n'
    )
    stub.chmod(0o755)
    command = ["make", "-s", "-f", "harness/build.mk", "driver", f"CC={stub}", f"AR={stub}"]
    tables = [f"TABLES_PYTHON={sys.executable}", f"TABLES_CODE={ROOT / 'results/src'}"]
    driver = tmp_path / "build/bin/cadge-driver"
    for folder in (None, tmp_path / "harness/patterns/stream"):
        if folder:
            shutil.rmtree(folder)
        done = subprocess.run(
            [*command, *tables], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        assert ("patterns/stream/stream.o" in driver.read_text()) is (folder is None)
        assert "patterns/rpc/rpc.o" in driver.read_text()
