# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a section (one pattern at one place): the summary of a few sizes, and every size in full."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import caption, titled_spans, words_cell, words_column
from cadge_analysis.blocks.model import Block, Column, Fold, Key, Span, Table, TableCell, TableLine
from cadge_analysis.cells.build import CellRow
from cadge_analysis.cells.catalogue import catalogue
from cadge_analysis.cells.entry import Entry
from cadge_analysis.cells.shown import Value, estimate_value, tail_value
from cadge_analysis.groups import by_key
from cadge_analysis.page import verdict_words
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.costs import COSTS
from cadge_analysis.stats.load import STATES, Case, Cell, Series
from cadge_results import PatternFile
from cadge_results.formats.result import NEVER_COUNTED
from cadge_results.plugins.parameter import Quantity

say = partial(messages.say, "report")

LAYER = words_column("layer")
SUMMARY_SIZES = (8, 4 * units.KIB, units.MIB)
_ORDER = (
    *("wait", "p50", "verdict", "pooled", "quantities", "p99", "p99_verdict", "p999", "base", "base_p99", "generator"),
    *("apart", "ratio", "above", "rate", "floor", "references"),
    *dict.fromkeys(("cpu", "switches", "system_calls", *(one.key for one in COSTS))),
    *("lost", "calls", "work", "launches", "samples"),
)
"""Columns, or groups of them; what is not named stands behind."""
_OF_LAUNCHES = frozenset(("wait", "p50", "verdict", "p99_verdict", "base", "ratio", "above", "floor", "references"))
"""Columns that each launch's own number is enough for."""


def uncounted(rows: Iterable[Row]) -> Iterator[str]:
    """Yield what was counted nowhere, and why, in sentences: one a reason."""
    every = [row.numbers.costs for row in rows]
    by_reason: dict[str, list[str]] = defaultdict(list)
    for one in COSTS:
        if one.is_seen and not one.is_parted and every and not any(one.key in costs.of for costs in every):
            said = sorted({costs.why[one.key] for costs in every if costs.why.get(one.key)})
            # where some could not and some were not asked to, that they could not says more
            why = next((text for text in said if text.startswith(NEVER_COUNTED)), said[0] if said else "not recorded")
            by_reason[why.removeprefix(f"{NEVER_COUNTED}: ")].append(one.title)
    for why, heads in by_reason.items():
        yield say("tables.not_counted", heads=heads, why=why)


def columns_of(
    file: PatternFile, rows: Sequence[Row], baseline: str | None, *, reported: bool = False
) -> tuple[Column, ...]:
    """Return the columns of a pattern's tables; what was counted in none of its rows has none.

    baseline: what layers are judged against, where they are. reported: each launch's own numbers are all there is.
    """
    seen = [one for one in catalogue(file).values() if one.is_seen(file, rows, baseline)]
    if reported:
        seen = [one for one in seen if one.name in _OF_LAUNCHES]
    heads = [(one, *one.heads(file, baseline or "")) for one in sorted(seen, key=_place)]
    return tuple(Column(key=one.name, head=head, unit=unit, number=one.is_number) for one, head, unit in heads)


def _place(entry: Entry) -> int:
    return next((_ORDER.index(name) for name in (entry.name, entry.group) if name in _ORDER), len(_ORDER))


def parted(file: PatternFile, columns: Sequence[Column]) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Return the columns of the first table and those of the second one.

    The first has what is compared, as few as fit beside each other: what the pattern measures, the tail, verdicts, how
    many launches stand behind, and the distance to the floor. Of a pattern with details it leaves those out, and has
    the processors' time.
    """
    details = {name for name, one in file.quantities.items() if one.detail}
    seen_first = {"wait", "p50", "verdict", "p99", "p99_verdict", "launches", *file.quantities} - details
    if not details:
        seen_first.add("ratio")
    without = {"ratio", "above", "floor", "references"} if details and not file.floor.form else set()

    def is_first(column: Column) -> bool:
        return column.key in seen_first or (bool(details) and column.key.startswith("cpu_"))

    rest = (one for one in columns if not is_first(one) and one.key not in without)
    return tuple(filter(is_first, columns)), tuple(rest)


def _gist(rows: Sequence[Row], verdicts: CampaignVerdicts, *, waits: int) -> str:
    """Return the short answer of one workload: who leads in each wait mode, of so many in its section."""
    if rows and not rows[0].cell.case.does_rank:
        return words.RANKS_NOTHING
    cases = {row.cell.case.wait: row.cell.case for row in rows}
    said = {
        wait: verdict_words.gist(verdicts, rows, case)
        for wait in words.WAIT_ORDER
        if (case := cases.get(wait)) is not None
    }
    return " \u00b7 ".join(f"{words.WAITS[wait]}: {text}" if waits > 1 else text for wait, text in said.items() if text)


def baseline_of(rows: Iterable[Row], verdicts: CampaignVerdicts) -> str | None:
    """Return what some of these rows are judged against; None where none is."""
    return verdicts.baseline if any(row.cell.point_id in verdicts.by_point for row in rows) else None


def case_folds(
    rows: Sequence[CellRow],
    keys: Mapping[Series, Key],
    verdicts: CampaignVerdicts,
    columns: tuple[Sequence[Column], Sequence[Column]],
    *,
    anchor: str,
) -> Iterator[Fold]:
    """Yield a fold a workload: a table with a row for each layer and wait mode that has numbers, and a second one.

    rows: of one pattern's layers, those that have numbers. `columns`: of the first table, and of the second one;
    anchor: of the section. Tables of the same columns share a rule for their heads.
    """
    groups = by_key(rows, lambda row: replace(row.cell.case, wait=""))
    sets: dict[tuple[Column, ...], str] = {}
    waits = len({row.cell.case.wait for row in rows})
    for case, members in sorted(groups.items(), key=lambda item: item[0].sort_key):
        ordered = sorted(members, key=lambda row: (words.WAIT_ORDER.index(row.cell.case.wait), row.cell.series))
        title, gist = words.workload(case), _gist([row.compared for row in members], verdicts, waits=waits)
        table = partial(_case_table, ordered, keys, case=case_key(case))
        first = table(columns[0], label=title, heads=anchor)
        same = _in_common(ordered, columns[1])
        left = tuple(column for column in columns[1] if column not in same)
        label = say("tables.more", title=title)
        more: tuple[Block, ...] = (_same_table(same, label=label, case=case_key(case)),) if same else ()
        if left:
            heads = sets.setdefault(left, f"{anchor}-more{len(sets)}")
            more = (*more, table(left, label=label, heads=heads))
        below = (Fold(summary=(Span(say("tables.rest")),), blocks=more),) if more else ()
        yield Fold(summary=titled_spans(title, gist), blocks=(first, *below), role="case")


def _in_common(rows: Sequence[CellRow], columns: Sequence[Column]) -> dict[Column, dict[str, Value]]:
    entries = catalogue(rows[0].cell.case.file)
    return said_once([(row.cell.case.wait, [entries[one.key].show(row) for one in columns]) for row in rows], columns)


def _case_table(
    rows: Sequence[CellRow],
    keys: Mapping[Series, Key],
    columns: Sequence[Column],
    *,
    label: str,
    case: str,
    heads: str,
) -> Table:
    entries = catalogue(rows[0].cell.case.file)
    lines = (
        TableLine(
            cells=(layer_cell(keys[row.cell.series]), *(entries[column.key].show(row) for column in columns)),
            data=(("point", row.cell.point_id), ("wait", row.cell.case.wait)),
        )
        for row in rows
    )
    return Table(
        label=label,
        role="full",
        columns=(LAYER, *columns),
        lines=tuple(lines),
        heads=heads,
        data=(("case", case),),
    )


def layer_cell(key: Key) -> TableCell:
    """Return the name of a row that is a layer's."""
    return TableCell(key=key, is_name=True)


def case_key(case: Case) -> str:
    """Return a workload and its place as one word for programs: pattern/place, then the parameters in their order."""
    return "/".join(str(part) for part in (case.pattern, case.place, *(case.workload[k] for k in case.file.parameters)))


def summary_sizes(sizes: Iterable[int], *, known: bool = True) -> tuple[int, ...]:
    """Return 8 B, 4 KiB and 1 MiB where they were measured; else, and of no bytes, smallest, middle and largest."""
    every = sorted(set(sizes))
    wanted = [size for size in SUMMARY_SIZES if known and size in every]
    if len(wanted) >= 2 or not every:
        return tuple(wanted)
    return tuple(sorted({every[0], every[len(every) // 2], every[-1]}))


def _bar(row: Row, largest: float) -> str:
    """Return the length of a ratio's bar in percent: a share where more is better, else a logarithm."""
    if row.ratio is None or row.ratio.value <= 0:
        return "0"
    if row.numbers.more_is_better:
        return f"{min(1.0, row.ratio.value) * 100:.0f}"
    if largest <= 1:
        return "2"
    return f"{max(2.0, min(1.0, math.log(row.ratio.value) / math.log(largest)) * 100):.0f}"


def _summary_cells(row: Row | None, cell: Cell | None, largest: float) -> tuple[TableCell, TableCell]:
    """Return the number, or why there is none, and how it stands to the floor.

    The number carries the p90 of all launches and the range of single ones, "0.681|0.620...0.730", or why it
    has none.
    """
    if row is None:
        reason = "not planned"
        if cell is not None:
            reason = cell.state if cell.state != "valid" else "no number"
        return TableCell(spans=(Span(units.MISSING),), small=(("", reason),), role="num none"), TableCell()
    numbers = row.numbers
    scale = words.shown(numbers.quantity).scale
    value = estimate_value(numbers.central, scale=scale, reason="")
    tail = tail_value(numbers.p90)
    p90 = (("p90", f"{tail.text}|{tail.detail or tail.reason}"),) if numbers.p90 else ()
    detail = ", ".join((value.detail, *numbers.to_be_read))
    ratio = Span(units.times(row.ratio.value) if row.ratio else "", role="span")
    return (
        TableCell(spans=(Span(value.text),), small=(("", detail),), data=p90),
        TableCell(spans=(ratio,), bar=_bar(row, largest) if row.ratio else ""),
    )


def summary(
    rows_of: Sequence[Row], cells: Sequence[Cell], keys: Mapping[Series, Key], *, wait: str, several_waits: bool
) -> Table | None:
    """Return the short table of one figure's cells: all are of one pattern, place and family. rows_of: of these cells.

    It has a few sizes and one wait mode, which it names if the section has `several_waits`. Where nothing has a
    ratio, the columns for them are left out.
    """
    here = {(cell.series, cell.case.size): cell for cell in cells if cell.case.wait == wait}
    ids = {cell.point_id for cell in here.values()}
    rows = {(r.cell.series, r.cell.case.size): r for r in rows_of if r.cell.point_id in ids}
    if not rows:
        return None
    file = cells[0].case.file
    axis = file.parameters[file.axis]
    sizes = summary_sizes((size for _, size in rows), known=axis.unit == "bytes")
    largest = max((r.ratio.value for r in rows.values() if r.ratio), default=1.0)
    width = 2 if any(row.ratio for (_, size), row in rows.items() if size in sizes) else 1
    cases = {size: case_key(row.cell.case) for (_, size), row in rows.items()}
    series = sorted({name for name, _ in here})
    shown = [name for name in series if any((name, size) in rows for size in sizes)]
    columns = [_summary_columns(words.value(axis, size), cases[size])[:width] for size in sizes]
    lines = []
    for name in shown:
        pairs = [_summary_cells(rows.get((name, size)), here.get((name, size)), largest)[:width] for size in sizes]
        lines.append(TableLine(cells=(layer_cell(keys[name]), *(cell for pair in pairs for cell in pair))))
    without = _without(
        {name: [cell for size in sizes if (cell := here.get((name, size)))] for name in series if name not in shown}
    )
    below = TableLine(cells=(TableCell(spans=(Span(without, role="span"),), is_rest=True),))
    unit = file.words.unit or _unit(file.main_quantity)
    waits = f"{words.WAITS[wait].capitalize()}: " if several_waits else ""
    title = f"{waits}{unit}{words.ranked_by(cells[0].case)}"
    return Table(
        label=title,
        role="summary",
        columns=(LAYER, *(column for pair in columns for column in pair)),
        lines=tuple(lines),
        caption=caption(title, "" if width > 1 else say("tables.no_floor")),
        fits=True,
        foot=(below,) if without else (),
        data=(("wait", wait),),
    )


def _summary_columns(size: str, case: str) -> tuple[Column, Column]:
    """Return the columns of a size: its numbers, and their ratios to the floor. case: what its full table is called."""
    ratio = Column(head="\u00f7 floor", number=False, role="ratio", joined="floor")
    return Column(head=size, role="num", data=(("case", case),)), ratio


def _without(found: Mapping[Series, Sequence[Cell]]) -> str:
    """Return which layers have no number at any of a table's sizes, by what became of their points there."""
    by_state: dict[str, list[str]] = defaultdict(list)
    for series, cells in found.items():
        states = [state for state in STATES if any(cell.state == state for cell in cells)]
        by_state[" or ".join(states) or "not planned"].append(words.isolated(series.label))
    said = "; ".join(f"{', '.join(labels)} ({state})" for state, labels in by_state.items())
    return f"No number: {said}." if said else ""


def _unit(quantity: Quantity) -> str:
    what = f"p50 of the {quantity.title}" if quantity.kind == "histogram" else quantity.title
    return f"{what}, {words.shown(quantity).unit}"


# ---- what all layers of a workload have in common, said once above its second table ----

_KEPT = ("p999",)
"""Columns that the short tables' choice of a percentile takes its numbers from, row by row."""


def said_once(rows: Sequence[tuple[str, Sequence[Value]]], columns: Sequence[Column]) -> dict[Column, dict[str, Value]]:
    """Return the columns that say the same in every row of a wait mode, and what that is.

    rows: how each waits, and its values of the columns.
    """
    found = ((column, _same(rows, column, at)) for at, column in enumerate(columns))
    return {column: values for column, values in found if values}


def _same(rows: Sequence[tuple[str, Sequence[Value]]], column: Column, at: int) -> dict[str, Value]:
    by_wait: dict[str, list[Value]] = defaultdict(list)
    for wait, cells in rows:
        by_wait[wait].append(cells[at])
    every = by_wait.values()
    if column.key in _KEPT or not every or any(len(some) < 2 or len(set(some)) > 1 or some[0].flag for some in every):
        return {}
    return {wait: several[0] for wait, several in by_wait.items()}


def _same_table(same: Mapping[Column, Mapping[str, Value]], *, label: str, case: str) -> Table:
    """Return what rows have in common as a table: a line for all, or one a wait mode where these differ."""
    waits = next(iter(same.values()))
    are_alike = all(len(set(values.values())) == 1 for values in same.values())
    lines = (
        TableLine(
            cells=(
                words_cell(say("tables.all") if are_alike else words.WAITS[wait]),
                *(one[wait] for one in same.values()),
            ),
            data=() if are_alike else (("wait", wait),),
        )
        for wait in list(waits)[: 1 if are_alike else None]
    )
    return Table(
        label=label, role="plain same", columns=(LAYER, *same), lines=tuple(lines), fits=True, data=(("case", case),)
    )
