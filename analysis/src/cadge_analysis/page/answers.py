# SPDX-License-Identifier: BSD-3-Clause
"""The answer in sentences, made from the data: who is lowest or highest, by how much, and what cannot be told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cadge_analysis import units, words
from cadge_analysis.page.figures import estimate_text, main_family
from cadge_analysis.page.viewmodel import Answer, Span
from cadge_analysis.stats.compare import Comparison, Row, Standing, decided, standing
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate
from cadge_analysis.stats.load import Case


def _pick(rows: Sequence[Row], size: int) -> list[Row]:
    """Return the rows of the main family at one size, or at the size next to it that was measured."""
    family = main_family(rows)
    if family is None:
        return []
    members = [
        r
        for r in rows
        if (r.cell.case.operation, r.cell.case.target, r.cell.case.depth) == family
        and (r.cell.case.pattern in ("stream", "onesided") or r.cell.case.request_bytes == r.cell.case.reply_bytes)
    ]
    sizes = sorted({r.cell.case.request_bytes for r in members}, key=lambda s: (abs(s - size), s))
    return [r for r in members if sizes and r.cell.case.request_bytes == sizes[0]]


def _ratio_text(ratio: Estimate) -> str:
    text = units.times(ratio.value)
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text} {units.interval(units.sig3(ratio.low), units.sig3(ratio.high))}"


def _topic(case: Case) -> str:
    """Return what a sentence is about: "RPC of 8 B, within one host, polling"."""
    where = f"{words.PLACES[case.place]}, {words.WAITS[case.wait]}"
    return f"{words.PATTERNS[case.pattern]} of {words.workload(case)}, {where}"


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
    measure = "rate" if found.best.numbers.is_rate else "time"
    verb = "reaches" if found.best.numbers.is_rate else "takes"
    near, far = clear[0], clear[-1]
    text = f" {near[0]} {verb} {_ratio_text(near[1])} of that {measure}"
    if len(clear) > 1:
        between = len(clear) - 2
        text += f", {far[0]} {_ratio_text(far[1])}"
        text += f"; {units.count_of(between, 'layer')} between them" if between else ""
    spans.append(Span(f"{text}."))
    return spans


def _answer(rows: Sequence[Row], *, veth: bool) -> Answer | None:
    found = standing(rows)
    if found is None:
        return None
    best, case = found.best, found.case
    if best.numbers.is_rate:
        value = f"{estimate_text(best.numbers.central, 1.0)}\u00a0MB/s"
        text = " is fastest: "
    else:
        value = f"{estimate_text(best.numbers.central, 1 / units.NS_PER_US)}\u00a0\u00b5s"
        text = f" has the lowest median {'time' if case.pattern == 'onesided' else 'round trip'}: "
    spans = [Span(best.cell.series.label, strong=True), Span(text), Span(value, strong=True)]
    if best.ratio is not None and best.floor is not None:
        floor = words.floor_name(best.floor.cell.series, veth=veth)
        spans.append(Span(f", {_ratio_text(best.ratio)} its floor ({floor})"))
    if not found.others:
        spans.append(Span(" (the only layer with a number here)"))
    spans.append(Span("."))
    spans.extend(_against(found))
    return Answer(topic=_topic(case), spans=tuple(spans))


def answers(comparison: Comparison) -> tuple[Answer, ...]:
    """Return the sentences of the first screen: small RPCs and large streams, by place, polling before blocking."""
    veth = words.on_veth(comparison.data)
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in comparison.rows:
        case = row.cell.case
        groups[case.pattern, case.place, case.wait].append(row)
    wanted = [("rpc", 8), ("stream", units.MIB)]
    patterns = {pattern for pattern, _, _ in groups}
    if "rpc" not in patterns:
        wanted = [("pingpong", 8), ("onesided", 8), ("stream", units.MIB)]
    found = []
    for wait in words.WAIT_ORDER:
        for pattern, size in wanted:
            if wait == "block" and pattern == "stream":
                continue
            for place in words.PLACE_ORDER:
                answer = _answer(_pick(groups.get((pattern, place, wait), []), size), veth=veth)
                if answer is not None:
                    found.append(answer)
    return tuple(found)
