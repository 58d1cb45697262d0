# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: what each test costs, and the ten that cost most.

Each test, with the fixtures that are made or ended for it, adds a line to the file that the variable CADGE_TEST_COSTS
names: processor seconds (user and system, of its process and of the children that it waited for), seconds by the clock,
its name. ci/test shows the ten that cost most, and how much of the
processors others had meanwhile: `python ci/cost.py FILE FIRST-LINE-OF-/proc/stat-BEFORE`.

Use: python -m pytest -p ci.cost (ci/test does so).
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SHOWN = 10


def processor_s() -> float:
    """Return the processor time of this process and its ended children, seconds."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test, and write down what it cost."""
    began, used = time.monotonic(), processor_s()
    yield
    if path := os.environ.get("CADGE_TEST_COSTS"):
        line = f"{processor_s() - used:.2f}\t{time.monotonic() - began:.2f}\t{item.nodeid}\n"
        with Path(path).open("a", encoding="utf-8") as file:  # processes share it: a short line is written whole
            file.write(line)


def most(lines: list[str]) -> list[str]:
    """Return one line for all tests together and one for each of the ten that cost most."""
    rows = [line.rstrip("\n").split("\t", 2) for line in lines]
    rows.sort(key=lambda row: float(row[0]), reverse=True)
    total = sum(float(used) for used, _, _ in rows)
    head = f"{len(rows)} tests used {total:.0f} s of processor time; the {min(SHOWN, len(rows))} that used most:"
    return [
        head,
        *(f"  {float(used):6.1f} s  {float(took):6.1f} s by the clock  {name}" for used, took, name in rows[:SHOWN]),
    ]


def machine(before: str, after: str, ours_s: float) -> str:
    """Return what we and others made of the processors between two first lines of /proc/stat (proc_stat(5))."""
    begin, end = ([int(word) for word in line.split()[1:9]] for line in (before, after))
    user, nice, system, idle, iowait, irq, softirq, steal = (now - then for now, then in zip(end, begin, strict=True))
    all_s = (user + nice + system + idle + iowait + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    busy_s = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
    others = max(0.0, busy_s - ours_s) / all_s if all_s else 0.0
    stolen = steal / os.sysconf("SC_CLK_TCK") / all_s if all_s else 0.0
    said = f"of the processors, others used {others:.0%}, the host took {stolen:.0%}"
    return f"{ours_s:.0f} s of processor time in all; {said}"


def main(costs: str, before: str) -> None:
    """Print both. The parent's children are our tests: their processor time is that of its cumulated ended children."""
    for text in most(Path(costs).read_text(encoding="utf-8").splitlines()):
        sys.stdout.write(f"test: {text}\n")
    ticks = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[13:15]
    ours_s = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    after = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    sys.stdout.write(f"test: {machine(before, after, ours_s)}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
