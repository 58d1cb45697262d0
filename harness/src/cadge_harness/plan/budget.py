# SPDX-License-Identifier: BSD-3-Clause
"""Spending a time budget: points are shortened, launches never, and nothing below 20 ms a point.

Before that, sizes are left out: see sizes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cadge_harness.errors import UsageError
from cadge_results.formats.sweep import POINT_MS_MIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One point: how often it is attempted, how long it should be measured, and whether it is in focus."""

    point_id: str
    attempts: int
    duration_ms: int
    focus: bool
    layer: str
    around_ms: int
    takes: float = 1.0
    """How much time a point takes for each second for which it is measured."""


def spend(
    demands: Sequence[Demand], *, fixed_ms: int, idle_fixed_ms: int, budget_ms: int | None, least_ms: int
) -> tuple[Mapping[str, int], str | None]:
    """Return a duration for each point id, and a notice where points were shortened.

    `fixed_ms` is everything but measuring, as this machine is expected to take for it; `idle_fixed_ms` what an idle one
    takes. In order: all points at their wish; points out of focus shortened, down to `least_ms`; points in focus
    shortened towards the same; all points equally, down to 20 ms. Raises UsageError, with what to leave out, where even
    that is too long on an idle machine. Where it is too long on this one alone, which may only be busy, all points get
    20 ms, and the notice says how long it may take.
    """
    wish = {demand.point_id: demand.duration_ms for demand in demands}
    if budget_ms is None or fixed_ms + _total(demands, wish) <= budget_ms:
        return wish, None
    room_ms = budget_ms - fixed_ms
    shorter = _shorten(demands, wish, room_ms, least_ms)
    if shorter is None and _shorten(demands, wish, budget_ms - idle_fixed_ms, least_ms) is None:
        raise UsageError(_refusal(demands, min(fixed_ms, idle_fixed_ms), budget_ms))
    if shorter is None:
        shortest = {name: min(ms, POINT_MS_MIN) for name, ms in wish.items()}
        return shortest, (
            f"points shortened to {POINT_MS_MIN} ms; this machine is slow, or busy, and may take "
            f"{spoken(fixed_ms + _total(demands, shortest))} instead of the budget of {spoken(budget_ms)}"
        )
    kept = sorted({shorter[demand.point_id] for demand in demands if not demand.focus})
    note = f"points shortened to fit the budget of {spoken(budget_ms)}"
    if kept:
        note += f": {kept[0]} ms" if len(kept) == 1 else f": {kept[0]} to {kept[-1]} ms"
    return shorter, note


def _shorten(demands: Sequence[Demand], wish: dict[str, int], room_ms: int, least_ms: int) -> Mapping[str, int] | None:
    plain = [demand for demand in demands if not demand.focus]
    focus = [demand for demand in demands if demand.focus]
    least = {demand.point_id: min(demand.duration_ms, least_ms) for demand in demands}
    if room_ms >= _total(plain, least) + _total(focus, wish):
        return wish | _between(plain, least, wish, room_ms - _total(focus, wish))
    if room_ms >= _total(demands, least):
        return least | _between(focus, least, wish, room_ms - _total(plain, least))
    attempts = sum(demand.attempts * demand.takes for demand in demands)
    each_ms = int(room_ms / attempts) if attempts else POINT_MS_MIN
    if each_ms < POINT_MS_MIN:
        return None
    return {demand.point_id: min(each_ms, demand.duration_ms) for demand in demands}


def _between(
    demands: Sequence[Demand], least: Mapping[str, int], wish: Mapping[str, int], room_ms: int
) -> dict[str, int]:
    """Return durations that all stand at the same share of the way from least to wish, and fit the room."""
    low_ms, high_ms = _total(demands, least), _total(demands, wish)
    share = min((room_ms - low_ms) / (high_ms - low_ms), 1.0) if high_ms > low_ms else 0.0
    return {
        item.point_id: least[item.point_id] + int((wish[item.point_id] - least[item.point_id]) * share)
        for item in demands
    }


def _total(demands: Sequence[Demand], durations: Mapping[str, int]) -> int:
    return sum(round(demand.attempts * demand.takes * durations[demand.point_id]) for demand in demands)


def _refusal(demands: Sequence[Demand], fixed_ms: int, budget_ms: int) -> str:
    needed_ms = fixed_ms + round(sum(demand.attempts * demand.takes for demand in demands) * POINT_MS_MIN)
    by_layer: dict[str, int] = {}
    for demand in demands:
        cost = round(demand.attempts * (POINT_MS_MIN * demand.takes + demand.around_ms))
        by_layer[demand.layer] = by_layer.get(demand.layer, 0) + cost
    dearest = sorted(by_layer, key=lambda name: (-by_layer[name], name))[:3]
    listed = ", ".join(f"{name} ({spoken(by_layer[name])})" for name in dearest)
    return (
        f"a budget of {spoken(budget_ms)} is too short for this sweep: at {POINT_MS_MIN} ms a point, the shortest "
        f"allowed, it takes {spoken(needed_ms)}. Leave out sizes, a place, or layers (the longest: {listed}), or "
        f"raise the budget to {-(-needed_ms // 60_000)}min"
    )


def spoken(ms: int) -> str:
    """Return a duration for people, e.g. 4 min 30 s."""
    seconds = -(-ms // 1000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"
