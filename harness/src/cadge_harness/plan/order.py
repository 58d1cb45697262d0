# SPDX-License-Identifier: BSD-3-Clause
"""Orders and seeds that depend on a plan's seed and on what is ordered alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def shuffled(items: Sequence[_T], key: Callable[[_T], str], seed: int, *salt: object) -> list[_T]:
    """Return items in an order that depends on the seed and on what they are, not on how they were listed."""
    return sorted(items, key=lambda item: seeded(seed, key(item), *salt))


def seeded(seed: int, *salt: object) -> int:
    """Return 64 bits that depend on the seed and the salt alone, on every version of Python."""
    text = "/".join(str(part) for part in (seed, *salt))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def in_turns(
    parts: Iterable[_T], link: Callable[[_T], Hashable], key: Callable[[_T], str], seed: int, turns: range
) -> Iterator[tuple[_T, range]]:
    """Yield each part with the rounds that it makes before the next part begins.

    The parts of one link differ in the link's rate alone. Their rounds alternate, in an order that differs by round, so
    that what the machine does meanwhile meets every rate. A link with one part makes all its rounds at once.
    """
    by_link: dict[Hashable, list[_T]] = {}
    for part in parts:
        by_link.setdefault(link(part), []).append(part)
    for here in by_link.values():
        for rounds in [turns] if len(here) == 1 else [range(turn, turn + 1) for turn in turns]:
            yield from ((part, rounds) for part in shuffled(here, key, seed, "rate", rounds.start))
