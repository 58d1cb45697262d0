# SPDX-License-Identifier: BSD-3-Clause
"""What a testbed took for its last campaigns is what the next one is planned with.

Each time is a median over the launches of a subject, which should all take alike: of their starts, and of the means
over their points. Subjects together count with the mean of these medians, each by how many starts or points it had. So
other work on the machine lengthens the next plan only if it delayed about half of the launches of a subject, or more.
What Ansible takes around launches is one reading a campaign, without a median.

Launches of a campaign that was interrupted, or of another testbed of this machine, say more of the launches to come
than how long it takes to start a program (probe.py).
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise, takewhile
from typing import TypeVar

from cadge_harness.plan.timemodel import CONTEXT_MS, STORE_ATTEMPT_MS, TimeModel, idle_times, touched_bytes
from cadge_harness.testbed.model import Testbed, TestbedKind
from cadge_results import (
    Campaign,
    DamagedError,
    LaunchRecord,
    Plan,
    PlanPoint,
    ResultsError,
    Store,
    Subject,
    TestbedFacts,
)
from cadge_results.formats.base import Launcher

_Name = TypeVar("_Name", bound=Hashable)

SMALL_BYTES = 64 * 1024
LARGE_BYTES = 1024 * 1024
LAUNCHES_LEAST = 8
"""Fewer say too little of the next campaign."""
LAUNCHES_MOST = 300
"""As many are read, of the newest campaigns first, and of each the first of each block: a long one has thousands."""

PAUSE_MOST_MS = 60_000
"""More than this after its deadline, what follows a launch was made another time."""


Amounts = list[tuple[int, float]]
"""Of each launch, how many there were, and the milliseconds that they took together."""


@dataclass(slots=True)
class Readings:
    """Milliseconds that things took."""

    launches: int = 0
    around_times: float | None = None
    """How many times the model's time Ansible took around the launches; of the newest campaign that can tell."""
    start_ms: dict[tuple[Launcher, Subject], Amounts] = field(default_factory=lambda: defaultdict(list))
    point_ms: dict[Subject, Amounts] = field(default_factory=lambda: defaultdict(list))
    """Around points that touch little memory, by their number."""
    touched_ms: dict[Subject, Amounts] = field(default_factory=lambda: defaultdict(list))
    """What surrounds points longer as they touch much memory, by its bytes."""
    counted_ms: dict[Subject, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Around points of which system calls were counted."""
    ran: dict[str, bool] = field(default_factory=dict)
    """Whether points ran, or were refused each time, in the newest campaign that attempted them."""
    campaigns: list[str] = field(default_factory=list)


def learned(
    store: Store, testbed: Testbed, sweep_name: str, damaged: list[DamagedError] | None = None
) -> TimeModel | None:
    """Return what the testbed's last campaign of this sweep took, else its last ones of others; None without any.

    Where too little was carried out to its end there, as much of a campaign as was; else what this machine took on
    other testbeds of its own. What is wrong with those that were passed over for it is added to `damaged`.
    """
    base, same, others, begun, elsewhere = idle_times(testbed.kind), Readings(), Readings(), Readings(), Readings()
    for campaign in reversed(store.campaigns()):
        try:
            meta = campaign.meta
            found = begun
            if not _is_here(meta.testbed, testbed):
                found = elsewhere
                if TestbedKind.CLUSTER in (meta.testbed.kind, testbed.kind):
                    continue
            elif meta.status == "finished":
                found = same if meta.sweep == sweep_name else others
            if found.launches < LAUNCHES_MOST:
                read(found, campaign, base, whole=found is same or found is others)
        except DamagedError as error:
            if damaged is not None:
                damaged.append(error)
            continue
        except (ResultsError, OSError):
            continue  # an older format, or a folder that somebody is removing: the next is as good
        if same.launches >= LAUNCHES_LEAST:
            return model_of(same, base)
    return next((model_of(one, base) for one in (others, begun, elsewhere) if one.launches >= LAUNCHES_LEAST), None)


def _is_here(facts: TestbedFacts, testbed: Testbed) -> bool:
    return (facts.name, facts.hosts) == (testbed.name, tuple(host.name for host in testbed.hosts))


def model_of(readings: Readings, base: TimeModel) -> TimeModel:
    """Return the model by which the plans would have been right."""
    times = readings.around_times or 1.0
    point_ms = _usual_ms((subject.kind, amounts) for subject, amounts in readings.point_ms.items())
    plain_ms = _usual_ms(readings.point_ms.items())
    touched_ms = _usual_ms(("", amounts) for amounts in readings.touched_ms.values()).get("", 0.0)
    counting_ms = [ms - plain_ms[one] for one, many in readings.counted_ms.items() if one in plain_ms for ms in many]
    newest, older = readings.campaigns[0], len(readings.campaigns) - 1
    return TimeModel(
        campaign_ms=base.campaign_ms * times,
        block_ms=base.block_ms * times,
        testbed_ms=base.testbed_ms * times,
        start_ms={**base.start_ms, **_usual_ms((one, amounts) for (one, _), amounts in readings.start_ms.items())},
        layer_ms=_usual_ms((subject.layer, amounts) for (_, subject), amounts in readings.start_ms.items()),
        point_ms={**base.point_ms, **{kind: max(value, 0.0) for kind, value in point_ms.items()}},
        counting_ms=max(statistics.median(counting_ms), 0.0) if counting_ms else base.counting_ms,
        touched_bytes_per_ms=1 / touched_ms if touched_ms > 0 else base.touched_bytes_per_ms,
        refused=frozenset(name for name, did in readings.ran.items() if not did),
        basis=f"campaign {newest}" + (f" and {older} older" if older else ""),
    )


def _usual_ms(groups: Iterable[tuple[_Name, Amounts]]) -> dict[_Name, float]:
    """Return by name what one takes: the mean of its groups' medians over launches, each by how many it had."""
    had: dict[_Name, int] = defaultdict(int)
    took_ms: dict[_Name, float] = defaultdict(float)
    for name, amounts in groups:
        often = sum(amount for amount, _ in amounts)
        had[name] += often
        took_ms[name] += often * statistics.median(ms / amount for amount, ms in amounts)
    return {name: took_ms[name] / often for name, often in had.items()}


def read(found: Readings, campaign: Campaign, base: TimeModel, *, whole: bool = True) -> None:
    """Add readings from launches that followed each other directly.

    whole: the campaign has every launch, and was carried out on this testbed: what was around launches counts as well.
    """
    pairs: list[tuple[LaunchRecord, float]] = []
    stored = campaign.launch_ids()
    for block in campaign.plan.blocks:  # all are read before any counts: a campaign that cannot be read leaves no trace
        few = block.launch_ids[: max(2, LAUNCHES_MOST // len(campaign.plan.blocks))]
        if not whole:
            few = tuple(takewhile(stored.__contains__, few))
        for before, after in pairwise(campaign.launch(name) for name in few):
            if before.result is not None and after.result is not None:
                gap_ms = _ms(after.result.started_utc) - _ms(before.result.started_utc)
                if 0 < gap_ms <= before.launch.deadline_ms + PAUSE_MOST_MS:  # else it was interrupted, or made again
                    pairs.append((before, gap_ms))
    if not pairs:
        return
    around_times = _around_times(campaign, base) if whole else None
    for record, gap_ms in pairs:
        take(found, record, gap_ms, campaign.plan, base)
    found.ran = _ran(record for record, _ in pairs) | found.ran
    found.campaigns.append(campaign.campaign_id)
    found.around_times = found.around_times or around_times


def _ran(records: Iterable[LaunchRecord]) -> dict[str, bool]:
    ran: dict[str, bool] = defaultdict(bool)
    for record in records:
        assert record.result is not None  # noqa: S101 - the caller chose such records
        for point in record.launch.points if record.result.status == "refused" else ():
            ran[point.point_id] |= False
        for attempt in record.result.attempts:
            ran[attempt.point_id] |= attempt.status != "refused"
    return dict(ran)


def take(found: Readings, record: LaunchRecord, gap_ms: float, plan: Plan, base: TimeModel) -> None:
    """Add one launch that the next one followed after `gap_ms`."""
    points = plan.by_id
    assert record.result is not None  # noqa: S101 - the caller chose such records
    found.launches += 1
    attempts = [item for item in record.result.attempts if item.started_ns_since_launch is not None]
    attempts.sort(key=lambda item: item.order)
    extras_ms: list[float] = []
    small_ms: list[float] = []
    large: Amounts = []
    subject = record.launch.subject
    around_ms = 0.0
    for before, after in pairwise(attempts):
        took_ms = ((after.started_ns_since_launch or 0) - (before.started_ns_since_launch or 0)) / 1e6
        point = points[before.point_id]
        around_ms += took_ms
        if before.status == "refused":
            continue
        extra_ms = took_ms - _measured_ms(plan, point)
        touched = touched_bytes(plan.pattern_of(point), point.workload, subject.kind)
        if before.counted_operations:
            if touched <= SMALL_BYTES:
                found.counted_ms[subject].append(extra_ms)
            continue
        extras_ms.append(extra_ms)
        if touched <= SMALL_BYTES:
            small_ms.append(extra_ms)
        elif touched >= LARGE_BYTES and extra_ms > base.point_ms[subject.kind]:
            large.append((touched, extra_ms - base.point_ms[subject.kind]))
    if small_ms:
        found.point_ms[subject].append((len(small_ms), sum(small_ms)))
    if large:
        found.touched_ms[subject].append((sum(touched for touched, _ in large), sum(ms for _, ms in large)))
    ended_refused = bool(attempts) and attempts[-1].status == "refused"
    if extras_ms or ended_refused:
        last_ms = (
            0 if ended_refused else _measured_ms(plan, points[attempts[-1].point_id]) + statistics.median(extras_ms)
        )
        stored_ms = STORE_ATTEMPT_MS * len(attempts)
        contexts = sum(len(end.cpus) or 1 for end in record.launch.endpoints)
        more_ms = CONTEXT_MS * max(contexts - 2, 0)
        start_ms = max(gap_ms - around_ms - last_ms - stored_ms - more_ms, 0.0)
        found.start_ms[record.launch.launcher, subject].append((1, start_ms))


def _measured_ms(plan: Plan, point: PlanPoint) -> float:
    """Return how long a point is measured, with a warm-up that its pattern calls long."""
    return point.duration_ms * plan.pattern_of(point).takes


def _around_times(campaign: Campaign, base: TimeModel) -> float | None:
    """Return how many times the model's time Ansible took around the launches; None where it cannot be told."""
    meta, blocks = campaign.meta, campaign.plan.blocks
    if meta.finished_utc is None:
        return None
    inside_ms = 0.0
    for block in blocks:
        first, last = campaign.launch(block.launch_ids[0]).result, campaign.launch(block.launch_ids[-1]).result
        if first is None or last is None:
            return None
        inside_ms += _ms(last.started_utc) - _ms(first.started_utc) + last.wall_ns / 1e6
    around_ms = _ms(meta.finished_utc) - _ms(meta.created_utc) - inside_ms
    looks = sum(part.ended is None for part in campaign.later_looks())
    runs_ms = base.around_ms(campaign.plan.epochs) + looks * base.campaign_ms
    times = around_ms / (runs_ms + len(blocks) * base.block_ms)
    return times if 0.2 < times < 5 else None  # else it was interrupted and went on another day


def _ms(utc: str) -> float:
    return datetime.fromisoformat(utc).timestamp() * 1000
