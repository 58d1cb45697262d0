# SPDX-License-Identifier: BSD-3-Clause
"""Which launch a number is of: its round, which launch of this round, and the epoch that made its testbed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

EPOCHS_LEAST = 4
"""From so many epochs on what is said is over epochs."""
_Key = TypeVar("_Key", bound=Hashable)


class RoundKey(NamedTuple):
    """A launch: its round, counted over all epochs, and which launch of this round where there is more than one."""

    round: int
    launch: int = 0
    epoch: int = 0


def by_epoch(values: Mapping[_Key, float]) -> list[list[float]]:
    """Return values by launch, epoch by epoch; what knows no epoch is all of one."""
    found: dict[int, list[float]] = {}
    for key, value in values.items():
        found.setdefault(key.epoch if isinstance(key, RoundKey) else 0, []).append(value)
    return [found[epoch] for epoch in sorted(found)]


def do_agree(estimates: Sequence[float]) -> bool:
    """Tell whether epochs lie on one side; where there are none, nothing disagrees."""
    return all(one > 0 for one in estimates) or all(one < 0 for one in estimates)
