# SPDX-License-Identifier: BSD-3-Clause
"""A made-up campaign of 53,952 attempts: what reading, analysing and reporting it takes, and how large its report is.

Times are processors' seconds, of two processors: by the clock they say too much where others work as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "harness" / "bench"
sys.path.insert(0, str(BENCH))

from full_size import command_of, used  # noqa: E402 - a program, found there

PROCESSORS = 2
READ_S, REPORT_S = 30, 45
READ_KIB = 500 << 10
REPORT_KIB = 416 << 10
MOST = {
    "export --format csv": (25, 325 << 10),
    "export --format json": (25, 420 << 10),
    "export --format svg": (25, 395 << 10),
    "export --format parquet": (25, 420 << 10),
    "export --table values": (25, 330 << 10),
    "query of cells": (25, 435 << 10),
    "query of samples": (30, 320 << 10),
    "compare": (45, 375 << 10),
    "history": (45, 375 << 10),
    "report --against": (70, 490 << 10),
}
"""What each of these commands takes at most: seconds, of two processors, and KiB of one of its processes.

The last three read two campaigns.
"""
EXIT_CODES = {"history": 5}
"""The made-up layers differ from themselves more often than chance lets them, so that history leaves both days out."""

pytestmark = [pytest.mark.long, pytest.mark.alone]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    for day in ("0", "1"):
        argv = [sys.executable, str(BENCH / "full_size.py"), str(folder), "--launches", "6", "--day", day]
        subprocess.run(argv, check=True, timeout=1800)
    return max(folder.iterdir())


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A cache of its own, empty at first: read cold."""
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


def test_it_is_read_and_analysed_cold_in_half_a_minute(full: Path, environment: dict[str, str]) -> None:
    argv = [sys.executable, str(BENCH / "reading.py"), str(full), "--once"]
    done = subprocess.run(argv, check=True, timeout=1800, env=environment, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["attempts"] >= 50_000
    took_s = sum(processors_s for _, _, processors_s in found["parts"])
    assert took_s <= READ_S * PROCESSORS, found["parts"]
    assert sum(found["most_kib"]) <= READ_KIB, "both processes at their most, which they are not at once"


def test_its_report_has_pages_and_is_made_in_time(full: Path, environment: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    use = used(command_of("report", full.parent, tmp_path), environment)
    assert use.code == 0
    assert use.cpu_s <= REPORT_S * PROCESSORS
    assert use.most_kib <= REPORT_KIB
    assert out.stat().st_size <= 4_000_000
    pages = sorted(tmp_path.glob("report-*.html"))
    assert len(pages) >= 12
    assert max(page.stat().st_size for page in pages) <= 4_000_000
    assert sum(page.stat().st_size for page in pages) > 10_000_000


@pytest.mark.parametrize("name", MOST)
def test_commands_take_no_more(name: str, full: Path, environment: dict[str, str], tmp_path: Path) -> None:
    most_s, most_kib = MOST[name]
    use = used(command_of(name, full.parent, tmp_path), environment)
    assert use.code == EXIT_CODES.get(name, 0)
    assert use.cpu_s <= most_s * PROCESSORS
    assert use.most_kib <= most_kib
