# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a self-test: from the campaigns that were made for it to a verdict, a sentence and figures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial

from pydantic import JsonValue

from cadge_analysis import messages, units
from cadge_analysis.selftest.campaign_pairs import campaign_pairs
from cadge_analysis.selftest.drift import SHORT_MOST, coverage, together
from cadge_analysis.selftest.planted import (
    SERIES_LAUNCHES,
    USUAL_NS,
    Calibration,
    DelayReading,
    calibrations,
    planted,
    send_ns,
)
from cadge_analysis.selftest.pooled import DifferenceRate, alike, pooled, spoken
from cadge_analysis.selftest.quiet import quiet
from cadge_analysis.selftest.stall import CLOSED_MOST, SHOWN_NS, stalled
from cadge_analysis.stats.intervals import TARGET_COVERAGE
from cadge_analysis.stats.load import read
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign
from cadge_results.formats.selftest import BetweenCampaigns, PartVerdict

say = partial(messages.say, "selftest")

SERIES = 20
FOUND_LEAST = 19
HELD_LEAST = 17
QUICK_NS = 1200
"""Up to this round trip 200 ns are planted, and have to be held by the interval."""
LARGE_NS, SMALL_NS = 200, 50
LARGE_SHARE, SMALL_SHARE = 0.20, 0.05
STEP_SHOWN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFinding:
    """A part without its campaigns and its time."""

    verdict: PartVerdict
    says: str
    figures: dict[str, JsonValue]
    between: tuple[BetweenCampaigns, ...] = ()
    """How far campaigns of this machine lie apart, where the part's own show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """What to plant in one layer, as settings of the shim: the usual spin, the large delay, and the small one."""

    layer: str
    settings: tuple[dict[str, int], ...]


def plants(campaign: Campaign) -> tuple[Plant, ...]:
    """Return what to plant, by what a campaign of the sweep selftest-find says; the quick layer first."""
    found = calibrations(read(campaign))
    quick = next((one for one in found if one.medium == "memory" and one.round_trip_ns <= QUICK_NS), None)
    slow = next((one for one in found if one.medium != "memory"), None)
    made = []
    if quick is not None:
        made.append(_plant(quick, LARGE_NS, SMALL_NS))
    if slow is not None:
        made.append(_plant(slow, LARGE_SHARE * slow.round_trip_ns, SMALL_SHARE * slow.round_trip_ns))
    return tuple(made)


def series_within(campaign: Campaign, time_s: float, sides: int, most: int) -> int:
    """Return how many series, up to `most`, fit into a time, at the pace of a campaign's launches."""
    begun = sorted(
        datetime.fromisoformat(one.result.started_utc) for one in campaign.launches() if one.result is not None
    )
    if len(begun) < 2:
        return most
    pace_s = (begun[-1] - begun[0]).total_seconds() / (len(begun) - 1)
    return max(1, min(most, int(time_s / (pace_s * sides * SERIES_LAUNCHES))))


def _plant(one: Calibration, *delays_ns: float) -> Plant:
    told = (USUAL_NS, *(send_ns(delay_ns) for delay_ns in delays_ns))
    return Plant(layer=one.layer, settings=tuple({"delay.send_ns": spin_ns} for spin_ns in told))


def of_delays(campaign: Campaign) -> PartFinding:
    """Judge a campaign of the sweep selftest-delay."""
    found = planted(read(campaign))
    wrong, enough = [], True
    asked = say("findings.asked_for", series=SERIES)
    large = _largest(found)
    for one in large:
        enough &= len(one.series) >= SERIES
        if one.found < _of(FOUND_LEAST, len(one.series)):
            wrong.append(
                say(
                    "findings.found_too_rarely",
                    layer=one.layer,
                    found=one.found,
                    n=len(one.series),
                    least=FOUND_LEAST,
                    asked=asked,
                )
            )
        if one.round_trip_ns <= QUICK_NS and one.held < _of(HELD_LEAST, len(one.series)):
            wrong.append(
                say(
                    "findings.held_too_rarely",
                    layer=one.layer,
                    held=one.held,
                    n=len(one.series),
                    least=HELD_LEAST,
                    asked=asked,
                )
            )
    quick = any(one.round_trip_ns <= QUICK_NS for one in large)
    verdict: PartVerdict = "not judged" if not (enough and quick and large) else "failed" if wrong else "passed"
    said = [_planted_sentence(one, planted_large=one in large) for one in found]
    if not quick:
        said.insert(0, say("findings.no_quick_layer", limit_ns=QUICK_NS))
    if not enough:
        said.insert(0, say("findings.few_series", series=SERIES))
    return PartFinding(
        verdict=verdict, says="; ".join([*wrong, *said]), figures={"delays": [_figures(one) for one in found]}
    )


def _largest(found: Sequence[DelayReading]) -> list[DelayReading]:
    by_layer: dict[str, DelayReading] = {}
    for one in found:
        if one.layer not in by_layer or by_layer[one.layer].truth_ns < one.truth_ns:
            by_layer[one.layer] = one
    return list(by_layer.values())


def _of(least: int, series: int) -> float:
    return least * series / SERIES


def _step(one: DelayReading) -> str:
    """Say what was given and taken, where that is a part of what was planted."""
    shown = one.clock_step_ns > STEP_SHOWN * one.truth_ns
    return say("findings.clock_step", clock_step_ns=one.clock_step_ns) if shown else ""


def _planted_sentence(one: DelayReading, *, planted_large: bool) -> str:
    share = units.percent(one.truth_ns / one.round_trip_ns)
    text = say(
        "findings.planted",
        layer=one.layer,
        truth_ns=one.truth_ns,
        round_trip_ns=one.round_trip_ns,
        share=share,
        found=one.found,
        n=len(one.series),
        series_launches=SERIES_LAUNCHES,
        held=one.held,
        step=_step(one),
    )
    if not planted_large:
        text += " " + say("findings.expected", predicted=one.predicted * len(one.series))
    return text


def _figures(one: DelayReading) -> dict[str, JsonValue]:
    return {
        "layer": one.layer,
        "asked_send_ns": one.asked_ns,
        "planted_ns": round(one.truth_ns, 1),
        "round_trip_ns": round(one.round_trip_ns, 1),
        "series": len(one.series),
        "launches": SERIES_LAUNCHES,
        "found": one.found,
        "held": one.held,
        "clock_step_ns": one.clock_step_ns,
        "predicted_share": round(one.predicted_share, 4),
        "predicted": round(one.predicted, 4),
        "launches_needed": one.launches_needed,
        "disturbed": one.disturbed,
        "each": [
            {
                "planted_ns": round(truth, 1),
                "ns": round(found.value, 1),
                "low_ns": None if found.low is None else round(found.low, 1),
                "high_ns": None if found.high is None else round(found.high, 1),
            }
            for found, truth in zip(one.series, one.truths_ns, strict=True)
        ],
    }


def of_stall(campaign: Campaign) -> PartFinding:
    """Judge a campaign of the sweep selftest-stall."""
    found = stalled(read(campaign))
    if found is None:
        return PartFinding(verdict="not judged", says=say("findings.one_side_missing"), figures={})
    verdict: PartVerdict = "passed" if found.shown and found.closed_alike else "failed"
    text = say(
        "findings.stall",
        load_with_ns=found.load_with_ns / 1000000.0,
        load_without_ns=found.load_without_ns / 1000000.0,
        shown_ns=SHOWN_NS / 1000000.0,
        closed_ratio=found.closed_ratio,
        closed_most=CLOSED_MOST,
        launches=found.launches,
    )
    if found.own:
        verdict = "not judged"
        text = say("findings.machine_stalls", text=text)
    return PartFinding(verdict=verdict, says=text, figures=asdict(found))


def of_quiet(clean: Campaign, steered: Campaign, names: Collection[str], refused: str) -> PartFinding:
    """Judge two campaigns of the sweep selftest-quiet. refused: what was said of a variable that steers no library."""
    found = quiet(read(clean), read(steered), names)
    wrong = [*found.leaked, *(f"{one.variable} ended as {one.ended}" for one in found.settings if not one.shown)]
    if not refused:
        wrong.append(say("findings.not_refused"))
    steering = [one for one in found.settings if one.steers or one.ended != _plain(one.layer, one.variable)]
    shown = sum(one.ended == _plain(one.layer, one.variable) for one in found.settings)
    enough = bool(found.layers) and bool(found.settings)
    verdict: PartVerdict = "failed" if wrong else "passed" if enough else "not judged"
    text = say(
        "findings.surroundings",
        n=len(names),
        layers=found.layers,
        settings=len(found.settings),
        shown=shown,
        without_number=len(found.settings) - shown,
        steering=len(steering),
    )
    return PartFinding(
        verdict=verdict,
        says="; ".join(wrong) or text,
        figures={
            "users": [*sorted(names)],
            "layers": list(found.layers),
            "leaked": list(found.leaked),
            "settings": [asdict(one) for one in found.settings],
            "refused": refused,
        },
    )


def _plain(layer: str, variable: str) -> str:
    return f"{layer} ({', '.join(f'env.{one}' for one in variable.split(', '))})"


def of_coverage(campaign: Campaign) -> PartFinding:
    """Judge intervals by simulation from the rounds of a long campaign."""
    found = coverage(read(campaign))
    figures: dict[str, JsonValue] = {"coverage": [asdict(one) | {"pair": " beside ".join(one.pair)} for one in found]}
    if not found:
        return PartFinding(verdict="not judged", says=say("findings.few_rounds"), figures=figures)
    pooled = together(found)
    verdict: PartVerdict = "passed" if all(one.enough for one in pooled) else "failed"
    shares = ", ".join(f"{units.percent(one.share)} with {one.launches} launches" for one in pooled)
    text = say(
        "findings.coverage",
        target=TARGET_COVERAGE,
        shares=shares,
        least=TARGET_COVERAGE - SHORT_MOST,
        correlation=max(one.correlation for one in found),
    )
    return PartFinding(verdict=verdict, says=text, figures=figures)


def of_alike(campaigns: Sequence[Campaign]) -> PartFinding:
    """Judge campaigns of the sweep selftest-aa, of which the first was made beside a load."""
    found = pooled([alike(one, disturbed=one is campaigns[0]) for one in campaigns])
    criteria = spoken(found)
    verdict: PartVerdict = "passed" if found.passes else "failed" if found.enough else "not judged"
    pairs = campaign_pairs([Side(one.meta.campaign_id, read(one)) for one in campaigns[1:]])
    said = [f"{asked}: {came}{'' if holds else ' (NOT HELD)'}" for asked, holds, came in criteria]
    return PartFinding(
        verdict=verdict,
        says="; ".join([*said, *([pairs.says] if pairs else [])]),
        between=pairs.between if pairs else (),
        figures={
            **_rate(found.of_all),
            "after_correction": found.after_correction,
            "across": {
                "cells": found.across.cells,
                "rounds": found.across.rounds,
                "called": found.across.called,
                "p": found.across.p,
                "correlation": found.across.serial.correlation if found.across.serial else None,
            },
            "p99": _rate(found.tails) if found.tails else None,
            "campaign_pairs": pairs.figures if pairs else None,
            "campaigns": [
                {"campaign_id": one.campaign_id, "disturbed": one.disturbed, "cells": len(one.cells), "rate": one.rate}
                for one in found.campaigns
            ],
        },
    )


def _rate(rate: DifferenceRate) -> dict[str, JsonValue]:
    return asdict(rate) | {"rate": rate.rate}
