# SPDX-License-Identifier: BSD-3-Clause
"""Planning: from a sweep, the layers there are and a testbed to every point, launch and block.

Pure: no clock, no network, no file. The same input gives the same plan, and ids depend on what is measured alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeVar

from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.plan.budget import Demand, spend
from cadge_harness.plan.catalogue import Catalogue, Refusal, select
from cadge_harness.plan.floors import floor_wanted, refuse_floor
from cadge_harness.plan.refuse import refuse_point
from cadge_harness.plan.site import Site, refuse_place
from cadge_harness.plan.sweep import Wanted, Workload, wanted
from cadge_harness.plan.timemodel import ATTEMPT_BYTES, RECORD_BYTES, TimeModel, launch_deadline_ms, report_ms
from cadge_results import Plan, PlanBlock, PlanLaunch, PlanPoint, SweepFile
from cadge_results.base import Kind, Launcher, Place, Wait, digest
from cadge_results.plan import Estimate
from cadge_results.sweep import Durations, LayerEntry

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is measured: a layer or floor with its shims and settings, at a place, in a wait mode: a launch key."""

    kind: Kind
    layer: str
    shims: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    launcher: Launcher = "direct"
    place: Place
    wait: Wait

    def identity(self) -> dict[str, object]:
        """Return the part of a point's identity that all points of a launch share."""
        return {
            "kind": self.kind,
            "layer": self.layer,
            "shims": list(self.shims),
            "settings": dict(self.settings),
            "place": self.place,
            "wait": self.wait,
        }


@dataclass(slots=True)
class _Draft:
    """Points of one subject while durations are not yet known."""

    subject: Subject
    points: dict[str, Workload] = field(default_factory=dict)


def point_id(subject: Subject, workload: Workload) -> str:
    """Return the stable id of a point: 16 hex digits of the hash of its canonical JSON."""
    content = subject.identity() | {
        "pattern": workload.pattern,
        "request_bytes": workload.request_bytes,
        "reply_bytes": workload.reply_bytes,
        "depth": workload.depth,
        "operation": workload.operation,
        "target": workload.target,
    }
    return digest(content)[:16]


def make_plan(sweep: SweepFile, catalogue: Catalogue, site: Site, *, only: Sequence[str] = ()) -> Plan:
    """Plan a sweep; `only` narrows it to some layers.

    Raises UsageError (unknown layer or shim, budget too small), NothingSelectedError (nothing could be measured).
    """
    wishes = wanted(sweep)
    entries, notices = _entries(sweep, catalogue, wishes, only)
    drafts: dict[Subject, _Draft] = {}
    refused: list[PlanPoint] = []
    for entry in entries:
        info = catalogue.get(entry.layer)
        for item in wishes:
            subject = Subject(
                kind="layer",
                layer=entry.layer,
                shims=entry.shims,
                settings=tuple(sorted(entry.settings.items())),
                launcher=info.file.launcher,
                place=item.place,
                wait=item.wait,
            )
            why = refuse_point(info, item, site)
            _place(subject, item.workload, why, drafts, refused, sweep.duration)
    if not drafts:
        raise NothingSelectedError(_nothing(refused))
    if sweep.floors:
        used = {(subject.place, subject.wait) for subject in drafts}
        for floor, item in floor_wanted(item for item in wishes if (item.place, item.wait) in used):
            subject = Subject(kind="floor", layer=floor.name, place=item.place, wait=item.wait)
            why = refuse_place(site, item.place, item.wait) or refuse_floor(floor, item, site)
            _place(subject, item.workload, why, drafts, refused, sweep.duration)
    durations, shortened = _durations(sweep, site.times, drafts.values())
    blocks, launches = _launches(sweep, site.times, drafts, durations)
    points = [
        _point(draft.subject, item, durations[key]) for draft in drafts.values() for key, item in draft.points.items()
    ]
    return _seal(sweep, site, points + refused, launches, blocks, [*notices, *([shortened] if shortened else [])])


def _entries(
    sweep: SweepFile, catalogue: Catalogue, wishes: Sequence[Wanted], only: Sequence[str]
) -> tuple[list[LayerEntry], list[str]]:
    """Return the layers to plan and what a reader should know of those left out."""
    chosen = select(catalogue, only) if only else catalogue.names()
    notices: list[str] = []
    for entry in sweep.layers:
        for shim in entry.shims:
            catalogue.check_shim(shim)
    written = {
        (one.layer, one.shims, tuple(sorted(one.settings.items()))): one
        for entry in sweep.layers
        for one in _expanded(entry, catalogue)
    }
    entries = [entry for entry in written.values() if entry.layer in chosen]
    if not sweep.layers:
        places = {item.place for item in wishes}
        for name in chosen:
            if only or places & set(catalogue.get(name).file.places):
                entries.append(LayerEntry(layer=name))
            else:
                notices.append(f"{name} is left out: it works at {', '.join(catalogue.get(name).file.places)} alone")
    if not entries:
        raise NothingSelectedError(f"none of the layers {', '.join(only)} is in this sweep")
    return entries, notices


def _expanded(entry: LayerEntry, catalogue: Catalogue) -> list[LayerEntry]:
    """Return an entry for each layer that it names: one, or with `*` every layer whose name matches."""
    if "*" not in entry.layer:
        catalogue.get(entry.layer)
        return [entry]
    matching = [name for name in catalogue.names() if fnmatchcase(name, entry.layer)]
    if not matching:
        raise UsageError(f"no layer matches {entry.layer!r}; there are: {', '.join(catalogue.names())}")
    return [entry.model_copy(update={"layer": name}) for name in matching]


def _place(
    subject: Subject,
    workload: Workload,
    why: Refusal | None,
    drafts: dict[Subject, _Draft],
    refused: list[PlanPoint],
    durations: Durations,
) -> None:
    if why is not None:
        refused.append(_point(subject, workload, _wish_ms(durations, subject, workload), why))
        return
    draft = drafts.setdefault(subject, _Draft(subject))
    draft.points[point_id(subject, workload)] = workload


def _point(subject: Subject, workload: Workload, duration_ms: int, why: Refusal | None = None) -> PlanPoint:
    return PlanPoint(
        point_id=point_id(subject, workload),
        kind=subject.kind,
        layer=subject.layer,
        shims=subject.shims,
        place=subject.place,
        wait=subject.wait,
        pattern=workload.pattern,
        request_bytes=workload.request_bytes,
        reply_bytes=workload.reply_bytes,
        depth=workload.depth,
        operation=workload.operation,
        target=workload.target,
        settings=dict(subject.settings),
        duration_ms=duration_ms,
        state="planned" if why is None else "refused",
        reason=why.reason if why else None,
        reason_code=why.code if why else None,
    )


def _focus_ms(durations: Durations, subject: Subject, workload: Workload) -> int | None:
    """Return the duration of the first focus that matches, or None. A floor follows the rpc that it goes with."""
    for focus in durations.focus:
        same_pattern = focus.pattern == workload.pattern or (
            subject.kind == "floor" and workload.pattern == "pingpong" and focus.pattern == "rpc"
        )
        wanted_values = (focus.request, focus.reply, focus.depth, focus.place, focus.wait)
        has = (workload.request_bytes, workload.reply_bytes, workload.depth, subject.place, subject.wait)
        if same_pattern and all(want in (None, value) for want, value in zip(wanted_values, has, strict=True)):
            return focus.duration
    return None


def _wish_ms(durations: Durations, subject: Subject, workload: Workload) -> int:
    return _focus_ms(durations, subject, workload) or durations.default


def _fixed_ms(sweep: SweepFile, times: TimeModel, drafts: Iterable[_Draft]) -> int:
    """Return what everything but measuring takes."""
    fixed_ms = round(times.campaign_ms)
    attempts = 0
    places = set()
    for draft in drafts:
        subject = draft.subject
        places.add(subject.place)
        attempts += sweep.launches * len(draft.points)
        fixed_ms += sweep.launches * times.launch_ms(subject.layer, subject.launcher, len(draft.points))
        for workload in draft.points.values():
            fixed_ms += sweep.launches * times.point_around_ms(workload, subject.kind)
    return fixed_ms + len(places) * round(times.block_ms) + report_ms(attempts)


def _durations(sweep: SweepFile, times: TimeModel, drafts: Collection[_Draft]) -> tuple[dict[str, int], str | None]:
    demands = []
    for draft in drafts:
        subject = draft.subject
        for key, workload in draft.points.items():
            focus_ms = _focus_ms(sweep.duration, subject, workload)
            demands.append(
                Demand(
                    point_id=key,
                    attempts=sweep.launches,
                    duration_ms=focus_ms or sweep.duration.default,
                    focus=focus_ms is not None,
                    layer=subject.layer,
                    around_ms=times.point_around_ms(workload, subject.kind),
                )
            )
    spent, note = spend(
        demands,
        fixed_ms=_fixed_ms(sweep, times, drafts),
        idle_fixed_ms=_fixed_ms(sweep, TimeModel(), drafts),
        budget_ms=sweep.budget,
        least_ms=sweep.duration.least or sweep.duration.default,
    )
    return dict(spent), note


def _launches(
    sweep: SweepFile, times: TimeModel, drafts: dict[Subject, _Draft], durations: dict[str, int]
) -> tuple[list[PlanBlock], list[PlanLaunch]]:
    """Return blocks (one a place, in the sweep's order) and their launches in the order in which they run."""
    blocks: list[PlanBlock] = []
    launches: list[PlanLaunch] = []
    places = dict.fromkeys(subject.place for subject in drafts)
    for number, place in enumerate(places, start=1):
        block_id = f"b{number}"
        here: list[PlanLaunch] = []
        for turn in range(sweep.launches):
            subjects = [subject for subject in drafts if subject.place == place]
            for subject in _shuffled(subjects, lambda item: digest(item.identity()), sweep.seed, block_id, turn):
                here.append(_launch(sweep, times, drafts[subject], durations, block_id, turn, len(here)))
        launches.extend(here)
        blocks.append(
            PlanBlock(
                block_id=block_id,
                place=place,
                hosts=2 if place == "between" else 1,
                launch_ids=tuple(launch.launch_id for launch in here),
                wall_ms=round(times.block_ms) + sum(launch.wall_ms for launch in here),
            )
        )
    return blocks, launches


def _launch(
    sweep: SweepFile,
    times: TimeModel,
    draft: _Draft,
    durations: dict[str, int],
    block_id: str,
    turn: int,
    number: int,
) -> PlanLaunch:
    subject = draft.subject
    key = digest(subject.identity())
    launch_id = f"{block_id}-{number:04d}-{digest([key, turn])[:8]}"
    ids = _shuffled(list(draft.points), str, sweep.seed, key, turn)
    wall_ms = times.launch_ms(subject.layer, subject.launcher, len(ids)) + sum(
        durations[item] + times.point_around_ms(draft.points[item], subject.kind) for item in ids
    )
    return PlanLaunch(
        launch_id=launch_id,
        block=block_id,
        layer=subject.layer,
        kind=subject.kind,
        shims=subject.shims,
        launcher=subject.launcher,
        place=subject.place,
        wait=subject.wait,
        settings=dict(subject.settings),
        round=turn,
        seed=_random(sweep.seed, "launch", key, turn) >> 1,
        point_ids=tuple(ids),
        wall_ms=wall_ms,
        deadline_ms=launch_deadline_ms(wall_ms, subject.launcher),
    )


def _shuffled(items: list[_T], key: Callable[[_T], str], seed: int, *salt: object) -> list[_T]:
    """Return items in an order that depends on the seed and on what they are, not on how they were listed."""
    return sorted(items, key=lambda item: _random(seed, key(item), *salt))


def _random(seed: int, *salt: object) -> int:
    """Return 64 bits that depend on the seed and the salt alone, on every version of Python."""
    text = "/".join(str(part) for part in (seed, *salt))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _seal(
    sweep: SweepFile,
    site: Site,
    points: list[PlanPoint],
    launches: list[PlanLaunch],
    blocks: list[PlanBlock],
    notices: list[str],
) -> Plan:
    duration_by_id = {point.point_id: point.duration_ms for point in points}
    attempts = sum(len(launch.point_ids) for launch in launches)
    measure_ms = sum(duration_by_id[item] for launch in launches for item in launch.point_ids)
    estimate = Estimate(
        wall_s=round((site.times.campaign_ms + report_ms(attempts) + sum(b.wall_ms for b in blocks)) / 1000, 1),
        disk_bytes=len(launches) * RECORD_BYTES + attempts * ATTEMPT_BYTES,
        measure_s=round(measure_ms / 1000, 1),
        ports=site.ports,
        basis=site.times.basis,
    )
    plan = Plan(
        schema_=Plan.schema_id(),
        plan_hash="0" * 64,
        sweep=sweep.to_object(),
        seed=sweep.seed,
        points=tuple(points),
        launches=tuple(launches),
        blocks=tuple(blocks),
        estimate=estimate,
        notices=tuple(notices),
    )
    return plan.model_copy(update={"plan_hash": plan.expected_hash()})


def _nothing(refused: Sequence[PlanPoint]) -> str:
    reasons = dict.fromkeys(f"{point.layer} {point.place}/{point.wait}: {point.reason}" for point in refused)
    listed = "; ".join(list(reasons)[:4])
    more = f"; and {len(reasons) - 4} more" if len(reasons) > 4 else ""
    return f"nothing can be measured: {listed}{more}"
