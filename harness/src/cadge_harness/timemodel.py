# SPDX-License-Identifier: BSD-3-Clause
"""How long things take beside the measured loops: the planner's estimates, in milliseconds.

The constants are readings, rounded, of campaigns on the emulated testbed; `python -m cadge_harness.calibrate CAMPAIGN`
prints what they would have had to be for a campaign that was carried out.
"""

from __future__ import annotations

from cadge_harness.sweep import Workload
from cadge_results.base import Kind, Launcher, Place

CAMPAIGN_MS = 6000
"""Ansible before the first and after the last launch, and the report."""
BLOCK_MS = 5000
"""Ansible around one block."""
LAUNCH_MS: dict[Launcher, int] = {"direct": 350, "mpirun": 1000}
"""Starting, opening, connecting and ending a pair of drivers."""
POINT_MS: dict[Kind, int] = {"layer": 24, "floor": 22}
"""Warm-up, verification of short messages and barriers around one point."""
TOUCHED_BYTES_PER_MS = 130_000
"""How fast buffers are made, filled and compared around a point."""
RECORD_BYTES = 2500
"""Stored bytes of a launch without its attempts."""
ATTEMPT_BYTES = 9000


def launch_ms(launcher: Launcher) -> int:
    """Return what starting, connecting and ending a pair of drivers takes."""
    return LAUNCH_MS[launcher]


def touched_bytes(workload: Workload, kind: Kind) -> int:
    """Return how many bytes of buffers an attempt prepares: one for each message outstanding, and the replies."""
    depth = workload.depth if kind == "layer" else 1
    return workload.request_bytes * depth + workload.reply_bytes


def point_around_ms(workload: Workload, kind: Kind) -> int:
    """Return what surrounds the measured loop of one attempt."""
    return POINT_MS[kind] + touched_bytes(workload, kind) // TOUCHED_BYTES_PER_MS


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
