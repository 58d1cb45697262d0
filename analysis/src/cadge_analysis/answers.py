# SPDX-License-Identifier: BSD-3-Clause
"""The answer in sentences, made from the data: who is lowest or highest, by how much, and what cannot be told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cadge_analysis import units, words
from cadge_analysis.compare import Comparison, Row, Standing, decided, standing
from cadge_analysis.figures import estimate_text, main_family
from cadge_analysis.load import Case
from cadge_analysis.stats import Estimate
from cadge_analysis.viewmodel import Sentence, Span

_NAMED = 3


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


def _opening(case: Case) -> str:
    where = {
        "within": "Within one host",
        "between": "Between two hosts",
        "self": "In one process",
    }[case.place]
    return f"{where}, {words.WAITS[case.wait]}, "


def _against(found: Standing) -> list[Span]:
    """Return how the others stand to the best: nearest ones by name, the farthest, those not to be told apart."""
    spans: list[Span] = []
    ties = [row.cell.series.label for row, ratio in found.others if not decided(ratio)]
    clear = [(row, ratio) for row, ratio in found.others if decided(ratio)]
    if ties:
        verb = "cannot be told apart from it"
        spans.append(Span(f" {words.listing(sorted(ties))} {verb}."))
    shown = clear[: _NAMED - 1] + (clear[-1:] if len(clear) >= _NAMED else clear[_NAMED - 1 :])
    if shown:
        parts = [f"{row.cell.series.label} takes {_ratio_text(ratio)}" for row, ratio in shown]
        if found.best.numbers.is_rate:
            parts = [f"{row.cell.series.label} reaches {_ratio_text(ratio)}" for row, ratio in shown]
        left = len(clear) - len(shown)
        more = f"; {left} more lie between" if left else ""
        spans.append(Span(f" Of its {'rate' if found.best.numbers.is_rate else 'time'}, {words.listing(parts)}{more}."))
    return spans


def _sentence(rows: Sequence[Row], *, veth: bool) -> Sentence | None:
    found = standing(rows)
    if found is None:
        return None
    best, case = found.best, found.case
    name = best.cell.series.label
    if best.numbers.is_rate:
        value = f"{estimate_text(best.numbers.central, 1.0)} MB/s"
        text = f"{_opening(case)}a stream of {words.workload(case)} is fastest on "
    else:
        value = f"{estimate_text(best.numbers.central, 1 / units.NS_PER_US)} \u00b5s"
        kind = {"rpc": "an RPC of", "pingpong": "a bare exchange of"}.get(case.pattern, "a")
        measure = "median time" if case.pattern == "onesided" else "median round trip"
        text = f"{_opening(case)}{kind} {words.workload(case)} has its lowest {measure} on "
    spans = [Span(text), Span(name, strong=True), Span(": "), Span(value, strong=True)]
    if best.ratio is not None and best.floor is not None:
        floor = words.floor_name(best.floor.cell.series, veth=veth)
        spans.append(Span(f", {_ratio_text(best.ratio)} of its floor ({floor})"))
    spans.append(Span("."))
    spans.extend(_against(found))
    return tuple(spans)


def answers(comparison: Comparison) -> tuple[Sentence, ...]:
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
    sentences = []
    for wait in words.WAIT_ORDER:
        for pattern, size in wanted:
            if wait == "block" and pattern == "stream":
                continue
            for place in words.PLACE_ORDER:
                sentence = _sentence(_pick(groups.get((pattern, place, wait), []), size), veth=veth)
                if sentence is not None:
                    sentences.append(sentence)
    return tuple(sentences)
