# SPDX-License-Identifier: BSD-3-Clause
"""Whether stored documents of one campaign fit each other: a plan with itself, a record with its plan.

Each by itself may be right in form. What is computed from them needs more: every point has the parameters of its
pattern, every record measured what was planned under its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from pydantic import JsonValue

from cadge_results.formats.plan import Plan, PlanLaunch, PlanPoint
from cadge_results.formats.point import Workload
from cadge_results.formats.record import LaunchRecord
from cadge_results.formats.result import Attempt, Number, Rate, Reading, Result, Samples
from cadge_results.plugins.pattern import PatternFile

_FORMS: Mapping[str, type[Reading]] = {"histogram": Samples, "rate": Rate, "count": Number, "fit": Number}


def looks_of(sweep: Mapping[str, JsonValue]) -> tuple[int, ...]:
    """Return the looks of a sweep as a plan keeps it; none where it has none."""
    found = sweep.get("looks")
    return tuple(item for item in found if isinstance(item, int)) if isinstance(found, list) else ()


def plan_problem(plan: Plan) -> str | None:
    """Return the first reason why a plan does not fit itself, or None."""
    return next(_of_plan(plan), None)


def record_problem(record: LaunchRecord, planned: PlanLaunch, plan: Plan) -> str | None:
    """Return the first reason why a record is not of the launch that was planned under its name, or None."""
    return next(_of_record(record, planned, plan), None)


def _of_plan(plan: Plan) -> Iterator[str]:
    looks = looks_of(plan.sweep)
    if any(one <= before for before, one in pairwise((0, *looks))):
        yield f"its looks do not come one after the other: {looks}"
    names: tuple[tuple[str, Sequence[str]], ...] = (
        ("point", [one.point_id for one in plan.points]),
        ("launch", [one.launch_id for one in plan.launches]),
        ("block", [one.block_id for one in plan.blocks]),
    )
    for what, several in names:
        if len(set(several)) < len(several):
            yield f"a {what} is planned twice"
    for point in plan.points:
        yield from _of_point(point, plan)
    blocks = {one.block_id: one for one in plan.blocks}
    for launch in plan.launches:
        yield from _of_launch(launch, plan)
        if launch.block not in blocks or launch.launch_id not in blocks[launch.block].launch_ids:
            yield f"launch {launch.launch_id} is in no block of the plan"
    yield from (f"block {one.block_id} has no launch" for one in plan.blocks if not one.launch_ids)
    launches = {one.launch_id for one in plan.launches}
    yield from (
        f"block {one.block_id} has a launch that is not planned"
        for one in plan.blocks
        if set(one.launch_ids) - launches
    )


def _of_point(point: PlanPoint, plan: Plan) -> Iterator[str]:
    file = plan.patterns.get(point.workload.pattern)
    if file is None:
        yield f"point {point.point_id}: there is no pattern {point.workload.pattern}"
        return
    try:
        file.check(point.workload.pattern, point.workload.values)
    except ValueError as error:
        yield f"point {point.point_id}: {error}"
    if point.subject.kind == "floor" and point.subject.layer not in plan.floors:
        yield f"point {point.point_id}: there is no floor {point.subject.layer}"


def _of_launch(launch: PlanLaunch, plan: Plan) -> Iterator[str]:
    for name in launch.point_ids:
        if name not in plan.by_id:
            yield f"launch {launch.launch_id}: point {name} is not planned"
        elif plan.by_id[name].subject != launch.subject:
            yield f"launch {launch.launch_id}: point {name} is of {plan.by_id[name].subject.label}"
    count = len(launch.endpoints)
    if any(peer >= count for end in launch.endpoints for peer in end.peers):
        yield f"launch {launch.launch_id}: an endpoint has a peer that is none"


def _of_record(record: LaunchRecord, planned: PlanLaunch, plan: Plan) -> Iterator[str]:
    launch, subject = record.launch, planned.subject.model_copy(update={"twin": False})
    if launch.subject != subject:
        yield f"it measured {_where(launch.subject.label, launch)}, where {_where(subject.label, subject)} was planned"
    if (launch.seed, launch.launcher, launch.epoch) != (planned.seed, planned.launcher, planned.epoch):
        yield "its seed, its launcher or its epoch is not the planned one"
    ends = [(one.role, one.host, one.peers) for one in launch.endpoints]
    if ends != [(one.role, one.host, one.peers) for one in planned.endpoints]:
        yield "its endpoints are not those that were planned"
    names = frozenset(planned.point_ids)
    for point in launch.points:
        yield from _of_workload(point.point_id, point.workload, names, plan)
    if record.result is not None:
        yield from _of_result(record.result, record, names, plan)


def _where(label: str, where: object) -> str:
    return f"{label} ({getattr(where, 'place', '')}, {getattr(where, 'wait', '')})"


def _of_workload(point_id: str, workload: Workload, planned: frozenset[str], plan: Plan) -> Iterator[str]:
    if point_id not in planned:
        yield f"point {point_id} was not planned for it"
        return
    other = plan.by_id[point_id].workload
    if (workload.pattern, workload.parameters) != (other.pattern, other.parameters):
        yield f"point {point_id} has another workload than was planned"


def _of_result(result: Result, record: LaunchRecord, planned: frozenset[str], plan: Plan) -> Iterator[str]:
    launch = record.launch
    for name in ("launch_id", "kind", "layer", "place", "wait"):
        if getattr(result, name) != getattr(launch, name):
            yield f"its result is of {name} {getattr(result, name)}, not {getattr(launch, name)}"
    seen: set[str] = set()
    names = {point.point_id: point.attempt_id for point in launch.points}
    for attempt in result.attempts:
        if attempt.point_id in seen:
            yield f"it has a second attempt of point {attempt.point_id}"
        if attempt.attempt_id != names.get(attempt.point_id, attempt.attempt_id):
            yield f"its attempt of point {attempt.point_id} has another name than the launch gave it"
        seen.add(attempt.point_id)
        yield from _of_workload(attempt.point_id, attempt.workload, planned, plan)
        if attempt.point_id in plan.by_id:
            file = plan.pattern_of(plan.by_id[attempt.point_id])
            for name, readings in attempt.quantities.items():
                yield from _of_quantity(name, readings, attempt, file, len(launch.endpoints))


def _of_quantity(
    name: str, readings: Iterable[Reading], attempt: Attempt, file: PatternFile, endpoints: int
) -> Iterator[str]:
    quantity = file.quantities.get(name)
    if quantity is None:  # nobody asks for it
        return
    form = _FORMS[quantity.kind]
    for one in readings:
        if not isinstance(one, form):
            yield f"{name} of {attempt.workload.pattern} is no {quantity.kind}"
        if one.endpoint >= endpoints:
            yield f"{name} is of endpoint {one.endpoint}, and there are {endpoints}"
