# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: which functions of the analysis each test calls, and what the test costs.

Each process writes a file into the folder that the variable CADGE_CALLED names. A line of JSON is a test: its processor
seconds, the functions it called (`FILE:FIRST-LINE`) and the fixtures of several tests that it uses; or such a fixture,
which stands before the tests that use it.

Use: python -m pytest -p ci.mutants.called (`python -m ci.mutants` does so).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest
from ci.cost import processor_s

PACKAGE = f"{os.sep}cadge_analysis{os.sep}"
_seen: list[set[CodeType]] = [set()]
_inner_s = [0.0]
"""Of what runs now, innermost last: the code that it called, and the seconds of fixtures within it."""
_passed: set[str] = set()


def _trace(frame: FrameType, *_: object) -> None:
    _seen[-1].add(frame.f_code)


def _begin() -> float:
    _seen.append(set())
    _inner_s.append(0.0)
    sys.settrace(_trace)
    return processor_s()


def _end(began: float, what: dict[str, object]) -> None:
    took = processor_s() - began
    own = sorted(
        f"{code.co_filename.rpartition(PACKAGE)[2]}:{code.co_firstlineno}"
        for code in _seen.pop()
        if PACKAGE in code.co_filename
    )
    line = json.dumps({**what, "seconds": round(took - _inner_s.pop(), 3), "calls": own})
    _inner_s[-1] += took
    with (Path(os.environ["CADGE_CALLED"]) / str(os.getpid())).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def _name(fixture: pytest.FixtureDef[object]) -> str:
    return f"{fixture.baseid}::{fixture.argname}"


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    """Write down what a fixture of several tests calls."""
    began = _begin() if fixturedef.scope != "function" else None
    yield
    if began is not None:
        _end(began, {"fixture": _name(fixturedef)})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep which tests pass: no other can find a mutant."""
    if report.when == "call" and report.passed:
        _passed.add(report.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Function) -> Iterator[None]:
    """Write down what a test calls."""
    began = _begin()
    yield
    known = item._fixtureinfo.name2fixturedefs.values()
    used = sorted(_name(fixture) for found in known for fixture in found[-1:] if fixture.scope != "function")
    _end(began, {"test": item.nodeid, "uses": used, "passed": item.nodeid in _passed})
