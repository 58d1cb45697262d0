# SPDX-License-Identifier: BSD-3-Clause
"""Two sides, cell by cell: shifts of the main quantity, and a verdict on each that stands up to all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

from cadge_analysis import words
from cadge_analysis.stats.compare import Numbers
from cadge_analysis.stats.shift import Shift, paired, unpaired
from cadge_analysis.stats.verdict import Judged, Verdict, judge
from cadge_analysis.versus.conditions import Difference, differences
from cadge_analysis.versus.sides import Key, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One cell on both sides. The ratio is second / first, of the main quantity; `gain` is how many times as good."""

    series: str
    place: str
    wait: str
    pattern: str
    workload: str
    quantity: str
    unit: str
    first: float
    second: float
    shift: Shift
    better: str
    judged: Judged

    @property
    def ratio(self) -> float:
        """How many times the first side's number the second side's is."""
        return exp(self.shift.log_ratio)

    @property
    def slower_by(self) -> float:
        """By which share the second side is worse, below zero where it is better: 0.05 for 5 %."""
        return exp(self.shift.log_ratio if self.better == "low" else -self.shift.log_ratio) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """All that is said of two sides. `missing`: how many cells one side alone has, by why; `margin` as a share."""

    first: str
    second: str
    paired: bool
    margin: float
    conditions: tuple[Difference, ...]
    changes: tuple[Change, ...]
    missing: Mapping[str, int]

    def count(self, verdict: Verdict) -> int:
        """How many cells have this verdict."""
        return sum(change.judged.verdict is verdict for change in self.changes)


def against(first: Side, second: Side, margin: float) -> Against:
    """Compare two sides. Of one campaign they are paired, launch by launch; else they are not."""
    pairs = first.data.campaign_id == second.data.campaign_id
    found: list[tuple[Key, Numbers, Numbers, Shift]] = []
    missing: Counter[str] = Counter()
    for key in sorted(first.cells.keys() | second.cells.keys()):
        ours, theirs = first.numbers.get(key), second.numbers.get(key)
        if ours is None or theirs is None:
            missing[_why(first, second, key)] += 1
            continue
        shift = _shift(ours, theirs, pairs=pairs)
        if shift is None:
            missing["no round has both, or a number that is not above zero"] += 1
        else:
            found.append((key, ours, theirs, shift))
    judged = judge([(shift, ours.quantity.better) for _, ours, _, shift in found], margin)
    changes = [_change(*one, verdict) for one, verdict in zip(found, judged, strict=True)]
    order = [Verdict.SLOWER, Verdict.FASTER, Verdict.UNKNOWN, Verdict.SAME]
    changes.sort(key=lambda one: (order.index(one.judged.verdict), -abs(one.shift.log_ratio)))
    return Against(
        first=first.name,
        second=second.name,
        paired=pairs,
        margin=margin,
        conditions=differences(first, second),
        changes=tuple(changes),
        missing=dict(sorted(missing.items())),
    )


def _why(first: Side, second: Side, key: Key) -> str:
    for side in (first, second):
        if key not in side.cells:
            return f"not planned in {side.name}"
    lacking = [side for side in (first, second) if key not in side.numbers]
    return "; ".join(f"{side.cells[key].state} in {side.name}" for side in lacking)


def _shift(ours: Numbers, theirs: Numbers, *, pairs: bool) -> Shift | None:
    if min(*ours.by_round.values(), *theirs.by_round.values()) <= 0:
        return None
    if pairs:
        return paired(dict(ours.by_round), dict(theirs.by_round))
    return unpaired(list(ours.by_round.values()), list(theirs.by_round.values()))


def _change(key: Key, ours: Numbers, theirs: Numbers, shift: Shift, judged: Judged) -> Change:
    case, shown = ours.cell.case, words.shown(ours.quantity)
    series = key[0] or f"{ours.cell.series.label} \u2192 {theirs.cell.series.label}"
    return Change(
        series=series,
        place=case.place,
        wait=case.wait,
        pattern=case.pattern,
        workload=words.workload(case),
        quantity=ours.quantity.title,
        unit=shown.unit,
        first=ours.central.value * shown.scale,
        second=theirs.central.value * shown.scale,
        shift=shift,
        better=ours.quantity.better,
        judged=judged,
    )
