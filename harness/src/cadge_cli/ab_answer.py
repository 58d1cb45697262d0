# SPDX-License-Identifier: BSD-3-Clause
"""What a campaign of two sides answers, after `cadge ab` and after `cadge resume`: by what is stored alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cadge_cli.commands.compare import VERDICTS, FailOn, blocks_of, code_of
from cadge_cli.output import Output, edition
from cadge_cli.sides import two_sides
from cadge_cli.words import say
from cadge_harness.errors import NothingSelectedError
from cadge_harness.providers.pair import sides_of
from cadge_results.command import command
from cadge_results.formats.point import AGAIN
from cadge_results.plugins.build import AT, Build, on_variant, without_variant

if TYPE_CHECKING:
    from pydantic import JsonValue

    from cadge_results import Campaign, Plan

SWEEP = "ab"


@dataclass(frozen=True, slots=True, kw_only=True)
class AbAnswer:
    """What a campaign of two sides says: the exit code that it asks for, the comparison, and where to read on."""

    code: int
    data: dict[str, JsonValue]
    text: str
    more: list[str]


def is_of_sides(campaign: Campaign) -> bool:
    """Tell whether `cadge ab` began a campaign."""
    return campaign.meta.sweep == SWEEP


def sides_in(campaign: Campaign) -> tuple[str, str] | None:
    """Return the variants A and B of a campaign that `cadge ab` began and that has launches; None of another one."""
    if not is_of_sides(campaign) or not campaign.launch_ids():
        return None
    return sides_of(campaign.plan)


def check_sides(sweep_name: str, plan: Plan) -> None:
    """Raise NothingSelectedError where `cadge ab` would measure one of two settings alone, with the reason."""
    sides = sides_of(plan) if sweep_name == SWEEP else None
    if sides is None or sides[0].startswith(AT) or sides[0] == sides[1] or _on_both(plan, sides):
        return
    refused = (point for point in plan.points if point.state == "refused")
    why = dict.fromkeys(f"{point.subject.label}: {point.reason}" for point in refused)
    raise NothingSelectedError(say("ab.one_side", why="; ".join(why)))


def ab_answer(
    campaign: Campaign,
    sides: tuple[str, str],
    output: Output,
    results: Path | None,
    *,
    wanted: Sequence[FailOn] = (),
    kind: str = "text",
) -> AbAnswer:
    """Compare both sides. kind: `text` or `markdown`."""
    from cadge_analysis.stats.campaign_verdicts import SAME_WITHIN
    from cadge_analysis.stats.inference.verdict import Verdict
    from cadge_analysis.versus.against import against
    from cadge_analysis.versus.as_data import document

    plan = campaign.plan
    margin = SAME_WITHIN if plan.same_within is None else plan.same_within / 100
    equal = not _on_both(plan, sides)
    one, other = (f"{campaign.campaign_id}:{variant}" for variant in sides)
    names = one, f"{one} {AGAIN}" if equal else other
    found = against(*two_sides(results, *names, lean=True), margin)
    found = replace(found, left=(*(cell for cell in found.left if not _is_control(plan, sides, cell.series)),))
    if equal and sides[0] != sides[1]:  # all that differs is a layer that one side lacks
        lacking = against(*two_sides(results, one, other, lean=True), margin).left
        found = replace(found, left=(*(one for one in lacking if one.reasons),))
    said: list[str] = []
    for label in () if equal else _twins(plan):
        control = f"{campaign.campaign_id}:{label}"
        itself = against(*two_sides(results, control, f"{control} {AGAIN}", lean=True), margin)
        called = itself.count(Verdict.SLOWER) + itself.count(Verdict.FASTER)
        said.append(say("ab.control_said", layer=label, called=called, n=len(itself.changes)))
    again = command("compare", *names, *(() if plan.same_within is None else ("--margin", f"{plan.same_within:g}%")))
    said += ["", f"campaign  {campaign.path}", f"report    {command('report', campaign.campaign_id)}"]
    said.append(f"again     {again}")
    data: dict[str, JsonValue] = {"sides": [*sides], "layers": dict(_states(plan, sides))}
    data |= {"builds": [one.to_object() for one in _builds(plan, sides) if one], "comparison": document(found)}
    # of equal builds no verdict is asked for: what is no difference is none
    asked = [one for one in wanted if not (equal and one.kind in VERDICTS)]
    text = edition(blocks_of(found, everything=True), kind)
    return AbAnswer(code=code_of(found, asked, output), data=data, text=text, more=said)


def _twins(plan: Plan) -> list[str]:
    """Return the layers that were measured twice, by their names for people."""
    twins = (point.subject for point in plan.points if point.subject.twin)
    return sorted({twin.label.removesuffix(f" {AGAIN}") for twin in twins})


def _on_both(plan: Plan, sides: tuple[str, str]) -> bool:
    """Tell whether a layer is measured on A and on B."""
    planned = {point.subject.label for point in plan.points if point.state == "planned"}
    first, second = sides
    return first != second and any(
        on_variant(one, first) in planned and on_variant(one, second) in planned for one in planned
    )


def _is_control(plan: Plan, sides: tuple[str, str], name: str) -> bool:
    """Tell whether a layer is planned on one side alone, as both are equal."""
    planned = {point.subject.label for point in plan.points}
    return len({on_variant(name, side) for side in sides} & planned) < len(set(sides))


def _builds(plan: Plan, sides: tuple[str, str]) -> tuple[Build | None, ...]:
    return tuple(next((build for name, build in plan.providers.items() if name.endswith(side)), None) for side in sides)


def _states(plan: Plan, sides: tuple[str, str]) -> Iterator[tuple[str, JsonValue]]:
    """Yield for each layer whether it changed, is equal byte for byte, or why it is not on both sides."""
    layers = [point for point in plan.points if point.subject.kind == "layer" and not point.subject.twin]
    first, second = _builds(plan, sides)
    for name in dict.fromkeys(without_variant(point.subject.label, sides[0]) for point in layers):
        here = [point for side in sides for point in layers if point.subject.label == on_variant(name, side)]
        absent = dict.fromkeys(point.reason for point in here if point.reason_code == "BUILD_ABSENT")
        both = len({point.subject.label for point in here}) > 1
        yield name, "; ".join(filter(None, absent)) or ("changed" if both else "equal")
    measured = {without_variant(point.subject.layer, sides[0]) for point in layers}
    for name, build_id in first.adapters.items() if first and second and first.build_id == second.build_id else ():
        if name not in measured and second and second.adapters.get(name) == build_id:
            yield name, "equal"
