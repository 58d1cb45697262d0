# SPDX-License-Identifier: BSD-3-Clause
"""How far a campaign is: what its stored plans and decisions say comes next, and how long it took so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cadge_results.formats.record import LaunchRecord
from cadge_results.store.belongs import looks_of
from cadge_results.store.campaigns import Campaign

Step = Literal["measure", "decide", "plan", "done"]
"""Launches are missing; the look that was reached is undecided; what it leaves undecided, or what is done with time
that is left, is unplanned; nothing."""

PAUSE_MOST_S = 60.0
"""More than this after its deadline, what follows a launch was made another time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LooksState:
    """The looks of a campaign, in launches, which of them is being measured, counted from 1, and what comes next."""

    looks: tuple[int, ...]
    look: int
    step: Step
    why: str = ""
    """Why no look follows, where that is so."""

    def said(self) -> str:
        """Say it in few words."""
        launches = self.looks[self.look - 1]
        text = f"look {self.look} of {len(self.looks)}, after {launches} {'launch' if launches == 1 else 'launches'}"
        return f"{text}: {self.why}" if self.why else text


def looks_state(campaign: Campaign) -> LooksState | None:
    """Return how far a campaign is; None where its sweep names no looks. Raises DamagedError."""
    looks = looks_of(campaign.stored_plan.sweep)
    if not looks:
        return None
    later, decisions = campaign.later_looks(), campaign.decisions()
    ended = later[-1].ended if later else None
    look = 1 + sum(part.ended is None for part in later)

    def state(step: Step, why: str = "") -> LooksState:
        return LooksState(looks=looks, look=look, step=step, why=why)

    if campaign.missing_launch_ids():
        return state("measure")
    if len(decisions) < look:
        return state("decide")
    if not decisions[look - 1].goes_on:
        left = decisions[look - 1].counts()[1]
        return state("done", "no more launches would decide the rest" if left else "all is decided")
    if look == len(looks):
        return state("done", "it was the last one")
    return state("done", ended) if ended else state("plan")


def next_step(campaign: Campaign) -> Step:
    """Return what comes next in a campaign, with looks or without. Raises DamagedError."""
    if (looks := looks_state(campaign)) is not None:
        return looks.step
    if campaign.missing_launch_ids():
        return "measure"
    later = campaign.later_looks()
    is_ended = bool(later) and later[-1].ended is not None
    return "done" if is_ended or campaign.plan.rounds >= most_rounds(campaign) else "plan"


def due_epoch(campaign: Campaign) -> int | None:
    """Return the epoch that is to be measured, the first that lacks a launch; None where none does."""
    missing = frozenset(campaign.missing_launch_ids())
    return min((launch.epoch for launch in campaign.plan.launches if launch.launch_id in missing), default=None)


def most_rounds(campaign: Campaign) -> int:
    """Return up to how many rounds a campaign without looks may grow; 0 where none may be added."""
    plan = campaign.stored_plan
    return plan.later[-1].launches if plan.later and not looks_of(plan.sweep) else 0


def added_rounds(campaign: Campaign) -> int:
    """Return how many rounds were added because time was left."""
    return campaign.plan.rounds - campaign.stored_plan.rounds if most_rounds(campaign) else 0


def spent_s(records: Iterable[LaunchRecord], created_utc: str, *, to_end: bool = False) -> float:
    """Return the seconds from a campaign's beginning to that of its last launch, with what Ansible took between.

    While it was interrupted, no time passed. to_end: the last launch counts as well.
    """
    made = sorted((one.result.started_utc, one.launch_id, one) for one in records if one.result is not None)
    total_s, before = 0.0, datetime.fromisoformat(created_utc)
    patience_s = PAUSE_MOST_S
    for started_utc, _, record in made:
        started = datetime.fromisoformat(started_utc)
        gap_s = (started - before).total_seconds()
        total_s += gap_s if 0 < gap_s <= patience_s else 0.0
        before, patience_s = started, record.launch.deadline_ms / 1000 + PAUSE_MOST_S
    last = made[-1][2].result if made and to_end else None
    return total_s + (last.wall_ns / 1e9 if last else 0.0)
