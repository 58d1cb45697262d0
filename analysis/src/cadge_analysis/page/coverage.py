# SPDX-License-Identifier: BSD-3-Clause
"""What was planned and what became of it: sums, a matrix, and the reasons for everything without a number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from cadge_analysis import units, words
from cadge_analysis.blocks.layout import FEW
from cadge_analysis.blocks.model import Key
from cadge_analysis.page.viewmodel import Matrix, MatrixCell, OutcomeRow, TroubleRow
from cadge_analysis.stats.load import STATES, Cell, Dataset, Series
from cadge_results.catalogue import in_order


def outcome_rows(data: Dataset) -> tuple[OutcomeRow, ...]:
    """Return points and attempts by state; both columns add up to what was planned.

    A point counts as what the best of its attempts became. A point refused in the plan has no attempts.
    """
    points = Counter(cell.state for cell in data.planned)
    attempts: Counter[str] = Counter()
    for cell in data.planned:
        if cell.planned:
            attempts.update(cell.states)
    return tuple(
        OutcomeRow(
            state=state,
            meaning=words.STATES[state],
            points=units.grouped(points[state]),
            attempts=units.grouped(attempts[state]),
            raw_points=points[state],
            raw_attempts=attempts[state],
        )
        for state in STATES
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


def trouble_rows(data: Dataset) -> tuple[TroubleRow, ...]:
    """Return why points or attempts have no number, one row a reason and layer."""
    groups: dict[tuple[int, str, str, str, str], list[tuple[Cell, int]]] = defaultdict(list)
    for cell in data.planned:
        for trouble in cell.troubles:
            key = (STATES.index(trouble.state), cell.label, trouble.code, trouble.reason, cell.case.place)
            groups[key].append((cell, trouble.attempts if cell.planned else 0))
    rows = []
    for (state, label, code, reason, _), found in sorted(groups.items()):
        attempts = sum(n for _, n in found)
        rows.append(
            TroubleRow(
                state=STATES[state],
                layer=label,
                code=code,
                where=_where([cell for cell, _ in found]),
                reason=reason,
                points=units.grouped(len(found)),
                attempts=units.grouped(attempts) if attempts else units.MISSING,
            )
        )
    return tuple(rows)


def _matrix_cell(cells: list[Cell]) -> MatrixCell:
    if not cells:
        return MatrixCell(state="none", text=units.MISSING, detail="not planned")
    tally = Counter(cell.state for cell in cells)
    valid, total = tally["valid"], len(cells)
    short = sum(1 for cell in cells if cell.state == "valid" and len(cell.states) > 1)
    worst = next((state for state in STATES[1:] if tally[state]), "valid")
    detail = ", ".join(f"{tally[state]} {state}" for state in STATES if tally[state])
    if short:
        detail += f"; {short} on fewer launches"
    if valid == total:
        detail = f"{short} on fewer launches" if short else ""
        return MatrixCell(state="partly" if short else "valid", text=f"{total}", detail=detail)
    text = f"{valid}/{total}" if valid else worst
    return MatrixCell(state="partly" if valid else worst, text=text, detail=detail)


def _some(number: int) -> str:
    return units.grouped(number) if number else units.MISSING


def matrix(data: Dataset, keys: Mapping[Series, Key]) -> Matrix:
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
    return Matrix(
        states=states,
        sums=tuple(
            (
                keys[series],
                (units.grouped(tallies[series].total()), *(_some(tallies[series][state]) for state in states)),
            )
            for series in data.layers
        )
        if len(columns) >= FEW
        else (),
        columns=tuple((data.patterns[a].title, words.PLACES_SHORT[b], words.WAITS[c]) for a, b, c in columns),
        rows=tuple(
            (keys[series], tuple(_matrix_cell(groups.get((series, *column), [])) for column in columns))
            for series in data.layers
        ),
    )
