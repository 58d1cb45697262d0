# SPDX-License-Identifier: BSD-3-Clause
"""Find conditions, numbers and returns of the analysis that may be wrong without any test that fails.

    python -m ci.mutants [PACKAGE...] [--count N] [--seed S] [--only TEXT] [--jobs J] [--budget S] [--called FOLDER]

Chooses N mutants of each package by a seed and puts each into a copy of the package. Runs the tests that call the
changed function, the cheapest first, until one fails. Prints each survivor with its place and its lines.
`ci/mutants/kept.yml` keeps the seed, the least share that must be killed, and mutants that change nothing, with why.

First all tests of the analysis run once, to see which of them call what. `--called` names a folder that keeps this for
a further run of the same tests. Exit status: 0; 1 where fewer were killed than kept.yml says; 2 for a wrong argument.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from ci.mutants.generate import PACKAGE, PACKAGES, Mutant, chosen

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "ci/mutants/kept.yml"
PYTEST = ["-q", "-p", "no:cacheprovider"]
ONE_MUTANT = ["-x", "-p", "no:xdist", "--hypothesis-seed=0", "-Wignore::pytest.PytestAssertRewriteWarning"]
ALL_TESTS = ["-p", "ci.short_form", "-p", "ci.mutants.called", "-m", "not long", "--dist", "loadfile", "analysis/tests"]
PRELOADED = ("cadge_results", "hdrh.histogram", "hypothesis", "jinja2", "numpy", "pytest", "vl_convert")
"""What tests import beside the analysis: once, before a process is forked for each mutant."""
CPU_S, CPU_FACTOR = 20, 5
"""Tests hang after so many processor seconds and so many times what they use without a mutant."""


class CallMap:
    """Which tests call what, and their processor seconds. Read from the files of `ci.mutants.called`."""

    def __init__(self, folder: Path) -> None:
        self._seconds: dict[str, float] = {}
        self._uses: dict[str, list[str]] = {}
        self._tests: dict[str, set[str]] = defaultdict(set)
        for path in folder.iterdir():
            calls: dict[str, list[str]] = {}  # each process made the fixtures that its tests use
            for line in path.read_text(encoding="utf-8").splitlines():
                found = json.loads(line)
                name = found.get("test") or found["fixture"]
                calls[name], self._seconds[name] = found["calls"], found["seconds"]
                if found.get("passed"):  # no other can find a mutant
                    self._uses[name] = found["uses"]
                    for called in {one for part in (name, *found["uses"]) for one in calls.get(part, [])}:
                        self._tests[called].add(name)
                        self._tests[called.partition(":")[0]].add(name)

    def cheapest(self, called: str, budget_s: float) -> tuple[list[str], float]:
        """Return the tests to run, the cheapest first, and what they cost. A fixture is made once."""
        tests = self._tests[called] or self._tests[called.partition(":")[0]]  # of a cache, one test calls the function
        parts = {test: {test, *self._uses[test]} for test in tests}
        cost = {test: sum(self._seconds.get(one, 0.0) for one in parts[test]) for test in tests}
        taken: list[str] = []
        made: set[str] = set()
        total = 0.0
        for test in sorted(tests, key=lambda test: (cost[test], test)):
            total += sum(self._seconds.get(one, 0.0) for one in parts[test] - made)
            if taken and total > budget_s:
                break
            taken.append(test)
            made |= parts[test]
        return taken, total


def find_called(folder: Path, jobs: int) -> None:
    """Run all tests of the analysis, and let each process write what they call."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", *PYTEST, "-n", str(jobs), *ALL_TESTS]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "CADGE_CALLED": str(folder)}, check=False)


def _prepare(scratch: Path) -> None:
    """Begin a process that tests mutants, in a folder with a copy of the package and of its compiled modules."""
    own = scratch / str(os.getpid())
    shutil.copytree(PACKAGE, own / "src" / PACKAGE.name)
    for name in PRELOADED:
        __import__(name)
    os.chdir(own)


def _run_tests(tests: Sequence[str], cpu_s: int) -> None:
    """Run tests with the copy, in a process that ends with them."""
    own = Path.cwd()
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(own / "src"))
    os.environ |= {"PYTHONPATH": str(own / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(own / "hypothesis")
    os.chdir(ROOT)
    import pytest

    os._exit(pytest.main([*PYTEST, *ONE_MUTANT, f"--basetemp={own / 'tmp'}", *tests]))


def survives(found: tuple[Mutant, list[str], float]) -> tuple[Mutant, list[str], bool]:
    """Return a mutant, its tests, and whether they pass with it in the copy."""
    mutant, tests, seconds = found
    if not tests:
        return mutant, tests, True
    path = Path.cwd() / "src" / PACKAGE.name / mutant.file
    for old in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        old.unlink()
    path.write_text(mutant.text, encoding="utf-8")
    child = os.fork()
    if not child:
        try:
            _run_tests(tests, int(CPU_S + CPU_FACTOR * seconds))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what its tests had started
    shutil.copy2(PACKAGE / mutant.file, path)
    return mutant, tests, status == 0


def survivors_of(mutants: Sequence[Mutant], called: CallMap, *, jobs: int, budget_s: float) -> list[Mutant]:
    """Return the mutants that no test finds, and print them. Raises ValueError where tests fail without a mutant."""
    sound = [replace(one, text=(PACKAGE / one.file).read_text(encoding="utf-8")) for one in mutants[:1]]
    work = [(one, *called.cheapest(one.called, budget_s)) for one in (*sound, *mutants)]
    left = []
    with (
        tempfile.TemporaryDirectory(prefix="cadge-mutants-") as scratch,
        multiprocessing.get_context("fork").Pool(jobs, _prepare, [Path(scratch)]) as pool,
    ):
        for mutant, tests, passed in pool.imap_unordered(survives, work):
            if mutant in sound:
                if not passed:
                    raise ValueError(f"fail without a mutant: {' '.join(tests)}")
            elif passed:
                left.append(mutant)
                where = f"{mutant.file}:{mutant.line}: {mutant.function or 'the module'}"
                print(f"survived: {where}, {len(tests)} tests\n  - {mutant.was}\n  + {mutant.becomes}", flush=True)
    return left


def main() -> int:
    """Test mutants, print how many were killed of each package, and return the exit status."""
    kept = yaml.safe_load(KEPT.read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(prog="python -m ci.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("package", nargs="*", help=f"{', '.join(PACKAGES)} (those of kept.yml)")
    parser.add_argument("--count", type=int, default=kept["count"], help="mutants of each package (%(default)s)")
    parser.add_argument("--seed", type=int, default=kept["seed"], help="chooses them (%(default)s)")
    parser.add_argument("--only", default="", help="of these, those with this text in file, function or line")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (one a processor)")
    parser.add_argument("--budget", type=float, default=30.0, help="processor seconds of tests for each (%(default)s)")
    parser.add_argument("--called", type=Path, help="folder that keeps what each test calls")
    given = parser.parse_args()
    if unknown := set(given.package) - set(PACKAGES):
        parser.error(f"no package {', '.join(sorted(unknown))}: {', '.join(PACKAGES)}")
    status = 0
    with tempfile.TemporaryDirectory(prefix="cadge-called-") as scratch:
        folder = given.called or Path(scratch) / "called"
        if not folder.exists() or not any(folder.iterdir()):
            find_called(folder, given.jobs)
        called = CallMap(folder)
    for package in given.package or kept["killed_least"]:
        found = [one for one in chosen(package, given.count, given.seed) if given.only in one.key]
        mutants = [one for one in found if one.key not in kept["equivalent"]]
        killed = len(mutants) - len(survivors_of(mutants, called, jobs=given.jobs, budget_s=given.budget))
        least = kept["killed_least"].get(package, 0.0)
        others = len(found) - len(mutants)
        print(
            f"{package}: {killed} of {len(mutants)} killed (at least {least:.0%}); {others} change nothing", flush=True
        )
        if killed < least * len(mutants):
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
