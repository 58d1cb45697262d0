# SPDX-License-Identifier: BSD-3-Clause
"""When native tools run in a campaign: after which launches, and which of these runs are still to be made.

All of it follows from what is stored, so that a campaign that was broken off goes on as it began.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from cadge_harness.errors import UnfitError
from cadge_harness.native.tool import Tool
from cadge_harness.native.tools import by_name, why_absent
from cadge_results import Campaign, NativeCell, NativeFile, NativeReading, Plan, PlanPoint
from cadge_results.formats.base import Place


def schedule(cells: Sequence[NativeCell], plan: Plan) -> dict[str, list[str]]:
    """Return after which launches which cells' tools run: each once a round, at random places of it."""
    order = random.Random(plan.seed + 1)  # noqa: S311 - order of measurement
    rounds: dict[tuple[Place, int], list[str]] = defaultdict(list)
    for launch in plan.launches:
        rounds[launch.subject.place, launch.round].append(launch.launch_id)
    found: dict[str, list[str]] = defaultdict(list)
    for (place, _), launch_ids in rounds.items():
        here = [one for one in cells if _runs_at(one, plan, place)]
        for cell in order.sample(here, len(here)):
            if fit := _launches_for(cell, plan, launch_ids):
                found[order.choice(fit)].append(cell.cell_id)
    return found


def pairs_of(point: PlanPoint, plan: Plan) -> int:
    """Return how many pairs of endpoints a point has."""
    file = plan.pattern_of(point)
    return file.count_of(file.roles_of(point.workload)[0], point.workload)


def _launches_for(cell: NativeCell, plan: Plan, launch_ids: Sequence[str]) -> Sequence[str]:
    """Return after which of a round's launches a tool can run: several pairs need a launch that has them."""
    if pairs_of(plan.by_id[cell.point_id], plan) == 1:
        return launch_ids
    own = {one.launch_id for one in plan.launches if cell.point_id in one.point_ids}
    return [one for one in launch_ids if one in own]


def _runs_at(cell: NativeCell, plan: Plan, place: Place) -> bool:
    point = plan.by_id[cell.point_id]
    return point.state == "planned" and point.subject.place == place


def alone(campaign: Campaign) -> tuple[str, ...]:
    """Return the stored launches after which a tool has still to run, in the plan's order: it was broken off there."""
    return _launches(campaign, lambda reading: reading is None)


def in_vain(campaign: Campaign) -> tuple[str, ...]:
    """Return the stored launches after which a tool ran and gave nothing, in the plan's order."""
    return _launches(campaign, lambda reading: reading is not None and reading.value is None)


def _launches(campaign: Campaign, is_meant: Callable[[NativeReading | None], bool]) -> tuple[str, ...]:
    found = campaign.native()
    if found is None:
        return ()
    after, runs, have = schedule(found.cells, campaign.plan), found.by_run(), campaign.launch_ids()
    return tuple(
        one.launch_id
        for one in campaign.plan.launches
        if one.launch_id in have and any(is_meant(runs.get((name, one.round))) for name in after.get(one.launch_id, ()))
    )


def tools_of(found: NativeFile) -> dict[str, Tool]:
    """Return the tool of each cell. Raises UnfitError where one is not here, or is none of this version's."""
    tools = {}
    for cell in found.cells:
        tool = by_name(cell.tool)
        if tool is None:
            raise UnfitError(f"this version of Cadge knows no native tool {cell.tool}, with which the campaign began")
        if why := why_absent(tool):
            raise UnfitError(f"the campaign began with {cell.tool}: {why}")
        tools[cell.cell_id] = tool
    return tools
