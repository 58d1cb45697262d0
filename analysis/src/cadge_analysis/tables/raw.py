# SPDX-License-Identifier: BSD-3-Clause
"""The tables `attempts`, `samples` and `launches`: what was stored, before any estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cadge_analysis.cells.entry import fixed_columns, table_of_rows
from cadge_analysis.cells.table import Row, beside, parameters
from cadge_analysis.stats.resident import taken
from cadge_analysis.words import slug
from cadge_results import Campaign
from cadge_results.outcomes import PointOutcome, outcomes_of
from cadge_results.plan import PlanLaunch
from cadge_results.point import Subject
from cadge_results.record import LaunchRecord
from cadge_results.result import Attempt, CpuUse, Number, Rate, Reading, Samples

_CPU = {
    "cpu_user_ns": "user_ns",
    "cpu_system_ns": "system_ns",
    "voluntary_switches": "voluntary_switches",
    "involuntary_switches": "involuntary_switches",
    "minor_faults": "minor_faults",
    "major_faults": "major_faults",
    "run_wait_ns": "run_wait_ns",
    "stolen_ns": "stolen_ns",
    "cycles": "cycles",
    "instructions": "instructions",
}


def _subject(subject: Subject) -> Row:
    return {
        "kind": subject.kind,
        "layer": subject.layer,
        "shims": "+".join(subject.shims),
        "settings": " ".join(f"{key}={value}" for key, value in subject.settings),
        "twin": subject.twin,
        "place": subject.place,
        "wait": subject.wait,
    }


def _point(campaign_id: str, outcome: PointOutcome, names: Mapping[str, str]) -> Row:
    values = outcome.point.workload.values
    return {
        "campaign_id": campaign_id,
        "launch_id": outcome.launch_id,
        "round": outcome.round,
        "point_id": outcome.point.point_id,
        **_subject(outcome.point.subject),
        "pattern": outcome.point.workload.pattern,
        **{column: values.get(name) for name, column in names.items()},
        "status": outcome.status,
    }


def _parameters(table: str, campaign: Campaign) -> dict[str, str]:
    return {name: one.name for name, one in beside(fixed_columns(table), parameters(campaign.plan)).items()}


def attempts(campaign: Campaign) -> Iterator[Row]:
    """Yield a row for every planned attempt, and one for every point that the plan refused."""
    campaign_id, names = campaign.campaign_id, _parameters("attempts", campaign)
    for outcome in outcomes_of(campaign.plan, campaign.readings()):
        yield {
            **_point(campaign_id, outcome, names),
            "reason": outcome.reason,
            "reason_code": str(outcome.reason_code) if outcome.reason_code else None,
            "failed_checks": " ".join(dict.fromkeys(check.name for check in outcome.failed_checks)),
            **_measured(outcome.attempt),
        }


def _measured(attempt: Attempt | None) -> Row:
    warmup, verified = (attempt.warmup, attempt.verified) if attempt else (None, None)
    executions = attempt.executions if attempt else None
    cpu = attempt.cpu or () if attempt else ()
    return {
        "attempt_order": attempt.order if attempt else None,
        "started_ns_since_launch": attempt.started_ns_since_launch if attempt else None,
        "elapsed_ns": attempt.elapsed_ns if attempt else None,
        "operations": attempt.operations if attempt else None,
        "bytes": attempt.bytes if attempt else None,
        "lost": attempt.lost if attempt else None,
        "late": attempt.late if attempt else None,
        "warmup_operations": warmup.operations if warmup else None,
        "warmup_ns": warmup.ns if warmup else None,
        "warmup_steady": warmup.steady if warmup else None,
        "mismatches": verified.mismatches if verified else None,
        "executions_expected": executions.expected if executions else None,
        "executions": executions.server if executions else None,
        **{name: _sum(cpu, key) for name, key in _CPU.items()},
    }


def _sum(cpu: tuple[CpuUse, ...], key: str) -> int | None:
    """Return a sum over endpoints; None where one of them has no number."""
    found: list[int | None] = [getattr(one, key) for one in cpu]
    known = [one for one in found if one is not None]
    return sum(known) if found and len(known) == len(found) else None


def samples(campaign: Campaign) -> Iterator[Row]:
    """Yield a row for everything that an endpoint recorded in an attempt that was made."""
    campaign_id, names = campaign.campaign_id, _parameters("samples", campaign)
    units = {
        (key, name): one.unit if one.kind == "histogram" else slug(one)
        for key, file in campaign.plan.patterns.items()
        for name, one in file.quantities.items()
    }
    for outcome in outcomes_of(campaign.plan, campaign.readings()):
        if outcome.attempt is None:
            continue
        for name, several in outcome.attempt.quantities.items():
            for reading in several:
                yield {
                    **_point(campaign_id, outcome, names),
                    "quantity": name,
                    "unit": units.get((outcome.point.workload.pattern, name)),
                    "endpoint": reading.endpoint,
                    **_reading(reading),
                }


def _reading(reading: Reading) -> Row:
    one = reading if isinstance(reading, Samples) else None
    rate = reading if isinstance(reading, Rate) else None
    buckets = one.buckets if one else None
    return {
        "count": one.count if one else None,
        "sum_ns": one.sum_ns if one else None,
        "min_ns": one.min_ns if one else None,
        "max_ns": one.max_ns if one else None,
        **{name: buckets.percentile(percent) if buckets else None
           for name, percent in (("p50_ns", 50), ("p90_ns", 90), ("p99_ns", 99), ("p999_ns", 99.9))},
        "amount": rate.amount if rate else None,
        "elapsed_ns": rate.elapsed_ns if rate else None,
        "sd_ns": one.deviation_ns if one else None,
        "value": reading.value if isinstance(reading, Number) else None,
    }  # fmt: skip


def launches(campaign: Campaign) -> Iterator[Row]:
    """Yield a row for every planned launch, in the order of the plan."""
    found = {record.launch_id: record for record in campaign.readings()}
    for planned in campaign.plan.launches:
        yield {"campaign_id": campaign.campaign_id, **_launch(planned, found.get(planned.launch_id))}


def _launch(planned: PlanLaunch, record: LaunchRecord | None) -> Row:
    result = record.result if record else None
    library = result.library if result else None
    took = taken(record) if record else None
    stolen = [one.steal_ns for one in record.load if one.steal_ns is not None] if record else []
    loads = [one.loadavg for one in record.load if one.loadavg is not None] if record else []
    return {
        "launch_id": planned.launch_id,
        "round": planned.round,
        "block_id": planned.block,
        **_subject(planned.subject),
        "status": record.status if record else "missing",
        "reason": (record.reason or (result.reason if result else None)) if record else None,
        "started_utc": result.started_utc if result else None,
        "hosts": " ".join(one.host for one in planned.endpoints),
        "library": library.name if library else None,
        "library_version": library.stated_version if library else None,
        "driver_revision": result.driver.revision if result else None,
        "log": "\n".join(one.strip() for one in record.log_tail if one.strip()) or None if record else None,
        "attempts": len(planned.point_ids),
        "channels": max((len(one.peers) for one in planned.endpoints), default=None),
        "memory_bytes": took.memory if took else None,
        "memory_shared_bytes": took.shared if took else None,
        "memory_shared_part_bytes": took.shared_part if took else None,
        "interface_bytes": _passed(record, "bytes"),
        "interface_packets": _passed(record, "packets"),
        "wall_ns": result.wall_ns if result else None,
        "steal_ns": sum(stolen) if stolen else None,
        "loadavg": max(loads, default=None),
    }


def _passed(record: LaunchRecord | None, what: str) -> int | None:
    """Return what passed all interfaces of a launch's hosts meanwhile; None where nobody counted."""
    counted = [
        getattr(after, f"{way}_{what}") - getattr(host.before[name], f"{way}_{what}")
        for host in (record.counters if record else ())
        for name, after in host.after.items()
        if name in host.before
        for way in ("rx", "tx")
    ]
    return sum(counted) if counted else None


ATTEMPTS = table_of_rows("attempts", attempts)
SAMPLES = table_of_rows("samples", samples)
LAUNCHES = table_of_rows("launches", launches)
