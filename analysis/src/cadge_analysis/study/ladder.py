# SPDX-License-Identifier: BSD-3-Clause
"""Ways of doing the same, rung by rung: what a layer reaches on each, and the processor time and switches it takes.

Ratios to the first rung are taken round by round. Published ones stand beside only where hosts have the processors
that rungs are about: with fewer, threads that were to run side by side take turns, and a rate tells how well they do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, plain, row_name
from cadge_analysis.blocks.model import Block, Region, TableLine
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.costs import PerOperation
from cadge_analysis.stats.family_verdicts import told_apart
from cadge_analysis.stats.load import Case, Cell, Dataset
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.study.distance import belongs, figure_facts
from cadge_analysis.study.plugin import layer_table, titled
from cadge_analysis.study.published import LadderOf, Publication, RungOf

say = partial(messages.say, "study")

Where = tuple[str, str]
"""Place and wait mode."""
Place = tuple[str, int, int]
"""Whose row it is: layer, number of the rung, value of what has rows of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RungCell:
    """A cell on its rung, the numbers that it has, and those of its layer's first rung in the same column.

    `mark`: whether the two are separated, beside all others of the ladder at their place and in their wait mode.
    """

    cell: Cell
    numbers: Numbers | None
    first: Numbers | None
    mark: str = ""


def _rung_of(case: Case, spec: LadderOf) -> tuple[int, int] | None:
    """Return the number of the rung that a case stands on, and its value of what has rows of its own."""
    if case.pattern != spec.pattern:
        return None
    for number, rung in enumerate(spec.rungs):
        if rung.absent or rung.wait not in ("", case.wait):
            continue
        free = {spec.across, rung.each, *rung.when}
        others = (name for name in case.file.parameters if name not in free)
        if all(case.workload.values.get(name) == value for name, value in rung.when.items()) and all(
            case.file.is_usual(name, case.workload) for name in others
        ):
            return number, case.workload.integer(rung.each) if rung.each else 0
    return None


def _blocks(
    comparison: Comparison, layers: str, spec: LadderOf
) -> Mapping[Where, Mapping[Place, Mapping[int, _RungCell]]]:
    numbers = {row.cell.point_id: row.numbers for row in comparison.rows}
    cells: dict[Where, dict[Place, dict[int, Cell]]] = defaultdict(lambda: defaultdict(dict))
    for cell in comparison.data.cells:
        rung = _rung_of(cell.case, spec) if belongs(cell, layers) else None
        if rung is not None:
            column = cell.case.workload.integer(spec.across)
            cells[cell.case.place, cell.case.wait][cell.series.layer, *rung][column] = cell
    found = {
        block: {
            (layer, number, each): {
                column: _RungCell(
                    cell=cell,
                    numbers=numbers.get(cell.point_id),
                    first=_first(places, layer, column, numbers) if number else None,
                )
                for column, cell in by_column.items()
            }
            for (layer, number, each), by_column in places.items()
        }
        for block, places in cells.items()
    }
    marks = _marks(comparison, found)
    return {
        block: {
            place: {column: replace(one, mark=marks.get(one.cell.point_id, "")) for column, one in by_column.items()}
            for place, by_column in places.items()
        }
        for block, places in found.items()
    }


def _marks(comparison: Comparison, found: Mapping[Where, Mapping[Place, Mapping[int, _RungCell]]]) -> dict[str, str]:
    """Return how points beside the first rung are marked; a family is the ladder at a place, in a wait mode."""
    families: dict[Where, list[tuple[Numbers, Numbers]]] = defaultdict(list)
    for block, places in found.items():
        for one in (one for by_column in places.values() for one in by_column.values()):
            if one.numbers and one.first:
                families[block].append((one.numbers, one.first))
    told = told_apart(comparison.data, families, withheld=bool(comparison.withheld)).values()
    return {name: one.mark for family in told for name, one in family.items()}


def _first(
    places: Mapping[Place, Mapping[int, Cell]], layer: str, column: int, numbers: Mapping[str, Numbers]
) -> Numbers | None:
    """Return the numbers of a layer's first rung in a column, where it has one row."""
    cell = places.get((layer, 0, 0), {}).get(column)
    return numbers.get(cell.point_id) if cell else None


def _missing(found: _RungCell | None) -> Value:
    return Value(text=units.MISSING, reason="not planned" if found is None else reason(found.cell))


def _main(found: _RungCell | None) -> Value:
    if found is None or found.numbers is None:
        return _missing(found)
    scale = words.shown(found.numbers.quantity).scale
    value = estimate_value(found.numbers.central, scale=scale, reason="")
    ratio = intervals.ratio(found.numbers.by_round, found.first.by_round) if found.first else None
    if ratio is None:
        return value
    beside = estimate_value(ratio, scale=1.0, reason="", sign=units.TIMES)
    detail = f"{value.detail}; {beside.text} {beside.detail}"
    return Value(text=value.text, detail=detail, raw=value.raw, flag=found.mark)


def _taken(scale: float, read: Callable[[Numbers], PerOperation | None], found: _RungCell | None) -> Value:
    if found is None or found.numbers is None:
        return _missing(found)
    taken = read(found.numbers)
    if taken is None:
        return Value(text=units.MISSING, reason="not recorded")
    sides = ", ".join(f"{role} {units.sig3(value * scale)}" for role, value in taken.by_role.items())
    return Value(text=units.sig3(taken.all_roles * scale), detail=sides, raw=f"{taken.all_roles:.12g}")


def _measures(case: Case) -> tuple[tuple[str, Callable[[_RungCell | None], Value]], ...]:
    main = case.file.main_quantity
    us = 1 / units.NS_PER_US
    return (
        (f"{main.head or main.title}, {words.shown(main).unit}", _main),
        (
            say("ladder.cpu_time_operation_all"),
            lambda found: _taken(us, lambda numbers: numbers.costs.of.get("cpu"), found),
        ),
        (
            say("ladder.context_switches_operation_all"),
            lambda found: _taken(1.0, lambda numbers: numbers.costs.of.get("switches"), found),
        ),
    )


def _detail(spec: LadderOf, number: int, each: int, published: Mapping[int, float]) -> str:
    name = spec.rungs[number].name.replace("{value}", units.grouped(each))
    return f"{name}; published {units.times(published[number])}" if number in published else name


def _tables(comparison: Comparison, layers: str, spec: LadderOf, published: Mapping[int, float]) -> Iterator[Block]:
    blocks = _blocks(comparison, layers, spec)
    order = sorted(blocks, key=lambda block: (words.PLACE_ORDER.index(block[0]), words.WAIT_ORDER.index(block[1])))
    for place, wait in order:
        rows = blocks[place, wait]
        columns = sorted({column for by_column in rows.values() for column in by_column})
        case = next(iter(next(iter(rows.values())).values())).cell.case
        across = case.file.parameters[spec.across]
        for title, value in _measures(case):
            # once: what is not here has no costs either
            absent = _absent(spec, published) if value is _main else ()
            table = layer_table(
                f"{case.file.title} {words.PLACES[place]}, {words.WAITS[wait]}: {title}",
                tuple(f"{across.title} {words.value(across, column)}" for column in columns),
                tuple(
                    _line(layer, _detail(spec, number, each, published), rows[layer, number, each], columns, value)
                    for layer, number, each in sorted(rows)
                )
                + absent,
            )
            yield from titled(table)


def _absent(spec: LadderOf, published: Mapping[int, float]) -> tuple[TableLine, ...]:
    return tuple(
        line_of(row_name("any layer", _detail(spec, number, 0, published)), (), rung.absent)
        for number, rung in enumerate(spec.rungs)
        if rung.absent
    )


def _line(
    layer: str,
    detail: str,
    found: Mapping[int, _RungCell],
    columns: Sequence[int],
    value: Callable[[_RungCell | None], Value],
) -> TableLine:
    cells = tuple(value(found.get(column)) for column in columns)
    why = {cell.reason for cell in cells}
    reason_of_all = next(iter(why)) if len(why) == 1 else ""
    return line_of(row_name(layer, detail), cells, reason_of_all)


def _processors(data: Dataset) -> int | None:
    """Return how many processors the host with the fewest has; None where nobody counted."""
    counts = []
    for node in data.nodes:
        allowed = node.cores.get("allowed") if isinstance(node.cores, Mapping) else None
        if not isinstance(allowed, list):
            return None
        counts.append(len(allowed))
    return min(counts, default=None)


def _published(rungs: Sequence[RungOf], published: Publication) -> dict[int, float]:
    """Return the published figure of each rung by that of the first, where both are known."""
    first = published.figures[rungs[0].figure].value if rungs[0].figure else 0.0
    return {
        number: published.figures[rung.figure].value / first
        for number, rung in enumerate(rungs)
        if number and rung.figure and first
    }


def ladder(comparison: Comparison, published: Publication, spec: LadderOf) -> Region | None:
    """Return what a campaign says of a ladder, tables for each place and wait mode; None where it has none."""
    cores = _processors(comparison.data)
    enough = cores is not None and cores >= spec.cores
    found = tuple(_tables(comparison, published.layers, spec, _published(spec.rungs, published) if enough else {}))
    if not found:
        return None
    have = "nobody counted them" if cores is None else f"here a host has {cores}"
    beside = (
        say("ladder.each_rung_divided_first", have=have)
        if enough
        else say("ladder.published_ratios_stand_beside", cores=spec.cores, have=have)
    )
    figures = [published.figures[rung.figure] for rung in spec.rungs if rung.figure]
    if comparison.withheld:
        beside += " " + say("ladder.rungs_differ_from_first", withheld=comparison.withheld)
    return Region(
        id="ladder", title=spec.title, blocks=(plain(spec.note), *figure_facts(figures), plain(beside), *found)
    )
