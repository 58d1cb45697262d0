# SPDX-License-Identifier: BSD-3-Clause
"""Sides of a comparison that took longer than what was measured, series by series."""

from __future__ import annotations

from dataclasses import replace

from cadge_analysis.versus.sides import Side


def scaled(of: Side, by: dict[str, float]) -> Side:
    """Return a side of which some series, or all others (""), took so many times as long."""
    other = Side(of.name, of.data, of.series)
    found = {}
    for key, numbers in of.everything.items():
        times = by.get(key[1], by.get("", 1.0))
        times = 1 / times if numbers.more_is_better else times
        found[key] = replace(numbers, by_round={at: value * times for at, value in numbers.by_round.items()})
    vars(other)["everything"] = found
    vars(other)["numbers"] = {other.key(one.cell): one for one in found.values() if one.cell.series.kind == "layer"}
    return other
