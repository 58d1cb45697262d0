# SPDX-License-Identifier: BSD-3-Clause
"""`cadge status`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import JsonValue

from cadge_cli import again
from cadge_cli.looks import state_data, state_words
from cadge_cli.options import EXAMPLES, answers, opened, results_option
from cadge_cli.output import Output
from cadge_cli.progress import attempts_words
from cadge_cli.words import say
from cadge_harness.words import clock, count_of
from cadge_results import Campaign
from cadge_results.command import command
from cadge_results.store.looks import next_step
from cadge_results.store.writer import is_held

_EVERY_S = 2.0
"""Seldom enough, and only names of files are looked at, so that a machine that measures is hardly disturbed."""


@click.command(
    epilog=EXAMPLES + "  cadge status\n  cadge status --watch\n  cadge status 20261121T013042Z-1f3a9c2e --json"
)
@click.argument("campaign", default="last")
@click.option("--watch", is_flag=True, help="Repeat until the campaign ends.")
@results_option
@answers
def status(campaign: str, watch: bool, results: Path | None, output: Output) -> int:
    """Show the progress of a campaign. It only reads files, so it does not disturb a campaign that measures."""
    found = opened(results, campaign, measured=False)
    last = ""
    while watch and is_held(found.path):
        found.grown()
        line = _first_line(found, "running")
        if line != last:
            output.say(line)
            last = line
        time.sleep(_EVERY_S)
    running = is_held(found.path)
    found.grown()
    return output.finish(0, status_data(found, running=running), status_lines(found, running=running))


def status_data(campaign: Campaign, *, running: bool) -> JsonValue:
    """Return how far a campaign is."""
    plan = campaign.plan
    missing = campaign.missing_launch_ids()
    return {
        "campaign_id": campaign.campaign_id,
        "path": str(campaign.path),
        "sweep": campaign.meta.sweep,
        "title": plan.title,
        "state": campaign_state(campaign, running=running),
        "launches": {"planned": len(plan.launches), "stored": len(plan.launches) - len(missing)},
        "outcomes": dict(Counter(item.status for item in campaign.outcomes())),
        "left_s": round(_left_s(campaign, missing), 1),
        "problems": list(campaign.meta.problems),
        **state_data(campaign),
    }


def campaign_state(campaign: Campaign, *, running: bool) -> str:
    """Return running, finished, interrupted, or broken off (its process was killed)."""
    if running:
        return "running"
    return "broken off" if campaign.meta.status == "running" else campaign.meta.status


def status_lines(campaign: Campaign, *, running: bool) -> list[str]:
    """Return how far a campaign is, for people."""
    counts: dict[str, Counter[str]] = {"layer": Counter(), "floor": Counter()}
    for item in campaign.outcomes():
        counts[item.point.subject.kind][item.status] += 1
    lines = [
        _first_line(campaign, campaign_state(campaign, running=running)),
        ": ".join(filter(None, (f"sweep {campaign.meta.sweep}", campaign.plan.title))),
        attempts_words(counts["layer"], counts["floor"]),
        *campaign.meta.problems,
    ]
    if not running and (again.alone(campaign) or next_step(campaign) != "done"):
        lines.append(f"continue with: {command('resume', campaign.campaign_id, *_testbed_of(campaign.meta.command))}")
    return lines


def _testbed_of(words: Sequence[str]) -> list[str]:
    """Return the options of a campaign's command that say on which testbed: a resume needs them too."""
    found: list[str] = []
    for word, following in zip(words, (*words[1:], ""), strict=True):
        name, _, value = word.partition("=")
        if name in ("--inventory", "--testbed"):
            found += [name, value or following]
    return found


def _first_line(campaign: Campaign, state: str) -> str:
    planned, words = len(campaign.plan.launches), state_words(campaign)
    missing = campaign.missing_launch_ids()
    left = say("status.left", time=clock(_left_s(campaign, missing))) if missing else ""
    return (
        f"{campaign.path.name}  {state}  {planned - len(missing)} of {count_of(planned, 'launch', 'launches')}{left}"
        + (f"; {words}" if words else "")
    )


def _left_s(campaign: Campaign, missing: tuple[str, ...]) -> float:
    lacking = frozenset(missing)
    return sum(launch.wall_ms for launch in campaign.plan.launches if launch.launch_id in lacking) / 1000
