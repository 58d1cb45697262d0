# SPDX-License-Identifier: BSD-3-Clause
"""A history as plain data: what `cadge history --json` answers, and what its page holds for programs."""

from __future__ import annotations

from pydantic import JsonValue

from cadge_analysis.cells.entry import Field, bounded, record
from cadge_analysis.stats.inference.change_points import SEED, SHUFFLES
from cadge_analysis.versus.history import Course, History, Stop, Turn

COURSE: tuple[Field[Course], ...] = (
    Field("cell", lambda one: one.name),
    Field("layer", lambda one: one.series),
    Field("unit", lambda one: one.quantity.unit if one.quantity else ""),
    Field("better", lambda one: one.better),
)
STOP: tuple[Field[Stop], ...] = bounded("value", "", lambda one: one)
TURN: tuple[Field[Turn], ...] = (
    Field("first_value", lambda one: one.before),
    Field("second_value", lambda one: one.after),
    Field("measured_ratio", lambda one: one.ratio),
    Field("verdict_p", lambda one: one.p),
)
"""What is told of a cell, of one campaign and of one change; `campaign` is a place in the list of campaigns."""


def document(found: History) -> dict[str, JsonValue]:
    """Return all that is said of a history."""
    return {
        "schema": "cadge.history/2",
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
            {"campaign": one.at, "what": one.what, "first": one.first, "second": one.second, "layer": one.series}
            for one in found.events
        ],
        "gaps": [{"layer": one.series, "cells": one.cells, "campaigns": list(one.at)} for one in found.gaps],
        "left": dict(found.left),
    }


def _course(course: Course, found: History) -> dict[str, JsonValue]:
    def is_shared(turn: Turn) -> bool:
        return course is not found.machine and found.machine_turned(turn.at)

    return record(COURSE, course) | {
        "values": [{"campaign": one.at, **record(STOP, one)} for one in course.stops],
        "changes": [
            {
                "campaign": turn.at,
                **record(TURN, turn),
                "worse": course.worse(turn),
                "machine_changed_too": is_shared(turn),
            }
            for turn in course.turns
        ],
    }
