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
from dataclasses import asdict
from functools import partial
from math import inf
from typing import TextIO

from cadge_analysis import messages
from cadge_analysis.cells import summaries
from cadge_analysis.cells.build import CampaignCells, CellRow, judged_cells
from cadge_analysis.cells.catalogue import fields_of
from cadge_analysis.cells.entry import record, table_of
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.flat import lines
from cadge_analysis.models.campaign import FITS as PIECES
from cadge_analysis.models.campaign import fits_of, pieces
from cadge_analysis.prediction import by_size
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, Family, FamilyVerdicts
from cadge_analysis.stats.compare import Comparison, compare
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.load import Dataset, read
from cadge_analysis.stats.measures import MAIN, TAIL
from cadge_analysis.stats.numbers import read_lean
from cadge_analysis.stats.twin import TwinRate, twin_rate
from cadge_results import Campaign, PatternFile, Plan
from cadge_results.plugins.catalogue import in_order

say = partial(messages.say, "general")

# cadge: another loggp, the model
FORMATS = ("csv", "json", "loggp")
SCHEMA = "cadge.export/4"


def _files(plan: Plan) -> list[PatternFile]:
    used = {point.workload.pattern for point in plan.points if point.subject.kind == "layer"}
    return [plan.patterns[name] for name in in_order(plan.patterns) if name in used]


def _cells(campaign: Campaign) -> CampaignCells:
    return judged_cells(compare(*read_lean(campaign, costs=True)))


def _all_families(verdicts: CampaignVerdicts) -> tuple[Family, ...]:
    return (*verdicts.families, *(verdicts.tails.families if verdicts.tails else ()))


CELLS = table_of("cells", fields_of, _cells)
VALUES = table_of(
    "values",
    lambda _: summaries.VALUES,
    lambda campaign: (one for row in _cells(campaign) for one in summaries.launch_values(row.numbers)),
)
KNEES = table_of(
    "knees",
    lambda plan: summaries.knees([file for file in _files(plan) if file.knee]),
    lambda campaign: _cells(campaign).loads.knees,
)
FAMILIES = table_of("families", lambda _: summaries.FAMILIES, lambda campaign: _all_families(_cells(campaign).verdicts))
LEADERS = table_of(
    "leaders", lambda plan: summaries.leaders(_files(plan)), lambda campaign: _cells(campaign).verdicts.groups.values()
)
FITS = table_of(
    "fits",
    lambda _: PIECES,
    lambda campaign: (one for fitted in fits_of(read(campaign)).fits for one in pieces(fitted)),
)


def _families(verdicts: FamilyVerdicts) -> dict[str, object]:
    """Return what is said by one measure, family by family."""
    return {
        "withheld": verdicts.withheld,
        "comparisons": verdicts.comparisons,
        "decided": verdicts.decided,
        "families": [record(summaries.FAMILIES, one) for one in verdicts.families],
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
        "groups": [record(summaries.leaders((case.file,)), group) for case, group in verdicts.groups.items()],
    }


def _json(cells: CampaignCells, stream: TextIO) -> None:
    comparison, verdicts = cells.comparison, cells.verdicts
    meta, known = comparison.data.meta, fields_of(comparison.data.plan)

    def whole(row: CellRow) -> dict[str, object]:
        numbers, fields = row.numbers, record(known, row)
        counted = {"counted_an_operation": dict(numbers.counted)} if numbers else {}
        held = {name: value for name, value in fields.items() if value is not None}
        return {
            "campaign_id": comparison.data.campaign_id,
            **held,
            **counted,
            "by_launch": summaries.by_launch(numbers),
        }

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
        **comparison.data.plan.builds_said(),
        "columns": ["campaign_id", *(field.name for field in known)],
        "by_launch_unit": say("export.by_launch_unit"),
        "rows": [whole(row) for row in cells.first()],
        "verdicts": _verdicts(verdicts),
        "knees": [record(summaries.knees((one.case.file,)), one) for one in cells.loads.knees],
        **({"twins": [whole(row) for row in cells.second()]} if comparison.data.twins else {}),
        **_against_itself(comparison, verdicts),
        **_predicted(comparison, verdicts),
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
    rates = {
        name: twin_rate(comparison, verdicts, measure=measure)
        for name, measure in (("a_against_a", MAIN), ("a_against_a_p99", TAIL))
    }
    return {name: _rate(rate) if rate else None for name, rate in rates.items()}


def _rate(rate: TwinRate) -> dict[str, object]:
    series = [one.label for one in rate.series]
    return asdict(rate) | {"series": series, "withhold": rate.withhold, "would_catch": rate.would_catch}


def _predicted(comparison: Comparison, verdicts: CampaignVerdicts) -> dict[str, object]:
    """Return how many comparisons were decided beside how many the plan predicted, by size of the difference."""
    classes = by_size(comparison.data.plan, verdicts)
    ends = [one.most if one.most < inf else None for one in classes]
    return (
        {"predicted": [asdict(one) | {"most": end} for one, end in zip(classes, ends, strict=True)]} if classes else {}
    )


def _models(data: Dataset, stream: TextIO) -> None:
    found = fits_of(data)
    if not found.fits:
        raise NoDataError(say("export.no_model_points", campaign_id=data.campaign_id))
    stream.write(found.to_json())


def write(campaign: Campaign, kind: str, stream: TextIO) -> None:
    """Write a campaign to a text stream in one of the formats. Raises AnalysisError, cadge_results.ResultsError."""
    if kind not in FORMATS:
        raise BadInputError(say("export.no_format", kind=kind, formats=FORMATS))
    # cadge: another loggp, the model
    if kind == "loggp":
        _models(read(campaign), stream)
    elif kind == "json":
        _json(_cells(campaign), stream)
    else:
        stream.writelines(lines("csv", [one.name for one in CELLS.columns(campaign)], CELLS.rows(campaign)))
