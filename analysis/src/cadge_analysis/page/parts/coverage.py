# SPDX-License-Identifier: BSD-3-Clause
"""What was planned and what became of it: sums, a matrix, and the reasons for everything without a number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.layout import FEW
from cadge_analysis.blocks.make import lede, line_of, number_columns, plain, row_name, words_cell, words_column
from cadge_analysis.blocks.model import Block, Column, Fold, Key, Region, Span, Table, TableCell, TableLine
from cadge_analysis.cells.shown import Value
from cadge_analysis.stats.load import STATES, Cell, Dataset, Series
from cadge_results.plugins.catalogue import in_order

say = partial(messages.say, "coverage")

REASONS_OPEN = 40
"""So many reasons, or fewer, stand open."""


def outcomes(data: Dataset) -> Table:
    """Return points and attempts by state; both columns add up to what was planned.

    A point counts as what the best of its attempts became. A point refused in the plan has no attempts.
    """
    points = Counter(cell.state for cell in data.planned)
    attempts: Counter[str] = Counter()
    for cell in data.planned:
        if cell.planned:
            attempts.update(cell.states)
    lines = tuple(
        TableLine(
            cells=(
                row_name(state),
                Value(text=units.grouped(points[state]), raw=str(points[state])),
                Value(text=units.grouped(attempts[state]), raw=str(attempts[state])),
                words_cell(words.STATES[state]),
            ),
            data=(("outcome", state),),
        )
        for state in STATES
    )
    planned = (Value(text=units.grouped(sum(tally[state] for state in STATES))) for tally in (points, attempts))
    return Table(
        label="Outcomes",
        role="plain outcomes",
        columns=(words_column("outcome"), *number_columns(("points", "attempts")), words_column("meaning")),
        lines=lines,
        caption=(Span(say("outcomes")),),
        foot=(line_of(row_name("planned"), (*planned, words_cell(say("sum")))),),
        fits=True,
    )


def _sizes(sizes: set[int]) -> str:
    if len(sizes) == 1:
        return units.size(min(sizes))
    return f"{units.size(min(sizes))} to {units.size(max(sizes))} ({len(sizes)} sizes)"


def _where(cells: list[Cell]) -> str:
    cases = [cell.case for cell in cells]
    places = [words.PLACES_SHORT[p] for p in words.PLACE_ORDER if any(c.place == p for c in cases)]
    waits = [words.WAITS[w] for w in words.WAIT_ORDER if any(c.wait == w for c in cases)]
    files = {case.pattern: case.file for case in cases}
    patterns = [files[name].title for name in in_order(files)]
    sizes = {max(found) for case in cases if (found := case.file.moved_bytes(case.workload))}
    parts = (" and ".join(places), " and ".join(waits), units.listing(patterns), _sizes(sizes) if sizes else "")
    return "; ".join(part for part in parts if part)


def _reasons(data: Dataset) -> Table:
    """Return why points or attempts have no number, one line a reason and layer."""
    groups: dict[tuple[int, str, str, str, str], list[tuple[Cell, int]]] = defaultdict(list)
    for cell in data.planned:
        for trouble in cell.troubles:
            key = (STATES.index(trouble.state), cell.label, trouble.code, trouble.reason, cell.case.place)
            groups[key].append((cell, trouble.attempts if cell.planned else 0))
    rows = []
    for (state, label, code, reason, _), found in sorted(groups.items()):
        attempts = sum(n for _, n in found)
        rows.append(
            TableLine(
                cells=(
                    TableCell(spans=(Span(STATES[state], role=f"tag st-{STATES[state]}"),)),
                    TableCell(spans=(Span(label, role="bdi"),), is_name=True),
                    TableCell(spans=(Span(reason, role="bdi"),), small=(("code", code),) if code else ()),
                    words_cell(_where([cell for cell, _ in found])),
                    Value(text=units.grouped(len(found))),
                    Value(text=units.grouped(attempts) if attempts else units.MISSING),
                )
            )
        )
    return Table(
        label="Reasons",
        role="plain reasons",
        columns=(
            *map(words_column, ("outcome", "layer", "reason", "where")),
            *number_columns(("points affected", "attempts")),
        ),
        lines=tuple(rows),
        caption=(Span("Reasons"),),
        fits=True,
    )


def _matrix_cell(cells: list[Cell]) -> TableCell:
    if not cells:
        return _state_cell("none", units.MISSING, "not planned")
    tally = Counter(cell.state for cell in cells)
    valid, total = tally["valid"], len(cells)
    short = sum(1 for cell in cells if cell.state == "valid" and len(cell.states) > 1)
    worst = next((state for state in STATES[1:] if tally[state]), "valid")
    detail = ", ".join(f"{tally[state]} {state}" for state in STATES if tally[state])
    if short:
        detail += f"; {short} on fewer launches"
    if valid == total:
        detail = f"{short} on fewer launches" if short else ""
        return _state_cell("partly" if short else "valid", f"{total}", detail)
    text = f"{valid}/{total}" if valid else worst
    return _state_cell("partly" if valid else worst, text, detail)


def _state_cell(state: str, text: str, detail: str) -> TableCell:
    small = (("", detail),) if detail else ()
    return TableCell(spans=(Span(text, role="span"),), small=small, role=f"st-{state}")


def _some(number: int) -> str:
    return units.grouped(number) if number else units.MISSING


def coverage(data: Dataset, keys: Mapping[Series, Key]) -> Region:
    """Return layers against pattern, place and wait mode: how many points have a result."""
    groups: dict[tuple[Series, str, str, str], list[Cell]] = defaultdict(list)
    for cell in data.cells:
        if cell.series.kind == "layer":
            groups[cell.series, cell.case.pattern, cell.case.place, cell.case.wait].append(cell)
    columns = [
        (pattern, place, wait)
        for pattern in data.patterns
        for place in words.PLACE_ORDER
        for wait in words.WAIT_ORDER
        if any(key[1:] == (pattern, place, wait) for key in groups)
    ]
    tallies = {
        series: Counter(cell.state for key, found in groups.items() if key[0] == series for cell in found)
        for series in data.layers
    }
    states = tuple(state for state in STATES if any(tally[state] for tally in tallies.values()))
    names = {series: TableCell(key=keys[series], is_name=True) for series in data.layers}
    matrix = Table(
        label="Coverage",
        role="matrix",
        columns=(
            words_column("layer"),
            *(
                Column(head=data.patterns[a].title, below=(words.PLACES_SHORT[b], words.WAITS[c]), number=False)
                for a, b, c in columns
            ),
        ),
        lines=tuple(
            line_of(names[series], (_matrix_cell(groups.get((series, *column), [])) for column in columns))
            for series in data.layers
        ),
        fits=True,
    )
    blocks: tuple[Block, ...] = (matrix,)
    if len(columns) >= FEW:
        sums = Table(
            label="Coverage by layer",
            role="plain covered",
            columns=(words_column("layer"), *number_columns(("planned points", *states))),
            lines=tuple(line_of(names[series], _sums(tallies[series], states)) for series in data.layers),
            caption=(Span(say("by_layer")),),
            fits=True,
        )
        blocks = (sums, Fold(summary=(Span(say("by_place")),), blocks=(matrix,)))
    return Region(id="coverage", title="Coverage", blocks=(lede(say("lede")), *blocks))


def _sums(tally: Counter[str], states: Sequence[str]) -> Iterator[Value]:
    yield Value(text=units.grouped(tally.total()))
    yield from (Value(text=_some(tally[state])) for state in states)


def without(data: Dataset, *, measured: bool) -> Region:
    """Return what became of all that was planned, and why some has no number. `measured`: attempts were planned."""
    reasons = _reasons(data)
    rest: tuple[Block, ...] = ()
    if len(reasons.lines) > REASONS_OPEN:
        text = say("without.reasons", n=len(reasons.lines))
        rest = (Fold(summary=(Span(text),), blocks=(reasons,)),)
    elif reasons.lines:
        rest = (reasons,)
    elif measured:
        rest = (plain(say("complete")),)
    opening = lede(say("without.lede"), say("without.more"))
    return Region(id="without", title=say("without.title"), blocks=(opening, outcomes(data), *rest))
