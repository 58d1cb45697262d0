# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted model is worth: its predictions of points that it was not fitted to, beside what was measured there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cadge_analysis import units, words
from cadge_analysis.models.bursts import Burst, FitKey, fitted_messages
from cadge_analysis.models.loggp import HeldOut, MissingNumber, Parameters
from cadge_analysis.models.message import message
from cadge_analysis.models.traffic import Traffic, closed_form_ns
from cadge_analysis.stats.intervals import median
from cadge_analysis.stats.load import Case, Cell, Dataset
from cadge_analysis.stats.numbers import Numbers
from cadge_results import Workload
from cadge_results.plugins.parameter import holds
from cadge_results.plugins.rules import OperationModel

Beside = tuple[str, float, float]
"""Where, predicted, measured."""


def held_out(
    model: Parameters, key: FitKey, points: Sequence[Burst], data: Dataset, numbers: Mapping[str, Numbers]
) -> tuple[HeldOut, ...]:
    """Return how well other numbers of messages are predicted, and other patterns of the same layer."""
    found = []
    fitted = fitted_messages(points)
    for messages in sorted({one.messages for one in points} - {fitted}):
        mine = [one for one in points if one.messages == messages and not one.delay_percent]
        found.append(judged(f"bursts of {messages}", (_burst(model, one) for one in mine)))
    exchanges: dict[str, list[Beside]] = {}
    for cell in data.cells:
        modelled = _modelled(cell, key)
        if modelled is not None and (beside := _exchange(model, modelled, numbers[cell.point_id])):
            what = ", ".join((cell.case.file.title, *map(str, modelled.when.values())))
            exchanges.setdefault(what, []).append(beside)
    found += [judged(title, cells) for title, cells in exchanges.items()]
    return tuple(one for one in found if one is not None)


def _burst(model: Parameters, point: Burst) -> Beside | None:
    measured = [times["burst"] for times in point.times.values() if "burst" in times]
    return (units.size(point.size), model.prtt_ns(point.messages, point.size), median(measured)) if measured else None


def _modelled(cell: Cell, key: FitKey) -> OperationModel | None:
    """Return what a point is to the model, where it is of the same layer, with the same choices, and all is usual."""
    case, choices = cell.case, dict(key.choices)
    if not cell.samples or (case.place, case.wait, cell.series) != (key.place, key.wait, key.series):
        return None
    if case.file.deep(case.workload) > 1:
        return None
    modelled = next((one for one in case.file.modelled_as if holds(one.when, case.workload)), None)
    if modelled is None or not all(_is_alike(case, name, modelled, choices) for name in case.file.parameters):
        return None
    return modelled


def _is_alike(case: Case, name: str, modelled: OperationModel, choices: dict[str, int | str]) -> bool:
    file = case.file
    if name in choices:
        return case.workload[name] == choices[name]
    return name in (*modelled.parameters, file.outstanding) or file.is_usual(name, case.workload)


def predict_ns(model: Parameters, modelled: OperationModel, workload: Workload) -> float:
    """Return how long an operation takes: messages one after the other, and what it has to wait for."""
    if modelled.all_to_all:
        one = message(model, workload.integer(modelled.messages[0]))
        endpoints = workload.integer(modelled.all_to_all)
        return closed_form_ns(Traffic.ALLTOALL, endpoints, one, [one.latency_ns])
    sizes = [workload.integer(name) for name in modelled.messages]
    work_ns = workload.integer(modelled.works) if modelled.works else 0
    alone_ns = sum(model.one_way_ns(size) for size in sizes) + work_ns
    if modelled.behind:
        bulk = model.gap_ns(workload.integer(modelled.behind.bytes))
        return alone_ns + workload.integer(modelled.behind.messages) * bulk
    if modelled.clients:
        # of a closed loop: where the server is never idle, a client waits for its answer to all the others
        return max(alone_ns, workload.integer(modelled.clients) * (_busy_ns(model, sizes) + work_ns))
    return alone_ns


def _busy_ns(model: Parameters, sizes: Sequence[int]) -> float:
    """Return what a call takes of a server: both messages' overheads, or longer, if its interface takes longer."""
    piece = [model.piece(size) for size in sizes]
    takes, sends = piece[0].receive, piece[-1].send
    own_ns = 0.0 if isinstance(takes, MissingNumber) else takes.at(sizes[0])
    own_ns += 0.0 if isinstance(sends, MissingNumber) else sends.at(sizes[-1])
    return max(own_ns, *(model.gap_ns(size) for size in sizes))


def _exchange(model: Parameters, modelled: OperationModel, numbers: Numbers) -> Beside | None:
    cell, workload = numbers.cell, numbers.cell.case.workload
    largest = max(workload.integer(name) for name in modelled.sizes)
    if largest > model.pieces[-1].to_bytes:
        return None
    predicted = predict_ns(model, modelled, workload)
    return words.workload(cell.case), predicted, numbers.central.value


def judged(what: str, found: Iterable[Beside | None]) -> HeldOut | None:
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
