# SPDX-License-Identifier: BSD-3-Clause
"""How far a campaign with looks is: what its stored decisions and plans say comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cadge_results.belongs import looks_of
from cadge_results.store import Campaign

Step = Literal["measure", "decide", "plan", "done"]
"""Launches are missing; the look that was reached is undecided; what it leaves undecided is unplanned; nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LooksState:
    """The looks of a campaign, in launches, which of them is being measured, counted from 1, and what comes next."""

    looks: tuple[int, ...]
    look: int
    step: Step
    why: str = ""
    """Why no look follows, where that is so."""

    @property
    def is_early(self) -> bool:
        """Whether the campaign ended before its last look."""
        return self.step == "done" and self.look < len(self.looks)

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
