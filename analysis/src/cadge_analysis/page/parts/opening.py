# SPDX-License-Identifier: BSD-3-Clause
"""What has to be said before any answer: that nothing was measured and why, or that nothing is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST
from cadge_analysis.stats.load import STATES, Cell, Dataset

say = partial(messages.say, "report")

_DONE = {one: say(f"opening.done.{one}") for one in ("unsound", "failed", "refused", "missing")}


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
    why = say("opening.first_not_measured") if ranking else say("opening.no_point_ranks")
    return say("opening.no_layer_named", why=why)


def _without(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield that nothing has a number, by what became of the points, and the reason that most of them have."""
    if not cells:
        yield say("opening.no_layer_planned")
        return
    tally = Counter(cell.state for cell in cells)
    if set(tally) == {"missing"}:
        yield say("opening.nothing_measured", points=_points(len(cells), "planned point"))
        return
    parts = [f"{units.grouped(tally[state])} {_DONE[state]}" for state in STATES if tally[state]]
    if len(parts) == 1:
        (state,) = tally
        whole = say("opening.one_point") if len(cells) == 1 else f"all {units.grouped(len(cells))} planned points"
        done = _DONE[state].replace("were", "was").replace(" in each", "") if len(cells) == 1 else _DONE[state]
        yield say("opening.no_number", whole=whole, done=done)
    else:
        yield say("opening.no_number_of", points=_points(len(cells), "planned point"), parts=parts)
    reasons: Counter[str] = Counter()
    for trouble in (trouble for cell in cells for trouble in cell.troubles):
        reasons[trouble.reason.rstrip(".")] += trouble.attempts
    if reasons:
        reason, _ = max(reasons.items(), key=lambda one: (one[1], one[0]))
        which = say("opening.frequent_reason", n=len(reasons)) if len(reasons) > 1 else "The reason"
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
            yield say("opening.one_layer_of_several", layers=others + 1, layer=name)
        else:
            yield say("opening.one_layer", layer=name)
    if len({(row.cell.case.pattern, row.cell.case.size) for row in rows}) == 1:
        case = rows[0].cell.case
        file = case.file
        axis = "size" if file.parameters[file.axis].unit == "bytes" else file.parameters[file.axis].title
        planned = len({(cell.case.pattern, cell.case.size) for cell in cells})
        only = "was measured" if planned == 1 else "has numbers"
        yield say("opening.one_value", axis=axis, only=only, size=words.size(case))


def bracket(rows: Sequence[Row], epochs: int = 1) -> str:
    """Return what a bracket [a, b] means, with the coverage that most intervals of the campaign have."""
    launches, coverage = usual(rows)
    if launches == 1:
        return say("opening.one_launch")
    if epochs >= EPOCHS_LEAST:
        return say("opening.intervals_over", epochs=epochs, holds=say("opening.holds_over", epochs=epochs))
    holds = say("opening.holds_beside", epochs=epochs) if epochs > 1 else say("opening.holds")
    return say("opening.intervals", coverage=coverage, launches=launches, holds=holds)


def usual(rows: Sequence[Row]) -> tuple[int, float]:
    """Return how many launches most numbers are of, and how often an interval of so many holds the true median."""
    tally = Counter(row.numbers.central.launches for row in rows)
    launches = max(tally, key=lambda one: (tally[one], one), default=1)
    covers = (row.numbers.central.coverage for row in rows if row.numbers.central.launches == launches)
    return launches, max(covers, default=0.0)
