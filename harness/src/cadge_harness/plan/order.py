# SPDX-License-Identifier: BSD-3-Clause
"""Orders and seeds that depend on a plan's seed and on what is ordered alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def shuffled(items: Sequence[_T], key: Callable[[_T], str], seed: int, *salt: object) -> list[_T]:
    """Return items in an order that depends on the seed and on what they are, not on how they were listed."""
    return sorted(items, key=lambda item: seeded(seed, key(item), *salt))


def seeded(seed: int, *salt: object) -> int:
    """Return 64 bits that depend on the seed and the salt alone, on every version of Python."""
    text = "/".join(str(part) for part in (seed, *salt))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
