# SPDX-License-Identifier: BSD-3-Clause
"""A campaign as CSV or JSON: a row for every planned point, floors and refused ones included, units in the names.

Values are those of the report, unrounded. An empty field has no value; `state` and `reason` say why.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import TextIO

from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.stats.compare import Comparison, Numbers, Row, compare, numbers_of
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_analysis.stats.load import Cell, read
from cadge_results import Campaign

FORMATS = ("csv", "json")
Record = dict[str, str | int | float | None]


def _identity(cell: Cell, campaign_id: str) -> Record:
    case, series = cell.case, cell.series
    return {
        "campaign_id": campaign_id,
        "point_id": cell.point_id,
        "kind": series.kind,
        "layer": series.layer,
        "shims": "+".join(series.shims),
        "settings": " ".join(f"{key}={value}" for key, value in series.settings),
        "place": case.place,
        "wait": case.wait,
        "pattern": case.pattern,
        "operation": case.operation,
        "target": case.target,
        "request_bytes": case.request_bytes,
        "reply_bytes": case.reply_bytes,
        "depth": case.depth,
        "state": cell.state,
        "reason": "; ".join(trouble.reason for trouble in cell.troubles),
        "attempts_planned": cell.planned,
        "attempts_valid": len(cell.samples),
    }


def _estimate(name: str, unit: str, estimate: Estimate | None) -> Record:
    end = f"_{unit}" if unit else ""
    return {
        f"{name}{end}": estimate.value if estimate else None,
        f"{name}_low{end}": estimate.low if estimate else None,
        f"{name}_high{end}": estimate.high if estimate else None,
    }


def _tail(name: str, tail: Tail | None) -> Record:
    return {
        f"{name}_ns": tail.value if tail else None,
        f"{name}_lowest_launch_ns": tail.low if tail else None,
        f"{name}_highest_launch_ns": tail.high if tail else None,
    }


def _measured(numbers: Numbers | None, row: Row | None) -> Record:
    """Return everything measured; the same names for every row, None where there is nothing."""
    central = numbers.central if numbers else None
    rate = central if numbers and numbers.is_rate else None
    time = central if numbers and not numbers.is_rate else None
    cpu = numbers.cpu if numbers else None
    switches = numbers.switches if numbers else None
    floor = row.floor if row else None
    return {
        "coverage": central.coverage if central else None,
        "samples": numbers.samples if numbers else None,
        "operations": numbers.operations if numbers else None,
        **_estimate("p50", "ns", time),
        **_tail("p99", numbers.p99 if numbers else None),
        **_tail("p999", numbers.p999 if numbers else None),
        **_estimate("visible_p50", "ns", numbers.remote if numbers else None),
        **_estimate("rate", "mb_s", rate),
        "rate_pooled_mb_s": numbers.pooled_mb_s if numbers and numbers.is_rate else None,
        "operations_per_s": numbers.operations_s if numbers else None,
        "floor": floor.cell.series.label if floor else None,
        "floor_point_id": floor.cell.point_id if floor else None,
        **_estimate("ratio", "", row.ratio if row else None),
        **_estimate("above_floor", "ns", row.above if row else None),
        "cpu_client_ns": cpu.client_ns if cpu else None,
        "cpu_server_ns": cpu.server_ns if cpu else None,
        "cpu_both_ns": cpu.both_ns if cpu else None,
        "switches_client": switches[0] if switches else None,
        "switches_server": switches[1] if switches else None,
        "lost": numbers.lost if numbers else None,
        "late": numbers.late if numbers else None,
    }


def records(comparison: Comparison) -> Iterator[Record]:
    """Yield one flat record for every planned point, in the report's order."""
    rows = {row.cell.point_id: row for row in comparison.rows}
    floors = {numbers.cell.point_id: numbers for numbers in comparison.floor_numbers}
    for cell in comparison.data.cells:
        row = rows.get(cell.point_id)
        numbers = row.numbers if row else floors.get(cell.point_id)
        yield _identity(cell, comparison.data.campaign_id) | _measured(numbers, row)


def _json(comparison: Comparison, stream: TextIO) -> None:
    meta = comparison.data.meta
    listed = []
    by_id = {cell.point_id: cell for cell in comparison.data.cells}
    for record in records(comparison):
        cell = by_id[str(record["point_id"])]
        numbers = numbers_of(cell)
        own = {s.launch_id: numbers.by_round[s.round] for s in cell.samples} if numbers else {}
        listed.append({**record, "by_launch": own})
    document = {
        "schema": "cadge.export/1",
        "campaign_id": comparison.data.campaign_id,
        "plan_hash": meta.plan_hash,
        "tool": meta.tool.model_dump(mode="json"),
        "by_launch_unit": "ns (p50 of the launch); MB/s for streams",
        "rows": listed,
    }
    json.dump(document, stream, indent=1, sort_keys=True, ensure_ascii=True)
    stream.write("\n")


def write(campaign: Campaign, kind: str, stream: TextIO) -> None:
    """Write a campaign to a text stream as "csv" or "json". Raises AnalysisError, cadge_results.ResultsError."""
    if kind not in FORMATS:
        raise BadInputError(f"no format {kind!r}; there are: {', '.join(FORMATS)}")
    comparison = compare(read(campaign))
    if kind == "json":
        _json(comparison, stream)
        return
    found = list(records(comparison))
    if not found:
        raise NoDataError(f"campaign {comparison.data.campaign_id} holds no points")
    writer = csv.DictWriter(stream, fieldnames=list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
