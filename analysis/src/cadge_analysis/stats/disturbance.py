# SPDX-License-Identifier: BSD-3-Clause
"""Which attempts were disturbed by other work on the machine: found in what the kernel counted, never in the result.

A thread that polls never sleeps: all time in which it was ready to run and did not was somebody else's, and so was what
the host took of its processor. A thread that blocks waits a moment for its processor at every wake, which is a part of
what it measures; for it only waits count that are longer than waking takes. How long that is depends on the machine
(a processor in a deep sleep takes tens of microseconds), so it is taken from the other launches of the same point.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from cadge_results import Campaign
from cadge_results.formats.result import CpuUse

DISTURBED_SHARE = 0.05
"""An attempt is disturbed from this share of its time on, at any of its endpoints.

The host of a virtual machine takes 1 to 2 % on average, also where nothing else runs. In two default sweeps on an idle
one, attempts that lost 2 to 5 % had a median 0.8 % above that of attempts that lost less than 0.5 %, and scattered as
those that lost 1 to 2 %. Above, scatter grows (`harness/bench/verdicts/disturbance.py`).
"""
DISTURBED_MOST = 0.2
"""Of a campaign of which a larger share of attempts is disturbed nothing is concluded."""
WAKE_NS = 500
"""A wait for a processor that waking a thread may always take.

On two idle processors of a virtual machine the median was 57 ns, and nine of ten endpoints had less than 400 ns (355
attempts of all layers that block).
"""
WAKE_TIMES = 2
"""Or it may take so many times the median of the launches of the same point, at the same endpoint."""


def disturbed_share(use: CpuUse, wake_ns: float = 0.0) -> float | None:
    """Return the share of an endpoint's stretch that others took; None where nothing of it is known.

    `wake_ns`: what each of its wakes may take.
    """
    if not use.wall_ns or (use.run_wait_ns is None and use.stolen_ns is None):
        return None
    waited_ns = max(0.0, (use.run_wait_ns or 0) - wake_ns * use.voluntary_switches)
    return (waited_ns + (use.stolen_ns or 0)) / use.wall_ns


def disturbed(attempts: Sequence[Sequence[CpuUse]], wait: str) -> list[bool]:
    """Tell of each attempt at a point whether any of its endpoints was disturbed; an attempt is its endpoints' use."""
    return [share > DISTURBED_SHARE for share in disturbed_shares(attempts, wait)]


def disturbed_shares(attempts: Sequence[Sequence[CpuUse]], wait: str) -> list[float]:
    """Return for each attempt at a point the largest share of an endpoint's stretch that others took."""
    wakes_ns = [_wake_ns(uses) for uses in zip(*filter(None, attempts), strict=False)] if wait == "block" else []
    found = []
    for uses in attempts:
        allowed_ns = wakes_ns or [0.0] * len(uses)
        shares = (disturbed_share(use, wake_ns) or 0.0 for use, wake_ns in zip(uses, allowed_ns, strict=False))
        found.append(max(shares, default=0.0))
    return found


def _wake_ns(uses: Sequence[CpuUse]) -> float:
    """Return what waking may take at one endpoint, from all attempts there."""
    usual_ns = [
        use.run_wait_ns / use.voluntary_switches
        for use in uses
        if use.run_wait_ns is not None and use.voluntary_switches
    ]
    return max(WAKE_NS, WAKE_TIMES * median(usual_ns)) if len(usual_ns) > 1 else WAKE_NS


def disturbed_launch_ids(campaign: Campaign) -> tuple[str, ...]:
    """Return the stored launches in which an attempt was disturbed, in the plan's order. It need not have succeeded."""
    points: dict[str, list[tuple[str | None, Sequence[CpuUse]]]] = defaultdict(list)
    for item in campaign.outcomes():
        if item.attempt is not None:
            points[item.point.point_id].append((item.launch_id, item.attempt.cpu or ()))
    found = set()
    for point_id, attempts in points.items():
        flags = disturbed([uses for _, uses in attempts], campaign.plan.by_id[point_id].subject.wait)
        found |= {launch_id for (launch_id, _), is_so in zip(attempts, flags, strict=True) if is_so}
    return tuple(launch.launch_id for launch in campaign.plan.launches if launch.launch_id in found)
