# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns over time, made of two measured ones: each a little faster or slower than the last, as days are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import synthetic
from scaled import scaled

from cadge_analysis.stats import load
from cadge_analysis.stats.intervals import over_launches
from cadge_analysis.versus.sides import Side

LAYERS = ("sockets-tcp", "native-ucx", "native-ofi")
SLOW = "native-ucx"
OPTIONS = synthetic.Options(
    layers=LAYERS,
    sizes=(8,),
    places=("within",),
    waits=("poll",),
    launches=5,
    samples=200,
    troubles=False,
)


def read(folder: Path, options: synthetic.Options = OPTIONS) -> Side:
    data = load.read(synthetic.make(folder, options))
    return Side(data.campaign_id, data)


def at(side: Side, number: int, by: Mapping[str, float]) -> Side:
    """Return a side as campaign `number`, of which series took so many times as long."""
    name = f"202611{number + 1:02d}T010203Z-{number:08x}"
    moved = scaled(side, dict(by))
    meta = side.data.meta.model_copy(
        update={"campaign_id": name, "created_utc": f"2026-11-{number + 1:02d}T01:02:03.000000Z"}
    )
    made = Side(name, replace(side.data, meta=meta, campaign_id=name))
    everything = {
        key: replace(one, central=over_launches(list(one.by_round.values()))) for key, one in moved.everything.items()
    }
    vars(made)["everything"] = everything
    vars(made)["numbers"] = {made.key(one.cell): one for one in everything.values() if one.cell.series.kind == "layer"}
    return made


def sides(before: Side, after: Side, count: int = 12, changed: int = 6, slower: float = 1.3) -> list[Side]:
    """Return campaigns that wander by 2 %; from `changed` on they are of `after`, and one layer is slower.

    Without an exponential: numpy's has another last digit on processors with AVX-512.
    """
    random = np.random.default_rng(3)
    found = []
    for number in range(count):
        by = {one: 1 + 0.02 * float(random.normal()) for one in LAYERS}
        if number >= changed:
            by[SLOW] *= slower
        found.append(at(after if number >= changed else before, number, by))
    return found
