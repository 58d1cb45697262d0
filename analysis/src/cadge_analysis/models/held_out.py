# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted model is worth: its predictions of points that it was not fitted to, beside what was measured there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cadge_analysis import units, words
from cadge_analysis.models.bursts import Burst, Key, fitted_messages
from cadge_analysis.models.loggp import HeldOut, Parameters
from cadge_analysis.stats.compare import numbers_of
from cadge_analysis.stats.intervals import median
from cadge_analysis.stats.load import Case, Cell, Dataset

Beside = tuple[str, float, float]
"""Where, predicted, measured."""


def held_out(model: Parameters, key: Key, points: Sequence[Burst], data: Dataset) -> tuple[HeldOut, ...]:
    """Return how well other numbers of messages are predicted, and other patterns of the same layer."""
    found = []
    fitted = fitted_messages(points)
    for messages in sorted({one.messages for one in points} - {fitted}):
        mine = [one for one in points if one.messages == messages and not one.delay_percent]
        found.append(_judged(f"bursts of {messages}", (_burst(model, one) for one in mine)))
    exchanges: dict[str, list[Beside]] = {}
    for cell in data.cells:
        if _belongs(cell, key) and (beside := _exchange(model, cell)):
            exchanges.setdefault(cell.case.file.title, []).append(beside)
    found += [_judged(title, cells) for title, cells in exchanges.items()]
    return tuple(one for one in found if one is not None)


def _burst(model: Parameters, point: Burst) -> Beside | None:
    measured = [times["burst"] for times in point.times.values() if "burst" in times]
    predicted = model.prtt_ns(point.messages, 0.0, point.size)
    return (units.size(point.size), predicted, median(measured)) if measured and predicted is not None else None


def _belongs(cell: Cell, key: Key) -> bool:
    """Tell whether a point is an exchange over the same layer, with the same choices, and nothing out of the usual."""
    case = cell.case
    if case.file.modelled_as is None or case.file.deep(case.workload) > 1 or not cell.samples:
        return False
    if (case.place, case.wait, cell.series) != (key.place, key.wait, key.series):
        return False
    choices = dict(key.choices)
    return all(_is_alike(case, name, choices) for name in case.file.parameters)


def _is_alike(case: Case, name: str, choices: dict[str, int | str]) -> bool:
    file = case.file
    if name in choices:
        return case.workload[name] == choices[name]
    return name in (*file.moves, file.outstanding) or file.is_usual(name, case.workload)


def _exchange(model: Parameters, cell: Cell) -> Beside | None:
    numbers = numbers_of(cell)
    if numbers is None:
        return None
    predicted = sum(model.one_way_ns(size) for size in cell.case.file.moved_bytes(cell.case.workload))
    return words.workload(cell.case), predicted, numbers.central.value


def _judged(what: str, found: Iterable[Beside | None]) -> HeldOut | None:
    """Return the median and the worst of some errors; None where there is nothing to judge by."""
    errors = [(predicted / measured - 1, where) for where, predicted, measured in filter(None, found) if measured > 0]
    if not errors:
        return None
    worst, where = max(errors, key=lambda one: abs(one[0]))
    return HeldOut(
        what=what,
        points=len(errors),
        median_error=median([abs(error) for error, _ in errors]),
        worst_error=worst,
        worst_at=where,
    )
