# SPDX-License-Identifier: BSD-3-Clause
"""Which attempts were hindered by something else on the machine: found in what the kernel counted, never in the result.

A thread that polls never sleeps: all time in which it was ready to run and did not was somebody else's, and so was what
the host took of its processor. A thread that blocks waits a moment for its processor at every wake, which is a part of
what it measures; for it only waits count that are longer than waking takes.
"""

from __future__ import annotations

from collections.abc import Iterable

from cadge_results import Campaign
from cadge_results.result import CpuUse

HINDERED_SHARE = 0.01
"""An attempt is hindered from this share of its time on, at any of its endpoints."""
WAKE_NS = 20_000
"""A wait for a processor that waking a thread may take."""


def hindered_share(use: CpuUse, wait: str) -> float | None:
    """Return the share of an endpoint's stretch that others took; None where nothing of it is known."""
    if not use.wall_ns or (use.run_wait_ns is None and use.stolen_ns is None):
        return None
    waited_ns = use.run_wait_ns or 0
    if wait == "block":
        waited_ns = max(0, waited_ns - WAKE_NS * use.voluntary_switches)
    return (waited_ns + (use.stolen_ns or 0)) / use.wall_ns


def is_hindered(uses: Iterable[CpuUse], wait: str) -> bool:
    """Tell whether any endpoint of an attempt was hindered."""
    return any((hindered_share(use, wait) or 0.0) > HINDERED_SHARE for use in uses)


def hindered_launch_ids(campaign: Campaign) -> tuple[str, ...]:
    """Return the stored launches in which an attempt was hindered, in the plan's order. It need not have succeeded."""
    found = {
        item.launch_id
        for item in campaign.outcomes()
        if item.attempt is not None and is_hindered(item.attempt.cpu or (), item.point.subject.wait)
    }
    return tuple(launch.launch_id for launch in campaign.plan.launches if launch.launch_id in found)
