# SPDX-License-Identifier: BSD-3-Clause
"""Says of which rows the median stands between two groups: of launches, or of the operations within them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cadge_analysis import units, words
from cadge_analysis.page.viewmodel import Remark
from cadge_analysis.stats import modes
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.intervals import merged
from cadge_analysis.stats.modes import Modes

_NAMED = 3


def remarks(rows: Sequence[Row]) -> Iterator[Remark]:
    """Return what there is to say; the rows that lie furthest apart are named."""
    launches = [(row, found) for row in rows if (found := modes.of_launches(row.numbers.by_round))]
    tried = sum(len(row.numbers.by_round) >= modes.LAUNCHES_LEAST for row in rows)
    if launches:
        yield Remark(
            grave=False,
            title=f"{units.count_of(len(launches), 'row')} of two groups of launches",
            text="Their launches lie near one value or near another, with nothing between, so that the median only "
            f"says which group is larger: {_named(launches, 'launches')}. Of {units.count_of(tried, 'row')} about "
            f"{units.sig3(0.01 * tried)} would look so by chance.",
        )
    operations = [(row, found) for row in rows if (found := _of_operations(row))]
    if operations:
        yield Remark(
            grave=False,
            title=f"{units.count_of(len(operations), 'row')} of two groups of operations",
            text="Within launches single operations take one time or another, and few lie between: "
            f"{_named(operations, 'operations')}.",
        )


def _of_operations(row: Row) -> Modes | None:
    file = row.cell.case.file
    if file.main_quantity.kind != "histogram":
        return None
    return modes.of_operations(merged(sample.quantities[file.main].counts for sample in row.cell.samples))


def _named(found: Sequence[tuple[Row, Modes]], what: str) -> str:
    """Name the rows whose groups lie furthest apart."""
    ordered = sorted(found, key=lambda one: one[1].low / one[1].high)
    said = [_said(row, two, what) for row, two in ordered[:_NAMED]]
    more = len(ordered) - _NAMED
    return "; ".join(said) + (f"; and {more} more" if more > 0 else "")


def _said(row: Row, two: Modes, what: str) -> str:
    case = row.cell.case
    shown = words.shown(case.file.main_quantity)
    total = two.lower + two.upper
    low, high = (
        (f"{two.lower} of {total} {what} near", f"{two.upper} near")
        if what == "launches"
        else (
            f"{units.percent(two.lower / total, 0)} of {what} near",
            f"{units.percent(two.upper / total, 0)} near",
        )
    )
    order = ", one group before the other: something changed on the way" if two.in_order else ""
    return (
        f"{row.cell.series.label}, {words.pattern(case)} of {words.workload(case)} {words.PLACES[case.place]}, "
        f"{words.WAITS[case.wait]} ({low} {shown.text(two.low)}, {high} {shown.text(two.high)}{order})"
    )
