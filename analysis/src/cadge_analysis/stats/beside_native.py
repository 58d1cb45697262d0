# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a point beside a direct program over the same library: a tax that its rank has to be marked with.

Where the campaign measured such a program beside the layer, that decides. Else it is what the layer's file knows
(`beside_native`), which stands in the plan. Of points with shims or settings nothing is known.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages
from cadge_analysis.stats.compare import floor_key
from cadge_analysis.stats.load import Case, Cell, Dataset
from cadge_analysis.stats.natives import NativePair
from cadge_results import Plan
from cadge_results.plugins.layerfile import BesideNative

say = partial(messages.say, "stats")

MARK = "\u2020"


Kind = tuple[str, str, str, str, int]
"""Layer, place, wait mode, what is exchanged, and how many bytes."""


@dataclass(frozen=True, slots=True)
class DirectPrograms:
    """What a campaign measured beside native tools, by what is exchanged: such programs leave data untouched."""

    pairs: Mapping[Kind, tuple[NativePair, ...]]
    plan: Plan

    @classmethod
    def of(cls, data: Dataset) -> DirectPrograms:
        """Return those of a campaign."""
        cells = {cell.point_id: cell for cell in data.planned} if data.natives else {}
        found: dict[Kind, list[NativePair]] = defaultdict(list)
        for pair in data.natives.pairs if data.natives else ():
            if pair.theirs is not None and (cell := cells.get(pair.cell.point_id)) is not None:
                found[_kind(cell, data.plan)].append(pair)
        return cls({kind: tuple(pairs) for kind, pairs in found.items()}, data.plan)

    def beside(self, cell: Cell) -> NativePair | None:
        """Return what was measured beside a point: of several programs the best, those of the point itself first."""
        series = cell.series
        if series.kind != "layer" or series.shims or series.settings or not self.pairs:
            return None
        pairs = self.pairs.get(_kind(cell, self.plan), ())
        own = [pair for pair in pairs if pair.cell.point_id == cell.point_id]
        return min(own or pairs, key=_by_best, default=None)


def _kind(cell: Cell, plan: Plan) -> Kind:
    case = cell.case
    return (
        cell.series.layer,
        case.place,
        case.wait,
        _form(case, plan),
        max(case.file.moved_bytes(case.workload), default=0),
    )


def _form(case: Case, plan: Plan) -> str:
    """Return what a case exchanges: patterns that have the same floor do alike, all others are like themselves."""
    key = floor_key(case, plan)
    return case.pattern if isinstance(key, str) else f"{key[2]} {case.file.deep(case.workload)}"


def _by_best(pair: NativePair) -> float:
    theirs = pair.theirs or 0.0
    return -theirs if pair.cell.statistic == "rate" else theirs


def _measured_tax(pair: NativePair) -> BesideNative | None:
    """Return a tax that was measured here, as a layer's file would have it; None where there is none to speak of."""
    found = pair.slower
    if not pair.is_taxed or found is None:
        return None
    ends = sorted(1 / end if pair.cell.statistic == "rate" else end for end in found[1:])
    return BesideNative(
        pattern=pair.pattern,
        bytes_max=pair.cell.bytes,
        ratio=(ends[0], ends[1]),
        command=shlex.join(("cadge", "crosscheck", "--layers", pair.layer)),  # as layer files have it
        measured=say("beside_native.here", tool=pair.cell.tool),
    )


def tax_of(cell: Cell, plan: Plan) -> BesideNative | None:
    """Return what a layer's file knows of a cell; None where that is nothing."""
    series, case = cell.series, cell.case
    if series.kind != "layer" or series.shims or series.settings:
        return None
    moved, place = case.file.moved_bytes(case.workload), case.place
    known = plan.beside_native.get(series.layer, ())
    return next((one for one in known if one.matches(case.workload, place, moved)), None)


def taxed(data: Dataset) -> dict[str, BesideNative]:
    """Return what is known of those of a campaign's cells of which anything is, by point."""
    direct = DirectPrograms.of(data)
    found = {}
    for cell in data.cells:
        pair = direct.beside(cell)
        tax = tax_of(cell, data.plan) if pair is None else _measured_tax(pair)
        if tax is not None:
            found[cell.point_id] = tax
    return found


def tax_text(cell: Cell, one: BesideNative) -> str:
    """Return it in words: "a plain program over Open MPI reaches 1.4 to 1.75 times this rate"."""
    ends = sorted(1 / end for end in one.ratio)
    low, high = (f"{end:.2f}".rstrip("0").rstrip(".") for end in ends)
    times = f"{low} to {high}" if low != high else low
    if cell.case.file.main_quantity.kind == "histogram":
        return say("beside_native.plain_time", ratio=times)
    return say("beside_native.plain_rate", ratio=times)
