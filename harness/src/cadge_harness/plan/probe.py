# SPDX-License-Identifier: BSD-3-Clause
"""How much slower this machine is at the moment than the one of the time model: for a testbed that has no past."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from cadge_harness.plan.surroundings import surroundings
from cadge_harness.plan.timemodel import TimeModel

STARTS = 15
REFERENCE_MS = 1.0
"""What starting the driver takes on the machine of the time model. It grows with what the driver loads: where it starts
in 1.31 ms, a default sweep took 316 s, 150 s of them measured, and the model alone plans 133 s around these."""
SLOWER_MOST = 6.0
"""More is no slower machine but a moment's hindrance."""


def probed(driver: Path, base: TimeModel) -> TimeModel:
    """Return a time model times what starting a program takes here, in units of what it took there."""
    try:
        with surroundings() as (environment, folder):
            # the machine, not what else runs at the moment
            took_ms = min(_start_ms(driver.absolute(), environment, folder) for _ in range(STARTS))
    except OSError:
        return base
    times = min(max(took_ms / REFERENCE_MS, 1.0), SLOWER_MOST)
    return base.slower(times, f"{base.basis}, times {times:.1f} for this one")


def _start_ms(driver: Path, environment: Mapping[str, str], folder: Path) -> float:
    begun_ns = time.perf_counter_ns()
    subprocess.run(
        [driver, "--version"],
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    return (time.perf_counter_ns() - begun_ns) / 1e6
