# SPDX-License-Identifier: BSD-3-Clause
"""One value of a parameter beside another, layer by layer and size by size, and whether the difference is nothing.

An interval that holds 1 is no proof of that: a wide one always does. It costs nothing where the whole interval lies
below a bound that the study states; where it reaches across both 1 and the bound, nothing can be told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from cadge_analysis import units, words
from cadge_analysis.page.tables import estimate_value
from cadge_analysis.page.viewmodel import Fact, Value
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison, Numbers
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate
from cadge_analysis.stats.load import Case, Cell
from cadge_analysis.study.distance import shown
from cadge_analysis.study.features import by_parameter
from cadge_analysis.study.model import Contrast, ContrastRow, ContrastTable
from cadge_analysis.study.published import ContrastOf, FreeOf, Published

Verdict = Literal["free", "costs", "open"]
VERDICTS: tuple[Verdict, ...] = ("free", "costs", "open")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """One case of one layer: ratio and difference in ns, or why there are none."""

    case: Case
    ratio: Estimate | None
    difference: Estimate | None
    why: str

    def verdict(self, free: FreeOf) -> Verdict | None:
        """Return what the intervals say; None without a ratio."""
        if self.ratio is None or self.difference is None:
            return None
        if self.ratio.high is None or self.ratio.low is None or self.ratio.coverage < TARGET_COVERAGE:
            return "open"
        extra_ns = self.difference.high
        if self.ratio.high <= free.times or (extra_ns is not None and extra_ns <= free.ns):
            return "free"
        return "costs" if self.ratio.low > 1 else "open"


def _found(one: Cell, base: Cell, numbers: Mapping[str, Numbers]) -> _Found:
    ours, other = numbers.get(one.point_id), numbers.get(base.point_id)
    if ours is None or other is None:
        bare = one if ours is None else base
        return _Found(case=one.case, ratio=None, difference=None, why=reason(bare))
    return _Found(
        case=one.case,
        ratio=intervals.ratio(ours.by_round, other.by_round),
        difference=intervals.difference(ours.by_round, other.by_round),
        why="",
    )


def _title(case: Case, spec: ContrastOf) -> str:
    """Return which operation, where, and what else is not as usual."""
    file = case.file
    apart = {spec.parameter.name, file.axis}
    said = [
        f"{one.title} {words.value(one, case.workload[name])}"
        for name, one in file.parameters.items()
        if name not in apart and not one.is_required and not file.is_usual(name, case.workload)
    ]
    work = file.fill(file.words.work, case.workload, words.value)
    return ", ".join((f"{work.capitalize()} {words.PLACES[case.place]}", *said, words.WAITS[case.wait]))


def _cell(found: _Found | None, free: FreeOf) -> Value:
    if found is None or found.ratio is None or found.difference is None:
        return Value(text=units.MISSING, reason="not planned" if found is None else found.why)
    flag = {"free": "same", "costs": "differs"}.get(str(found.verdict(free)), "")
    value = estimate_value(found.ratio, scale=1.0, reason="", sign=units.TIMES, flag=flag)
    extra = ("+" if found.difference.value > 0 else "") + units.us(found.difference.value)
    return Value(text=value.text, detail=f"{value.detail} {extra}\u00a0\u00b5s", raw=value.raw, flag=flag)


def _verdict(by_size: Mapping[int, _Found], spec: ContrastOf) -> str:
    sizes: dict[Verdict, list[str]] = {}
    for size, found in sorted(by_size.items()):
        verdict = found.verdict(spec.free)
        if verdict:
            sizes.setdefault(verdict, []).append(units.size(size))
    if len(sizes) == 1:
        return spec.said[next(iter(sizes))]
    return "; ".join(f"{words.listing(found)}: {spec.said[verdict]}" for verdict, found in sizes.items())


def _rows(
    by_layer: Mapping[str, Mapping[int, _Found]], sizes: Sequence[int], spec: ContrastOf
) -> Iterator[ContrastRow]:
    bare: dict[str, list[str]] = defaultdict(list)
    for layer, by_size in sorted(by_layer.items()):
        if any(one.ratio for one in by_size.values()):
            cells = tuple(_cell(by_size.get(size), spec.free) for size in sizes)
            yield ContrastRow(label=layer, cells=cells, verdict=_verdict(by_size, spec), reason="")
        else:
            bare[next(iter(by_size.values())).why].append(layer)
    for why, layers in bare.items():
        yield ContrastRow(label=", ".join(layers), cells=(), verdict="", reason=why)


def _tables(comparison: Comparison, layers: str, spec: ContrastOf) -> Iterator[ContrastTable]:
    numbers = {row.cell.point_id: row.numbers for row in comparison.rows}
    groups: dict[str, dict[str, dict[int, _Found]]] = defaultdict(lambda: defaultdict(dict))
    places: dict[str, int] = {}
    for base, one in by_parameter(comparison, spec.parameter):
        if fnmatchcase(one.series.layer, layers):
            title = _title(one.case, spec)
            places[title] = words.PLACE_ORDER.index(one.case.place)
            groups[title][one.series.layer][one.case.size] = _found(one, base, numbers)
    for title in sorted(groups, key=lambda title: (places[title], title)):
        by_layer = groups[title]
        sizes = sorted({size for by_size in by_layer.values() for size in by_size})
        rows = tuple(_rows(by_layer, sizes, spec))
        yield ContrastTable(title=title, sizes=tuple(map(units.size, sizes)), rows=rows)


def _criterion(spec: ContrastOf) -> str:
    free, costs, undecided = (f"\u201c{spec.said[name].capitalize()}\u201d" for name in VERDICTS)
    most = units.times(spec.free.times)
    return (
        f"A number is {spec.ratio}: the median over launches by round, its interval, and how much longer it took. "
        f"{free}: the whole interval lies at {most} or below, or that of the difference at {spec.free.ns} ns or below. "
        f"{costs}: neither, and the whole interval lies above 1. {undecided}: the interval reaches across 1 and {most}."
    )


def contrast(comparison: Comparison, published: Published, spec: ContrastOf) -> Contrast | None:
    """Return what a campaign says of a contrast, a table for each place and operation; None where it has none."""
    tables = tuple(_tables(comparison, published.layers, spec))
    if not tables:
        return None
    figures = [published.figures[name] for name in spec.figures]
    return Contrast(
        title=spec.title,
        note=spec.note,
        criterion=_criterion(spec),
        published=tuple(Fact(name=one.name, text=f"{shown(one)} ({one.tag}; {one.source})") for one in figures),
        tables=tables,
    )
