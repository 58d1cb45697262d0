# SPDX-License-Identifier: BSD-3-Clause
"""What the machine did between two campaigns, in sentences: the same in the terminal and in a report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import expm1

from cadge_analysis import messages, units, words
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.versus.drift import MachinePart

say = partial(messages.say, "versus")


def where(one: MachinePart) -> str:
    """Return of which cells it is said."""
    if not one.group:
        return "all together"
    place, *more = one.group
    said = [words.PLACES[place], *([words.WAITS[more[0]]] if more else []), *more[1:]]
    return ", ".join(said)


def moved_alike(one: MachinePart) -> str:
    """Return one sentence: how far all series moved alike, whether floors did, and how far apart they are otherwise."""
    drift = one.drift
    rest = (
        say("drift_words.cell_drifts", spread=_size(drift.spread), least=_size(one.least))
        if _size(one.least) != _size(0.0)
        else ""
    )
    layers, floors = drift.layers, drift.floors
    if drift.is_apart and layers is not None and floors is not None:
        return say("drift_words.layers_and_floors_apart", layers=_by(layers), floors=_by(floors), rest=rest)
    text = say("drift_words.all_moved", series=drift.series, common=_by(drift.common))
    if drift.has_floors and floors is not None:
        return say("drift_words.taken_out", text=text, floors=signed(floors.value), rest=rest)
    beside = f", floors by {signed(floors.value)}" if floors is not None else ""
    return say("drift_words.too_few_to_separate", text=text, beside=beside, rest=rest)


def unknown(*, has_usual: bool) -> str:
    """Return what is said where the campaigns themselves do not show their drift."""
    few = say("drift_words.too_few_series")
    if has_usual:
        return say("drift_words.width_of_selftest", few=few)
    return say("drift_words.width_unknown", few=few)


def sharing(told: Sequence[MachinePart], margin_log: float) -> MachinePart | None:
    """Return where layers moved otherwise than floors, and by more than the margin: the farthest of them."""
    found = [one for one in told if one.drift.is_apart and abs(_apart(one)) > margin_log]
    return max(found, key=lambda one: abs(_apart(one)), default=None)


def beyond(told: Sequence[MachinePart], margin_log: float) -> MachinePart | None:
    """Return where all series moved alike by more than the margin: the farthest of them."""
    found = [one for one in told if not one.drift.is_apart and abs(one.drift.common.value) > margin_log]
    return max(found, key=lambda one: abs(one.drift.common.value), default=None)


def _apart(one: MachinePart) -> float:
    layers, floors = one.drift.layers, one.drift.floors
    return layers.value - floors.value if layers is not None and floors is not None else 0.0


def signed(log_ratio: float) -> str:
    """Return how much longer things took, with its sign: "+4.0 %"."""
    share = 100 * expm1(log_ratio)
    return f"{'+' if share >= 0 else units.MINUS}{_digits(abs(share))}{units.THIN}%"


def _by(estimate: Estimate) -> str:
    return f"{signed(estimate.value)}{units.ends(estimate.low, estimate.high, say=signed)}"


def _size(log_ratio: float) -> str:
    return f"{_digits(100 * expm1(log_ratio))}{units.THIN}%"


def _digits(number: float) -> str:
    return f"{number:.1f}" if number < 99.95 else units.grouped(round(number))
