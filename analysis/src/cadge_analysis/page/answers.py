# SPDX-License-Identifier: BSD-3-Clause
"""The answer in sentences, made from the data: who is lowest or highest, by how much, and what cannot be told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from cadge_analysis import units, words
from cadge_analysis.page.figures import estimate_text, in_family, main_family
from cadge_analysis.page.viewmodel import Answer, Span
from cadge_analysis.stats.compare import Comparison, Row, Standing, decided, standing
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate
from cadge_analysis.stats.load import Case, Dataset
from cadge_results import PatternFile


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


def _against(found: Standing) -> list[Span]:
    """Return how the others stand to the best: those not to be told apart, the nearest, and the farthest."""
    name = found.best.cell.series.label
    if found.others and all(ratio.coverage < TARGET_COVERAGE for _, ratio in found.others):
        return [Span(" Too few launches to tell others apart from it: six in common are needed.")]
    ties = sorted(row.cell.series.label for row, ratio in found.others if not decided(ratio))
    clear = [(row.cell.series.label, ratio) for row, ratio in found.others if decided(ratio)]
    spans: list[Span] = []
    if ties:
        spans.append(Span(f" {words.listing(ties)} cannot be told apart from {name}."))
    if not clear:
        return spans
    shown = words.shown(found.best.numbers.quantity)
    near, far = clear[0], clear[-1]
    text = f" {near[0]} {shown.verb} {_ratio_text(near[1])} of that {shown.noun}"
    if len(clear) > 1:
        between = len(clear) - 2
        text += f", {far[0]} {_ratio_text(far[1])}"
        text += f"; {units.count_of(between, 'layer')} between them" if between else ""
    spans.append(Span(f"{text}."))
    return spans


def _answer(rows: Sequence[Row], data: Dataset) -> Answer | None:
    found = standing(rows)
    if found is None:
        return None
    best, case = found.best, found.case
    shown = words.shown(best.numbers.quantity)
    value = f"{estimate_text(best.numbers.central, shown.scale)}\u00a0{shown.unit}"
    spans = [Span(best.cell.series.label, strong=True), Span(f" {_best(case.file)}: "), Span(value, strong=True)]
    if best.ratio is not None and best.floor is not None:
        floor = words.floor_name(best.floor, data)
        spans.append(Span(f", {_ratio_text(best.ratio)} its floor ({floor})"))
    if not found.others:
        spans.append(Span(" (the only layer with a number here)"))
    spans.append(Span("."))
    spans.extend(_against(found))
    return Answer(topic=_topic(case), spans=tuple(spans))


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


def answers(comparison: Comparison) -> tuple[Answer, ...]:
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
                answer = _answer(_pick(groups.get((pattern, place, wait), []), screen.at), data)
                if answer is not None:
                    found.append(answer)
    return tuple(found)
