# SPDX-License-Identifier: BSD-3-Clause
"""A campaign as CSV, JSON Lines or JSON: a row for every planned point, floors and refused ones included.

Units stand in the names. As another form, the models that were fitted to its points (see `models.loggp`).

What was measured twice stands apart, so that no second row of a layer passes for a competitor: in CSV last, with `twin`
true, and in JSON as `twins`. These rows have no verdicts; they say how they compare with the first series of the layer.

Values are those of the report, unrounded. A field that is empty in CSV, or that a row of JSON lacks, has no value: most
are of patterns that the row is not of; else `state` and `reason` say why.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TextIO

from cadge_analysis.cells.build import CellRow, build, first_rows, second_rows
from cadge_analysis.cells.catalogue import fields_of
from cadge_analysis.cells.entry import Field, bounded, described
from cadge_analysis.cells.table import Column, Scalar, Table
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.flat import lines
from cadge_analysis.judged import gated, judged
from cadge_analysis.models.campaign import fits_of
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, FamilyVerdicts
from cadge_analysis.stats.compare import Comparison, compare
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.knee import Knee, loads
from cadge_analysis.stats.load import Dataset, read
from cadge_analysis.stats.measures import MAIN, TAIL
from cadge_analysis.stats.sequential import ERROR
from cadge_analysis.stats.twin import twin_rate
from cadge_analysis.stats.verdict import Verdict
from cadge_results import Campaign

# cadge: another loggp, the model
FORMATS = ("csv", "json", "loggp")
SCHEMA = "cadge.export/3"
Record = dict[str, Scalar]


def columns(campaign: Campaign) -> tuple[Column, ...]:
    """Return the columns that every row of a campaign has, in order; they depend on its plan alone."""
    return tuple(field.column for field in fields_of(campaign.plan))


def records(comparison: Comparison, verdicts: CampaignVerdicts) -> Iterator[Record]:
    """Yield one flat record for every planned point, in the report's order; last what was measured a second time."""
    known = fields_of(comparison.data.plan)
    return (_record(known, row) for row in build(comparison, verdicts))


def _record(known: Iterable[Field[CellRow]], row: CellRow) -> Record:
    return {field.name: field.of(row) for field in known}


def rows(campaign: Campaign) -> Iterator[Record]:
    """Yield a row for every planned point, in the report's order; those measured a second time come last."""
    comparison = compare(read(campaign))
    return records(comparison, judged(comparison))


CELLS = Table(
    "cells",
    "a row for every planned point: estimates over all launches, with intervals and verdicts",
    tuple(described().values()),
    columns,
    rows,
)


def _ends(name: str, unit: str, estimate: Estimate | None) -> Record:
    return {field.name: field.of(estimate) for field in bounded(name, unit, _itself)}


def _itself(estimate: Estimate | None) -> Estimate | None:
    return estimate


def _knee(knee: Knee) -> Record:
    """Return the highest load that a layer bears; the axis gives its name."""
    case, limit = knee.case, knee.generator
    beside = {name: value for name, value in case.workload.values.items() if name != case.file.axis}
    return {
        "layer": knee.series.label,
        "place": case.place,
        "wait": case.wait,
        "pattern": case.pattern,
        **beside,
        **_ends(case.file.axis, "", None if knee.withheld else knee.load),
        **_ends("rate", "per_s", None if knee.withheld else knee.rate),
        **_ends("rest_p99", "ns", None if knee.withheld else knee.rest_ns),
        "withheld": knee.withheld or None,
        "coverage": knee.load.coverage,
        "launches": knee.load.launches,
        "launches_bearing_all": knee.bearing_all,
        "launches_bearing_none": knee.bearing_none,
        "generator_limit_per_s": limit.limit.value if limit else None,
    }


def _families(verdicts: FamilyVerdicts) -> dict[str, object]:
    """Return what is said by one measure, family by family."""
    return {
        "withheld": verdicts.withheld,
        "comparisons": verdicts.comparisons,
        "decided": verdicts.decided,
        "families": [
            {
                **{name: getattr(one.key, name) for name in ("pattern", "place", "wait", "quantity")},
                "comparisons": len(one.cells),
                **{str(verdict): sum(cell.says == verdict for cell in one.cells) for verdict in Verdict},
                "correlation": one.own.correlation if one.own else None,
                "correlation_allowed_for": one.correlation,
                "two_levels_allowed_for": one.switching,
                "withheld": one.withheld,
            }
            for one in verdicts.families
        ],
    }


def _verdicts(verdicts: CampaignVerdicts) -> dict[str, object]:
    """Return what is said of the campaign: each family, and who leads in each case."""
    return {
        "baseline": verdicts.baseline,
        "same_within": verdicts.delta,
        "error": ERROR,
        "looks": list(verdicts.looks.looks) if verdicts.looks else None,
        **_families(verdicts),
        "without": dict(verdicts.without),
        "p99": {**_families(verdicts.tails), "without": dict(verdicts.tails.without)} if verdicts.tails else None,
        "groups": [
            {
                "pattern": case.pattern,
                "place": case.place,
                "wait": case.wait,
                **case.workload.values,
                "leading": [] if group.withheld else [series.label for series in group.members],
                "withheld": group.withheld,
                "unlike": group.unlike or None,
                "alike": group.alike,
                "ranked": group.ranked,
                "launches": group.launches,
                "unranked": [series.label for series in group.unranked],
            }
            for case, group in verdicts.groups.items()
        ],
    }


def _json(comparison: Comparison, stream: TextIO) -> None:
    meta = comparison.data.meta
    verdicts = judged(comparison)
    comparison = gated(comparison, verdicts)
    known = fields_of(comparison.data.plan)

    def whole(row: CellRow) -> dict[str, object]:
        cell, numbers, record = row.cell, row.numbers, _record(known, row)
        own = {s.launch_id: numbers.by_round[s.round] for s in cell.samples} if numbers else {}
        counted = {"counted_an_operation": dict(numbers.counted)} if numbers else {}
        held = {name: value for name, value in record.items() if value is not None}
        return {**held, **counted, "by_launch": own}

    document = {
        "schema": SCHEMA,
        "campaign_id": comparison.data.campaign_id,
        "plan_hash": meta.plan_hash,
        "tool": meta.tool.model_dump(mode="json"),
        "testbed": {
            "name": meta.testbed.name,
            "kind": meta.testbed.kind,
            "hosts": len(meta.testbed.hosts),
            "hosts_used": list(comparison.data.plan.hosts_used(meta.testbed.hosts)),
        },
        "columns": [field.name for field in known],
        "by_launch_unit": "that of the pattern's main quantity: ns (p50 of the launch), MB/s, or its own",
        "rows": [whole(row) for row in first_rows(comparison, verdicts)],
        "verdicts": _verdicts(verdicts),
        "knees": [_knee(knee) for knee in loads(comparison).knees],
        **({"twins": [whole(row) for row in second_rows(comparison, verdicts)]} if comparison.data.twins else {}),
        **_against_itself(comparison, verdicts),
    }
    members = (f"{json.dumps(name)}: {_value(document[name])}" for name in sorted(document))
    stream.write("{\n" + ",\n".join(members) + "\n}\n")


def _value(value: object) -> str:
    """Return a member of the document: of a list, each item on a line of its own."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(json.dumps(one, sort_keys=True) for one in value) + "\n]"
    return json.dumps(value, sort_keys=True)


def _against_itself(comparison: Comparison, verdicts: CampaignVerdicts) -> dict[str, object]:
    """Return how often what was measured twice was called different, by the main quantity and by the p99."""
    if not comparison.data.twins:
        return {}
    return {
        name: asdict(rate) | {"series": [one.label for one in rate.series], "withhold": rate.withhold} if rate else None
        for name, measure in (("a_against_a", MAIN), ("a_against_a_p99", TAIL))
        for rate in (twin_rate(comparison, verdicts, measure=measure),)
    }


def _models(data: Dataset, stream: TextIO) -> None:
    found = fits_of(data)
    if not found.fits:
        raise NoDataError(f"campaign {data.campaign_id} holds no points that a model is fitted to")
    stream.write(found.to_json())


def write(campaign: Campaign, kind: str, stream: TextIO) -> None:
    """Write a campaign to a text stream in one of the formats. Raises AnalysisError, cadge_results.ResultsError."""
    if kind not in FORMATS:
        raise BadInputError(f"no format {kind!r}; there are: {', '.join(FORMATS)}")
    data = read(campaign)
    # cadge: another loggp, the model
    if kind == "loggp":
        _models(data, stream)
        return
    comparison = compare(data)
    if kind == "json":
        _json(comparison, stream)
        return
    stream.writelines(
        lines("csv", [field.name for field in fields_of(data.plan)], records(comparison, judged(comparison)))
    )
