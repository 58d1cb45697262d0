# SPDX-License-Identifier: BSD-3-Clause
"""Two candidates for the shift between two series of a campaign, of one signature, so that A/A pairs can judge them.

`median_of_pairs`: the median of the rounds' ratios; what the machine does for longer than a round cancels.
`shift_after_index`: the median of all differences between launches of the one and the other (Hodges and Lehmann), after
each launch was divided by what the machine was like then (machine_index.py). It has n^2 differences in place of n, so
its intervals are narrower, but takes launches for independent and alike once divided: where the index misses a drift it
is wrong more often than it says. Neither is chosen here: harness/bench/estimators.py measures both on stored campaigns.

The first has exact limits at several looks (sequential.py). The second has none: its levels are those of one look.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from math import exp

from cadge_analysis.stats import shift
from cadge_analysis.stats.load import RoundKey
from cadge_analysis.stats.shift import Shift


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one series measured, by round, and the machine's index at its launches; where that is absent it is 0."""

    values: Mapping[RoundKey, float]
    machine: Mapping[RoundKey, float] = field(default_factory=dict)

    def freed(self) -> list[float]:
        """Return the values as they would have been on the machine as it usually was, in the order of rounds."""
        return [value / exp(self.machine.get(key, 0.0)) for key, value in sorted(self.values.items())]


Estimator = Callable[[Side, Side], Shift | None]


def median_of_pairs(first: Side, second: Side) -> Shift | None:
    """Return the median of second / first, round by round."""
    ours: dict[Hashable, float] = dict(first.values)
    theirs: dict[Hashable, float] = dict(second.values)
    return shift.paired(ours, theirs)


def shift_after_index(first: Side, second: Side) -> Shift | None:
    """Return the shift from first to second, launch against launch, once both are freed of the machine's state."""
    return shift.unpaired(first.freed(), second.freed())


ESTIMATORS: Mapping[str, Estimator] = {"median of pairs": median_of_pairs, "shift after index": shift_after_index}
