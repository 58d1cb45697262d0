# SPDX-License-Identifier: BSD-3-Clause
"""Looks after the first one: planned from the plan and a stored decision alone, so that they are the same every time.

Each look is a block of its own wherever the first one had one: launches in further rounds of what goes on, numbered on
and shuffled anew in each round. A launch has the points of its layer that go on, and no others; floors are measured up
to the first look.

Without looks the same rounds, of all points, are added where a campaign ends before its budget: by the clock alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from cadge_harness.plan.budget import spoken
from cadge_harness.plan.cast import contexts_of
from cadge_harness.plan.link import RATE
from cadge_harness.plan.order import in_turns, seeded, shuffled
from cadge_harness.plan.timemodel import (
    ATTEMPT_BYTES,
    RECORD_BYTES,
    STORE_ATTEMPT_MS,
    TimeModel,
    launch_deadline_ms,
    report_ms,
    touched_bytes,
)
from cadge_results import Decision, FormatError, LaterLook, Plan, PlanBlock, PlanLaunch
from cadge_results.formats.base import Place, digest
from cadge_results.formats.plan import PlanLook
from cadge_results.formats.sweep import LAUNCHES_MAX
from cadge_results.store.belongs import looks_of


def identity_of(launch: PlanLaunch) -> str:
    """Return a hash that depends on what is launched alone: the same in each round."""
    return digest([launch.subject.model_dump(mode="json"), [one.model_dump(mode="json") for one in launch.endpoints]])


ROUNDS_MOST = 2
"""Where time is left, there are at most so many times as many rounds as were planned."""
RESERVE = 0.05
"""This share of the budget stays free when rounds are added: what Ansible takes, and how even the pace is, vary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignTime:
    """What a campaign took so far, and how many times what was planned for its launches."""

    spent_s: float
    pace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What of one block of the first look goes on: a launch of each layer, with its points; and what Ansible takes."""

    block: PlanBlock
    launches: tuple[PlanLaunch, ...]
    around_ms: int

    @property
    def link(self) -> tuple[Place, tuple[str, ...]]:
        return self.block.place, self.block.hosts

    @property
    def rate(self) -> str:
        return self.launches[0].subject.setting(RATE) or ""


def next_look(plan: Plan, decision: Decision, decision_sha256: str) -> LaterLook:
    """Plan the look after a decision, from the plan as it has grown so far. Raises FormatError.

    It is without launches where the budget would be exceeded. There has to be something that goes on.
    """
    points, looks = with_twins(plan, decision.goes_on), looks_of(plan.sweep)
    unknown = points - {name for launch in plan.launches for name in launch.point_ids}
    if looks != decision.looks or decision.is_last or not points or unknown:
        raise FormatError(f"no look can be planned from the decision of look {decision.look}")
    before, after = decision.launches, looks[decision.look]
    blocks, launches = _rounds(plan, points, range(before, after))
    wall_s = round((TimeModel().campaign_ms + sum(block.wall_ms for block in blocks)) / 1000, 1)
    ended = _over_budget(plan, decision, wall_s)
    return LaterLook(
        schema_=LaterLook.schema_id(),
        plan_hash=plan.plan_hash,
        look=decision.look + 1,
        launches_before=before,
        launches_after=after,
        decision_sha256=decision_sha256,
        blocks=() if ended else tuple(blocks),
        launches=() if ended else tuple(launches),
        wall_s=0 if ended else wall_s,
        disk_bytes=0 if ended else _disk_bytes(launches),
        ended=ended,
    )


def most(plan: Plan) -> tuple[PlanLook, ...]:
    """Return what each look after the first one takes if nothing is decided before it; none where there are no looks.

    The plan is that of the first look. Without looks, what is added at most where time of the budget is left.
    """
    looks, points = looks_of(plan.sweep), compared(plan)
    if not looks:
        looks, points = (plan.rounds, min(ROUNDS_MOST * plan.rounds, LAUNCHES_MAX)), _planned(plan)
    parts = list(_parts(plan, points))
    each = [launch for part in parts for launch in part.launches]
    found = []
    for before, after in pairwise(looks):
        rounds = after - before
        wall_ms = TimeModel().campaign_ms + _blocks_ms(parts, rounds) + rounds * sum(launch.wall_ms for launch in each)
        look = PlanLook(launches=after, wall_s=round(wall_ms / 1000, 1), disk_bytes=rounds * _disk_bytes(each))
        found.append(look)
    return tuple(found)


def more_rounds(plan: Plan, look: int, most_rounds: int, *, took: CampaignTime) -> LaterLook:
    """Plan as many whole rounds more as the time left of the budget allows, or none, with the reason.

    plan: as it has grown so far; look: the number of this part of it.
    """
    budget_ms = plan.sweep.get("budget")
    assert isinstance(budget_ms, int)  # noqa: S101 - else no rounds may be added
    points, before = _planned(plan), plan.rounds
    parts = list(_parts(plan, points))
    attempts = sum(len(one.point_ids) for one in plan.launches)
    around_ms = TimeModel().campaign_ms + _blocks_ms(parts, 0)
    each_ms = took.pace * sum(one.wall_ms for part in parts for one in part.launches)
    each_ms += max(1.0, took.pace) * (_blocks_ms(parts, 1) - _blocks_ms(parts, 0))
    each_ms += report_ms(sum(len(one.point_ids) for part in parts for one in part.launches)) - report_ms(0)
    begins_ms = took.spent_s * 1000 + max(1.0, took.pace) * around_ms + report_ms(attempts)
    left_ms = budget_ms * (1 - RESERVE) - begins_ms
    count = max(0, min(most_rounds - before, int(left_ms / max(each_ms, 1))))
    blocks, launches = _rounds(plan, points, range(before, before + count))
    ended = f"a round more could end after {spoken(round(begins_ms + each_ms))}, of a budget of {spoken(budget_ms)}"
    return LaterLook(
        schema_=LaterLook.schema_id(),
        plan_hash=plan.plan_hash,
        look=look,
        launches_before=before,
        launches_after=before + max(count, 1),
        blocks=tuple(blocks) if count else (),
        launches=tuple(launches),
        wall_s=round((TimeModel().campaign_ms + sum(block.wall_ms for block in blocks)) / 1000, 1) if count else 0,
        disk_bytes=_disk_bytes(launches),
        ended=None if count else ended,
    )


def _planned(plan: Plan) -> frozenset[str]:
    return frozenset(point.point_id for point in plan.points if point.state == "planned")


def with_twins(plan: Plan, points: frozenset[str]) -> frozenset[str]:
    """Return points with the second series of what is measured twice: A against A is looked at as layers are."""
    here = {(point.subject, point.workload) for name in points if (point := plan.by_id.get(name)) is not None}
    twins = (point for point in plan.points if point.subject.twin and point.state == "planned")
    same = (point for point in twins if (point.subject.model_copy(update={"twin": False}), point.workload) in here)
    return points | {point.point_id for point in same}


def compared(plan: Plan) -> frozenset[str]:
    """Return the points that can be compared with others: of layers, where they are ranked."""
    return frozenset(
        point.point_id
        for point in plan.points
        if point.state == "planned"
        and point.subject.kind == "layer"
        and plan.pattern_of(point).does_rank(point.workload)
    )


def _over_budget(plan: Plan, decision: Decision, wall_s: float) -> str | None:
    """Say that a look would go beyond the budget, at the pace of the launches so far."""
    budget = plan.sweep.get("budget")
    ends_ms = round((plan.estimate.wall_s + wall_s) * decision.pace * 1000)
    if not isinstance(budget, int) or ends_ms <= budget:
        return None
    return f"the next look would end after {spoken(ends_ms)}, beyond the budget of {spoken(budget)}"


def _rounds(plan: Plan, points: Collection[str], turns: range) -> tuple[list[PlanBlock], list[PlanLaunch]]:
    """Return blocks with the launches of some points in some rounds."""
    blocks: list[PlanBlock] = []
    launches: list[PlanLaunch] = []
    for part, rounds in _in_turns(_parts(plan, points), plan.seed, turns):
        block_id = f"b{len(plan.blocks) + len(blocks) + 1}"
        here: list[PlanLaunch] = []
        for turn in rounds:
            here += (
                _launch(one, plan.seed, block_id, turn, len(here) + number)
                for number, one in enumerate(shuffled(part.launches, identity_of, plan.seed, block_id, turn))
            )
        launches += here
        update = {
            "block_id": block_id,
            "launch_ids": tuple(launch.launch_id for launch in here),
            "wall_ms": part.around_ms + sum(launch.wall_ms for launch in here),
        }
        blocks.append(part.block.model_copy(update=update))
    return blocks, launches


def _in_turns(parts: Iterable[_Part], seed: int, turns: range) -> Iterator[tuple[_Part, range]]:
    return in_turns(parts, lambda part: part.link, lambda part: part.rate, seed, turns)


def _blocks_ms(parts: Iterable[_Part], rounds: int) -> int:
    """Return what Ansible takes around the launches of so many rounds."""
    return sum(part.around_ms for part, _ in _in_turns(parts, 0, range(rounds)))


def _launch(one: PlanLaunch, seed: int, block_id: str, turn: int, number: int) -> PlanLaunch:
    identity = identity_of(one)
    return one.model_copy(
        update={
            "launch_id": f"{block_id}-{number:04d}-{digest([identity, turn])[:8]}",
            "block": block_id,
            "round": turn,
            "seed": seeded(seed, "launch", identity, turn) >> 1,
            "point_ids": tuple(shuffled(one.point_ids, str, seed, identity, turn)),
        }
    )


def _parts(plan: Plan, points: Collection[str]) -> Iterator[_Part]:
    """Yield what goes on of each block of the first look; what has no point that does is left out."""
    # system calls are counted in the first launch of each point: the second one takes what a later one takes
    turn = min(1, plan.rounds - 1)
    one = {launch.launch_id: launch for launch in plan.launches if launch.round == turn}
    wall_ms = {launch.launch_id: launch.wall_ms for launch in plan.launches}
    for block in plan.blocks:
        launches = [one[name] for name in block.launch_ids if name in one]
        found = tuple(part for launch in launches if (part := _narrowed(launch, plan, points)).point_ids)
        if found:
            around_ms = block.wall_ms - sum(wall_ms[name] for name in block.launch_ids)
            yield _Part(block=block, launches=found, around_ms=around_ms)


def _narrowed(launch: PlanLaunch, plan: Plan, points: Collection[str]) -> PlanLaunch:
    """Return a launch of the first round with some of its points, and what that takes in a later round."""
    ids = tuple(name for name in launch.point_ids if name in points)
    # points share it out as on an idle machine
    share = _idle_ms(plan, launch, ids) / _idle_ms(plan, launch, launch.point_ids)
    wall_ms = round(launch.wall_ms * share)
    contexts = contexts_of(launch.endpoints)
    deadline_ms = launch_deadline_ms(wall_ms, launch.launcher, contexts)
    return launch.model_copy(update={"point_ids": ids, "wall_ms": wall_ms, "deadline_ms": deadline_ms})


def _idle_ms(plan: Plan, launch: PlanLaunch, ids: Collection[str]) -> float:
    idle, kind = TimeModel(), launch.subject.kind
    spent_ms = idle.start_ms[launch.launcher]
    for point in (plan.by_id[name] for name in ids):
        pattern = plan.pattern_of(point)
        touched = touched_bytes(pattern, point.workload, kind)
        spent_ms += point.duration_ms * pattern.takes + idle.point_around_ms(touched, kind) + STORE_ATTEMPT_MS
    return spent_ms


def _disk_bytes(launches: Collection[PlanLaunch]) -> int:
    return sum(RECORD_BYTES + ATTEMPT_BYTES * len(launch.point_ids) for launch in launches)
