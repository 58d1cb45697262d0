# SPDX-License-Identifier: BSD-3-Clause
"""How the values of cells are written for people, each with its raw value for programs, or why there is none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.stats.beside_native import MARK, tax_text
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, CellVerdict, Ratio
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.costs import PerOperation
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_analysis.stats.launch_facts import LaunchFacts
from cadge_analysis.stats.load import Case, Cell, Dataset
from cadge_analysis.stats.numbers import OPERATIONS_MIN, Numbers
from cadge_results import PatternFile, Workload
from cadge_results.plugins.rules import KneeRule

say = partial(messages.say, "cells")

SIGNS = {Verdict.FASTER: "\u25b2", Verdict.SLOWER: "\u25bc", Verdict.SAME: "=", Verdict.UNKNOWN: "?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One cell of a table.

    `raw` holds the value, and the ends of its interval where there is one, parted by spaces, in the base unit (ns,
    MB/s, ratio, counts), for programs: whole numbers exactly, others to eight digits. An empty cell has a `reason`.
    """

    text: str
    detail: str = ""
    raw: str = ""
    reason: str = ""
    flag: str = ""


def estimate_value(estimate: Estimate | None, *, scale: float, reason: str, flag: str = "", sign: str = "") -> Value:
    """Return a median over launches with its interval; one launch has none and says so."""
    if estimate is None:
        return Value(text=units.MISSING, reason=reason)
    detail = units.ends(estimate.low, estimate.high, scale).lstrip() or "1 launch, no interval"
    if estimate.pairs_disagree:
        detail += f"; {units.PAIRS_DISAGREE}"
    return Value(
        text=f"{units.sig3(estimate.value * scale)}{sign}",
        detail=detail,
        raw=units.raw(estimate.value, estimate.low, estimate.high),
        flag=flag,
    )


def tail_value(tail: Tail | None) -> Value:
    """Return a percentile with the lowest and the highest launch, or why there is none."""
    if tail is None or tail.value is None or tail.low is None or tail.high is None:
        return Value(text=units.MISSING, reason=thin_spaces(tail.reason or "") if tail else "no samples")
    return Value(
        text=units.us(tail.value),
        detail=f"{units.us(tail.low)}\u2026{units.us(tail.high)}",
        raw=units.raw(tail.value, tail.low, tail.high),
    )


def plain_value(value: float | None, *, scale: float = 1.0, reason: str = "not recorded") -> Value:
    """Return a number without an interval."""
    if value is None:
        return Value(text=units.MISSING, reason=reason)
    return Value(text=units.sig3(value * scale), raw=units.raw(value))


def role_value(found: PerOperation | None, role: str, case: Case, *, scale: float = 1.0) -> Value:
    """Return what an operation took at one side."""
    if role not in case.file.roles_of(case.workload):
        return Value(text=units.MISSING, reason="not there")
    return plain_value(found.by_role.get(role) if found else None, scale=scale)


def cost_value(cost: PerOperation | None, reason: str) -> Value:
    """Return what an operation took of all sides together; what each of them took stands under it."""
    if cost is None:
        return Value(text=units.MISSING, reason=reason)
    sides = ", ".join(f"{role} {units.sig3(value)}" for role, value in cost.by_role.items())
    return Value(
        text=units.sig3(cost.all_roles), raw=units.raw(cost.all_roles), detail=sides if len(cost.by_role) > 1 else ""
    )


def count_value(number: int, detail: str = "") -> Value:
    """Return a count."""
    return Value(text=units.grouped(number), raw=str(number), detail=detail)


def lost_value(numbers: Numbers) -> Value:
    """Return how many were lost, and how many came late."""
    late = f"{units.grouped(numbers.late)} came late" if numbers.late else ""
    return count_value(numbers.lost, late)


def _launches_detail(numbers: Numbers) -> str:
    """Return how sure their interval is, how many were disturbed, and of how many a caveat holds."""
    coverage = numbers.central.coverage
    parts = [units.percent(coverage) if coverage else "no interval"]
    parts += [f"{numbers.disturbed} disturbed"] * bool(numbers.disturbed)
    quantities = numbers.cell.case.file.quantities
    parts += [f"{often} {quantities[name].title}" for name, often in numbers.caveats.items()]
    return ", ".join(parts)


def launches_value(numbers: Numbers) -> Value:
    """Return how many launches stand behind a number, and what is known of them."""
    return count_value(numbers.central.launches, _launches_detail(numbers))


def _mark(numbers: Numbers) -> str:
    """Return how the main number is marked: as one to be read with care, or not at all."""
    return "few" if numbers.to_be_read else ""


def central_value(numbers: Numbers) -> Value:
    """Return the main number, with what care it is to be read."""
    value = estimate_value(numbers.central, scale=words.shown(numbers.quantity).scale, reason="", flag=_mark(numbers))
    return replace(value, detail=", ".join((value.detail, *numbers.to_be_read)))


def marked_value(value: Value, cell: Cell, verdicts: CampaignVerdicts) -> Value:
    """Return a number with what is known of it beside a plain program over the same library."""
    tax = verdicts.taxes.get(cell.point_id)
    return value if tax is None else replace(value, detail=f"{value.detail}; {MARK} {tax_text(cell, tax)}")


def samples_value(numbers: Numbers, noun: str) -> Value:
    """Return how many operations were timed; of what is counted, how many were carried out."""
    if numbers.quantity.kind != "histogram":
        return count_value(numbers.operations, noun)
    return count_value(numbers.samples, f"under {OPERATIONS_MIN} in a launch" if numbers.thin else "")


def work_done_by(facts: LaunchFacts | None, case: Case) -> str:
    """Return who carries out the operation: direct, library or cadge."""
    if facts is None:
        return ""
    return facts.semantics.get(case.file.fill(case.file.words.work, case.workload, lambda _, value: str(value)), "")


def share_value(share: float | None, rule: KneeRule | None) -> Value:
    """Return a rate as a share of the generator's limit, marked where it is above what the pattern says."""
    if share is None or rule is None:
        return Value(text=units.MISSING, reason=say("shown.generators_limit_not_measured"))
    marked = share > rule.marked
    detail = f"above {units.percent(rule.marked, 0)}" if marked else ""
    return Value(text=units.sig3(100 * share), detail=detail, raw=units.raw(share), flag="few" if marked else "")


def thin_spaces(reason: str) -> str:
    """Return a reason whose large numbers have thin spaces."""
    return reason.replace(",", units.THIN)


EMULATED_CALL_BYTES = 16
"""What a call that is made of messages carries behind its payload (DRV_RPC_TRAILER_BYTES of the driver's payload.h)."""


def wire_bytes(facts: LaunchFacts, file: PatternFile, workload: Workload) -> int | None:
    """Return the bytes of a short message with what the driver and the layer put around it; None where that is nothing.

    A message on the long path has no headers of its own beside the data.
    """
    size = max(file.moved_bytes(workload), default=0)
    more = _call_bytes(facts.caps, file) + facts.overhead_bytes
    return size + more if more and size <= short_most(facts, file) else None


def short_most(facts: LaunchFacts, file: PatternFile) -> int:
    """Return the largest payload of a pattern that takes the layer's short path."""
    return max(0, facts.short_bytes - _call_bytes(facts.caps, file))


def _call_bytes(caps: Collection[str], file: PatternFile) -> int:
    return EMULATED_CALL_BYTES if file.calls and not file.calls_are_native(caps) else 0


def whose_calls(caps: Collection[str], file: PatternFile) -> str:
    """Tell whose calls the operations are: the layer's own, or made of messages, longer by what they carry."""
    if not file.calls:
        return ""
    return "native" if file.calls_are_native(caps) else say("shown.emulated", more=units.size(EMULATED_CALL_BYTES))


def references_value(row: Row, data: Dataset) -> Value:
    """Return the bare exchanges that are no floors, each with its value."""
    shown = words.shown(row.numbers.quantity)
    texts = [f"{words.program_name(one.program.cell, data)}: {shown.text(one.central.value)}" for one in row.references]
    return Value(text="; ".join(texts) or units.MISSING)


def ratio_text(ratio: Ratio) -> str:
    """Return a ratio with its interval, where it has one: 1.18x [1.10, 1.25]."""
    text = units.times(ratio.value)
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text} {units.ratio_interval(ratio.low, ratio.high)}"


def bound_text(one: CellVerdict) -> str:
    """Return by how much an undecided pair differs at most; "" where nothing bounds it."""
    return say("shown.differ_at_most", bound=one.verdict.bound) if one.verdict.bound is not None else ""


def more_text(one: CellVerdict) -> str:
    """Return what stands against a decision, and not the spread alone; "" where nothing does."""
    if one.verdict.withheld:
        return "withheld"
    if one.ratio is None:
        return say("shown.no_launch_both_gave")
    if one.verdict.epochs:
        return say("shown.epochs_disagree" if one.verdict.epochs_disagree else "shown.more_epochs_alone_would")
    if one.verdict.two_levels:
        return say("shown.more_launches_alone_would")
    return say("shown.at_least_more", more=one.verdict.more) if one.verdict.more else ""


def verdict_value(one: CellVerdict | None, row: Row, verdicts: CampaignVerdicts) -> Value:
    """Return the verdict on a row as a cell of a table."""
    if one is None:
        if why := verdicts.without.get(row.cell.point_id):
            return Value(text=units.MISSING, reason=why)
        if row.cell.series.label in verdicts.baselines:
            return Value(text=units.MISSING, reason="the baseline")
        if not row.cell.case.does_rank:
            return Value(text=units.MISSING, reason=words.RANKS_NOTHING)
        return Value(text=units.MISSING, reason=say("shown.baseline_not_measured_here"))
    parts = [ratio_text(one.ratio)] if one.ratio else []
    if one.says == Verdict.UNKNOWN:
        parts += filter(None, (bound_text(one), more_text(one)))
    if one.epochs:
        parts.append(say("shown.epochs", ratios=[units.times(value) for value in one.epochs]))
    if one.pairs_disagree:
        parts.append(units.PAIRS_DISAGREE)
    if one.verdict.early:
        parts.append(f"early, after {units.count_of(one.verdict.launches, 'launch', 'launches')}")
    if one.verdict.two_levels and not one.verdict.withheld:
        parts.append(say("shown.launches_switch_between_two"))
    ratio = one.ratio
    ends = (ratio.value, ratio.low, ratio.high) if ratio else ()
    return Value(
        text=f"{SIGNS[one.says]} {one.says.word}",
        detail="; ".join(parts),
        raw=units.raw(*ends),
    )


def tail_verdict_value(row: Row, verdicts: CampaignVerdicts) -> Value:
    """Return the verdict on a row's p99 as a cell of a table; how many samples there are where they are too few."""
    name, tails = row.cell.point_id, verdicts.tails
    if tails is not None and name in tails.without:
        return Value(text=units.MISSING, reason=tails.without[name].replace(",", units.THIN))
    return verdict_value(tails.by_point.get(name) if tails is not None else None, row, verdicts)
