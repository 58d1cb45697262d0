# SPDX-License-Identifier: BSD-3-Clause
"""A report opened again: the campaign as far as the numbers tell that the report carries (see page.embed)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any

from cadge_analysis import messages
from cadge_analysis.blocks.model import Fact, Remark
from cadge_analysis.errors import BadInputError
from cadge_analysis.stats.load import Case, Cell, Dataset, Measured, ReportedNumber, Sample, Series
from cadge_results import CampaignMeta, FormatError, PatternFile, Plan
from cadge_results.formats.campaign import Planned, TestbedFacts, ToolFacts
from cadge_results.formats.plan import PlanLaunch
from cadge_results.formats.point import Workload
from cadge_results.plugins.floor import FloorFile
from cadge_results.plugins.layerfile import BesideNative

say = partial(messages.say, "general")

_NO_TIME = "1970-01-01T00:00:00Z"
"""Stands where a report carries no time: pages of one have its words for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNumbers:
    """What a report carries: the campaign as far as it tells, and its own words. `withheld`: why verdicts are."""

    data: Dataset
    withheld: str
    title: str
    deck: str
    facts: tuple[Fact, ...]
    remarks: tuple[Remark, ...]
    whole: Mapping[str, object]


def carried(data: Mapping[str, Any], source: str) -> ReportNumbers:
    """Return what a report's data tells; `source` names the report in errors. Raises BadInputError."""
    try:
        return ReportNumbers(
            data=_dataset(data),
            withheld=str(data["withheld"]),
            title=str(data["title"]),
            deck=str(data["deck"]),
            facts=tuple(Fact(name=str(name), text=str(text), code=bool(code)) for name, text, code in data["facts"]),
            remarks=tuple(
                Remark(serious=bool(serious), title=str(title), text=str(text))
                for serious, title, text in data["remarks"]
            ),
            whole=data,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, FormatError) as error:
        raise BadInputError(say("reopen.damaged", source=source, name=type(error).__name__, error=error)) from error


def _dataset(data: Mapping[str, Any]) -> Dataset:
    patterns = {name: PatternFile.from_object(raw, source=name) for name, raw in data["patterns"].items()}
    launches: Sequence[tuple[str, int]] = [(str(name), int(number)) for name, number in data["launches"]]
    points: dict[int, list[str]] = {place: [] for place in range(len(launches))}
    cells = [_cell(raw, data, patterns, launches) for raw in data["cells"]]
    for raw in data["cells"]:
        for place in raw.get("planned", _run(raw, data)):
            points[place].append(raw["point_id"])
    # parts of a plan and of a campaign's facts: what no report carries is empty, and not shown (page.reopened)
    planned: list[dict[str, Any]] = [
        {"launch_id": name, "round": number, "point_ids": tuple(points[place]), "endpoints": ()}
        for place, (name, number) in enumerate(launches)
    ]
    plan: dict[str, Any] = {
        "sweep": dict(data["sweep"]),
        "points": (),
        "launches": tuple(PlanLaunch.model_construct(**one) for one in planned),
        "patterns": patterns,
        "beside_native": {
            str(name): tuple(BesideNative.model_validate(one, strict=False) for one in known)
            for name, known in data.get("beside_native", {}).items()
        },
        "floors": {name: FloorFile.from_object(raw, source=name) for name, raw in data["floors"].items()},
    }
    meta: dict[str, Any] = {
        "campaign_id": str(data["campaign_id"]),
        "created_utc": _NO_TIME,
        "finished_utc": None,
        "status": str(data["status"]),
        "sweep": "",
        "seed": 0,
        "plan_hash": "",
        "planned": Planned(points=0, attempts=0, launches=0, wall_s=0),
        "tool": ToolFacts(version="", revision="", dirty=False),
        "command": (),
        "testbed": TestbedFacts(name="", kind="emulated" if data["network_is_virtual"] else "", hosts=()),
    }
    return Dataset(
        campaign_id=str(data["campaign_id"]),
        meta=CampaignMeta.model_construct(**meta),
        plan=Plan.model_construct(**plan),
        nodes=(),
        records=(),
        cells=tuple(cell for cell in cells if not cell.twin),
        twins=tuple(cell for cell in cells if cell.twin),
        rounds=len({number for _, number in launches}),
        not_run=frozenset(launches[place][0] for place in data["not_run"]),
    )


def _run(raw: Mapping[str, Any], data: Mapping[str, Any]) -> Sequence[int]:
    return data["runs"][raw["at"]] if "at" in raw else ()


def _cell(
    raw: Mapping[str, Any],
    data: Mapping[str, Any],
    patterns: Mapping[str, PatternFile],
    launches: Sequence[tuple[str, int]],
) -> Cell:
    subject, workload = data["subjects"][raw["subject"]], data["workloads"][raw["workload"]]
    file = patterns[workload["pattern"]]
    at = _run(raw, data)
    planned = raw.get("planned", at)
    return Cell(
        series=Series(
            str(subject["kind"]),
            str(subject["layer"]),
            tuple(subject.get("shims", ())),
            tuple(sorted(subject.get("settings", {}).items())),
        ),
        case=Case(
            str(subject["place"]),
            str(subject["wait"]),
            Workload(pattern=workload["pattern"], parameters=tuple(sorted(workload["parameters"].items()))),
            file,
        ),
        point_id=str(raw["point_id"]),
        planned=len(planned),
        samples=_samples(raw, at, file, launches),
        states=dict(raw.get("states", {"valid": len(at)})),
        troubles=(),
        twin=bool(raw.get("twin")),
    )


def _samples(
    raw: Mapping[str, Any], at: Sequence[int], file: PatternFile, launches: Sequence[tuple[str, int]]
) -> tuple[Sample, ...]:
    values = raw.get("value", [])
    tails = raw.get("p99_ns", [0.0] * len(values))
    rule = file.one_load
    rates = raw.get("offered_per_s", [None] * len(values))
    used: Counter[int] = Counter()
    found = []
    for place, value, tail, rate in zip(at, values, tails, rates, strict=True):
        name, number = launches[place]
        if not (isfinite(value) and isfinite(tail)):
            raise ValueError(say("reopen.launch_without_number", name=name, value=value, tail=tail))
        told = ReportedNumber(value=float(value), p99_ns=float(tail), samples=int(raw.get("fewest_samples", 0)))
        quantities = {file.main: Measured(told=told)}
        if rule is not None and rate is not None:
            quantities[rule.offered] = Measured(told=ReportedNumber(value=float(rate)))
        found.append(
            Sample(
                launch_id=name,
                round=(number, used[number]),
                quantities=quantities,
                elapsed_ns=0,
                operations=0,
                lost=0,
                late=0,
                cpu=(),
                steady=True,
                disturbed=False,
            )
        )
        used[number] += 1
    return tuple(found)
