# SPDX-License-Identifier: BSD-3-Clause
"""Which mutants are made of a text, which of them are chosen, and that a test finds one that it can find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ci.mutants import generate
from ci.mutants.__main__ import KEPT, ROOT, CallMap

CHANGES = {
    "a = b < c": ["b >= c", "b <= c"],
    "a = b == c": ["b != c"],
    "a = b in c": ["b not in c"],
    "a = b and not c": ["b or not c", "b and c"],
    "a = b // c * d": ["b // c / d", "b / c * d"],
    "a = (b, 2) + c": ["(b, 3) + c"],
    "a = 7": ["8"],
    "a = 0.5": ["1.0"],
    "a = True": ["False"],
    "a = b if c else d": ["b if not c else d"],
    "a = [b for b in c if b > d]": ["[b for b in c if not b > d]", "[b for b in c if b >= d]"],
    "a = f'{b + 1}'": ["f'{b - 1}'", "f'{b + 2}'"],
    "a = 'x' + b": [],
    "a: Literal[3] = b": [],
    "a = zip(b, c, strict=True)": [],
    "assert a < b": [],
    "raise ValueError(3)": [],
}
SAID = """\
def warned(n):
    if n > 3:
        return say("many", n=n + 1)

def counted(n):
    return 1 if n > 3 else 2
"""
SHARE = "def share(part, whole):\n    return part / whole if whole else 0\n"


@pytest.mark.parametrize("source", CHANGES)
def test_changes_of_a_line(source: str) -> None:
    mutants = list(generate.of_source("stats/x.py", source.encode()))
    assert [one.becomes.partition(" = ")[2] for one in mutants] == CHANGES[source]
    assert all((one.was, one.line, one.called) == (source, 1, "stats/x.py") for one in mutants)


def test_a_return_becomes_none() -> None:
    mutants = list(generate.of_source("x.py", SHARE.encode()))
    assert "return None" in [one.becomes for one in mutants]
    assert {(one.function, one.called) for one in mutants} == {("share", "x.py:1")}


def test_of_code_that_says_sentences_the_conditions_alone() -> None:
    mutants = generate.of_source("x.py", SAID.encode(), conditions=True)
    assert [one.becomes for one in mutants] == ["if not n > 3:", "if n >= 3:", "if n > 4:"]


def test_new_code_moves_no_other_mutant_in_the_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(generate, "PACKAGE", tmp_path)
    (tmp_path / "cells").mkdir()
    code = [f"a{number} = b < {number}\n" for number in range(20)]
    chosen = []
    for text in ("".join(code), "".join(["def c():\n    return 4\n", *code])):
        (tmp_path / "cells/x.py").write_text(text)
        chosen.append([one.key for one in generate.chosen("cells", 100, 5) if "c" not in one.function])
    assert chosen[0] == chosen[1]
    assert [one.key for one in generate.chosen("cells", 100, 6)] != chosen[0]


def test_what_changes_nothing_is_still_in_the_code() -> None:
    kept = yaml.safe_load(KEPT.read_text(encoding="utf-8"))
    for key, reason in kept["equivalent"].items():
        file = key.partition(" ")[0]
        assert key in {one.key for one in generate.of_source(file, (generate.PACKAGE / file).read_bytes())}
        assert reason
    assert set(kept["killed_least"]) <= set(generate.PACKAGES)


TESTS = {
    "test_stats.py::test_median_is_a_middle_value_or_between_the_two_middle_ones": (0, "stats: 1 of 1 killed"),
    "test_messages.py::test_forms_of_values": (1, "stats: 0 of 1 killed"),
}


@pytest.mark.long
@pytest.mark.parametrize("test", TESTS)
def test_a_mutant_is_killed_by_a_test_that_sees_its_value(tmp_path: Path, test: str) -> None:
    """Whoever calls the function, the value is looked at by one of them."""
    source = (generate.PACKAGE / "stats/intervals.py").read_bytes()
    calls = [one.called for one in generate.of_source("stats/intervals.py", source) if one.function == "median"]
    called = {"test": f"analysis/tests/{test}", "uses": [], "seconds": 0.1, "calls": calls, "passed": True}
    (tmp_path / "1").write_text(json.dumps(called))
    only = "median: return ordered[half] => return None"
    argv = [sys.executable, "-m", "ci.mutants", "stats", "--called", tmp_path, "--count", "100000", "--only", only]
    done = subprocess.run([*argv, "--jobs", "1"], cwd=ROOT, capture_output=True, text=True, check=False)
    status, said = TESTS[test]
    assert (done.returncode, done.stderr) == (status, "")
    assert said in done.stdout
    assert ("+ return None" in done.stdout) == bool(status)


def test_the_cheapest_tests_come_first_and_share_their_fixtures(tmp_path: Path) -> None:
    lines = [
        {"fixture": "f", "seconds": 5.0, "calls": ["x.py:1"]},
        {"test": "a", "uses": ["f"], "seconds": 1.0, "calls": [], "passed": True},
        {"test": "b", "uses": ["f"], "seconds": 2.0, "calls": [], "passed": True},
        {"test": "c", "uses": [], "seconds": 3.0, "calls": ["x.py:1"], "passed": True},
        {"test": "d", "uses": [], "seconds": 0.1, "calls": ["x.py:1"], "passed": False},
    ]
    (tmp_path / "1").write_text("\n".join(map(json.dumps, lines)))
    called = CallMap(tmp_path)
    assert called.cheapest("x.py:1", 20.0) == (["c", "a", "b"], 11.0)
    assert called.cheapest("x.py:1", 9.0)[0] == ["c", "a"]
    assert called.cheapest("x.py:9", 0.0)[0] == ["c"]
