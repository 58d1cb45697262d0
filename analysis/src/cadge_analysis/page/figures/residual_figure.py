# SPDX-License-Identifier: BSD-3-Clause
"""How far a fitted model is off: of each size what was measured of a burst, divided by what the fit says of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import log

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import Figure
from cadge_analysis.draw.chart import Chart, Foreign, Line, Mark
from cadge_analysis.draw.palette import style_of
from cadge_analysis.models.loggp import LayerFit, MissingNumber
from cadge_analysis.page.figures.main_figure import EMPHASISED, FigureSource, figure_of
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.load import Series

say = partial(messages.say, "figures")

FITTED = "fitted"


def residual_figure(rows: Sequence[Row], fits: Sequence[LayerFit], source: FigureSource, *, name: str) -> Figure | None:
    """Draw it for rows that share pattern, place, wait mode and family; None where nothing of them was fitted."""
    file = rows[0].cell.case.file
    found: dict[Series, list[Mark]] = defaultdict(list)
    for row in rows:
        ratio = _ratio(row, fits)
        if ratio is not None:
            found[row.cell.series].append(Mark(size=row.cell.case.size, value=ratio))
    if not found:
        return None
    lines = [
        Line(
            label=series.label,
            look=source.looks[series],
            marks=tuple(sorted(found[series], key=lambda mark: mark.size)),
            style=style_of(series),
        )
        for series in sorted(found)
    ]
    far = sorted(lines, key=lambda line: -max(abs(log(mark.value)) for mark in line.marks))[:EMPHASISED]
    axis = file.parameters[file.axis]
    sizes = sorted({mark.size for line in lines for mark in line.marks})
    case = rows[0].cell.case
    hidden = len(lines) - len(far)
    grey = say("residual_figure.grey_lines", hidden=hidden, n=len(lines))
    return figure_of(
        Chart(
            unit=units.TIMES,
            spoken=say("residual_figure.spoken"),
            title="measured \u00f7 fitted",
            along="size",
            along_title="message size",
            sizes={size: words.value(axis, size) for size in sizes},
            lines=tuple(replace(line, faint=line not in far) for line in lines),
            foreign=(Foreign(label=FITTED, marks=tuple((size, 1.0) for size in sizes)),),
        ),
        source,
        name=name,
        title=say("residual_figure.title", pattern=words.pattern(case), wait=words.WAITS[case.wait]),
        caption=say("residual_figure.caption"),
        grey=grey if hidden else "",
    )


def _ratio(row: Row, fits: Sequence[LayerFit]) -> float | None:
    """Return measured by fitted of one point; None where there is no fit of it."""
    case, spec = row.cell.case, row.cell.case.file.fits
    if spec is None or case.workload.integer(spec.delay):
        return None
    for one in fits:
        alike = all(case.workload[name] == value for name, value in one.choices.items())
        if (
            one.label != row.cell.series.label
            or one.wait != case.wait
            or not alike
            or isinstance(one.model, MissingNumber)
        ):
            continue
        said = one.model.prtt_ns(case.workload.integer(spec.messages), case.size)
        return row.numbers.central.value / said if said > 0 else None
    return None
