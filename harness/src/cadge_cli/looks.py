# SPDX-License-Identifier: BSD-3-Clause
"""Looks: the analysis decides from the stored launches, the planner plans from the stored decision, and both are kept.

The command line alone knows both. What is stored is never decided or planned again. Without looks, the clock says
whether rounds are added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cadge_cli.words import say
from cadge_harness import __version__
from cadge_harness.plan.looks import CampaignTime, more_rounds, next_look
from cadge_harness.words import count_of
from cadge_results import Campaign, CampaignWriter, Damage
from cadge_results.errors import DamageKind
from cadge_results.store.looks import added_rounds, due_epoch, looks_state, most_rounds, next_step, spent_s

if TYPE_CHECKING:
    from pydantic import JsonValue

    from cadge_results import Decision, LaterLook

Notify = Callable[[str], None]


def go_on(writer: CampaignWriter, notify: Notify, run_s: float) -> bool:
    """Decide and plan what is due, and store it; return whether there are launches to make.

    run_s: how long the command runs so far. Raises StoreUnwritableError, StoreFullError, DamagedError.
    """
    campaign = writer.campaign
    while (step := next_step(campaign)) in {"decide", "plan"}:
        state = looks_state(campaign)
        if state is None:
            number = 2 + len(campaign.later_looks())
            part = more_rounds(campaign.plan, number, most_rounds(campaign), took=_took(campaign, run_s))
            writer.add_look(part)
            notify(planned(part))
        elif step == "decide":
            from cadge_analysis.stats.decide import decide  # takes time to import

            decision = decide(campaign, state.look, version=__version__)
            writer.add_decision(decision)
            notify(decided(decision))
        else:
            decision = campaign.decision(state.look)
            if changed := other_records(campaign, decision):
                notify(changed)
            part = next_look(campaign.plan, decision, campaign.decision_sha256(state.look))
            writer.add_look(part)
            notify(planned(part))
    return step == "measure"


def _took(campaign: Campaign, run_s: float) -> CampaignTime:
    """Return what a campaign took so far: by its launches, or by the command that made the last of them."""
    seen_s = spent_s(campaign.launches(), campaign.meta.created_utc, to_end=True)
    planned_ms = sum(block.wall_ms for block in campaign.plan.blocks)
    return CampaignTime(spent_s=max(seen_s, run_s), pace=seen_s * 1000 / planned_ms if planned_ms else 1.0)


def due_words(campaign: Campaign) -> str:
    """Say which of several looks or epochs, or which added rounds, are measured; "" where there are none."""
    if (epochs := campaign.plan.epochs) > 1:
        epoch = due_epoch(campaign)
        return say("looks.epoch", number=epochs if epoch is None else epoch + 1, epochs=epochs)
    if looks := looks_state(campaign):
        return f"look {looks.look} of {len(looks.looks)}"
    missing = set(campaign.missing_launch_ids())
    rounds = sorted({launch.round for launch in campaign.plan.launches if launch.launch_id in missing})
    is_added = bool(rounds) and rounds[0] >= campaign.stored_plan.rounds
    return f"rounds {rounds[0] + 1} to {rounds[-1] + 1}" if is_added else ""


def state_words(campaign: Campaign) -> str:
    """Say how far looks are, or how many rounds were added; "" where there are neither."""
    if looks := looks_state(campaign):
        return looks.said()
    added = added_rounds(campaign)
    return say("looks.added", n=added) if added else ""


def state_data(campaign: Campaign) -> dict[str, JsonValue]:
    """Return the same for programs."""
    looks = looks_state(campaign)
    found: dict[str, JsonValue] = {"rounds_added": added_rounds(campaign)}
    return found | ({"look": looks.look, "looks": [*looks.looks], "look_next": looks.step} if looks else {})


def other_records(campaign: Campaign, decision: Decision) -> str:
    """Say that a decision was made from other records than there are now; "" where it was not."""
    if campaign.records_digest(decision.launches) == (decision.records, decision.records_sha256):
        return ""
    return say("looks.other_records", look=decision.look)


def looks_again(campaign: Campaign) -> tuple[list[str], list[Damage]]:
    """Decide again what a whole campaign has decided; return what to know of it, and decisions that come out otherwise.

    Where launches were made again since, or another version decided, that is no damage.
    """
    notes: list[str] = []
    wrong: list[Damage] = []
    for stored in campaign.decisions():
        from cadge_analysis.stats.decide import RULE, decide  # takes time to import

        if changed := other_records(campaign, stored):
            notes.append(changed)
        elif stored.rule != RULE:
            notes.append(say("looks.other_rule", look=stored.look, rule=stored.rule, today=RULE))
        elif decide(campaign, stored.look, version=stored.tool_version) == stored:
            continue
        elif stored.tool_version == __version__:
            path = campaign.layout.decision(stored.look)
            wrong.append(Damage(path, DamageKind.CHANGED, say("looks.decide_otherwise")))
        else:
            notes.append(
                say("looks.other_version", tool_version=stored.tool_version, look=stored.look, version=__version__)
            )
    return list(dict.fromkeys(notes)), wrong


def decided(decision: Decision) -> str:
    """Say what a look has decided."""
    yes, no = decision.counts()
    text = f"look {decision.look} of {len(decision.looks)}, after {count_of(decision.launches, 'launch', 'launches')}: "
    said = [f"{yes} of {count_of(yes + no, 'comparison')} decided"] if yes + no else []
    if groups := len(decision.leading):
        said.append(f"{count_of(groups, 'leading group')} not separated")
    return text + (", ".join(said) or "all is decided")


def planned(part: LaterLook) -> str:
    """Say what is planned for a look, or for time that is left."""
    if part.decision_sha256 is None and part.ended is not None:
        return say("looks.none_added", ended=part.ended)
    if part.decision_sha256 is None:
        launches = count_of(len(part.launches), "launch", "launches")
        return say("looks.time_left", launches=launches, most=part.launches_after)
    if part.ended is not None:
        return f"no further look: {part.ended}"
    points = len({name for launch in part.launches for name in launch.point_ids})
    return say("looks.planned", look=part.look, points=points, launches=len(part.launches), most=part.launches_after)
