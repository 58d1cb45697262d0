# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: try a failed test again where the host took the processors away meanwhile.

On a virtual machine the host may give its processors to others for a while (proc_stat(5), "steal"). A test that waits
for something within a time then fails though nothing is wrong. Such a failure says nothing, so the test is tried again,
twice at most, and the summary names it. Where the host took less than a twentieth of the time, a failure is a failure.
So is that of a test that times nothing: those that do have one of the marks `still`, `paired` and `alone`.

Each repetition is a line of the file that the variable CADGE_REPEATED names: ci/test fails where there are many.

Use: python -m pytest -p ci.stolen_time (ci/test does so).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from _pytest.terminal import TerminalReporter

STAT = Path("/proc/stat")
STOLEN_MIN = 0.05  # the least part of the processors' time that the host must have taken
TRIES = 3
TIMED = ("still", "paired", "alone")  # marks of tests that time something
PROPERTY = "the host took the processors away"


def ticks() -> tuple[int, int]:
    """Return the time of all processors together and the part of it that the host took, in ticks since the start."""
    try:
        values = [int(word) for word in STAT.read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return 0, 0
    return sum(values), values[7] if len(values) > 7 else 0


def stolen(before: tuple[int, int]) -> float:
    """Return the part of the processors' time since then that the host took."""
    total, steal = (now - then for now, then in zip(ticks(), before, strict=True))
    return steal / total if total > 0 else 0.0


def note(line: str) -> None:
    """Append a line to the file of repetitions, where one is named."""
    if path := os.environ.get("CADGE_REPEATED"):
        with Path(path).open("a", encoding="utf-8") as file:  # processes share it: a short line is written whole
            file.write(f"{line}\n")


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test, and again where it failed while the host took the processors away."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports: list[pytest.TestReport] = []
    tries = TRIES if any(map(item.get_closest_marker, TIMED)) else 1
    for left in reversed(range(tries)):
        before = ticks()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        share = stolen(before)
        if not left or share < STOLEN_MIN or not any(report.failed for report in reports):
            break
        item.user_properties.append((PROPERTY, f"{share:.0%}"))
        note(f"{item.nodeid}: the host took {share:.0%} of the processors")
        if reports[0].failed:  # what failed to be set up is remembered until all of it is taken down
            item.session._setupstate.teardown_exact(None)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Name the tests that were tried again, and how much the host took each time."""
    again = {
        report.nodeid: [str(value) for name, value in report.user_properties if name == PROPERTY]
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    }
    for nodeid, shares in again.items():
        if shares:
            terminalreporter.write_line(f"TRIED AGAIN {nodeid}: the host took {', '.join(shares)} of the processors")
