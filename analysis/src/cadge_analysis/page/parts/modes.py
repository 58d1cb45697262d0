# SPDX-License-Identifier: BSD-3-Clause
"""Says of which rows the median stands between two groups: of launches, or of the operations within them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import Remark
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.inference import modes
from cadge_analysis.stats.inference.modes import Modes
from cadge_analysis.stats.load import Dataset

say = partial(messages.say, "remarks")

_NAMED = 3
_OFTEN_SHARE = 0.1
"""Of more rows it is a warning that launches are of two groups."""
_PROBE_LABELS = {"line_ns": "a bounced cache line", "copy_ns": "a copy", "clock_ns": "reading the clock"}

Found = tuple[Row, Modes, str]  # and what more there is to say of it


def remarks(data: Dataset, rows: Sequence[Row]) -> Iterator[Remark]:
    """Return what there is to say; the rows that lie furthest apart are named."""
    launches = [
        (row, two, _order(two) + _probe_sentence(row, two, data))
        for row in rows
        if (two := modes.of_launches(row.numbers.by_round))
    ]
    tried = sum(len(row.numbers.by_round) >= modes.LAUNCHES_LEAST for row in rows)
    if launches:
        yield Remark(
            serious=len(launches) > _OFTEN_SHARE * len(rows),
            title=say("modes.launches_title", n=len(launches)),
            text=say("modes.launches", launches=_named(launches, "launches"), tried=tried, by_chance=0.01 * tried),
            size=f"{units.part(len(launches) / len(rows))} of numbers",
            share=len(launches) / len(rows),
        )
    operations = [(row, two, "") for row in rows if (two := _within(row))]
    if operations:
        yield Remark(
            serious=False,
            title=say("modes.operations_title", n=len(operations)),
            text=say("modes.operations", operations=_named(operations, "operations")),
            size=f"{units.part(len(operations) / len(rows))} of numbers",
            share=len(operations) / len(rows),
        )


def _within(row: Row) -> Modes | None:
    file = row.cell.case.file
    if file.main_quantity.kind != "histogram":
        return None
    return modes.within_launches([sample.quantities[file.main].counts for sample in row.cell.samples])


def _order(two: Modes) -> str:
    return say("modes.in_order") if two.in_order else ""


def _probe_sentence(row: Row, two: Modes, data: Dataset) -> str:
    """Say what of the machine itself was different as well."""
    beside = [
        (row.numbers.by_round[sample.round], data.around(sample.launch_id, row.cell.point_id))
        for sample in row.cell.samples
    ]
    told = [
        f"{_PROBE_LABELS[one.probe]} took {units.sig3(one.low_ns)} and {units.sig3(one.high_ns)} ns"
        for one in modes.separating_probes(two, beside)
    ]
    return say("modes.machine", what=told) if told else ""


def _named(found: Sequence[Found], what: str) -> str:
    """Name the rows whose groups lie furthest apart."""
    ordered = sorted(found, key=lambda one: one[1].low / one[1].high)
    said = [_row_sentence(row, two, what, more) for row, two, more in ordered[:_NAMED]]
    rest = len(ordered) - _NAMED
    return "; ".join(said) + (f"; and {rest} more" if rest > 0 else "")


def _row_sentence(row: Row, two: Modes, what: str, more: str) -> str:
    case = row.cell.case
    shown = words.shown(case.file.main_quantity)
    total = two.lower + two.upper
    low, high = (
        (f"{two.lower} of {total} {what} near", f"{two.upper} near")
        if what == "launches"
        else (f"{units.percent(two.lower / total, 0)} of {what} near", f"{units.percent(two.upper / total, 0)} near")
    )
    return (
        f"{words.isolated(row.cell.series.label)}, {words.pattern(case)} of {words.workload(case)} "
        f"{words.PLACES[case.place]}, "
        f"{words.WAITS[case.wait]} ({low} {shown.text(two.low)}, {high} {shown.text(two.high)}{more})"
    )
