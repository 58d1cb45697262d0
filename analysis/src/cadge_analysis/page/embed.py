# SPDX-License-Identifier: BSD-3-Clause
"""The numbers that a report carries for programs: each launch's own value, cell by cell.

`cadge.report-data/5`. What cells point into by place stands once: `subjects` (what was measured, where it ran, how it
waited), `workloads` (a pattern with its parameters), `launches` (id and round). A cell holds `by_launch`: its main
quantity in its base unit, by the launch's place; likewise `p99_ns_by_launch`, where the launch that has the fewest has
`fewest_samples`, and `offered_per_s_by_launch`, the rate in 1/s that each was offered, of a pattern that compares at
one load alone. A planned launch that is not in `by_launch` gave no number: `planned` has them all, and `states` counts
what became of them. Of several `epochs` each has as many rounds. `patterns` and `floors` are the files that say what
all of this means.

It is what verdicts are made of: `reopen` reads it as a campaign, which can be judged against another baseline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cadge_analysis import words
from cadge_analysis.blocks.model import Fact, Remark
from cadge_analysis.cells.summaries import OFFERED, P99, VALUE, launch_values
from cadge_analysis.judged import in_doubt
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.load import Cell
from cadge_analysis.stats.numbers import Numbers
from cadge_results import Plan

SCHEMA = "cadge.report-data/5"
BY_LAUNCH = {VALUE: "by_launch", P99: "p99_ns_by_launch", OFFERED: "offered_per_s_by_launch"}
"""Where a cell has what each of its launches gave."""
_OF_SWEEP = ("baseline", "same_within", "looks")
DAMAGED = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What reading data may raise that is not as a report carries it."""
_BEFORE = {
    "cadge.report-data/3": {"values": "by_launch", "p99": "p99_ns_by_launch", "offered": "offered_per_s_by_launch"},
    "cadge.report-data/4": {field.name: name for field, name in BY_LAUNCH.items()},
}


@dataclass(frozen=True, slots=True)
class ReportHead:
    """What a page says of its campaign as a whole, and what one that is made of its numbers alone has to repeat."""

    title: str
    deck: str
    remarks: tuple[Remark, ...]


def embedded(
    comparison: Comparison, facts: Sequence[Fact], said: ReportHead | None, making: Mapping[str, object] | None
) -> dict[str, object]:
    """Return what a page of a campaign carries. `facts`: of its provenance; `making`: see there."""
    data = comparison.data
    numbers = comparison.numbers
    launches = {launch.launch_id: place for place, launch in enumerate(data.plan.launches)}
    planned: dict[str, list[int]] = {cell.point_id: [] for cell in data.planned}
    for launch in data.plan.launches:
        for name in launch.point_ids:
            planned[name].append(launches[launch.launch_id])
    recorded = {record.launch_id for record in data.records}
    subjects, workloads = _Places(), _Places()
    cells = [
        _cell(cell, numbers.get(cell.point_id), planned[cell.point_id], launches, subjects, workloads)
        for cell in data.planned
    ]
    return {
        "schema": SCHEMA,
        "campaign_id": data.campaign_id,
        "status": data.meta.status,
        "network_is_virtual": words.on_veth(data),
        "sweep": {key: data.plan.sweep[key] for key in _OF_SWEEP if key in data.plan.sweep},
        **({"epochs": data.plan.epochs} if data.plan.epochs > 1 else {}),
        "patterns": {name: file.to_object() for name, file in data.plan.patterns.items()},
        "floors": {name: file.to_object() for name, file in data.plan.floors.items()},
        **({"beside_native": _beside_native(data.plan)} if data.plan.beside_native else {}),
        "launches": [[launch.launch_id, launch.round] for launch in data.plan.launches],
        "not_run": [place for name, place in launches.items() if name not in recorded],
        "subjects": subjects.items,
        "workloads": workloads.items,
        "cells": cells,
        "withheld": in_doubt(data),
        "facts": [[one.name, one.text, one.code] for one in facts],
        **({"making": dict(making)} if making else {}),
        **_head_data(said),
    }


def _beside_native(plan: Plan) -> dict[str, object]:
    return {name: [one.model_dump(mode="json") for one in known] for name, known in plan.beside_native.items()}


def _head_data(said: ReportHead | None) -> dict[str, object]:
    if said is None:
        return {}
    remarks = [[one.serious, one.title, one.told] for one in said.remarks]
    return {"title": said.title, "deck": said.deck, "remarks": remarks}


class _Places:
    """A list in which equal items stand once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self.items: list[object] = []

    def of(self, item: object) -> int:
        """Return the place of an item."""
        key = json.dumps(item, sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.items)
            self.items.append(item)
        return self._places[key]


def _cell(
    cell: Cell,
    numbers: Numbers | None,
    planned: Sequence[int],
    launches: Mapping[str, int],
    subjects: _Places,
    workloads: _Places,
) -> dict[str, object]:
    series, case = cell.series, cell.case
    subject: dict[str, object] = {"kind": series.kind, "layer": series.layer, "place": case.place, "wait": case.wait}
    if series.shims:
        subject["shims"] = list(series.shims)
    if series.settings:
        subject["settings"] = dict(series.settings)
    found: dict[str, object] = {
        "point_id": cell.point_id,
        "subject": subjects.of(subject),
        "workload": workloads.of({"pattern": case.pattern, "parameters": dict(case.workload.items())}),
    }
    at = [launches[sample.launch_id] for sample in cell.samples]
    if sorted(at) != list(planned):
        found |= {"planned": list(planned), "states": dict(cell.states)}
    if cell.twin:
        found["twin"] = True
    if numbers is None:
        return found
    for field, name in BY_LAUNCH.items():
        values = [field.of(one) for one in launch_values(numbers)]
        known = [_short(float(one)) for one in values if isinstance(one, float | int)]
        if len(known) == len(values):
            found[name] = dict(zip(map(str, at), known, strict=True))
    if numbers.own_p99:
        found["fewest_samples"] = numbers.fewest
    return found


def upgraded(data: object) -> object:
    """Return what a report carries in the form of today, where it is of one before."""
    if not isinstance(data, dict) or (names := _BEFORE.get(str(data.get("schema")))) is None:
        return data
    cells = [dict(one) for one in data["cells"]]
    for cell in cells:
        run = data["runs"][cell.pop("at")] if "at" in cell else ()
        fewest = cell.pop("fewest_samples", cell.pop("samples", None))
        for before, name in names.items():
            if before in cell:
                cell[name] = dict(zip(map(str, run), cell.pop(before), strict=True))
        cell |= {"fewest_samples": fewest} if fewest is not None else {}
    return {**{name: value for name, value in data.items() if name != "runs"}, "schema": SCHEMA, "cells": cells}


def _short(value: float) -> float | int:
    """Return the same number, without a fraction where it has none."""
    return int(value) if value.is_integer() else value
