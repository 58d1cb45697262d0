# SPDX-License-Identifier: BSD-3-Clause
"""The answer in sentences, made from the data: who is lowest or highest, by how much, and what cannot be told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from cadge_analysis import units, words
from cadge_analysis.page import verdict_words
from cadge_analysis.page.figures import estimate_text, in_family, main_family
from cadge_analysis.page.viewmodel import Answer, Span
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, LeadingGroup
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Case, Dataset
from cadge_results import PatternFile

MEMBERS_MOST = 5
"""So many members of a leading group are named in a sentence."""


def _pick(rows: Sequence[Row], size: int) -> list[Row]:
    """Return the rows of the main family at one size, or at the size next to it that was measured."""
    family = main_family(rows)
    if family is None:
        return []
    members = [r for r in rows if in_family(r.cell.case, family)]
    sizes = sorted({r.cell.case.size for r in members}, key=lambda s: (abs(s - size), s))
    return [r for r in members if sizes and r.cell.case.size == sizes[0]]


def _ratio_text(ratio: Estimate) -> str:
    text = units.times(ratio.value)
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text} {units.interval(units.sig3(ratio.low), units.sig3(ratio.high))}"


def _topic(case: Case) -> str:
    """Return what a sentence is about: "RPC of 8 B, within one host, polling"."""
    where = f"{words.PLACES[case.place]}, {words.WAITS[case.wait]}"
    return f"{words.pattern(case)} of {words.workload(case)}, {where}"


def _answer(rows: Sequence[Row], data: Dataset, verdicts: CampaignVerdicts) -> Answer | None:
    """Return who leads in one case: one layer alone, or a group that is not told apart; and how all stand to a base."""
    group = next((found for row in rows if (found := verdicts.groups.get(row.cell.case)) is not None), None)
    members = {row.cell.series: row for row in rows}
    if group is None or not group.members:
        return None
    leading = [members[series] for series in group.members]
    case = group.case
    shown = words.shown(case.file.main_quantity)
    spans: list[Span] = []
    if group.best is not None or group.ranked == 1:
        (row,) = leading
        value = f"{estimate_text(row.numbers.central, shown.scale)}\u00a0{shown.unit}"
        spans += [
            Span(words.isolated(row.cell.series.label), strong=True),
            Span(f" {_best(case.file)}: "),
            Span(value, strong=True),
        ]
        if row.ratio is not None and row.floor is not None:
            spans.append(Span(f", {_ratio_text(row.ratio)} its floor ({words.floor_name(row.floor, data)})"))
        spans.append(Span("." if group.ranked > 1 else " (the only layer with a number here)."))
    else:
        spans += _group(leading, group, data, verdicts.delta)
    spans.append(Span(verdict_words.unranked(group)))
    return Answer(
        topic=_topic(case),
        spans=tuple(span for span in spans if span.text),
        against=verdict_words.beside_baseline(verdicts, rows),
    )


def _group(leading: Sequence[Row], group: LeadingGroup, data: Dataset, delta: float) -> list[Span]:
    """Return the sentence on a leading group: its members with what they measured, and the floor of all of them."""
    shown = words.shown(leading[0].numbers.quantity)
    named = [f"{words.isolated(row.cell.series.label)} {shown.text(row.numbers.central.value)}" for row in leading]
    listed = (
        words.listing(named) if len(named) <= MEMBERS_MOST else f"{', '.join(named[: MEMBERS_MOST - 1])} and others"
    )
    spans = [Span(f"Leading group of {len(leading)}", strong=True), Span(f": {listed}; ")]
    spans.append(Span(verdict_words.not_told_apart(group, delta)))
    ratios = [row.ratio.value for row in leading if row.ratio is not None]
    floor = leading[0].floor
    if ratios and floor is not None:
        name = words.floor_name(floor, data)
        spans.append(
            Span(f". They are at {units.times(min(ratios))} to {units.times(max(ratios))} their floor ({name})")
        )
    return [*spans, Span(".")]


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


def answers(comparison: Comparison, verdicts: CampaignVerdicts) -> tuple[Answer, ...]:
    """Return the sentences of the first screen: pattern by pattern, by place, polling before blocking."""
    data = comparison.data
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in comparison.rows:
        case = row.cell.case
        groups[case.pattern, case.place, case.wait].append(row)
    measured = {pattern for pattern, _, _ in groups}
    patterns = {name: file for name, file in data.patterns.items() if name in measured}
    found = []
    for wait in words.WAIT_ORDER:
        for pattern in first_screen(patterns):
            screen = patterns[pattern].first_screen
            if wait not in screen.waits:
                continue
            for place in words.PLACE_ORDER:
                answer = _answer(_pick(groups.get((pattern, place, wait), []), screen.at), data, verdicts)
                if answer is not None:
                    found.append(answer)
    return tuple(found)
