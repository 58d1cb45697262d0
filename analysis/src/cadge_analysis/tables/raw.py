# SPDX-License-Identifier: BSD-3-Clause
"""The tables `attempts`, `samples` and `launches`: what was stored, before any estimate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cadge_analysis.cells.table import Column, Row, Table, beside, column_of, parameters, with_parameters
from cadge_analysis.stats.resident import taken
from cadge_analysis.words import slug
from cadge_results import Campaign
from cadge_results.outcomes import PointOutcome, outcomes_of
from cadge_results.plan import PlanLaunch
from cadge_results.point import Subject
from cadge_results.record import LaunchRecord
from cadge_results.result import Attempt, CpuUse, Number, Rate, Reading, Samples

_OF = (
    *column_of("text", campaign_id="the campaign", launch_id="the launch; none for a point that the plan refused"),
    *column_of("integer", round="the round of launches, from 0"),
)
_SUBJECT = (
    *column_of(
        "text",
        kind="layer or floor",
        layer="the layer's name, or the floor's",
        shims="what was set before it, outermost first, joined by +",
        settings="options that it was opened with, as name=value",
    ),
    *column_of("boolean", twin="true: a second series of the same thing"),
    *column_of("text", place="within a host, or between hosts", wait="poll or block"),
)
_POINT = (
    *column_of("text", point_id="the point"),
    *_SUBJECT,
    *column_of("text", pattern="the workload; its parameters follow, a column each"),
)
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
_ATTEMPT = (
    *_OF,
    *_POINT,
    *column_of(
        "text",
        status="valid, unsound, failed, refused or missing",
        reason="why it is not valid",
        reason_code="the same as one word",
        failed_checks="names of the checks that speak against it",
    ),
    *column_of(
        "integer",
        attempt_order="its place among the attempts of its launch, from 0",
        started_ns_since_launch="when it began",
        elapsed_ns="length of the measured region",
        operations="operations in the measured region",
        bytes="bytes of payload in the measured region",
        lost="messages that were lost",
        late="messages that came after their time",
        warmup_operations="operations before the measured region",
        warmup_ns="length of the warm-up",
    ),
    *column_of("boolean", warmup_steady="whether it settled before its time limit"),
    *column_of(
        "integer",
        mismatches="messages whose payload differed from what was sent",
        executions_expected="operations that those who act expect the others to have carried out",
        executions="operations that the others counted",
        cpu_user_ns="time in user space, all endpoints together",
        cpu_system_ns="time in the kernel, all endpoints together",
        voluntary_switches="switches because a thread waited, all endpoints together",
        involuntary_switches="switches because another thread had to run, all endpoints together",
        minor_faults="page faults without a disk, all endpoints together",
        major_faults="page faults with a disk, all endpoints together",
        run_wait_ns="how long measuring threads were ready and did not run",
        stolen_ns="what the host took of their processors",
        cycles="cycles of processors, where they were counted",
        instructions="instructions, where they were counted",
    ),
)
_SAMPLES = (
    *_OF,
    *_POINT,
    *column_of(
        "text",
        status="what became of the attempt: valid or unsound",
        quantity="what was measured, by its name in the pattern",
        unit="of amount, of amount a second, or of value",
    ),
    *column_of(
        "integer",
        endpoint="which endpoint recorded it, from 0",
        count="of a histogram: how many times were recorded",
        sum_ns="their sum, exact",
        min_ns="the shortest, exact",
        max_ns="the longest, exact",
        p50_ns="the median, of three significant digits",
        p90_ns="90th percentile, of three significant digits",
        p99_ns="99th percentile, of three significant digits",
        p999_ns="99.9th percentile, of three significant digits",
        amount="of a rate: what was counted",
        elapsed_ns="in which time",
    ),
    *column_of("number", sd_ns="their standard deviation, of exact sums", value="of a count or a fit: the number"),
)
_LAUNCH = (
    *_OF,
    *column_of("text", block_id="the block that it ran in"),
    *_SUBJECT,
    *column_of(
        "text",
        status="done, refused, failed or missing",
        reason="why it is not done",
        started_utc="when its driver began",
        hosts="the hosts of its endpoints, in order",
        library="the library that served the layer",
        library_version="its version as it states it",
        driver_revision="of the source that the driver was built from",
        log="the last that its processes printed, a process a line",
    ),
    *column_of(
        "integer",
        attempts="attempts that it had to make",
        channels="channels of the process that has the most of them",
        memory_bytes="what opening the layer and its channels added to that process's resident memory, without files",
        memory_shared_bytes="the part of it in mappings made to be shared",
        memory_shared_part_bytes="the same, each page divided by the processes that touched it",
        interface_bytes="received and sent by its hosts' interfaces, all together",
        interface_packets="packets that they received and sent, all together",
        wall_ns="how long its driver ran",
        steal_ns="what hypervisors took of its hosts' processors",
    ),
    *column_of("number", loadavg="the highest load average of its hosts, over a minute"),
)


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


def _parameters(fixed: Iterable[Column], campaign: Campaign) -> dict[str, str]:
    return {name: one.name for name, one in beside(fixed, parameters(campaign.plan)).items()}


def attempts(campaign: Campaign) -> Iterator[Row]:
    """Yield a row for every planned attempt, and one for every point that the plan refused."""
    campaign_id, names = campaign.campaign_id, _parameters(_ATTEMPT, campaign)
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
    campaign_id, names = campaign.campaign_id, _parameters(_SAMPLES, campaign)
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


ATTEMPTS = Table(
    "attempts", "a row for every planned attempt, and what became of it", _ATTEMPT, with_parameters(_ATTEMPT), attempts
)
SAMPLES = Table(
    "samples",
    "a row for everything that an endpoint recorded in an attempt",
    _SAMPLES,
    with_parameters(_SAMPLES),
    samples,
)
LAUNCHES = Table("launches", "a row for every planned launch", _LAUNCH, lambda _: _LAUNCH, launches)
