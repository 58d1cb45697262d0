# SPDX-License-Identifier: BSD-3-Clause
"""The engine's files form no circle, by what they include and by what the linker finds in them."""

from __future__ import annotations

import re
import shutil
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.spare
ENGINE = Path(__file__).resolve().parents[1] / "engine"
ROOMS = ("base", "wires", "core")


def included() -> dict[str, set[str]]:
    """What each file includes; a header and its source are one."""
    files = {path.resolve() for room in ROOMS for path in (ENGINE / room).glob("*.[ch]")}
    arrows: dict[str, set[str]] = {name_of(path): set() for path in files}
    for path in files:
        for header in re.findall(r'^#include "(.+)"', path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            target = (path.parent / header).resolve()
            if target in files and name_of(target) != name_of(path):
                arrows[name_of(path)].add(name_of(target))
    return arrows


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def linked(build: Path) -> dict[str, set[str]]:
    """Whose functions and tables each file uses."""
    symbols = {}
    for path in (path for room in ROOMS for path in (build / room).glob("*.o")):
        listed = subprocess.run(["nm", "-P", path], capture_output=True, text=True, check=True).stdout
        symbols[name_of(path)] = [line.split()[:2] for line in listed.splitlines()]
    home = {symbol: name for name, listed in symbols.items() for symbol, kind in listed if kind in "TDRBC"}
    return {
        name: {home[symbol] for symbol, kind in listed if kind == "U" and symbol in home} - {name}
        for name, listed in symbols.items()
    }


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm here")
def test_no_circle_of_files(installed: Path) -> None:
    arrows = included()
    used = linked(installed.parent / "build")
    assert set(used) <= set(arrows)
    assert "core/send" in used["core/call"]
    assert "wires/wire" in arrows["core/engine"]
    for name, targets in used.items():
        arrows[name] |= targets
    order = list(TopologicalSorter(arrows).static_order())
    assert order.index("base/base") < order.index("wires/udp") < order.index("core/endpoint")
    arrows["core/slot"].add("core/timer")
    with pytest.raises(CycleError):
        TopologicalSorter(arrows).prepare()
