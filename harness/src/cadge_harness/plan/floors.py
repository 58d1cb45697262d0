# SPDX-License-Identifier: BSD-3-Clause
"""Floors: which of the machine's own limits belong beside which points.

A floor is measured in launches of its own, in the same rounds and the same random order as the layers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cadge_harness.plan.cast import Cast
from cadge_harness.plan.catalogue import Refusal
from cadge_harness.plan.site import PlanSite, refuse_rights
from cadge_harness.plan.sweep import WantedPoint
from cadge_results import FloorFile, PatternFile, Reason, Workload, Workloads
from cadge_results.plugins.rules import FOLLOWS


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFloor:
    """A floor's workload, and the points that will be divided by it."""

    floor: FloorFile
    wanted: WantedPoint
    beside: tuple[WantedPoint, ...]


def floor_wanted(wanted: Iterable[WantedPoint], workloads: Workloads) -> list[WantedFloor]:
    """Return which floors go with a sweep's points: same place, wait mode and bytes, by each pattern's own rule."""
    found: dict[tuple[str, WantedPoint], list[WantedPoint]] = {}
    for item in wanted:
        pattern = workloads.patterns[item.workload.pattern]
        for name, floor in workloads.floors.items():
            if item.place not in floor.places or item.wait not in floor.waits:
                continue
            for number, workload in enumerate(_bare(item.workload, pattern, floor, workloads)):
                key = name, WantedPoint(workload=workload, place=item.place, wait=item.wait)
                beside = found.setdefault(key, [])
                if number == 0 and _alike(item.workload, pattern):
                    beside.append(item)
    return [
        WantedFloor(floor=workloads.floors[name], wanted=item, beside=tuple(beside))
        for (name, item), beside in found.items()
    ]


def _bare(workload: Workload, pattern: PatternFile, floor: FloorFile, workloads: Workloads) -> list[Workload]:
    """Return the bare exchanges that a workload goes with, the one that it is compared with first."""
    rule = pattern.floor
    if rule.form is None or rule.form not in floor.forms:
        return []
    form = workloads.forms[rule.form]
    carried = {name: workload[name] for name in rule.carry}
    sizes = dict.fromkeys(workload.integer(name) for name in rule.sizes)
    return [form.workload(rule.form, {**carried, form.axis: size}) for size in sizes]


def _alike(workload: Workload, pattern: PatternFile) -> bool:
    rule = pattern.floor
    return rule.none is None and all(
        pattern.is_usual(name, workload) if alike.is_ == FOLLOWS else workload[name] == alike.is_
        for name, alike in rule.alike.items()
    )


def refuse_floor(
    floor: FloorFile, wanted: WantedPoint, cast: Cast, workloads: Workloads, site: PlanSite
) -> Refusal | None:
    """Return why a floor cannot be measured here, or None."""
    if floor.needs_raw_link and not site.raw_links:
        return Refusal(code=Reason.NODE_LACKS, reason="raw frames need a link of their own and root on every host")
    size = wanted.workload.integer(workloads.forms[wanted.workload.pattern].axis)
    if floor.bytes_min is not None and size < floor.bytes_min.bytes:
        return Refusal(code=Reason.NO_CAP, reason=floor.bytes_min.reason)
    if floor.bytes_max is not None and size > floor.bytes_max.bytes:
        return Refusal(code=Reason.MSG_TOO_LARGE, reason=floor.bytes_max.reason)
    return refuse_rights(site, floor.name, floor.rights, cast)
