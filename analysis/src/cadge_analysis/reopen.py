# SPDX-License-Identifier: BSD-3-Clause
"""A report opened again: the campaign as far as the numbers tell that the report carries (see page.embed)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Any

from cadge_analysis import messages
from cadge_analysis.blocks.model import Fact, Remark
from cadge_analysis.errors import BadInputError
from cadge_analysis.page.embed import BY_LAUNCH, DAMAGED, ReportHead
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.load import VALID, Dataset, Measurement, PlannedAttempt, Sample, cells_of
from cadge_results import CampaignMeta, FormatError, PatternFile, Plan, PlanLaunch, PlanPoint, Subject, Workload
from cadge_results.formats.campaign import PlanSize, TestbedFacts, ToolFacts
from cadge_results.plugins.floor import FloorFile
from cadge_results.plugins.layerfile import BesideNative

say = partial(messages.say, "general")

_NO_TIME = "1970-01-01T00:00:00Z"
"""Stands where a report carries no time: pages of one have its words for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNumbers:
    """What a report carries: the campaign as far as it tells, and its own words. `file`: the report's name."""

    data: Dataset
    said: ReportHead
    facts: tuple[Fact, ...]
    whole: Mapping[str, object]
    file: str


def carried(data: Mapping[str, Any], source: str) -> ReportNumbers:
    """Return what a report's data tells; `source` names the report in errors. Raises BadInputError."""
    try:
        return ReportNumbers(
            data=_dataset(data),
            said=ReportHead(str(data["title"]), str(data["deck"]), tuple(_remarks(data["remarks"]))),
            facts=tuple(Fact(name=str(name), text=str(text), code=bool(code)) for name, text, code in data["facts"]),
            whole={name: value for name, value in data.items() if name not in ("report", "pages")},
            file=source,
        )
    except (FormatError, *DAMAGED) as error:
        raise BadInputError(say("reopen.damaged", source=source, name=type(error).__name__, error=error)) from error


def _remarks(found: Sequence[Sequence[object]]) -> Iterator[Remark]:
    for serious, title, text in found:
        yield Remark(serious=bool(serious), title=str(title), text=str(text))


def _dataset(data: Mapping[str, Any]) -> Dataset:
    patterns = {name: PatternFile.from_object(raw, source=name) for name, raw in data["patterns"].items()}
    launches = [(str(name), int(number)) for name, number in data["launches"]]
    planned = {str(raw["point_id"]): raw.get("planned", [*map(int, raw.get("by_launch", ()))]) for raw in data["cells"]}
    points: dict[int, list[str]] = {place: [] for place in range(len(launches))}
    for name, places in planned.items():
        for place in places:
            points[place].append(name)
    at = _epochs({number for _, number in launches}, int(data.get("epochs", 1)))
    # parts of a plan and of a campaign's facts: what no report carries is empty, and not shown
    made_of: list[dict[str, Any]] = [
        {"launch_id": name, "round": number, "epoch": at[number], "point_ids": tuple(points[place]), "endpoints": ()}
        for place, (name, number) in enumerate(launches)
    ]
    plan: dict[str, Any] = {
        "sweep": dict(data["sweep"]),
        "points": tuple(_point(raw, data) for raw in data["cells"]),
        "launches": tuple(PlanLaunch.model_construct(**one) for one in made_of),
        "patterns": patterns,
        "beside_native": {
            str(name): tuple(BesideNative.model_validate(one, strict=False) for one in known)
            for name, known in data.get("beside_native", {}).items()
        },
        "floors": {name: FloorFile.from_object(raw, source=name) for name, raw in data["floors"].items()},
    }
    made = Plan.model_construct(**plan)
    found = {
        point.point_id: [*_attempts(raw, planned[point.point_id], made.pattern_of(point), made.launches)]
        for point, raw in zip(made.points, data["cells"], strict=True)
    }
    cells = [replace(cell, troubles=()) for cell in cells_of(made, found)]  # no report carries reasons
    meta: dict[str, Any] = {
        "campaign_id": str(data["campaign_id"]),
        "created_utc": _NO_TIME,
        "finished_utc": None,
        "status": str(data["status"]),
        "sweep": "",
        "seed": 0,
        "plan_hash": "",
        "planned": PlanSize(points=0, attempts=0, launches=0, wall_s=0),
        "tool": ToolFacts(version="", revision="", dirty=False),
        "command": (),
        "testbed": TestbedFacts(name="", kind="emulated" if data["network_is_virtual"] else "", hosts=()),
    }
    return Dataset(
        campaign_id=str(data["campaign_id"]),
        meta=CampaignMeta.model_construct(**meta),
        plan=made,
        nodes=(),
        records=(),
        cells=tuple(cell for cell in cells if not cell.twin),
        twins=tuple(cell for cell in cells if cell.twin),
        rounds=len({number for _, number in launches}),
        not_run=frozenset(launches[place][0] for place in data["not_run"]),
        withheld=str(data["withheld"]),
    )


def _epochs(rounds: Collection[int], epochs: int) -> dict[int, int]:
    """Return the epoch of each round: all have as many."""
    each = max(1, -(-len(rounds) // max(1, epochs)))
    return {number: place // each for place, number in enumerate(sorted(rounds))}


def _point(raw: Mapping[str, Any], data: Mapping[str, Any]) -> PlanPoint:
    subject, workload = data["subjects"][raw["subject"]], data["workloads"][raw["workload"]]
    found: dict[str, Any] = {
        "point_id": str(raw["point_id"]),
        "subject": Subject.model_validate({**subject, "twin": bool(raw.get("twin"))}, strict=False),
        "workload": Workload.model_validate(workload, strict=False),
        "state": "planned",
    }
    return PlanPoint.model_construct(**found)


def _attempts(
    raw: Mapping[str, Any], planned: Sequence[int], file: PatternFile, launches: Sequence[PlanLaunch]
) -> Iterator[PlannedAttempt]:
    """Yield the planned attempts of a cell: those that gave a number with it, of the others what became of them."""
    values, tails, rates = (raw.get(name, {}) for name in BY_LAUNCH.values())
    states = raw.get("states", {})
    others = (state for state, often in states.items() if state != "valid" for _ in range(often))
    if unplanned := values.keys() - {str(place) for place in planned}:
        raise ValueError(say("reopen.launch_not_planned", names=sorted(unplanned)))
    for place in planned:
        name, number = launches[place].launch_id, launches[place].round
        value = values.get(str(place))
        if value is None:
            yield PlannedAttempt(number, name, (next(others, "missing"), "", ""), (), None)
            continue
        tail = tails[str(place)] if tails else 0.0
        if not (isfinite(value) and isfinite(tail)):
            raise ValueError(say("reopen.launch_without_number", name=name, value=value, tail=tail))
        quantities = {file.main: Measurement(numbers=(float(value),), p99_ns=float(tail))}
        if file.one_load is not None and rates:
            quantities[file.one_load.offered] = Measurement(numbers=(float(rates[str(place)]),))
        sample = Sample(
            launch_id=name,
            round=RoundKey(number, 0, launches[place].epoch),
            quantities=quantities,
            elapsed_ns=0,
            operations=int(raw.get("fewest_samples", 0)),
            lost=0,
            late=0,
            cpu=(),
            steady=True,
            disturbed=False,
        )
        yield PlannedAttempt(number, name, VALID, (), sample)
