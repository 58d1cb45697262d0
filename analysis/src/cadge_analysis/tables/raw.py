# SPDX-License-Identifier: BSD-3-Clause
"""The tables `attempts`, `samples` and `launches`: what was stored, before any estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from cadge_analysis.cells.entry import Field, Of, fixed_columns, parameter_fields, subject_fields, table_of
from cadge_analysis.cells.table import beside, parameters
from cadge_analysis.stats.launch_facts import LayerMemory, taken
from cadge_analysis.words import slug
from cadge_results import Campaign, Plan
from cadge_results.formats.histogram import Histogram
from cadge_results.formats.plan import PlanLaunch
from cadge_results.formats.point import Subject
from cadge_results.formats.record import LaunchRecord
from cadge_results.formats.result import Number, Rate, Reading, Samples
from cadge_results.store.outcomes import PointOutcome, each_launch, each_outcome


def _at(path: str) -> Callable[[Any], Any]:
    """Return what reads an attribute of an attribute; None where one on the way is None."""
    *way, last = map(attrgetter, path.split("."))

    def of(item: object) -> Any:  # noqa: ANN401 - of a field
        for step in way:
            if (item := step(item)) is None:
                return None
        return last(item)

    return of


def _read(*names: str, of: str = "") -> tuple[Field[Any], ...]:
    """Return fields that are called as the attributes that they hold, of an item or of one of its attributes."""
    return tuple(Field(name, _at(f"{of}{name}")) for name in names)


def _point(table: str, plan: Plan, of: Callable[[Of], PointOutcome]) -> tuple[Field[Of], ...]:
    """Return what says which attempt a row is of, with the parameters of a plan's patterns, and what became of it."""

    def subject(item: Of) -> Subject:
        return of(item).point.subject

    columns = beside(fixed_columns(table), parameters(plan))
    return (
        Field("launch_id", lambda item: of(item).launch_id),
        Field("round", lambda item: of(item).round),
        Field("epoch", lambda item: of(item).epoch),
        Field("point_id", lambda item: of(item).point.point_id),
        *subject_fields(subject, subject, subject),
        Field("pattern", lambda item: of(item).point.workload.pattern),
        *parameter_fields(columns, lambda item: of(item).point.workload),
        Field("status", lambda item: of(item).status),
    )


# ---- attempts: every planned one, and every point that the plan refused ----


def _of_all_ends(name: str, key: str = "") -> Field[PointOutcome]:
    """Return a use of processors, all endpoints together; None where one of them has no number."""
    of = attrgetter(key or name)

    def together(outcome: PointOutcome) -> int | None:
        found = [of(one) for one in (outcome.attempt.cpu or () if outcome.attempt else ())]
        return sum(found) if found and None not in found else None

    return Field(name, together)


_ATTEMPT: tuple[Field[PointOutcome], ...] = (
    *_read("reason"),
    Field("reason_code", lambda one: str(one.reason_code) if one.reason_code else None),
    Field("failed_checks", lambda one: " ".join(dict.fromkeys(check.name for check in one.failed_checks))),
    Field("attempt_order", _at("attempt.order")),
    *_read("started_ns_since_launch", "elapsed_ns", "operations", "bytes", "lost", "late", of="attempt."),
    Field("warmup_operations", _at("attempt.warmup.operations")),
    Field("warmup_ns", _at("attempt.warmup.ns")),
    Field("warmup_steady", _at("attempt.warmup.steady")),
    Field("mismatches", _at("attempt.verified.mismatches")),
    Field("executions_expected", _at("attempt.executions.expected")),
    Field("executions", _at("attempt.executions.server")),
    *(_of_all_ends(f"cpu_{name}", name) for name in ("user_ns", "system_ns")),
    *(_of_all_ends(f"{kind}_switches") for kind in ("voluntary", "involuntary")),
    *map(_of_all_ends, ("minor_faults", "major_faults", "run_wait_ns", "stolen_ns", "cycles", "instructions")),
)

# ---- samples: everything that an endpoint recorded in an attempt that was made ----


class _EndpointRecord(NamedTuple):
    """What one endpoint recorded of one quantity; `samples`, `buckets` and `rate` are None of what is none."""

    outcome: PointOutcome
    quantity: str
    unit: str | None
    reading: Reading
    samples: Samples | None
    buckets: Histogram | None
    rate: Rate | None


def _recorded(campaign: Campaign) -> Iterator[_EndpointRecord]:
    units = {
        (key, name): one.unit if one.kind == "histogram" else slug(one)
        for key, file in campaign.plan.patterns.items()
        for name, one in file.quantities.items()
    }
    for outcome in _outcomes(campaign):
        for name, several in outcome.attempt.quantities.items() if outcome.attempt else ():
            for one in several:
                samples, rate = one if isinstance(one, Samples) else None, one if isinstance(one, Rate) else None
                unit = units.get((outcome.point.workload.pattern, name))
                yield _EndpointRecord(outcome, name, unit, one, samples, samples.buckets if samples else None, rate)


def _percentile(name: str, percent: float) -> Field[_EndpointRecord]:
    return Field(name, lambda one: one.buckets.percentile(percent) if one.buckets else None)


_SAMPLE: tuple[Field[_EndpointRecord], ...] = (
    *_read("quantity", "unit"),
    Field("endpoint", lambda one: one.reading.endpoint),
    *_read("count", "sum_ns", "min_ns", "max_ns", of="samples."),
    _percentile("p50_ns", 50),
    _percentile("p90_ns", 90),
    _percentile("p99_ns", 99),
    _percentile("p999_ns", 99.9),
    *_read("amount", "elapsed_ns", of="rate."),
    Field("sd_ns", _at("samples.deviation_ns")),
    Field("value", lambda one: one.reading.value if isinstance(one.reading, Number) else None),
)

# ---- launches: every planned one, in the order of the plan ----


class _Launch(NamedTuple):
    """A planned launch, what it left, and what opening its layer took."""

    planned: PlanLaunch
    record: LaunchRecord | None
    took: LayerMemory | None


def _launches(campaign: Campaign) -> Iterator[_Launch]:
    for planned, record in each_launch(campaign.plan, campaign.readings(as_planned=True)):
        yield _Launch(planned, record, taken(record) if record else None)


def _of_launch(one: _Launch) -> Subject:
    return one.planned.subject


def _log(one: _Launch) -> str | None:
    tails = one.record.log_tail if one.record else ()
    return "\n".join(tail.strip() for tail in tails if tail.strip()) or None


def _load(one: _Launch, name: str) -> list[Any]:
    """Return what was read of the load of a launch's hosts."""
    found = [getattr(load, name) for load in (one.record.load if one.record else ())]
    return [value for value in found if value is not None]


def _passed(what: str, one: _Launch) -> int | None:
    """Return what passed all interfaces of a launch's hosts meanwhile; None where nobody counted."""
    counted = [
        getattr(after, f"{way}_{what}") - getattr(host.before[name], f"{way}_{what}")
        for host in (one.record.counters if one.record else ())
        for name, after in host.after.items()
        if name in host.before
        for way in ("rx", "tx")
    ]
    return sum(counted) if counted else None


_LAUNCH: tuple[Field[_Launch], ...] = (
    *_read("launch_id", "round", "epoch", of="planned."),
    Field("block_id", lambda one: one.planned.block),
    *subject_fields(_of_launch, _of_launch, _of_launch),
    Field("status", lambda one: one.record.status if one.record else "missing"),
    Field("reason", lambda one: _at("record.reason")(one) or _at("record.result.reason")(one)),
    Field("started_utc", _at("record.result.started_utc")),
    Field("hosts", lambda one: " ".join(end.host for end in one.planned.endpoints)),
    Field("library", _at("record.result.library.name")),
    Field("library_version", _at("record.result.library.stated_version")),
    Field("driver_revision", _at("record.result.driver.revision")),
    Field("log", _log),
    Field("attempts", lambda one: len(one.planned.point_ids)),
    Field("channels", lambda one: max((len(end.peers) for end in one.planned.endpoints), default=None)),
    Field("memory_bytes", _at("took.memory")),
    Field("memory_shared_bytes", _at("took.shared")),
    Field("memory_shared_part_bytes", _at("took.shared_part")),
    Field("interface_bytes", partial(_passed, "bytes")),
    Field("interface_packets", partial(_passed, "packets")),
    Field("wall_ns", _at("record.result.wall_ns")),
    Field("steal_ns", lambda one: sum(found) if (found := _load(one, "steal_ns")) else None),
    Field("throttled_ns", lambda one: sum(found) if (found := _load(one, "throttled_ns")) else None),
    Field("loadavg", lambda one: max(_load(one, "loadavg"), default=None)),
)


def _outcomes(campaign: Campaign) -> Iterator[PointOutcome]:
    return each_outcome(campaign.plan, campaign.readings(as_planned=True))


ATTEMPTS = table_of("attempts", lambda plan: (*_point("attempts", plan, lambda one: one), *_ATTEMPT), _outcomes)
SAMPLES = table_of("samples", lambda plan: (*_point("samples", plan, lambda one: one.outcome), *_SAMPLE), _recorded)
LAUNCHES = table_of("launches", lambda _: _LAUNCH, _launches)
