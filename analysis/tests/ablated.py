# SPDX-License-Identifier: BSD-3-Clause
"""A synthetic campaign of two Peregrine layers with optimisations switched off, where every effect is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import synthetic

from cadge_results import Campaign

OFF = ("gather", "templates", "all")
LAYERS = ("peregrine-shm", "peregrine-udp")
FACTOR = {None: 1.0, "gather": 1.0, "templates": 1.2, "all": 2.0}
US = 1000


def p50_ns(layer: str, off: str | None, size: int, number: int) -> int:
    """The p50 of one launch. Every round is slower than the one before by half: only pairs show the factor.

    `gather` makes odd rounds faster and even ones slower by a tenth, so that it cannot be told apart from nothing.
    """
    base = (2 if layer == "peregrine-shm" else 10) * US + size
    wobble = (0.9, 1.1)[number % 2] if off == "gather" else 1.0
    return round(base * 1.5**number * FACTOR[off] * wobble)


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    known = synthetic.flat(point)
    value = US * 3 // 2
    if known["kind"] == "layer":
        value = p50_ns(known["layer"], known["settings"].get("off"), known["size"], number)
    synthetic.set_samples(attempt, [(value, 200)])
    attempt["operations"] = 200
    attempt["elapsed_ns"] = value * 200


def make(root: Path, **changes: Any) -> Campaign:  # noqa: ANN401 - options of the synthetic campaign
    options: dict[str, Any] = {
        "layers": LAYERS,
        "sizes": (8, 1024),
        "waits": ("poll",),
        "patterns": (("rpc", 1),),
        "settings": ({}, *({"off": name} for name in OFF)),
        "attempt_hook": by_hand,
        "samples": 200,
        "launches": 12,
    }
    return synthetic.make(root, synthetic.Options(**(options | changes)))
