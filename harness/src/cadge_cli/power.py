# SPDX-License-Identifier: BSD-3-Clause
"""What a plan should find, predicted from this machine's stored campaigns: `cadge plan --power`, and what runs keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median

from pydantic import JsonValue

from cadge_analysis import prediction
from cadge_analysis.stats.campaign_verdicts import SAME_WITHIN
from cadge_analysis.stats.inference.plan_power import PlannedFamily, families_of
from cadge_analysis.stats.inference.signed_rank import LAUNCHES_MAX, POWER
from cadge_cli.output import table, wrapped
from cadge_cli.words import say
from cadge_harness.testbed.model import Testbed
from cadge_results import Campaign, Plan, ResultsError, Store
from cadge_results.command import command


def _here(results: Path, testbed: Testbed) -> Iterator[Campaign]:
    """Yield the stored campaigns of a testbed, the newest first."""
    for campaign in reversed(Store(results).campaigns()):
        try:
            facts = campaign.meta.testbed
        except (ResultsError, OSError):
            continue
        if (facts.name, facts.hosts) == (testbed.name, tuple(host.name for host in testbed.hosts)):
            yield campaign


def with_predicted(plan: Plan, results: Path, testbed: Testbed) -> Plan:
    """Return a plan with what stored campaigns say beforehand of its families."""
    return plan.with_predicted(prediction.predict(plan, _here(results, testbed)))


def _unknown(plan: Plan) -> list[PlannedFamily]:
    known = {(one.pattern, one.place, one.wait) for one in plan.predicted}
    return [one for one in families_of(plan) if (one.pattern, one.place, one.wait) not in known]


def power_data(plan: Plan) -> list[JsonValue]:
    """Return what a plan is predicted to find, as `cadge plan --power --json` shows it: a family each."""
    found: list[JsonValue] = [
        {
            **one.model_dump(mode="json"),
            "spread": median(one.spreads),
            "found": {
                f"{size:g}": round(prediction.chance(one, size, same_within=_same_within(plan)), 3)
                for size in prediction.SIZES
            },
            "launches_for_bound_5_percent": prediction.launches_for_bound(one),
        }
        for one in plan.predicted
    ]
    return found + [{**asdict(one), "campaign_id": None} for one in _unknown(plan)]


def _same_within(plan: Plan) -> float:
    return SAME_WITHIN if plan.same_within is None else plan.same_within / 100


def power_lines(plan: Plan) -> list[str]:
    """Return the same for people."""
    head = ("family", "comparisons", "launches", "spread", *(f"{size:.0%}" for size in prediction.SIZES), "5% bound")
    rows = [
        (
            f"{one.pattern} {one.place}/{one.wait}",
            str(one.comparisons),
            str(one.launches),
            f"{median(one.spreads):.3f}",
            *(f"{prediction.chance(one, size, same_within=_same_within(plan)):.2f}" for size in prediction.SIZES),
            str(prediction.launches_for_bound(one) or say("plan.power_never", most=LAUNCHES_MAX)),
        )
        for one in plan.predicted
    ]
    lines = [*table([head, *rows]), ""] if rows else []
    if rows:
        lines += wrapped(say("plan.power_read", power=POWER), then="  ")
        names = list(dict.fromkeys(one.campaign_id for one in plan.predicted))
        lines += wrapped(say("plan.power_from", names=names, n=len(names)), then="  ")
        if any(one.disturbed for one in plan.predicted):
            lines += wrapped(say("plan.power_disturbed"), then="  ")
    if unknown := _unknown(plan):
        names = [f"{one.pattern} {one.place}/{one.wait}" for one in unknown]
        lines += wrapped(say("plan.power_unknown", names=names, rounds=prediction.ROUNDS_LEAST), then="  ")
        lines += ["  " + command("run", "--launches", str(prediction.ROUNDS_LEAST), "--no-report")]
    return lines
