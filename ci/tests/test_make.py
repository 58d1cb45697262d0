# SPDX-License-Identifier: BSD-3-Clause
"""Variables on make's command line: a target takes those that mean something to it, and names what is near another."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAIN = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def make(*words: str) -> "subprocess.CompletedProcess[str]":
    argv = ["make", "--no-print-directory", "-n", *words]
    return subprocess.run(argv, cwd=ROOT, env=PLAIN, capture_output=True, text=True, check=False, timeout=60)


def refused(*words: str) -> dict[str, str]:
    """Return each refused variable, with the one that is offered in its place."""
    done = make(*words)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    of = re.search(r"does not take (.*); it takes", done.stderr)
    assert of is not None, done.stderr
    return dict(re.findall(r"(\w+)(?: \(did you mean (\w+)\?\))?(?:, |$)", of[1]))


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("sweep LAYER=x", {"LAYER": "LAYERS"}),
        ("sweep SWEEPS=full", {"SWEEPS": "SWEEP"}),
        ("sweep SWEPE=full", {"SWEPE": "SWEEP"}),
        ("sweep layers=x", {"layers": "LAYERS"}),
        ("sweep BUDGET=3min", {"BUDGET": "CADGE_BUDGET"}),
        ("sweep CADGE_BUDGTE=3min", {"CADGE_BUDGTE": "CADGE_BUDGET"}),
        ("sweep INVENTRY=x TESTBEDS=local", {"INVENTRY": "INVENTORY", "TESTBEDS": "TESTBED"}),
        ("sweep LAYERS=x NAME=y", {"NAME": ""}),
        ("report RNU=x", {"RNU": "RUN"}),
        ("conformance LAYERS=x", {"LAYERS": "LAYER"}),
        ("new-layer NAMES=x", {"NAMES": "NAME"}),
        ("build RUN=x", {"RUN": ""}),
        ("clean SWEEP=x", {"SWEEP": "CADGE_SWEEP"}),
        ("test RANDOM_THING=1", {"RANDOM_THING": ""}),
    ],
)
def test_a_strange_variable_is_refused_with_the_nearest(words: str, near: dict[str, str]) -> None:
    assert refused(*words.split()) == near


@pytest.mark.parametrize(
    "words",
    [
        "sweep SWEEP=full LAYERS=a,b TESTBED=local TUNE=yes SETUP=no",
        "sweep CADGE_BUDGET=3min CADGE_SEED=4",
        "build sweep LAYERS=x CC=gcc CXX=g++ CFLAGS=-O1 EXTRA_CFLAGS=-O1 PROFILE=release J=2 V=1",
        "report RUN=last",
        "build report RUN=last SETUP=no",
        "conformance LAYER=x PROFILE=asan CYCLES=3",
        "new-pattern NAME=x",
        "test CADGE_TEST_SCOPE=long CADGE_LOCK=mine",
        "help",
        "sweep PKG_CONFIG_PATH=/opt/lib/pkgconfig",
    ],
)
def test_what_a_target_takes_and_what_every_make_takes_are_let_through(words: str) -> None:
    done = make(*words.split())
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sweeep"], "no target sweeep (did you mean sweep?); there are: help setup build sweep"),
        (["build", "tset"], "no target tset (did you mean test?); there are"),
        (["layers"], "no target layers; there are"),  # a folder of that name is no target
        (["new-patern", "NAME=x"], "did you mean new-pattern?"),
    ],
)
def test_a_target_that_is_not_there_is_refused_with_the_nearest(words: list[str], said: str) -> None:
    done = make(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_completion_in_a_shell_gets_the_targets() -> None:
    done = make("-pq", "__BASH_MAKE_COMPLETION__=1", ".DEFAULT")
    assert "\nsweep: build\n" in done.stdout


def test_each_target_is_known_and_each_variable_of_ours_belongs_to_one() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE)
    verbs = re.search(r"^verbs := (.*)$", text, re.MULTILINE)
    exported = re.search(r"^export (.*)$", text, re.MULTILINE)
    assert verbs is not None
    assert exported is not None
    assert verbs[1].split() == targets
    taken = {name for names in re.findall(r"^of_[a-z-]+ := (.*)$", text, re.MULTILINE) for name in names.split()}
    assert set(exported[1].split()) <= taken


def test_another_make_may_hand_its_own_variables_on() -> None:
    done = subprocess.run(
        ["make", "-n", "help", "STRANGE=1"],
        cwd=ROOT, env={**PLAIN, "MAKELEVEL": "1"}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("given", "layers"), [("all", 0), ("null-self,sockets-tcp", 2), ("null-self sockets-tcp", 2)])
def test_the_build_takes_lists_as_cadge_run_does(given: str, layers: int, tmp_path: Path) -> None:
    show = "show: ; @echo $(ASKED)"
    argv = ["make", "-s", "-f", "layers/build.mk", f"BUILD={tmp_path}", f"LAYERS={given}", "--eval", show, "show"]
    done = subprocess.run(argv, cwd=ROOT, env=PLAIN, capture_output=True, text=True, check=True, timeout=60)
    names = done.stdout.split()
    assert {"null-self", "sockets-tcp"} <= set(names)
    assert len(names) == layers or (layers == 0 and len(names) > 20)


def test_a_build_says_each_part_as_it_is_made(tmp_path: Path) -> None:
    argv = ["make", "-s", "-f", "layers/build.mk", f"BUILD={tmp_path}", "LAYERS=null-self"]
    done = subprocess.run(
        argv, cwd=ROOT, env={**PLAIN, "CADGE_PROGRESS": "yes"}, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["built  null-self"]
    again = subprocess.run(argv, cwd=ROOT, env=PLAIN, capture_output=True, text=True, check=True, timeout=120)
    assert again.stdout == ""


@pytest.mark.parametrize(("part", "name"), [("layers/build.mk", "unit-gone"), ("harness/build.mk", "driver-test_gone")])
def test_the_program_of_a_test_that_is_gone_goes(tmp_path: Path, part: str, name: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / name).touch()
    said = make("-f", part, f"BUILD={tmp_path}", "unit-programs").stdout
    assert [line for line in said.splitlines() if line.startswith("rm -f ") and "/tests/" in line] == [
        f"rm -f {tmp_path}/tests/{name}"
    ]


def commands_of_the_pages() -> list[str]:
    """Return each `make TARGET NAME=VALUE ...` of a page, of the Makefile's help and of what the harness advises."""
    listing = ["git", "ls-files", "-z", "--", "*.md", "harness/src", "playbooks"]
    files = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout.split("\0")
    # the engine has a Makefile of its own; CHANGELOG is of the past
    apart = ("CHANGELOG.md", "layers/peregrine/engine/")
    paths = [ROOT / name for name in files if name and not name.startswith(apart) and (ROOT / name).is_file()]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.suffix in {".md", ".py", ".yml"}]
    command = re.compile(r"""\bmake((?: [a-z][a-z-]*)+(?: [A-Z_]+=(?:"[^"]*"|[^\s`"')]+))+)""")
    return sorted({found[1].strip() for text in texts for found in command.finditer(text)})


def test_each_command_of_a_page_is_accepted() -> None:
    commands = commands_of_the_pages()
    assert {"conformance LAYER=am-foo ONLY=TEST", "new-pattern NAME=gather"} <= set(commands)
    refusals = [done.stderr for words in commands if (done := make(*shlex.split(words))).returncode]
    assert refusals == []


def test_each_variable_in_the_help_of_a_target_is_accepted() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = re.findall(r"^([a-z-]+):.*## (.*)$", text, re.MULTILINE)
    named = [(target, name) for target, words in shown for name in re.findall(r"\b([A-Z]+)=", words)]
    assert {("conformance", "ONLY"), ("new-pattern", "FROM"), ("report", "RUN")} <= set(named)
    assert [done.stderr for target, name in named if (done := make(target, f"{name}=x")).returncode] == []
