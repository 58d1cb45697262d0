# SPDX-License-Identifier: BSD-3-Clause
"""The answer in sentences, made from the data: who is lowest or highest, by how much, and what cannot be told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import Item, Span
from cadge_analysis.page import verdict_words
from cadge_analysis.page.families import answering
from cadge_analysis.page.figures.main_figure import estimate_text
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, LeadingGroup
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.inference import modes
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Case, Dataset
from cadge_results import PatternFile

say = partial(messages.say, "findings")

_Member = TypeVar("_Member")
MEMBERS_MOST = 4
"""So many members of a leading group are named in a sentence; of more, one less."""


def _ratio_text(ratio: Estimate) -> str:
    text = f"{units.times(ratio.value)}{units.ends(ratio.low, ratio.high)}"
    return f"{text} ({units.PAIRS_DISAGREE})" if ratio.pairs_disagree else text


def _topic(case: Case) -> str:
    """Return what a sentence is about, and by which number: "RPC of 8 B, within one host, polling: p50, round trip"."""
    quantity = case.file.main_quantity
    by = f"p50, {quantity.title}" if quantity.kind == "histogram" else quantity.title
    return (
        f"{words.pattern(case)} of {words.workload(case)}, {words.PLACES[case.place]}, {words.WAITS[case.wait]}: {by}"
    )


def leading_group(rows: Sequence[Row], verdicts: CampaignVerdicts) -> LeadingGroup | None:
    """Return who leads in the case of rows; None where nobody has a number."""
    group = next((found for row in rows if (found := verdicts.groups.get(row.cell.case)) is not None), None)
    return group if group is not None and group.members else None


def _is_undecided(group: LeadingGroup) -> bool:
    """Tell whether all layers are in the group: nothing is decided then, however far they lie apart."""
    return len(group.members) == group.ranked > 1 and not group.alike


def _answer(
    rows: Sequence[Row], group: LeadingGroup, data: Dataset, verdicts: CampaignVerdicts, *, said_once: bool
) -> Item:
    """Return who leads in one case: one layer alone, or a group that is not told apart; and how all stand to a base.

    said_once: that nobody leads stands above all answers.
    """
    members = {row.cell.series: row for row in rows}
    leading = [members[series] for series in group.members]
    case = group.case
    shown = words.shown(case.file.main_quantity)
    spans: list[Span] = []
    if group.best is not None or group.ranked == 1:
        (row,) = leading
        value = f"{estimate_text(row.numbers.central, shown.scale)}\u00a0{shown.unit}"
        spans += [
            Span(f"{words.isolated(row.cell.series.label)}{verdict_words.mark(row.cell, verdicts)}", strong=True),
            Span(f" {_best(case.file)}: "),
            Span(value, strong=True),
        ]
        if row.ratio is not None and row.floor is not None:
            spans.append(Span(f", {_ratio_text(row.ratio)} its floor ({words.floor_name(row.floor, data)})"))
        spans.append(Span("." if group.ranked > 1 else " " + say("answers.only_layer")))
    else:
        spans += _group(leading, group, data, verdicts, said_once=said_once)
    spans += [Span(verdict_words.unranked(group)), Span(_two_groups(_named(leading)))]
    spans += [Span(f" {note}") for note in verdict_words.tax_notes((row.cell for row in rows), verdicts)]
    if (held := cached_bytes(case)) is not None:
        spans.append(Span(" " + say("answers.cached", size=units.size(held))))
    return Item(
        topic=_topic(case),
        spans=tuple(span for span in spans if span.text),
        more=verdict_words.beside_baseline(verdicts, rows),
    )


def cached_bytes(case: Case) -> int | None:
    """Return over how many bytes a rate's buffers rotate, so that a cache may hold them; None where it cannot be one.

    A pattern has `spread` where its buffers can rotate over more than the caches hold.
    """
    file, workload = case.file, case.workload
    can_spread = "spread" in file.parameters and file.parameters["spread"].unit == "bytes"
    if file.main_quantity.kind != "rate" or not can_spread or workload.values.get("spread"):
        return None
    return workload.integer(file.axis) * (1 if workload.values.get("buffers") == "same" else file.deep(workload))


def _group(
    leading: Sequence[Row], group: LeadingGroup, data: Dataset, verdicts: CampaignVerdicts, *, said_once: bool
) -> list[Span]:
    """Return the sentence on a leading group: its members with what they measured, and the floor of all of them."""
    named = [_measured(row, verdicts) for row in leading]
    few = _named(named)
    left = len(named) - len(few)
    if group.unlike:
        text = f": {group.unlike}. {verdict_words.give_one_rate(group.case)}"
        return [Span("No layer leads", strong=True), Span(text)]
    if _is_undecided(group):
        spans = [Span("No layer leads", strong=True), Span(f": {verdict_words.none_told_apart(group)}. ")]
        spans = [] if said_once else spans
        best = leading[0].numbers.quantity.better
        if left > 1:
            end = "highest" if best == "low" else "lowest"
            spans.append(Span(f"{'Lowest' if best == 'low' else 'Highest'}: {', '.join(few)}; {end}: {named[-1]}"))
        else:
            spans.append(Span(f"They measured {units.listing(named)}"))
    else:
        listed = ", ".join(few) + f" and {units.grouped(left)} more" if left else units.listing(few)
        spans = [Span(f"Leading group of {len(leading)}", strong=True), Span(f": {listed}; ")]
        spans.append(Span(verdict_words.not_told_apart(group, verdicts.delta)))
    ratios = [row.ratio.value for row in leading if row.ratio is not None]
    floor = leading[0].floor
    if ratios and floor is not None:
        name = words.floor_name(floor, data)
        low, high = units.times(min(ratios)), units.times(max(ratios))
        reach = low if low == high else f"{low} to {high}"
        spans.append(Span(say("answers.floor_ratio", floor=name, reach=reach)))
    return [*spans, Span(".")]


def _named(members: Sequence[_Member]) -> Sequence[_Member]:
    """Return the members of a leading group that a sentence names."""
    return members if len(members) <= MEMBERS_MOST else members[: MEMBERS_MOST - 1]


def _two_groups(rows: Sequence[Row]) -> str:
    """Say of which of the layers that are named the launches lie near one value or near another: the median hides it.

    Empty where there is none.
    """
    found = [(row, two) for row in rows if (two := modes.of_launches(row.numbers.by_round)) is not None]
    if not found:
        return ""
    said = []
    for row, two in found:
        shown = words.shown(row.numbers.quantity)
        near = f"{units.sig3(two.low * shown.scale)} and {units.sig3(two.high * shown.scale)}\u00a0{shown.unit}"
        name = words.isolated(row.cell.series.label)
        said.append(f"{name}, about {near}" if len(rows) > 1 else f"about {near}")
    if len(rows) == 1:
        return " " + say("answers.two_groups", said=said[0])
    what = "the median says" if len(found) == 1 else "their medians say"
    return " " + say("answers.two_groups_each", said="; those of ".join(said), what=what)


def _measured(row: Row, verdicts: CampaignVerdicts) -> str:
    """Return a layer with its number, unit and interval."""
    shown = words.shown(row.numbers.quantity)
    value = f"{estimate_text(row.numbers.central, shown.scale)}\u00a0{shown.unit}"
    return f"{words.isolated(row.cell.series.label)}{verdict_words.mark(row.cell, verdicts)} {value}"


def _best(file: PatternFile) -> str:
    """Return what the best layer does, in the pattern's words."""
    end = "lowest" if file.main_quantity.better == "low" else "highest"
    middle = "median " if file.main_quantity.kind == "histogram" else ""
    return file.words.best or f"has the {end} {middle}{file.main_quantity.title}"


def first_screen(patterns: Mapping[str, PatternFile]) -> list[str]:
    """Return whose answers stand first: those of rank 0, and of the others where none of rank 0 says how low, or high.

    What should be low goes before what should be high.
    """
    firm = {file.main_quantity.better for file in patterns.values() if file.first_screen.rank == 0}
    chosen = [
        name for name, file in patterns.items() if file.first_screen.rank == 0 or file.main_quantity.better not in firm
    ]
    return sorted(chosen, key=lambda name: patterns[name].main_quantity.better == "high")


def answers(comparison: Comparison, verdicts: CampaignVerdicts, *, once: bool = True) -> tuple[str, tuple[Item, ...]]:
    """Return the sentences of the first screen: pattern by pattern, by place, polling before blocking.

    The first says that nothing is decided, where that is so of several answers and all; else it is "". once: so that
    the answers themselves do not; without it each says so.
    """
    found = _asked(comparison, verdicts)
    nobody = nothing_decided([group for _, group in found]) if once else ""
    return nobody, tuple(
        _answer(rows, group, comparison.data, verdicts, said_once=bool(nobody)) for rows, group in found
    )


def nothing_decided(groups: Sequence[LeadingGroup]) -> str:
    """Say once of several questions that none is decided; "" where one is, or why none may be stands elsewhere."""
    if len(groups) < 2 or not all(map(_is_undecided, groups)) or any(group.withheld for group in groups):
        return ""
    least, most = min(group.launches for group in groups), max(group.launches_most for group in groups)
    launches = f"{least} to {most} launches" if least < most else units.count_of(most, "launch", "launches")
    return say("answers.nothing_decided", launches=launches, n=len(groups))


def _asked(comparison: Comparison, verdicts: CampaignVerdicts) -> list[tuple[list[Row], LeadingGroup]]:
    """Return the rows of each question of the first screen, with who leads."""
    found = ((rows, leading_group(rows, verdicts)) for rows in first_questions(comparison))
    return [(rows, group) for rows, group in found if group is not None]


def first_questions(comparison: Comparison) -> Iterator[list[Row]]:
    """Yield the rows of each question of the first screen: pattern by pattern, by place, polling before blocking."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in comparison.rows:
        case = row.cell.case
        groups[case.pattern, case.place, case.wait].append(row)
    measured = {pattern for pattern, _, _ in groups}
    patterns = {name: file for name, file in comparison.data.patterns.items() if name in measured}
    for wait in words.WAIT_ORDER:
        for pattern in first_screen(patterns):
            screen = patterns[pattern].first_screen
            if wait not in screen.waits:
                continue
            for place in words.PLACE_ORDER:
                rows = groups.get((pattern, place, wait), [])
                if (chosen := answering(rows)) is not None:
                    yield [row for row in rows if row.cell.case == chosen]
