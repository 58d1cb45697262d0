# SPDX-License-Identifier: BSD-3-Clause
"""One value of a parameter beside another, layer by layer and size by size, and whether the difference is nothing.

An interval that holds 1 is no proof of that: a wide one always does. It costs nothing where the whole interval lies
below a bound that the study states; where it reaches across both 1 and the bound, nothing can be told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Literal

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, number_columns, plain, row_name, words_cell, words_column
from cadge_analysis.blocks.model import Block, Heading, Region, Table, TableLine
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate
from cadge_analysis.stats.load import Case, Cell
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.offered import unlike
from cadge_analysis.study.distance import figure_facts
from cadge_analysis.study.features import by_parameter
from cadge_analysis.study.published import ContrastOf, FreeOf, Publication
from cadge_results.plugins.parameter import holds

say = partial(messages.say, "study")

Verdict = Literal["free", "costs", "open"]
VERDICTS: tuple[Verdict, ...] = ("free", "costs", "open")
Column = tuple[int, str]
"""Its place among the columns, and its heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One case of one layer: ratio and difference in ns, or why there are none. `withheld`: nothing is concluded."""

    layer: str
    case: Case
    ratio: Estimate | None
    difference: Estimate | None
    why: str
    withheld: str = ""

    def verdict(self, free: FreeOf) -> Verdict | None:
        """Return what the intervals say; None without a ratio, or where that is withheld."""
        if self.ratio is None or self.difference is None or self.withheld:
            return None
        if self.ratio.high is None or self.ratio.low is None or self.ratio.coverage < TARGET_COVERAGE:
            return "open"
        extra_ns = self.difference.high
        if self.ratio.high <= free.times or (extra_ns is not None and extra_ns <= free.ns):
            return "free"
        return "costs" if self.ratio.low > 1 else "open"


def _found(one: Cell, base: Cell, numbers: Mapping[str, Numbers]) -> Found:
    ours, other = numbers.get(one.point_id), numbers.get(base.point_id)
    if ours is None or other is None:
        bare = one if ours is None else base
        return Found(layer=one.series.layer, case=one.case, ratio=None, difference=None, why=reason(bare))
    if why := unlike((base, one)):
        return Found(layer=one.series.layer, case=one.case, ratio=None, difference=None, why=why)
    return Found(
        layer=one.series.layer,
        case=one.case,
        ratio=intervals.ratio(ours.by_round, other.by_round),
        difference=intervals.difference(ours.by_round, other.by_round),
        why="",
    )


def pairs(comparison: Comparison, layers: str, spec: ContrastOf) -> Iterator[Found]:
    """Yield every case of a campaign that a contrast is about."""
    numbers = {row.cell.point_id: row.numbers for row in comparison.rows}
    for base, one in by_parameter(comparison, spec.parameter):
        if (
            fnmatchcase(one.series.layer, layers)
            and spec.pattern in ("", one.case.pattern)
            and holds(spec.given, one.case.workload)
        ):
            why = comparison.why_not(one.case.pattern, one.case.place, one.case.wait)
            yield replace(_found(one, base, numbers), withheld=why)


def _across(case: Case, spec: ContrastOf) -> str:
    return spec.across or case.file.axis


def _column(case: Case, spec: ContrastOf) -> Column:
    """Return the column that a case belongs to: its place among them, and its heading."""
    name = _across(case, spec)
    parameter, value = case.file.parameters[name], case.workload[name]
    place = value if isinstance(value, int) else parameter.values.index(value)
    return place, words.value(parameter, value)


def _title(case: Case, spec: ContrastOf) -> str:
    """Return which operation, where, and what else is not as usual."""
    file = case.file
    apart = {spec.parameter.name, _across(case, spec)}
    said = [
        f"{one.title} {words.value(one, case.workload[name])}"
        for name, one in file.parameters.items()
        if name not in apart and not one.is_required and not file.is_usual(name, case.workload)
    ]
    work = file.fill(file.words.work, case.workload, words.value).capitalize() if file.words.names_work else file.title
    return ", ".join((f"{work} {words.PLACES[case.place]}", *said, words.WAITS[case.wait]))


def _cell(found: Found | None, free: FreeOf) -> Value:
    if found is None or found.ratio is None or found.difference is None:
        return Value(text=units.MISSING, reason="not planned" if found is None else found.why)
    flag = {"free": "same", "costs": "differs"}.get(str(found.verdict(free)), "")
    value = estimate_value(found.ratio, scale=1.0, reason="", sign=units.TIMES, flag=flag)
    extra = ("+" if found.difference.value > 0 else "") + units.us(found.difference.value)
    return Value(text=value.text, detail=f"{value.detail} {extra}\u00a0\u00b5s", raw=value.raw, flag=flag)


def _verdict(by_column: Mapping[Column, Found], spec: ContrastOf) -> str:
    if held := next((found.withheld for found in by_column.values() if found.withheld), ""):
        return f"withheld: {held}"
    columns: dict[Verdict, list[str]] = {}
    for (_, heading), found in sorted(by_column.items()):
        verdict = found.verdict(spec.free)
        if verdict:
            columns.setdefault(verdict, []).append(heading)
    if len(columns) == 1:
        return spec.said[next(iter(columns))]
    return "; ".join(f"{units.listing(found)}: {spec.said[verdict]}" for verdict, found in columns.items())


def _lines(
    by_layer: Mapping[str, Mapping[Column, Found]], columns: Sequence[Column], spec: ContrastOf
) -> Iterator[TableLine]:
    bare: dict[str, list[str]] = defaultdict(list)
    for layer, by_column in sorted(by_layer.items()):
        if any(one.ratio for one in by_column.values()):
            cells = (_cell(by_column.get(column), spec.free) for column in columns)
            yield line_of(row_name(layer), (*cells, words_cell(_verdict(by_column, spec))))
        else:
            bare[next(iter(by_column.values())).why].append(layer)
    for why, layers in bare.items():
        yield line_of(row_name(", ".join(layers)), (), why)


def _tables(comparison: Comparison, layers: str, spec: ContrastOf) -> Iterator[Block]:
    groups: dict[str, dict[str, dict[Column, Found]]] = defaultdict(lambda: defaultdict(dict))
    places: dict[str, int] = {}
    for one in pairs(comparison, layers, spec):
        title = _title(one.case, spec)
        places[title] = words.PLACE_ORDER.index(one.case.place)
        groups[title][one.layer][_column(one.case, spec)] = one
    for title in sorted(groups, key=lambda title: (places[title], title)):
        by_layer = groups[title]
        columns = sorted({column for by_column in by_layer.values() for column in by_column})
        yield Heading(3, title)
        yield Table(
            label=title,
            role="plain contrast",
            columns=(
                words_column("layer"),
                *number_columns(heading for _, heading in columns),
                words_column("verdict", "verdict"),
            ),
            lines=tuple(_lines(by_layer, columns, spec)),
        )


def _criterion(spec: ContrastOf) -> str:
    free, costs, undecided = (f"\u201c{spec.said[name].capitalize()}\u201d" for name in VERDICTS)
    most = units.times(spec.free.times)
    return say(
        "contrast.legend",
        ratio=spec.ratio,
        free=free,
        most=most,
        ns=spec.free.ns,
        costs=costs,
        undecided=undecided,
    )


def contrast(comparison: Comparison, published: Publication, spec: ContrastOf) -> Region | None:
    """Return what a campaign says of a contrast, a table for each place and operation; None where it has none."""
    tables = tuple(_tables(comparison, published.layers, spec))
    if not tables:
        return None
    figures = [published.figures[name] for name in spec.figures]
    blocks = (plain(spec.note), *figure_facts(figures), plain(_criterion(spec)), *tables)
    return Region(id="contrast", title=spec.title, blocks=blocks)
