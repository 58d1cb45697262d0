# SPDX-License-Identifier: BSD-3-Clause
"""What the constants of the time model would have had to be, read from a campaign that was carried out.

`python -m cadge_harness.calibrate CAMPAIGN`: prints for each constant the value in use and the one measured.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from cadge_harness import timemodel
from cadge_harness.sweep import Workload
from cadge_results import Campaign, LaunchRecord, PlanPoint, Store
from cadge_results.base import Kind, Launcher

SMALL_BYTES = 64 * 1024
LARGE_BYTES = 1024 * 1024


@dataclass(slots=True)
class Readings:
    """Milliseconds that things took in one campaign."""

    real_ms: float = 0.0
    planned_ms: float = 0.0
    launch_ms: dict[Launcher, list[float]] = field(default_factory=lambda: defaultdict(list))
    point_ms: dict[Kind, list[float]] = field(default_factory=lambda: defaultdict(list))
    bytes_per_ms: list[float] = field(default_factory=list)


def read(campaign: Campaign) -> Readings:
    """Take readings from launches that followed each other directly."""
    points = {point.point_id: point for point in campaign.plan.points}
    planned = {launch.launch_id: launch.wall_ms for launch in campaign.plan.launches}
    records = {record.launch_id: record for record in campaign.launches() if record.result is not None}
    found = Readings()
    for block in campaign.plan.blocks:
        for name, following in pairwise(block.launch_ids):
            if name in records and following in records:
                gap_ms = _started_ms(records[following]) - _started_ms(records[name])
                take(found, records[name], gap_ms, planned[name], points)
    return found


def take(found: Readings, record: LaunchRecord, gap_ms: float, planned_ms: int, points: dict[str, PlanPoint]) -> None:
    """Add one launch that the next one followed after `gap_ms`."""
    found.real_ms += gap_ms
    found.planned_ms += planned_ms
    assert record.result is not None  # noqa: S101 - the caller chose such records
    attempts = [item for item in record.result.attempts if item.started_ns_since_launch is not None]
    around_ms = 0.0
    for before, after in pairwise(sorted(attempts, key=lambda item: item.order)):
        took_ms = ((after.started_ns_since_launch or 0) - (before.started_ns_since_launch or 0)) / 1e6
        point = points[before.point_id]
        extra_ms = took_ms - point.duration_ms
        around_ms += took_ms
        touched = timemodel.touched_bytes(_workload(point), point.kind)
        if touched <= SMALL_BYTES:
            found.point_ms[point.kind].append(extra_ms)
        elif touched >= LARGE_BYTES and extra_ms > timemodel.POINT_MS[point.kind]:
            found.bytes_per_ms.append(touched / (extra_ms - timemodel.POINT_MS[point.kind]))
    if len(attempts) > 1:
        last = points[max(attempts, key=lambda item: item.order).point_id]
        last_ms = last.duration_ms + timemodel.point_around_ms(_workload(last), last.kind)
        found.launch_ms[record.launch.launcher].append(gap_ms - around_ms - last_ms)


def _workload(point: PlanPoint) -> Workload:
    return Workload(
        pattern=point.pattern,
        request_bytes=point.request_bytes,
        reply_bytes=point.reply_bytes,
        depth=point.depth,
        operation=point.operation,
        target=point.target,
    )


def _started_ms(record: LaunchRecord) -> float:
    return datetime.fromisoformat(record.result.started_utc).timestamp() * 1000 if record.result else 0.0


def lines(found: Readings) -> list[str]:
    """Return the readings beside the constants in use."""
    told = []
    if found.planned_ms:
        told.append(f"launches took {found.real_ms / found.planned_ms:.2f} of what was planned")
    for launcher, values in sorted(found.launch_ms.items()):
        told.append(f"LAUNCH_MS[{launcher}]  {timemodel.LAUNCH_MS[launcher]}  measured {statistics.mean(values):.0f}")
    for kind, values in sorted(found.point_ms.items()):
        told.append(f"POINT_MS[{kind}]  {timemodel.POINT_MS[kind]}  measured {statistics.mean(values):.1f}")
    if found.bytes_per_ms:
        rate = statistics.harmonic_mean(found.bytes_per_ms)
        told.append(f"TOUCHED_BYTES_PER_MS  {timemodel.TOUCHED_BYTES_PER_MS}  measured {rate:.0f}")
    return told


if __name__ == "__main__":
    for line in lines(read(Store(Path()).open(sys.argv[1]))):
        sys.stdout.write(f"{line}\n")
