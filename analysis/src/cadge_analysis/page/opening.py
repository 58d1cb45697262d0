# SPDX-License-Identifier: BSD-3-Clause
"""What has to be said before any answer: that nothing was measured and why, or that nothing is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cadge_analysis import units, words
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.load import STATES, Cell, Dataset

_DONE = {
    "unsound": "were measured, and a check failed in each",
    "failed": "were tried, and failed",
    "refused": "were refused before anything was tried",
    "missing": "were not run",
}


def opening(data: Dataset, rows: Sequence[Row], *, answered: bool) -> tuple[str, ...]:
    """Return the sentences that a campaign begins with which has no numbers, one layer, or one value of its axes.

    answered: what is asked first has an answer; where it has none, a sentence says why.
    """
    cells = [cell for cell in data.cells if cell.series.kind == "layer"]
    if not rows:
        return tuple(_without(cells))
    said = tuple(_alone(data, cells, rows))
    return said if said or answered else (_unanswered(rows),)


def _unanswered(rows: Sequence[Row]) -> str:
    ranking = any(row.cell.case.does_rank for row in rows)
    why = (
        "what this page answers first was not measured here"
        if ranking
        else "no point of this campaign ranks layers (under \u201cMethod\u201d stands which do)"
    )
    return f"No layer is named: {why}. Every number stands below."


def _without(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield that nothing has a number, by what became of the points, and the reason that most of them have."""
    if not cells:
        yield "Nothing is compared: no point of a layer was planned."
        return
    tally = Counter(cell.state for cell in cells)
    if set(tally) == {"missing"}:
        yield f"Nothing was measured: no launch of {_points(len(cells), 'planned point')} was made."
        return
    parts = [f"{units.grouped(tally[state])} {_DONE[state]}" for state in STATES if tally[state]]
    if len(parts) == 1:
        (state,) = tally
        whole = "its one planned point" if len(cells) == 1 else f"all {units.grouped(len(cells))} planned points"
        done = _DONE[state].replace("were", "was").replace(" in each", "") if len(cells) == 1 else _DONE[state]
        yield f"Nothing here has a number: {whole} {done}."
    else:
        yield f"Nothing here has a number: of {_points(len(cells), 'planned point')} {words.listing(parts)}."
    reasons: Counter[str] = Counter()
    for trouble in (trouble for cell in cells for trouble in cell.troubles):
        reasons[trouble.reason.rstrip(".")] += trouble.attempts
    if reasons:
        reason, _ = max(reasons.items(), key=lambda one: (one[1], one[0]))
        which = f"The most frequent of {len(reasons)} reasons" if len(reasons) > 1 else "The reason"
        yield f"{which} is: {words.isolated(reason)}."


def _points(number: int, noun: str) -> str:
    return units.count_of(number, noun)


def _alone(data: Dataset, cells: Sequence[Cell], rows: Sequence[Row]) -> Iterator[str]:
    """Yield what a campaign with numbers does not compare at all."""
    measured = {row.cell.series for row in rows}
    if len(measured) == 1:
        (series,) = measured
        others = len(data.layers) - 1
        name = words.isolated(series.label)
        if others:
            yield f"Nothing is compared: of {units.count_of(others + 1, 'layer')} only {name} has numbers."
        else:
            yield f"Nothing is compared: {name} is the only layer of this campaign."
    if len({(row.cell.case.pattern, row.cell.case.size) for row in rows}) == 1:
        case = rows[0].cell.case
        file = case.file
        axis = "size" if file.parameters[file.axis].unit == "bytes" else file.parameters[file.axis].title
        planned = len({(cell.case.pattern, cell.case.size) for cell in cells})
        only = "was measured" if planned == 1 else "has numbers"
        yield f"One {axis} alone {only}, {words.size(case)}: nothing here says how results change with it."


def bracket(rows: Sequence[Row]) -> str:
    """Return what a bracket [a, b] means, with the coverage that most intervals of the campaign have."""
    launches, coverage = usual(rows)
    if launches == 1:
        return "One launch each: no value has an interval."
    return (
        f"[a,\u00a0b]: the true median over launches lies between a and b in {units.percent(coverage)} of such cases "
        f"({launches} launches, nothing assumed of their distribution). Beside a verdict the interval is wider: it "
        "stands up to all comparisons of its family."
    )


def usual(rows: Sequence[Row]) -> tuple[int, float]:
    """Return how many launches most numbers are of, and how often an interval of so many holds the true median."""
    tally = Counter(row.numbers.central.launches for row in rows)
    launches = max(tally, key=lambda one: (tally[one], one), default=1)
    covers = (row.numbers.central.coverage for row in rows if row.numbers.central.launches == launches)
    return launches, max(covers, default=0.0)
