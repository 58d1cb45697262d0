# SPDX-License-Identifier: BSD-3-Clause
"""A history as plain data: what `cadge history --json` answers, and what its page holds for programs."""

from __future__ import annotations

from pydantic import JsonValue

from cadge_analysis.stats.change_points import SEED, SHUFFLES
from cadge_analysis.versus.history import Course, History


def document(found: History) -> dict[str, JsonValue]:
    """Return all that is said of a history."""
    return {
        "schema": "cadge.history/1",
        "campaigns": [
            {"campaign_id": side.data.campaign_id, "created_utc": side.data.meta.created_utc}
            for side in found.campaigns
        ],
        "method": "E-divisive",
        "level": found.level,
        "margin": found.margin,
        "shuffles": SHUFFLES,
        "seed": SEED,
        "campaigns_needed": found.needed,
        "machine": _course(found.machine, found) if found.machine else None,
        "cells": [_course(one, found) for one in found.courses],
        "events": [
            {"campaign": one.at, "what": one.what, "first": one.first, "second": one.second, "series": one.series}
            for one in found.events
        ],
        "gaps": [{"series": one.series, "cells": one.cells, "campaigns": list(one.at)} for one in found.gaps],
        "left": dict(found.left),
    }


def _course(course: Course, found: History) -> dict[str, JsonValue]:
    return {
        "cell": course.name,
        "series": course.series,
        "unit": course.unit,
        "better": course.better,
        "values": [{"campaign": one.at, "value": one.value, "low": one.low, "high": one.high} for one in course.stops],
        "changes": [
            {
                "campaign": turn.at,
                "before": turn.before,
                "after": turn.after,
                "ratio": turn.ratio,
                "worse": course.worse(turn),
                "p": turn.p,
                "machine_changed_too": course is not found.machine and found.machine_turned(turn.at),
            }
            for turn in course.turns
        ],
    }
