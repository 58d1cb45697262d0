# SPDX-License-Identifier: BSD-3-Clause
"""Leaving sizes out where a budget is too short: the largest first, for every layer, before any point is shortened.

Points that rank nothing go before any that rank: of them too the largest first, and down to the last.

Points of a few sizes in all launches say more than many sizes in few launches: what differs between launches is larger
than what differs within one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cadge_results import PatternFile, Workload
from cadge_results.units import format_bytes

SIZES_LEAST = 3
"""So many sizes are kept, however short the budget; then points are shortened."""


def size_of(pattern: PatternFile, workload: Workload) -> int | None:
    """Return the size of a point; None where its pattern's axis is no size."""
    if pattern.parameters[pattern.axis].unit != "bytes":
        return None
    return workload.integer(pattern.axis)


def left_out(
    cost_ms: Mapping[int, int], spared: Collection[int], over_ms: int, *, keep: int = SIZES_LEAST
) -> tuple[int, ...]:
    """Return the sizes to leave out, ascending, so that `over_ms` less are taken, or as many as may be.

    cost_ms: what all points of a size take. spared: sizes that stay. keep: so many stay in any case.
    """
    gone: list[int] = []
    for size in sorted(set(cost_ms) - set(spared), reverse=True):
        if over_ms <= 0 or len(cost_ms) - len(gone) <= keep:
            break
        gone.append(size)
        over_ms -= cost_ms[size]
    return tuple(sorted(gone))


def notice(gone: Collection[int], beside: Collection[int], budget: str) -> str:
    """Say what is left out: sizes altogether, and of those the points that rank nothing."""
    said = [f"{', '.join(map(format_bytes, gone))}"] if gone else []
    if beside:
        said.append(f"of what ranks nothing {', '.join(map(format_bytes, beside))}")
    return f"left out to fit the budget of {budget}: {'; '.join(said)}"
