# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a point beside a plain program over the same library: a tax that its rank has to be marked with.

It stands in the layer's file (`beside_native`), and in the plan of each campaign that was made with it. Points with
shims or settings are something else, of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from cadge_analysis import messages
from cadge_analysis.stats.load import Cell
from cadge_results import Plan
from cadge_results.plugins.layerfile import BesideNative

say = partial(messages.say, "stats")

MARK = "\u2020"


def tax_of(cell: Cell, plan: Plan) -> BesideNative | None:
    """Return what is known of a cell; None where that is nothing."""
    series, case = cell.series, cell.case
    if series.kind != "layer" or series.shims or series.settings:
        return None
    moved, place = case.file.moved_bytes(case.workload), case.place
    known = plan.beside_native.get(series.layer, ())
    return next((one for one in known if one.matches(case.workload, place, moved)), None)


def taxed(cells: Iterable[Cell], plan: Plan) -> dict[str, BesideNative]:
    """Return what is known of those of some cells of which anything is, by point."""
    return {cell.point_id: one for cell in cells if (one := tax_of(cell, plan)) is not None}


def tax_text(cell: Cell, one: BesideNative) -> str:
    """Return it in words: "a plain program over Open MPI reaches 1.4 to 1.75 times this rate"."""
    ends = sorted(1 / end for end in one.ratio)
    low, high = (f"{end:.2f}".rstrip("0").rstrip(".") for end in ends)
    times = f"{low} to {high}" if low != high else low
    if cell.case.file.main_quantity.kind == "histogram":
        return say("beside_native.plain_time", ratio=times)
    return say("beside_native.plain_rate", ratio=times)


def tax_note(cell: Cell, one: BesideNative) -> str:
    """Return it as a sentence, with what measures it on the reader's machine, and where its cause stands."""
    return say(
        "beside_native.note",
        mark=MARK,
        series=cell.series.label,
        tax=tax_text(cell, one),
        measured=one.measured,
        command=one.command,
        layer=cell.series.layer,
    )
