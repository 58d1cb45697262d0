# SPDX-License-Identifier: BSD-3-Clause
"""How long things take beside the measured loops: the planner's estimates, in milliseconds.

The constants are readings of a default sweep on an idle emulated testbed of two cores. A testbed that has carried out a
campaign is planned for by what that took (learn.py); another by the constants times how much longer this machine takes
to start a program (`probed`).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cadge_harness.surroundings import surroundings
from cadge_results import PatternFile, Workload
from cadge_results.formats.base import Kind, Launcher, Place

REPORT_MS = 2000
REPORT_ATTEMPT_MS = 1.7
"""Making the report, which follows the end of a campaign, and what each attempt adds to it."""
STORE_ATTEMPT_MS = 0.8
"""What bringing an attempt home and storing it adds to its launch."""
CONTEXT_MS = 20
"""What each context beyond two, of an endpoint or a thread, adds to starting, connecting and ending a launch."""
RECORD_BYTES = 2500
"""Stored bytes of a launch without its attempts."""
ATTEMPT_BYTES = 9000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeModel:
    """What surrounds the measured loops on one testbed."""

    campaign_ms: float = 2000
    """Ansible before the first and after the last launch."""
    block_ms: float = 3000
    """Ansible around one block."""
    testbed_ms: float = 1000
    """Taking the testbed down and making it again."""
    start_ms: Mapping[Launcher, float] = field(default_factory=lambda: {"direct": 90, "mpirun": 1000})
    """Starting, opening, connecting and ending two drivers."""
    layer_ms: Mapping[str, float] = field(default_factory=dict)
    """The same for layers of which it is known."""
    point_ms: Mapping[Kind, float] = field(default_factory=lambda: {"layer": 5.5, "floor": 5})
    """Warm-up, verification of short messages and barriers around one point."""
    counting_ms: float = 50
    """What counting system calls adds to each attempt of a point's first launch: most of it the kernel's, ending it."""
    touched_bytes_per_ms: float = 500_000
    """How fast buffers are made, filled and compared around a point."""
    refused: frozenset[str] = frozenset()
    """Ids of points that the driver refused each time when they were last attempted: they take no time."""
    basis: str = "an idle machine of two cores"
    """What these readings were taken from."""

    def around_ms(self, epochs: int) -> float:
        """Return what surrounds the blocks of so many epochs; who makes the first testbed is not waited for."""
        return epochs * self.campaign_ms + (epochs - 1) * self.testbed_ms

    def launch_ms(self, layer: str, launcher: Launcher, attempts: int, contexts: int = 2) -> int:
        """Return what starting, connecting and ending the drivers takes, and storing what they attempted."""
        more = CONTEXT_MS * max(contexts - 2, 0)
        return round(self.layer_ms.get(layer, self.start_ms[launcher]) + more + STORE_ATTEMPT_MS * attempts)

    def point_around_ms(self, touched: int, kind: Kind) -> int:
        """Return what surrounds the measured loop of one attempt that prepares so many bytes."""
        return round(self.point_ms[kind] + touched / self.touched_bytes_per_ms)

    def slower(self, times: float, basis: str) -> TimeModel:
        """Return the model of a machine that takes so many times as long."""
        return TimeModel(
            campaign_ms=self.campaign_ms * times,
            block_ms=self.block_ms * times,
            testbed_ms=self.testbed_ms * times,
            start_ms={name: value * times for name, value in self.start_ms.items()},
            layer_ms={name: value * times for name, value in self.layer_ms.items()},
            point_ms={name: value * times for name, value in self.point_ms.items()},
            counting_ms=self.counting_ms * times,
            touched_bytes_per_ms=self.touched_bytes_per_ms / times,
            refused=self.refused,
            basis=basis,
        )


def idle_times(kind: str) -> TimeModel:
    """Return the model of an idle testbed of this kind: on this machine alone there is no Ansible to wait for."""
    return TimeModel(campaign_ms=600, block_ms=500, testbed_ms=0) if kind == "local" else TimeModel()


def report_ms(attempts: int) -> int:
    """Return how long the report of so many attempts takes."""
    return round(REPORT_MS + attempts * REPORT_ATTEMPT_MS)


def touched_bytes(pattern: PatternFile, workload: Workload, kind: Kind) -> int:
    """Return how many bytes of buffers an attempt prepares: one for each message outstanding, and the replies."""
    first, *others = pattern.moved_bytes(workload) or (0,)
    return first * (pattern.deep(workload) if kind == "layer" else 1) + sum(others)


def point_deadline_ms(pattern: PatternFile, workload: Workload, duration_ms: int, place: Place) -> int:
    """Return after how long an attempt is given up: generous, because only something broken meets it."""
    patience = 2500 if place == "self" else 3000
    moved = sum(pattern.moved_bytes(workload)) * pattern.deep(workload)
    return patience + 3 * duration_ms + 8 * moved // 1_000_000


def launch_deadline_ms(estimate_ms: int, launcher: Launcher, contexts: int = 2) -> int:
    """Return after how long a launch is killed."""
    start = 20_000 if launcher == "mpirun" else 10_000
    return start + 500 * max(contexts - 2, 0) + 4 * estimate_ms


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
