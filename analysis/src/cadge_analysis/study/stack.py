# SPDX-License-Identifier: BSD-3-Clause
"""The stacked bill as a Vega-Lite specification: a bar a round trip, each as long as the other, cut by share.

Bars are shares because totals of unlike wires, and of machines thirty years apart, do not fit on one axis; the times
stand above each bar. The order of the parts is the same in all bars, so nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cadge_analysis import messages
from cadge_analysis.draw import stacked
from cadge_analysis.draw.palette import FLOOR as FLOOR_INK
from cadge_analysis.draw.palette import LIGHT
from cadge_analysis.draw.stacked import StackedBar
from cadge_analysis.draw.svg import Spec
from cadge_analysis.study.bill import ENGINE, FLOOR, PARTS, REST, SOFTWARE, TOGETHER, RoundTripBill, summary

say = partial(messages.say, "study")

SLOTS = {SOFTWARE: 2, ENGINE: 0, REST: 1, TOGETHER: 9}
COLOURS = {FLOOR: FLOOR_INK} | {name: LIGHT[slot] for name, slot in SLOTS.items()}
VARIABLES = {FLOOR: "floor"} | {name: f"s{slot}" for name, slot in SLOTS.items()}


def figure(items: Sequence[RoundTripBill]) -> Spec:
    """Return the chart of all bills that can be stacked."""
    bars = [
        StackedBar(
            name=f"{item.label}, {item.detail}",
            text=summary(item),
            parts={name: part.value / item.total.value for name, part in item.parts.items()},
        )
        for item in items
        if item.total is not None
    ]
    return stacked.figure(
        bars,
        {name: COLOURS[name] for name in PARTS},
        end=1.0,
        title=say("stack.share_round_trip"),
        ticks=(0, 0.25, 0.5, 0.75, 1),
        tick_expr="format(datum.value*100,'d')+'\u202f%'",
    )
