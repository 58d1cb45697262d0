# SPDX-License-Identifier: BSD-3-Clause
"""What to drop where a budget is too short, before any point is shortened.

In this order: middle sizes, untouched data, layers. The smallest and the largest size stay to the last, since latency
is read at one end and bandwidth at the other. Launches are never dropped: what differs between launches is larger than
what differs within one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import log2

from cadge_results import PatternFile, Workload
from cadge_results.units import format_bytes

SIZES_LEAST = 3
"""So many sizes are kept, however short the budget."""
LAYERS_LEAST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
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
