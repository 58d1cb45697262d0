# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as plain data: what `cadge compare --json` answers, and what its page holds for programs."""

from __future__ import annotations

from math import exp

from pydantic import JsonValue

from cadge_analysis.cells.entry import Field, bounded, record
from cadge_analysis.cells.summaries import by_launch
from cadge_analysis.stats.campaign_verdicts import Ratio
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.versus.against import Change, SideComparison
from cadge_analysis.versus.drift import MachinePart

SCHEMA = "cadge.compare/2"


def _change(one: Change) -> Ratio:
    """Return the change with the interval that its verdict is read from."""
    low, high = one.judged.interval or (None, None)
    return Ratio(value=one.change, low=None if low is None else exp(low), high=None if high is None else exp(high))


PAIRS: tuple[Field[Change], ...] = (
    Field("cell", lambda one: one.name),
    Field("layer", lambda one: one.series),
    Field("place", lambda one: one.case.place),
    Field("wait", lambda one: one.case.wait),
    Field("pattern", lambda one: one.case.pattern),
    Field("workload", lambda one: one.workload),
    Field("quantity", lambda one: one.case.file.main),
    Field("unit", lambda one: one.quantity.unit),
    Field("better", lambda one: one.quantity.better),
    Field("first_value", lambda one: one.first),
    Field("second_value", lambda one: one.second),
    Field("first_launches", lambda one: one.shift.shift.launches[0]),
    Field("second_launches", lambda one: one.shift.shift.launches[1]),
    Field("measured_ratio", lambda one: one.ratio),
    Field("verdict", lambda one: str(one.judged.verdict)),
    *bounded("verdict_ratio", "", _change),
    Field("verdict_pairs_disagree", lambda one: one.pairs_disagree),
    Field("verdict_p", lambda one: one.shift.p),
    Field("verdict_p_adjusted", lambda one: one.judged.p),
    Field("verdict_level", lambda one: one.judged.level),
    Field("verdict_withheld", lambda one: one.judged.withheld),
    Field("verdict_more", lambda one: one.judged.more),
    Field("drift_is_as_large", lambda one: one.judged.drowned),
    Field("objections", lambda one: one.objections),
)
"""The rows of the table `pairs`."""


def document(found: SideComparison, *, launches: bool = False) -> dict[str, JsonValue]:
    """Return all that is said of two sides. launches: with each launch's own value, as the page has them."""

    def row(change: Change) -> dict[str, JsonValue]:
        sides = zip(("first_by_launch", "second_by_launch"), change.sides, strict=True)
        return record(PAIRS, change) | ({name: by_launch(side) for name, side in sides} if launches else {})

    main = {one.case.pattern: one.case.file.main for one in found.changes}
    return {
        "schema": SCHEMA,
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
            {
                "cell": one.name,
                "why": one.why,
                "fate": str(one.fate),
                "refused": one.forbidden,
                "reasons": list(one.reasons),
            }
            for one in found.left
        ],
        "machine": [
            {"what": one.what, "parts": one.parts, "ratio": one.ratio, "least": one.least, "most": one.most}
            for one in found.moved
        ],
        "means": [
            {
                "layer": one.series,
                "pattern": one.pattern,
                "quantity": main[one.pattern],
                "better": one.better,
                "cells": one.cells,
                "ratio": one.mean,
                "why_none": one.why,
            }
            for one in found.wholes
        ],
        "correction": "Benjamini-Hochberg",
        "false_share": ERROR,
        "withheld": found.withheld or None,
        "correlation": found.correlation,
        "drift": [_drifted(one) for one in found.drift],
        "drift_of_selftest": [one.model_dump(mode="json") for one in found.usual],
        "pairs": [row(change) for change in found.changes],
    }


def _drifted(one: MachinePart) -> dict[str, JsonValue]:
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
        "has_witness": drift.has_floors,
        "spread": drift.spread,
        "freedom": drift.freedom,
        "least_for_a_single_cell": one.least,
    }
