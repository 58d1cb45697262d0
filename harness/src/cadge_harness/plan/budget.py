# SPDX-License-Identifier: BSD-3-Clause
"""Spending a time budget: what is dropped where it is too short, then how long points may take.

Dropped are, in this order, middle sizes, untouched data, layers. The smallest and the largest size stay to the last,
since latency is read at one end and bandwidth at the other. Then points are shortened, none below 20 ms. Launches are
never dropped: what differs between launches is larger than what differs within one.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from cadge_harness.errors import UsageError
from cadge_harness.plan.draft import PlanDraft, PointDraft, parts_by_link
from cadge_harness.plan.timemodel import TimeModel, report_ms, touched_bytes
from cadge_results import PatternFile, Subject, Workload
from cadge_results.formats.sweep import POINT_MS_MIN
from cadge_results.units import format_bytes

SIZES_LEAST = 3
"""So many sizes are kept, however short the budget."""
LAYERS_LEAST = 3


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


# ---- what to drop ----


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetCuts:
    """What a plan leaves out to fit its budget."""

    sizes: tuple[int, ...] = ()
    """Of all points, ascending."""
    untouched: tuple[int, ...] = ()
    """Of the points that rank nothing alone."""
    layers: tuple[str, ...] = ()

    def notice(self, budget: str, enough: str) -> str:
        """Say what is dropped, and which budget would keep it."""
        said = [", ".join(map(format_bytes, self.sizes))] if self.sizes else []
        if self.untouched:
            said.append(f"untouched data at {', '.join(map(format_bytes, self.untouched))}")
        if self.layers:
            said.append(f"the layers {', '.join(self.layers)}")
        return f"dropped to fit {budget}: {'; '.join(said)} (--budget {enough} keeps all)"


def size_of(pattern: PatternFile, workload: Workload) -> int | None:
    """Return the size of a point; None where its pattern's axis is no size."""
    if pattern.parameters[pattern.axis].unit != "bytes":
        return None
    return workload.integer(pattern.axis)


def left_out(
    cost_ms: Mapping[int, int], spared: Collection[int], over_ms: int, *, keep: int = SIZES_LEAST
) -> tuple[int, ...]:
    """Return the sizes to leave out, ascending, so that `over_ms` less are taken, or as many as may be.

    cost_ms: what all points of a size take. spared: sizes that stay. keep: so many stay in any case. The next to go is
    the middle size that leaves the smallest gap (in powers of two), of several the dearest; the largest and the
    smallest go last. What turns out to fit after all comes back.
    """
    gone: list[int] = []
    stay = sorted(cost_ms)
    while over_ms > 0 and len(stay) > keep:
        size = _next_to_go(stay, cost_ms, spared)
        if size is None:
            break
        gone.append(size)
        stay.remove(size)
        over_ms -= cost_ms[size]
    for size in sorted(gone, key=lambda one: -cost_ms[one]):
        if cost_ms[size] <= -over_ms:
            gone.remove(size)
            over_ms += cost_ms[size]
    return tuple(sorted(gone))


def _next_to_go(stay: list[int], cost_ms: Mapping[int, int], spared: Collection[int]) -> int | None:
    """Return which of the ascending sizes goes next; None where all of them are spared."""
    middle = [index for index in range(1, len(stay) - 1) if stay[index] not in spared]
    if middle:
        return stay[min(middle, key=lambda at: (_gap(stay[at - 1], stay[at + 1]), -cost_ms[stay[at]], stay[at]))]
    return next((size for size in (stay[-1], stay[0]) if size not in spared), None)


def _gap(below: int, above: int) -> float:
    return log2(max(above, 1)) - log2(max(below, 1))


def layers_left_out(cost_ms: Mapping[str, int], spared: Collection[str], over_ms: int) -> tuple[str, ...]:
    """Return the layers to leave out, in the order in which they go, so that `over_ms` less are taken.

    cost_ms: what all points of a layer take. spared: layers that stay. First go layers whose style has another one,
    then others; of each the dearest. LAYERS_LEAST stay in any case.
    """
    gone: list[str] = []
    while over_ms > 0 and len(cost_ms) - len(gone) > LAYERS_LEAST:
        stay = [name for name in cost_ms if name not in gone]
        styles = [_style(name) for name in stay]
        free = [name for name in stay if name not in spared]
        if not free:
            break
        name = min(free, key=lambda one: (styles.count(_style(one)) == 1, -cost_ms[one], one))
        gone.append(name)
        over_ms -= cost_ms[name]
    return tuple(gone)


def _style(layer: str) -> str:
    """Return the style of a layer, the first part of its name."""
    return layer.partition("-")[0]


# ---- of a plan while it is made ----


def _fixed_ms(making: PlanDraft, times: TimeModel) -> int:
    """Return what everything but measuring takes."""
    launches = making.sweep.rounds
    fixed_ms = round(times.around_ms(making.sweep.epochs)) + launches * making.round_beside_ms
    attempts = 0
    for draft in making.drafts.values():
        kind = draft.key.subject.kind
        attempts += launches * len(draft.points)
        fixed_ms += launches * draft.launch_ms(times)
        for item in draft.points.values():
            if item.runs:
                touched = touched_bytes(making.pattern(item.workload), item.workload, kind)
                fixed_ms += launches * times.point_around_ms(touched, kind) + round(times.counting_ms)
    blocks = sum(1 for _ in parts_by_link(making))
    return fixed_ms + blocks * round(times.block_ms) + report_ms(attempts)


def leave_out(making: PlanDraft, *, may_drop_layers: bool, may_drop_sizes: bool) -> list[str]:
    """Take out what the budget has no time for; return what a reader should know of it."""
    sweep = making.sweep
    if sweep.budget is None:
        return []
    over_ms = _over_ms(making, sweep.duration.default)
    enough_ms = sweep.budget + over_ms
    both_ms: Counter[int] = Counter()
    untouched_ms: Counter[int] = Counter()
    in_focus: set[int] = set()
    for item in (one for draft in making.drafts.values() for one in draft.points.values()):
        pattern = making.pattern(item.workload)
        size = size_of(pattern, item.workload)
        if size is None:
            continue
        cost_ms = sweep.rounds * _point_ms(making, item, sweep.duration.default)
        both_ms[size] += cost_ms
        untouched_ms[size] += 0 if pattern.does_rank(item.workload) else cost_ms
        in_focus |= {size} if item.focus_ms else set()
    sizes = left_out(both_ms, in_focus if may_drop_sizes else both_ms, over_ms)
    over_ms -= sum(both_ms[size] for size in sizes)
    ranks = any(untouched_ms[size] < both_ms[size] for size in both_ms)
    rest_ms = {size: ms for size, ms in untouched_ms.items() if ms and size not in sizes and ranks}
    untouched = left_out(rest_ms, in_focus, over_ms, keep=0)
    _keep(making, lambda _, workload: _stays(making.pattern(workload), workload, sizes, untouched))
    layers = _drop_layers(making) if may_drop_layers else ()
    if not sizes and not untouched and not layers:
        return []
    dropped = BudgetCuts(sizes=sizes, untouched=untouched, layers=layers)
    return [dropped.notice(spoken(sweep.budget), f"{-(-enough_ms // 60_000)}min")]


def _stays(pattern: PatternFile, workload: Workload, sizes: Collection[int], untouched: Collection[int]) -> bool:
    size = size_of(pattern, workload)
    return size not in sizes and (size not in untouched or pattern.does_rank(workload))


def _drop_layers(making: PlanDraft) -> tuple[str, ...]:
    """Take out the layers for which there is no time even where points are as short as the sweep lets them be."""
    sweep = making.sweep
    least_ms = sweep.duration.least or sweep.duration.default
    cost_ms: Counter[str] = Counter()
    spared = {str(sweep.baseline).partition(" ")[0]}
    for key, draft in making.drafts.items():
        if key.subject.kind != "layer":
            continue
        points_ms = sum(_point_ms(making, item, least_ms) for item in draft.points.values())
        cost_ms[key.subject.layer] += sweep.rounds * (draft.launch_ms(making.site.times) + points_ms)
        spared |= {key.subject.layer} if key.subject.twin else set()
    layers = layers_left_out(cost_ms, spared, _over_ms(making, least_ms))
    _keep(making, lambda subject, _: subject.kind != "layer" or subject.layer not in layers)
    return layers


def _over_ms(making: PlanDraft, each_ms: int) -> int:
    """Return how much longer than the budget all takes where points out of focus take so long; negative: room."""
    measuring_ms = sum(
        making.sweep.rounds * round(_duration_ms(making, item, each_ms))
        for draft in making.drafts.values()
        for item in draft.points.values()
    )
    return _fixed_ms(making, making.site.times) + measuring_ms - (making.sweep.budget or 0)


def _duration_ms(making: PlanDraft, item: PointDraft, each_ms: int) -> float:
    return (item.focus_ms or each_ms) * making.pattern(item.workload).takes if item.runs else 0


def _point_ms(making: PlanDraft, item: PointDraft, each_ms: int) -> int:
    """Return what a point adds to a launch."""
    return round(_duration_ms(making, item, each_ms)) + (item.around_ms if item.runs else 0)


def _keep(making: PlanDraft, stays: Callable[[Subject, Workload], bool]) -> None:
    """Take out all other points."""
    for key, draft in making.drafts.items():
        draft.points = {name: item for name, item in draft.points.items() if stays(key.subject, item.workload)}
    making.drafts = {key: draft for key, draft in making.drafts.items() if draft.points}
    making.refused = {name: one for name, one in making.refused.items() if stays(one.subject, one.workload)}


def durations_of(making: PlanDraft) -> tuple[dict[str, int], str | None]:
    """Return how long each point is measured, and what a reader should know of it."""
    sweep = making.sweep
    demands = [
        Demand(
            point_id=name,
            attempts=sweep.rounds if item.runs else 0,
            duration_ms=item.focus_ms or sweep.duration.default,
            focus=item.focus_ms is not None,
            layer=draft.key.subject.layer,
            around_ms=item.around_ms,
            takes=making.pattern(item.workload).takes,
        )
        for draft in making.drafts.values()
        for name, item in draft.points.items()
    ]
    least_ms = sweep.duration.least or sweep.duration.default

    def within(budget_ms: int | None) -> tuple[dict[str, int], str | None]:
        spent, note = spend(
            demands,
            fixed_ms=_fixed_ms(making, making.site.times),
            idle_fixed_ms=_fixed_ms(making, TimeModel()),
            budget_ms=budget_ms,
            least_ms=least_ms,
        )
        return dict(spent), note

    if sweep.looks and sweep.budget is not None:
        # half of it is left to later looks, but points are not shortened below what the sweep asks for because of that
        with contextlib.suppress(UsageError):
            spent, _ = within(sweep.budget // 2)
            if all(spent[one.point_id] >= min(one.duration_ms, least_ms) for one in demands):
                return spent, f"the first look has half of the budget of {spoken(sweep.budget)}, others have the rest"
    return within(sweep.budget)
