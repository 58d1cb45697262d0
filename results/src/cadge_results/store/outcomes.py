# SPDX-License-Identifier: BSD-3-Clause
"""What became of each planned point: missing, refused, failed, unsound or valid.

Every planned attempt (a point in a launch) has exactly one outcome, and every point that was refused when
planning has one outcome without a launch; so the outcomes of a campaign always add up to its plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from cadge_results.formats.plan import Plan, PlanLaunch, PlanPoint
from cadge_results.formats.reason import Reason
from cadge_results.formats.record import LaunchRecord
from cadge_results.formats.result import Attempt, Check

OutcomeStatus = Literal["missing", "refused", "failed", "unsound", "valid"]
STATUSES: tuple[OutcomeStatus, ...] = ("valid", "unsound", "failed", "refused", "missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOutcome:
    """One planned attempt and what became of it. `launch_id` is None for a point refused by the plan."""

    point: PlanPoint
    launch_id: str | None
    round: int | None
    epoch: int | None = None
    status: OutcomeStatus
    reason: str | None = None
    reason_code: Reason | None = None
    failed_checks: tuple[Check, ...] = ()
    attempt: Attempt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSummary:
    """One planned point and how many of its attempts ended how."""

    point: PlanPoint
    counts: Mapping[OutcomeStatus, int]

    @property
    def status(self) -> OutcomeStatus:
        """One word for the point: valid where any attempt is, else the most serious thing that is known."""
        for status in STATUSES:
            if self.counts.get(status, 0):
                return status
        return "missing"


def outcomes_of(plan: Plan, records: Iterable[LaunchRecord]) -> list[PointOutcome]:
    """Return the outcome of every planned attempt, in the plan's order."""
    by_launch = {record.launch_id: record for record in records}
    found = [by_launch[launch.launch_id] for launch in plan.launches if launch.launch_id in by_launch]
    return list(each_outcome(plan, found))


def each_outcome(plan: Plan, records: Iterable[LaunchRecord]) -> Iterator[PointOutcome]:
    """Yield the outcome of every planned attempt, in the plan's order, which is that of `records` as well."""
    for point in plan.points:
        if point.state == "refused":
            yield PointOutcome(
                point=point,
                launch_id=None,
                round=None,
                status="refused",
                reason=point.reason,
                reason_code=point.reason_code,
            )
    for launch, record in each_launch(plan, records):
        yield from launch_outcomes(plan, launch, record)


def each_launch(plan: Plan, records: Iterable[LaunchRecord]) -> Iterator[tuple[PlanLaunch, LaunchRecord | None]]:
    """Yield every planned launch with its record, None where it was not made.

    The records are in the plan's order, and one is held at a time. All are read, those of no planned launch as well.
    """
    rest = iter(records)
    record = next(rest, None)
    for launch in plan.launches:
        if record is not None and record.launch_id == launch.launch_id:
            yield launch, record
            record = next(rest, None)
        else:
            yield launch, None
    for _ in rest:
        pass


def launch_outcomes(plan: Plan, launch: PlanLaunch, record: LaunchRecord | None) -> Iterator[PointOutcome]:
    """Yield the outcome of every planned attempt of one launch; `record` is None where it was not made."""
    attempts = _attempts(record)
    shared = launch_checks(record) if record is not None else ()
    for item in launch.point_ids:
        yield _outcome(plan.by_id[item], launch, record, attempts.get(item), shared)


def summaries_of(plan: Plan, outcomes: Iterable[PointOutcome]) -> list[PointSummary]:
    """Return one summary for each planned point, in the plan's order."""
    counts: dict[str, Counter[OutcomeStatus]] = {point.point_id: Counter() for point in plan.points}
    for outcome in outcomes:
        counts[outcome.point.point_id][outcome.status] += 1
    return [PointSummary(point=point, counts=dict(counts[point.point_id])) for point in plan.points]


def _attempts(record: LaunchRecord | None) -> dict[str, Attempt]:
    if record is None or record.result is None:
        return {}
    return {attempt.point_id: attempt for attempt in record.result.attempts}


def _outcome(
    point: PlanPoint,
    launch: PlanLaunch,
    record: LaunchRecord | None,
    attempt: Attempt | None,
    of_launch: tuple[Check, ...],
) -> PointOutcome:
    """Return what became of an attempt; `of_launch` are the checks that speak of its launch as a whole."""
    status: OutcomeStatus
    reason: str | None
    code: Reason | None
    failed: tuple[Check, ...] = ()
    if record is None:
        status, reason, code = "missing", "the launch has not been made", None
    elif attempt is None:
        status, reason, code = _without_attempt(record)
    elif attempt.status in ("refused", "failed"):
        status = "refused" if attempt.status == "refused" else "failed"
        reason, code = attempt.reason, attempt.reason_code
    else:
        failed = _failed(attempt, of_launch)
        status = "unsound" if failed or attempt.status == "unsound" else "valid"
        reason, code = attempt.reason, attempt.reason_code
        if failed and reason is None:
            reason = "; ".join(f"{check.name}: {check.detail}" if check.detail else check.name for check in failed)
            code = Reason.UNSOUND
    return PointOutcome(
        point=point,
        launch_id=launch.launch_id,
        round=launch.round,
        epoch=launch.epoch,
        status=status,
        reason=reason,
        reason_code=code,
        failed_checks=failed,
        attempt=attempt,
    )


def _without_attempt(record: LaunchRecord) -> tuple[OutcomeStatus, str | None, Reason | None]:
    source = record.result if record.result is not None and record.result.status != "done" else record
    reason = source.reason or record.reason
    code = source.reason_code or record.reason_code
    if source.status == "refused":
        return "refused", reason, code
    return "failed", reason or "the driver wrote no attempt for this point", code


def failed_checks(record: LaunchRecord, attempt: Attempt) -> tuple[Check, ...]:
    """Return every check that speaks against an attempt: its own, its launch's, and the harness's."""
    return _failed(attempt, launch_checks(record))


def _failed(attempt: Attempt, of_launch: tuple[Check, ...]) -> tuple[Check, ...]:
    return tuple(check for check in (*attempt.checks, *of_launch) if not check.ok)


def launch_checks(record: LaunchRecord) -> tuple[Check, ...]:
    """Return the checks that speak of a launch as a whole: its driver's and the harness's.

    A driver also sums up checks that each attempt carries for itself; those speak of their attempts alone.
    """
    result = record.result
    if result is None:
        return record.crosschecks
    by_attempt = {check.name for attempt in result.attempts for check in attempt.checks}
    return (*(check for check in result.checks if check.name not in by_attempt), *record.crosschecks)
