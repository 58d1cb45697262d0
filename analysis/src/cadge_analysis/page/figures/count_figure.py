# SPDX-License-Identifier: BSD-3-Clause
"""The value against a number of processes that is not the pattern's axis: pairs of a stream, nodes of a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cadge_analysis import words
from cadge_analysis.blocks.model import Figure
from cadge_analysis.page.figures.main_figure import FigureSource, caption_of, chart_of, figure_of
from cadge_analysis.page.figures.scale_figures import counts
from cadge_analysis.stats.compare import Row
from cadge_results.formats.point import Value


def count_figures(rows: Sequence[Row], source: FigureSource, *, name: str) -> list[Figure]:
    """Return one for each such number of which rows that share pattern, place and wait mode have several values."""
    if not rows:
        return []
    file = rows[0].cell.case.file
    made = []
    for count in counts(file):
        members = _alike(rows, count) if count != file.axis else []
        if len({row.cell.case.workload[count] for row in members}) > 1:
            case = members[0].cell.case
            chart = chart_of(members, source, along=count)
            title = (
                f"{file.main_quantity.title.capitalize()} against {file.parameters[count].title}, {words.size(case)}"
            )
            made.append(
                figure_of(
                    chart,
                    source,
                    name=f"{name}-{count}",
                    title=f"{title}, {words.WAITS[case.wait]}",
                    caption=caption_of(chart, members),
                )
            )
    return made


def _alike(rows: Sequence[Row], count: str) -> list[Row]:
    """Return the rows that are alike but for a number: of several such groups the one with most values and rows.

    Of equal ones, that whose place on the axis is nearest to what the first screen answers for.
    """
    groups: dict[tuple[tuple[str, Value], ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple((key, value) for key, value in row.cell.case.workload.parameters if key != count)].append(row)
    at = rows[0].cell.case.file.first_screen.at if rows[0].cell.case.file.first_screen else 0

    def preferred(members: list[Row]) -> tuple[bool, int, int, int]:
        case = members[0].cell.case
        values = len({row.cell.case.workload[count] for row in members})
        return case.does_rank, values, len(members), -abs(case.size - at)

    return max(groups.values(), key=preferred)
