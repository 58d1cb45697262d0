# SPDX-License-Identifier: BSD-3-Clause
"""How long things take beside the measured loops: the planner's estimates, in milliseconds.

The constants are readings, rounded, of campaigns on the emulated testbed; a test of a real campaign holds the whole
estimate to within a quarter of what it took.
"""

from __future__ import annotations

from dataclasses import dataclass

from cadge_harness.sweep import Workload
from cadge_results.base import Kind, Launcher, Place

CAMPAIGN_MS = 6000
"""Ansible before the first and after the last launch, and the report."""
BLOCK_MS = 5000
"""Ansible around one block."""
LAUNCH_MS: dict[Launcher, int] = {"direct": 300, "mpirun": 1300}
POINT_MS = 12
"""Warm-up, verification and barriers around one point."""
FLOOR_POINT_MS = 8
COPY_BYTES_PER_MS = 1_000_000
"""How fast payloads are written and compared around a point, both ends together."""
RECORD_BYTES = 2500
"""Stored bytes of a launch without its attempts."""
ATTEMPT_BYTES = 9000


@dataclass(frozen=True, slots=True)
class PointTime:
    """Estimated milliseconds of one attempt."""

    measure_ms: int
    around_ms: int

    @property
    def wall_ms(self) -> int:
        """All of it."""
        return self.measure_ms + self.around_ms


def launch_ms(launcher: Launcher) -> int:
    """Return what starting, connecting and ending a pair of drivers takes."""
    return LAUNCH_MS[launcher]


def point_around_ms(workload: Workload, kind: Kind) -> int:
    """Return what surrounds the measured loop of one attempt."""
    base = FLOOR_POINT_MS if kind == "floor" else POINT_MS
    bytes_moved = workload.request_bytes + workload.reply_bytes
    return base + bytes_moved // COPY_BYTES_PER_MS


def point_deadline_ms(workload: Workload, duration_ms: int, place: Place) -> int:
    """Return after how long an attempt is given up: generous, because only something broken meets it."""
    patience = 2500 if place == "self" else 3000
    return (
        patience + 3 * duration_ms + 8 * (workload.request_bytes + workload.reply_bytes) * workload.depth // 1_000_000
    )


def launch_deadline_ms(estimate_ms: int, launcher: Launcher) -> int:
    """Return after how long a launch is killed."""
    start = 20_000 if launcher == "mpirun" else 10_000
    return start + 4 * estimate_ms
