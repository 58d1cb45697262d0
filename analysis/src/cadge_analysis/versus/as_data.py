# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as plain data: what `cadge compare --json` answers, and what its page holds for programs."""

from __future__ import annotations

from math import exp

from pydantic import JsonValue

from cadge_analysis.stats.sequential import ERROR
from cadge_analysis.versus.against import Against, Change
from cadge_analysis.versus.drift import Told


def document(found: Against) -> dict[str, JsonValue]:
    """Return all that is said of two sides."""
    return {
        "first": found.first,
        "second": found.second,
        "paired": found.paired,
        "margin": found.margin,
        "conditions": [
            {"what": one.what, "first": one.first, "second": one.second, "other_machine": one.other_machine}
            for one in found.conditions
        ],
        "missing": dict(found.missing),
        "refused": dict(found.refused),
        "left": [
            {"cell": one.name, "why": one.why, "fate": str(one.fate), "refused": one.forbidden} for one in found.left
        ],
        "machine": [
            {"what": one.what, "parts": one.parts, "ratio": one.ratio, "least": one.least, "most": one.most}
            for one in found.moved
        ],
        "means": [
            {
                "series": one.series,
                "pattern": one.pattern,
                "quantity": one.quantity,
                "better": one.better,
                "cells": one.cells,
                "ratio": one.mean,
                "why_none": one.why,
            }
            for one in found.wholes
        ],
        "correction": "Benjamini-Yekutieli",
        "false_share": ERROR,
        "withheld": found.withheld or None,
        "correlation": found.correlation,
        "drift": [_drifted(one) for one in found.drift],
        "drift_of_selftest": [one.model_dump(mode="json") for one in found.usual],
        "changes": [_change(change) for change in found.changes],
    }


def with_launches(found: Against) -> dict[str, JsonValue]:
    """Return the same, and each launch's own number of both sides, in the quantity's base unit, by round."""
    made = document(found)
    changes: list[JsonValue] = []
    for change in found.changes:
        sides: dict[str, JsonValue] = {
            name: [*(numbers.by_round[at] for at in sorted(numbers.by_round))]
            for name, numbers in zip(("launches_first", "launches_second"), change.sides, strict=True)
        }
        changes.append({**_change(change), "base_unit": change.sides[0].quantity.unit, **sides})
    return {"schema": "cadge.compare/1", **made, "changes": changes}


def _drifted(one: Told) -> dict[str, JsonValue]:
    drift = one.drift
    return {
        "group": [*one.group],
        "cells": one.cells,
        "series": drift.series,
        "common": drift.common.value,
        "common_low": drift.common.low,
        "common_high": drift.common.high,
        "layers": drift.layers.value if drift.layers else None,
        "floors": drift.floors.value if drift.floors else None,
        "layers_and_floors_differ": drift.is_apart,
        "has_witness": drift.has_witness,
        "spread": drift.spread,
        "freedom": drift.freedom,
        "least_for_a_single_cell": one.least,
    }


def _change(change: Change) -> dict[str, JsonValue]:
    shift, judged = change.shift, change.judged
    low, high = judged.interval or (None, None)
    return {
        "cell": change.name,
        "series": change.series,
        "place": change.place,
        "wait": change.wait,
        "pattern": change.pattern,
        "workload": change.workload,
        "quantity": change.quantity,
        "unit": change.unit,
        "better": change.better,
        "first": change.first,
        "second": change.second,
        "ratio": change.ratio,
        "pairs_disagree": change.pairs_disagree,
        "change": change.change,
        "change_low": None if low is None else exp(low),
        "change_high": None if high is None else exp(high),
        "level": judged.level,
        "launches": [*shift.shift.launches],
        "p": shift.p,
        "p_adjusted": judged.p,
        "verdict": str(judged.verdict),
        "more_launches": judged.more,
        "drift_is_as_large": judged.drowned,
        "objections": change.objections,
    }
