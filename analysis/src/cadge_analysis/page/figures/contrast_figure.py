# SPDX-License-Identifier: BSD-3-Clause
"""How each choice of a pattern stands to its baseline (calls beside a stream to calls alone), a row a layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import DataTable, Figure
from cadge_analysis.draw import dots
from cadge_analysis.draw.dots import Dot, DotSeries
from cadge_analysis.page.families import in_family, main_family
from cadge_analysis.page.figures.main_figure import FigureSource, between, drawn
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Series
from cadge_results.formats.point import Value

say = partial(messages.say, "figures")

SHAPE_NAMES = ("circle", "square", "diamond", "upward triangle", "downward triangle", "cross")


def contrast_figure(rows: Sequence[Row], source: FigureSource, *, name: str) -> Figure | None:
    """Draw the ratios to the baseline of rows that share pattern, place and wait mode; None where there are none.

    Of the axis the value is taken that the first screen answers for, or the nearest; all other parameters are as in the
    main figure.
    """
    if not rows or rows[0].cell.case.file.baseline is None:
        return None
    file = rows[0].cell.case.file
    parameter = file.baseline.parameter if file.baseline else ""
    found: dict[Series, dict[Value, Estimate]] = defaultdict(dict)
    wanted = [row for row in rows if row.baseline is not None and row.baseline.central is not None]
    at = file.first_screen.at if file.first_screen else 0
    sizes = sorted({row.cell.case.size for row in wanted}, key=lambda size: (abs(size - at), size))
    for value in file.parameters[parameter].values:
        here = [row for row in wanted if row.cell.case.workload[parameter] == value and row.cell.case.size == sizes[0]]
        family = main_family(here)
        for row in here:
            if family is not None and in_family(row.cell.case, family) and row.baseline and row.baseline.central:
                found[row.cell.series][value] = row.baseline.central
    values = [one for one in file.parameters[parameter].values if any(one in some for some in found.values())]
    if not values:
        return None
    sign = -1.0 if file.main_quantity.better == "high" else 1.0
    worst = {series: max(sign * one.value for one in some.values()) for series, some in found.items()}
    ordered = sorted(found, key=lambda series: (worst[series], series))
    case = wanted[0].cell.case
    choice = file.parameters[parameter]
    named = {value: words.value(choice, value) for value in values}
    shapes = units.listing([f"{SHAPE_NAMES[n % len(SHAPE_NAMES)]} {named[one]}" for n, one in enumerate(values)])
    axis = file.parameters[file.axis]
    place = f"{axis.title} {words.value(axis, sizes[0])}"
    title = f"{choice.title.capitalize()} against {words.baseline(file)}: {file.title}, {words.WAITS[case.wait]}"
    better = "above" if file.main_quantity.better == "high" else "below"
    told = {
        series: ", ".join(f"{named[one]} {units.times(some[one].value)}" for one in values if one in some)
        for series, some in found.items()
    }
    drawn_rows = [
        DotSeries(
            name=series.label,
            text=told[series],
            token=source.looks[series].token,
            ink=source.looks[series].ink_token,
            dots=tuple(
                Dot(shape=number, value=one.value, low=one.low, high=one.high)
                for number, value in enumerate(values)
                if (one := found[series].get(value)) is not None and one.value > 0
            ),
        )
        for series in ordered
    ]
    axis_title = say("contrast_figure.axis", quantity=file.main_quantity.title, baseline=words.baseline(file))
    farthest = {series.label: max(one.value for one in found[series].values()) for series in ordered}
    return drawn(
        dots.figure(drawn_rows, title=axis_title),
        name=name,
        title=title,
        description=between(farthest, at=str(place), spoken=say("contrast_figure.spoken")),
        caption=say(
            "contrast_figure.caption",
            quantity=file.main_quantity.title,
            place=place,
            baseline=words.baseline(file),
            better=better,
            shapes=shapes,
        ),
        table=DataTable(
            columns=("layer", *(f"{choice.title} {named[value]}, {units.TIMES}" for value in values)),
            rows=tuple((series.label, *(_cell(found[series].get(value)) for value in values)) for series in ordered),
        ),
    )


def _cell(one: Estimate | None) -> str:
    return units.MISSING if one is None else f"{units.times(one.value)}{units.ends(one.low, one.high)}"
