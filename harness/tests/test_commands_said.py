# SPDX-License-Identifier: BSD-3-Clause
"""Commands that cadge prints can be pasted: they keep the user's options, and call the program that the user called."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from cadge_analysis.page.parts.provenance import run_again
from cadge_analysis.stats.load import Dataset
from cadge_cli.cli import command_of
from cadge_harness import __version__
from cadge_harness.paths import Checkout, find_checkout
from cadge_harness.plan.catalogue import read_catalogue
from cadge_results import Store
from cadge_results.command import Caller, called, command, retold

from .conftest import Answer, FakeRunner
from .test_damage import spoil, truncate

Cadge = Callable[..., Answer]
ROOT = Path(__file__).parents[2]
GIVEN = {"--results": ("--results", "/a b"), "--inventory": ("--inventory", "lab.yml"), "--layers": ("--layers", "x y")}


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cadge as somebody calls it who has it nowhere on the path."""
    monkeypatch.setattr(sys, "argv", ["../elsewhere/cadge"])


def options(verb: str) -> tuple[str, ...]:
    return {
        "run": ("--results", "--inventory", "--testbed", "--layers", "--sweep"),
        "resume": ("--results", "--inventory"),
        "testbed down": ("--json",),
    }.get(verb, ())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("resume", "last"), "resume last --results '/a b' --inventory lab.yml"),
        (("run", "--sweep", "smoke"), "run --sweep smoke --results '/a b' --inventory lab.yml --layers 'x y'"),
        (("run", "--testbed", "local"), "run --testbed local --results '/a b' --layers 'x y'"),
        (("run", "--results", "FOLDER"), "run --results FOLDER --inventory lab.yml --layers 'x y'"),
        (("testbed down",), "testbed down"),
        (("verify", "/a b/1"), "verify '/a b/1'"),
    ],
)
def test_what_is_kept(words: tuple[str, ...], said: str) -> None:
    called(Caller(program="bin/my cadge", given=GIVEN, options_of=options))
    try:
        assert command(*words) == f"'bin/my cadge' {said}"
        assert retold(f"cadge {words[0]} {shlex.join(words[1:])}".strip()) == f"'bin/my cadge' {said}"
        assert retold("make build") == "make build"
    finally:
        called(Caller())


def commands_in(text: str, program: str) -> list[list[str]]:
    """Return the command lines that a text has, by their program."""
    found = re.findall(rf"{re.escape(program)} [a-z]+[^\n]*", text)
    return [shlex.split(one) for one in found]


def check(answer: Answer, results: Path, *, verbs: set[str]) -> None:
    """Hold that each command that was printed is one, calls our program and keeps the folder of campaigns."""
    said = commands_in(answer.out + answer.err, "../elsewhere/cadge")
    assert {words[1] for words in said} == verbs, answer
    assert not re.search(
        r"(?<![/\w])cadge (run|resume|verify|report|preview|import|crosscheck) ", answer.out + answer.err
    )
    for words in said:
        found = command_of(words[1])
        assert found is not None
        context = found.make_context("cadge", words[2:])
        if "results" in context.params:
            assert context.params["results"] == results


@pytest.mark.usefixtures("checkout", "far")
def test_every_command_keeps_where_campaigns_are(cadge: Cadge, runner: FakeRunner, tmp_path: Path) -> None:
    results = tmp_path / "other results"
    where = ("--results", str(results))
    check(cadge("report", *where), results, verbs={"run"})
    runner.stop_after = 3
    check(cadge("run", "--sweep", "tiny", "--layers", "a-one", "--no-report", *where), results, verbs={"resume"})
    check(cadge("status", *where), results, verbs={"resume"})
    check(cadge("verify", *where), results, verbs={"resume"})
    runner.stop_after = None
    spoil(runner, {"5": "failed"})
    check(cadge("resume", "--no-report", *where), results, verbs={"resume"})
    check(cadge("resume", *where), results, verbs={"resume"})
    campaign = Store(results).open("last")
    truncate(campaign.layout.launch(campaign.plan.launches[1].launch_id))
    check(cadge("export", *where), results, verbs={"verify"})
    check(cadge("verify", *where), results, verbs={"verify", "resume"})
    assert json.loads(cadge("status", "--json", *where).out)["problems"][1].startswith("../elsewhere/cadge verify ")


def test_no_other_way_to_print_a_command() -> None:
    """A command in a text of the harness is made by `command`, is an error's own (`commands=`), or has no options."""
    allowed = {"cli.py", "errors.py", "command.py"}
    found = []
    for path in sorted([*ROOT.glob("harness/src/**/*.py"), *ROOT.glob("results/src/**/*.py")]):
        if path.name in allowed:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"(?<!see): +cadge [a-z]+", line):
                found.append(f"{path.name}:{number}: {line.strip()}")
    for path in sorted(ROOT.glob("*/src/**/*.py")):
        if path.name in {*allowed, "bundle.py"}:  # which is for whoever unpacks it, on a machine of his own
            continue
        text = re.sub(r'"\n\s+f?"', "", path.read_text())
        verbs = "compare|crosscheck|history|plan|report|resume|run|status|study|sweeps|verify|why"
        with_values = re.findall(rf"(?<![/\w])cadge (?:{verbs}) [^`\n]*\{{[^`\n]*", text)
        found += [f"{path.name}: {line}" for line in with_values]
    assert found == []


def test_a_page_of_the_users_own_keeps_his_options_and_a_published_one_names_no_path() -> None:
    def made(redacted: object) -> Dataset:
        return cast(Dataset, SimpleNamespace(campaign_id="c1", meta=SimpleNamespace(redacted=redacted)))

    called(Caller(program="bin/cadge", given=GIVEN, options_of=options))
    try:
        own, published = (run_again(made(one), "--disturbed") for one in (None, {"logs": False}))
    finally:
        called(Caller())
    assert own == "bin/cadge resume c1 --disturbed --results '/a b' --inventory lab.yml"
    assert published == "cadge resume c1 --disturbed"


def hints(cadge: Cadge) -> list[str]:
    """Return the commands that are printed where a layer is not built, the driver is stale, and where it is gone."""
    checkout = find_checkout()
    (checkout.modules / "c-three.absent").unlink()
    absent = read_catalogue(checkout).get("c-three").absent
    found = [absent.reason if absent else ""]
    shutil.rmtree(checkout.root / "harness/patterns/stream")
    found += re.findall(r"is stale: .*   fix: (.*)", cadge("doctor").out)
    found += re.findall(r"is stale: .*\n  (.*)", cadge("run", "--sweep", "tiny").err)
    checkout.driver.unlink()
    found += re.findall(r"is not built   fix: (.*)", cadge("doctor").out)
    found += re.findall(r"nothing was built.*\n  (.*)", cadge("run", "--sweep", "tiny").err)
    return found


def test_a_checkout_is_built_and_a_release_unpacked_again(checkout: Checkout, cadge: Cadge) -> None:
    assert hints(cadge) == ["not built; run: make build", *["make build"] * 4]
    assert checkout.to_install == "make setup"


def test_a_release_has_no_makefile(checkout: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout.root / "RELEASE").write_text("")
    again = f"tar -C {checkout.root} --strip-components=1 -xf cadge-{__version__}-linux-{os.uname().machine}.tar.gz"
    assert hints(cadge) == ["not in this release", *[again] * 4]
    monkeypatch.setattr(sys, "prefix", "/a b/.venv")
    assert checkout.to_install == f"rm -r '/a b/.venv' && {checkout.root}/bin/cadge --version"


def test_one_place_knows_what_make_does() -> None:
    """A sentence that says `make build` is wrong in a release; one of a node's build may name both."""
    sources = [path for room in ("harness/src", "harness/agent", "results/src") for path in ROOT.glob(f"{room}/**/*.*")]
    found = {
        (path.name, line.strip())
        for path in sources
        if path.suffix in {".py", ".yml"} and path.name != "paths.py"
        for line in path.read_text().splitlines()
        if re.search(r"\bmake (build|setup|sweep|report|dist)\b", line) and "or an unpacked release" not in line
    }
    assert found == set()
