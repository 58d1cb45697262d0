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
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import exp
from typing import TextIO

from cadge_analysis import words
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.flat import lines
from cadge_analysis.judged import gated, judged
from cadge_analysis.models.campaign import fits_of
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, CellVerdict, FamilyVerdicts
from cadge_analysis.stats.compare import Comparison, Numbers, Row, compare, numbers_of
from cadge_analysis.stats.costs import PerOperation
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_analysis.stats.knee import Knee, loads
from cadge_analysis.stats.load import Cell, Dataset, read
from cadge_analysis.stats.measures import MAIN, TAIL
from cadge_analysis.stats.sequential import ERROR
from cadge_analysis.stats.twin import twin_cells, twin_rate
from cadge_analysis.stats.verdict import Verdict
from cadge_results import Campaign
from cadge_results.catalogue import in_order
from cadge_results.layerfile import BesideNative
from cadge_results.pattern import Quantity
from cadge_results.plan import Plan

# cadge: another loggp, the model
FORMATS = ("csv", "json", "loggp")
SCHEMA = "cadge.export/3"
ENDS = (
    ("_low", "_high", "the ends of the interval"),
    ("_lowest_launch", "_highest_launch", "the lowest and the highest launch, which are no interval"),
)
"""What marks the columns that bound another one, before its unit, and what they are."""
Record = dict[str, str | int | float | None]


def _parameters(plan: Plan) -> tuple[str, ...]:
    """Return the names of all parameters of the campaign, in the order of its patterns."""
    files = plan.patterns
    return tuple(dict.fromkeys(name for key in in_order(files) for name in files[key].parameters))


def _quantities(plan: Plan) -> dict[str, Quantity]:
    """Return all quantities of the campaign by name; patterns that share a name share what it means."""
    files = plan.patterns
    return {name: one for key in in_order(files) for name, one in files[key].quantities.items()}


def _roles(plan: Plan) -> tuple[str, ...]:
    files = plan.patterns
    return tuple(dict.fromkeys(role for key in in_order(files) for role in files[key].roles))


def _hosts(data: Dataset) -> dict[str, str]:
    """Return, by point, the hosts on which its launches have endpoints, in the testbed's order."""
    used: dict[str, set[str]] = defaultdict(set)
    for launch in data.plan.launches:
        here = {end.host for end in launch.endpoints}
        for name in launch.point_ids:
            used[name] |= here
    order = {name: place for place, name in enumerate(data.meta.testbed.hosts)}
    return {name: " ".join(sorted(here, key=lambda one: (order.get(one, 0), one))) for name, here in used.items()}


def _identity(cell: Cell, data: Dataset, hosts: Mapping[str, str]) -> Record:
    case, series = cell.case, cell.series
    return {
        "campaign_id": data.campaign_id,
        "point_id": cell.point_id,
        "kind": series.kind,
        "layer": series.layer,
        "shims": "+".join(series.shims),
        "settings": " ".join(f"{key}={value}" for key, value in series.settings),
        "twin": cell.twin,
        "place": case.place,
        "wait": case.wait,
        "hosts": hosts.get(cell.point_id),
        "pattern": case.pattern,
        **{name: case.workload.values.get(name) for name in _parameters(data.plan)},
        "state": cell.state,
        "reason": "; ".join(trouble.reason for trouble in cell.troubles),
        "attempts_planned": cell.planned,
        "attempts_valid": len(cell.samples),
    }


def _estimate(name: str, unit: str, estimate: Estimate | None) -> Record:
    end = f"_{unit}" if unit else ""
    low, high, _ = ENDS[0]
    return {
        f"{name}{end}": estimate.value if estimate else None,
        f"{name}{low}{end}": estimate.low if estimate else None,
        f"{name}{high}{end}": estimate.high if estimate else None,
    }


def _tail(name: str, tail: Tail | None) -> Record:
    low, high, _ = ENDS[1]
    return {
        f"{name}_ns": tail.value if tail else None,
        f"{name}{low}_ns": tail.low if tail else None,
        f"{name}{high}_ns": tail.high if tail else None,
    }


def _quantity(name: str, quantity: Quantity, numbers: Numbers | None) -> Record:
    """Return everything of one quantity; tails and pooled rates are of main quantities alone."""
    is_main = numbers is not None and numbers.cell.case.file.main == name
    found = None
    if numbers is not None:
        found = numbers.central if is_main else numbers.others.get(name)
    if quantity.kind == "histogram":
        return {
            **_estimate(f"{name}_p50", "ns", found),
            **_tail(f"{name}_p99", numbers.p99 if numbers and is_main else None),
            **_tail(f"{name}_p999", numbers.p999 if numbers and is_main else None),
        }
    unit = words.slug(quantity)
    record = _estimate(name, unit, found)
    if quantity.kind == "rate":
        record[f"{name}_pooled_{unit}"] = numbers.pooled if numbers and is_main else None
    return record


def _baseline(row: Row | None) -> Record:
    """Return a point divided by its pattern's baseline."""
    found = row.baseline if row else None
    return {
        **_estimate("baseline_ratio", "", found.central if found else None),
        **_estimate("baseline_p99_ratio", "", found.p99 if found else None),
    }


def _said(name: str, one: CellVerdict | None, baseline: str | None) -> Record:
    found, ratio = (one.verdict, one.ratio) if one else (None, None)
    return {
        name: str(found.says) if found else None,
        f"{name}_against": baseline if found else None,
        f"{name}_ratio": ratio.value if ratio else None,
        f"{name}_ratio_low": ratio.low if ratio else None,
        f"{name}_ratio_high": ratio.high if ratio else None,
        f"{name}_pairs_disagree": one.pairs_disagree if one else None,
        f"{name}_p": found.p if found else None,
        f"{name}_level": found.level if found else None,
        f"{name}_launches": found.launches if found else None,
        f"{name}_early": found.early if found else None,
        f"{name}_two_levels": found.two_levels if found else None,
        f"{name}_withheld": found.withheld if found else None,
        f"{name}_more": found.more if found else None,
    }


def _beside_native(known: BesideNative | None) -> Record:
    return {
        "beside_native_low": known.ratio[0] if known else None,
        "beside_native_high": known.ratio[1] if known else None,
    }


def _verdict(cell: Cell, verdicts: CampaignVerdicts) -> Record:
    """Return what is said of a point beside the baseline, and whether it leads its case, alone or in a group."""
    group, tails = verdicts.groups.get(cell.case), verdicts.tails
    is_ranked = group is not None and cell.series.kind == "layer" and bool(cell.samples) and not cell.twin
    return {
        **_said("verdict", verdicts.by_point.get(cell.point_id), verdicts.baseline),
        "verdict_without": None if cell.twin else verdicts.without.get(cell.point_id),
        **_said("p99_verdict", tails.by_point.get(cell.point_id) if tails else None, verdicts.baseline),
        "p99_verdict_without": tails.without.get(cell.point_id) if tails and not cell.twin else None,
        **_beside_native(None if cell.twin else verdicts.taxes.get(cell.point_id)),
        "leads": cell.series in group.members if is_ranked and group and not group.withheld else None,
    }


def _cost(name: str, end: str, cost: PerOperation | None, plan: Plan) -> Record:
    """Return what an operation took at each side, and together."""
    sides = {f"{name}_{role}{end}": cost.by_role.get(role) if cost else None for role in _roles(plan)}
    return {**sides, f"{name}_all{end}": cost.all_roles if cost else None}


def _measured(numbers: Numbers | None, row: Row | None, plan: Plan, shares: Mapping[str, float]) -> Record:
    """Return everything measured; the same names for every row, None where there is nothing."""
    costs = numbers.costs if numbers else None
    floor = row.floor if row else None
    files = plan.patterns.values()
    record: Record = {
        "coverage": numbers.central.coverage if numbers else None,
        "samples": numbers.samples if numbers else None,
        "operations": numbers.operations if numbers else None,
    }
    for name, quantity in _quantities(plan).items():
        record |= _quantity(name, quantity, numbers)
    return {
        **record,
        **_estimate("ends_apart", "", numbers.apart if numbers else None),
        "operations_per_s": numbers.operations_s if numbers else None,
        "floor": floor.program.cell.series.label if floor else None,
        "floor_point_id": floor.program.cell.point_id if floor else None,
        "floor_size_bytes": floor.program.cell.case.size if floor else None,
        "floor_composed": floor.composed if floor else None,
        "references": "; ".join(one.program.cell.series.label for one in row.references) if row else None,
        **(_baseline(row) if any(file.baseline for file in files) else {}),
        **({"generator_share": shares.get(row.cell.point_id) if row else None} if any(f.knee for f in files) else {}),
        **_estimate("ratio", "", row.ratio if row else None),
        **_estimate("above_floor", "ns", row.above if row else None),
        **_cost("cpu", "_ns", costs.cpu_ns if costs else None, plan),
        **_cost("switches", "", costs.switches if costs else None, plan),
        **_cost("page_faults", "", costs.faults if costs else None, plan),
        **_cost("system_calls", "", costs.system_calls if costs else None, plan),
        **_cost("cycles", "", costs.cycles if costs else None, plan),
        **_cost("instructions", "", costs.instructions if costs else None, plan),
        "lost": numbers.lost if numbers else None,
        "late": numbers.late if numbers else None,
    }


def _itself(comparison: Comparison, verdicts: CampaignVerdicts) -> dict[str, Record]:
    """Return, by point of a second series, how it compares with the first: ratio by round, and p without correction."""
    found: dict[str, Record] = defaultdict(dict)
    for name, measure in (("itself", MAIN), ("itself_p99", TAIL)):
        for one in twin_cells(comparison, verdicts, measure=measure):
            sign = -1 if one.cell.case.file.main_quantity.better == "high" else 1
            found[one.cell.point_id] |= {
                f"{name}_ratio": exp(sign * one.log_ratio),
                f"{name}_p": one.p,
                f"{name}_launches": one.launches,
            }
    return found


_ITSELF = tuple(f"itself{of}_{what}" for of in ("", "_p99") for what in ("ratio", "p", "launches"))


_POINT = ("campaign_id", "point_id", "kind", "layer", "shims", "settings", "twin", "place", "wait", "hosts", "pattern")
_STATE = ("state", "reason", "attempts_planned", "attempts_valid")
_SAID = (
    *_said("verdict", None, None),
    "verdict_without",
    *_said("p99_verdict", None, None),
    "p99_verdict_without",
    *_beside_native(None),
    "leads",
)


def columns(plan: Plan) -> tuple[str, ...]:
    """Return the names that every record of a campaign has, in order; they depend on its plan alone."""
    itself = _ITSELF if any(point.subject.twin for point in plan.points) else ()
    return (*_POINT, *_parameters(plan), *_STATE, *_measured(None, None, plan, {}), *_SAID, *itself)


def records(comparison: Comparison, verdicts: CampaignVerdicts) -> Iterator[Record]:
    """Yield one flat record for every planned point, in the report's order; last what was measured a second time."""
    for record in _first(comparison, verdicts):
        yield record | (dict.fromkeys(_ITSELF) if comparison.data.twins else {})
    yield from _second(comparison, verdicts)


def _second(comparison: Comparison, verdicts: CampaignVerdicts) -> Iterator[Record]:
    itself = _itself(comparison, verdicts) if comparison.data.twins else {}
    hosts = _hosts(comparison.data)
    for cell in comparison.data.twins:
        measured = _measured(numbers_of(cell), None, comparison.data.plan, {})
        compared = {name: itself.get(cell.point_id, {}).get(name) for name in _ITSELF}
        yield _identity(cell, comparison.data, hosts) | measured | _verdict(cell, verdicts) | compared


def _first(comparison: Comparison, verdicts: CampaignVerdicts) -> Iterator[Record]:
    rows = {row.cell.point_id: row for row in comparison.rows}
    shares = loads(comparison).shares
    floors = {numbers.cell.point_id: numbers for numbers in comparison.floor_numbers}
    hosts = _hosts(comparison.data)
    for cell in comparison.data.cells:
        row = rows.get(cell.point_id)
        numbers = row.numbers if row else floors.get(cell.point_id)
        measured = _measured(numbers, row, comparison.data.plan, shares)
        yield _identity(cell, comparison.data, hosts) | measured | _verdict(cell, verdicts)


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
        **_estimate(case.file.axis, "", None if knee.withheld else knee.load),
        **_estimate("rate", "per_s", None if knee.withheld else knee.rate),
        **_estimate("rest_p99", "ns", None if knee.withheld else knee.rest_ns),
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
    by_id = {cell.point_id: cell for cell in comparison.data.planned}
    verdicts = judged(comparison)
    comparison = gated(comparison, verdicts)

    def whole(record: Record) -> dict[str, object]:
        cell = by_id[str(record["point_id"])]
        numbers = numbers_of(cell)
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
        "columns": list(columns(comparison.data.plan)),
        "by_launch_unit": "that of the pattern's main quantity: ns (p50 of the launch), MB/s, or its own",
        "rows": [whole(record) for record in _first(comparison, verdicts)],
        "verdicts": _verdicts(verdicts),
        "knees": [_knee(knee) for knee in loads(comparison).knees],
        **({"twins": [whole(record) for record in _second(comparison, verdicts)]} if comparison.data.twins else {}),
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
    stream.writelines(lines("csv", columns(data.plan), records(comparison, judged(comparison))))
