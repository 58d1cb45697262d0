# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on what launches differ by: medians that no launch gave, and what the machine itself did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import Remark
from cadge_analysis.page.figures.strips import PROBE_LABELS
from cadge_analysis.stats.attempt_columns import MACHINE_PROBES
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.strips import launches

say = partial(messages.say, "remarks")

APART = 2.0
"""The middle two of an even number of launches, the higher by the lower, from which their mean is like neither."""
MOVED = 1.5
"""A launch's machine probe by the median of its place, beyond which the machine was in another state."""
_SERIOUS_SHARE = 0.1
_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Middle:
    row: Row
    low: float
    high: float

    @property
    def apart(self) -> float:
        return self.high / self.low


def remarks(comparison: Comparison) -> Iterator[Remark]:
    """Yield both, where there are any."""
    yield from _between(comparison.rows)
    yield from _moved(comparison)


def _between(rows: Sequence[Row]) -> Iterator[Remark]:
    """Say of how many numbers the median is the mean of two launches that are not alike."""
    found = sorted((one for row in rows if (one := _middle(row)) is not None), key=lambda one: -one.apart)
    if not found:
        return
    named = "; ".join(map(_named, found[:_NAMED]))
    rest = f"; and {units.grouped(len(found) - _NAMED)} more" if len(found) > _NAMED else ""
    share = len(found) / len(rows)
    yield Remark(
        serious=share > _SERIOUS_SHARE,
        title=say("launch_remarks.apart_title", n=len(found)),
        text=say("launch_remarks.apart", apart=APART, named=named, rest=rest),
        size=f"{units.percent(share)} of {units.count_of(len(rows), 'number')}",
        share=share,
    )


def _middle(row: Row) -> _Middle | None:
    """Return the middle two launches of a row where they are not alike."""
    values = sorted(row.numbers.by_round.values())
    if len(values) % 2 or len(values) < 2:
        return None
    low, high = values[len(values) // 2 - 1 : len(values) // 2 + 1]
    return _Middle(row, low, high) if 0 < APART * low <= high else None


def _named(one: _Middle) -> str:
    case, shown = one.row.cell.case, words.shown(one.row.numbers.quantity)
    return (
        f"{words.isolated(one.row.cell.series.label)}, {words.pattern(case)} of {words.workload(case)} "
        f"{words.PLACES[case.place]}, {words.WAITS[case.wait]}: {units.sig3(one.low * shown.scale)} and "
        f"{shown.text(one.high)}"
    )


def _moved(comparison: Comparison) -> Iterator[Remark]:
    """Say during how many launches the machine itself was slower than during most, by what they measured of it."""
    ran = launches(comparison.data, comparison.numbers)
    parts, moved, every = [], 0, 0
    for place in words.PLACE_ORDER:
        here = [one.probed for one in ran if one.place == place]
        name = next((name for name in MACHINE_PROBES if any(name in near for near in here)), None)
        if name is None:
            continue
        seen = [near[name] for near in here if name in near]
        usual = median(seen)
        slow = [value for value in seen if value > MOVED * usual]
        moved, every = moved + len(slow), every + len(seen)
        of = units.count_of(len(seen), "launch", "launches")
        parts.append(
            say(
                "launch_remarks.moved_place",
                place=words.PLACES[place],
                n=len(slow),
                of=of,
                probe=PROBE_LABELS[name],
                slow=max(slow) / usual,
                usual=usual,
            )
            if slow
            else say("launch_remarks.unmoved_place", place=words.PLACES[place], of=of, probe=PROBE_LABELS[name])
        )
    if not moved:
        return
    share = moved / every
    yield Remark(
        serious=share > _SERIOUS_SHARE,
        title=say("launch_remarks.moved_title", launches=moved),
        text=say("launch_remarks.moved", times=MOVED, parts=parts),
        size=say("launch_remarks.moved_size", share=share, every=every),
        share=share,
    )
