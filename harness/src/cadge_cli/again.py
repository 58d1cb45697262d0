# SPDX-License-Identifier: BSD-3-Clause
"""Launches that are made again: which, why, and what is said of it. Their earlier records stay aside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal, get_args

from cadge_cli.words import say
from cadge_harness.native import due
from cadge_results import Campaign, CampaignWriter
from cadge_results.command import command
from cadge_results.store import aside

Why = Literal["failed", "disturbed"]

REASONS: tuple[Why, ...] = get_args(Why)
_WAS: dict[Why, tuple[str, ...]] = {"failed": ("has failed", "is unsound"), "disturbed": ("was disturbed",)}


def launch_ids(campaign: Campaign, reasons: Collection[Why]) -> dict[aside.Why, tuple[str, ...]]:
    """Return the stored launches that there is reason to make again; none of them twice, and no reason without any."""
    found: dict[aside.Why, tuple[str, ...]] = {}
    if "failed" in reasons:
        found["failed"] = campaign.troubled_launch_ids()
    if "disturbed" in reasons:
        from cadge_analysis.stats.disturbance import disturbed_launch_ids  # takes time to import

        found["disturbed"] = tuple(
            name for name in disturbed_launch_ids(campaign) if name not in found.get("failed", ())
        )
    return {why: names for why, names in found.items() if names}


def of_this_look(campaign: Campaign, reasons: Collection[Why]) -> dict[aside.Why, tuple[str, ...]]:
    """Return the same of the launches that no decision was made from."""
    decided = max((one.launches for one in campaign.decisions()), default=0)
    free = {launch.launch_id for launch in campaign.plan.launches if launch.round >= decided}
    found = {why: tuple(name for name in names if name in free) for why, names in launch_ids(campaign, reasons).items()}
    return {why: names for why, names in found.items() if names}


def alone(campaign: Campaign, *, in_vain: bool = False) -> dict[aside.Why, tuple[str, ...]]:
    """Return the launches that are made again for the tools that have not run after them; in vain: or gave nothing."""
    names = dict.fromkeys(due.alone(campaign) + (due.in_vain(campaign) if in_vain else ()))
    return {"alone": tuple(names)} if names else {}


def _some(why: aside.Why, names: Collection[str]) -> str:
    return say(f"again.have.{why}", n=len(names))


def said(found: Mapping[aside.Why, tuple[str, ...]]) -> str:
    """Say how many launches there is reason to make again."""
    return "; ".join(_some(why, names) for why, names in found.items())


def set_aside(
    writer: CampaignWriter, found: Mapping[aside.Why, tuple[str, ...]], notify: Callable[[str], None]
) -> None:
    """Move their records aside, so that they are missing, and notify of it."""
    for why, names in found.items():
        folder = writer.set_aside(names, why)
        notify(say("again.set_aside", launches=_some(why, names), n=len(names), folder=folder))


def repeats_left(campaign: Campaign) -> int:
    """Return how often the sweep still lets disturbed launches be repeated; 0 as long as an epoch is to come."""
    if campaign.missing_launch_ids():
        return 0
    wanted = campaign.plan.sweep.get("repeat_disturbed", 0)
    return max(0, wanted - campaign.times_aside("disturbed")) if isinstance(wanted, int) else 0


def none_of(reasons: Collection[Why]) -> str:
    """Return what no launch of a campaign is in which there is nothing to do: is missing, has failed or is unsound."""
    *others, last = ("is missing", *(text for why in reasons for text in _WAS[why]))
    return f"{', '.join(others)} or {last}" if others else last


def advice(campaign: Campaign, found: Mapping[aside.Why, tuple[str, ...]]) -> list[str]:
    """Return a line for each reason to make launches again, with the command."""
    lines = []
    for why, names in found.items():
        resume = command("resume", f"--{why}", campaign.campaign_id)
        lines.append(say("again.repeat", launches=_some(why, names), n=len(names), command=resume))
    if names := due.in_vain(campaign):
        resume = command("resume", "--failed", campaign.campaign_id)
        lines.append(say("again.gave_nothing", n=len(names), command=resume))
    return lines
