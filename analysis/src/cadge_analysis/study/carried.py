# SPDX-License-Identifier: BSD-3-Clause
"""Bytes a second that operations carried, launch by launch: what a table of bandwidths shows of calls."""

from __future__ import annotations

from cadge_analysis import units
from cadge_analysis.stats.load import Cell, RoundKey


def by_round(cell: Cell, parameter: str) -> dict[RoundKey, float]:
    """Return MB/s of each launch: the bytes of a parameter, once an operation, by the time of all operations."""
    each = cell.case.workload.integer(parameter)
    return {
        sample.round: units.mb_per_s(sample.operations * each, sample.elapsed_ns)
        for sample in cell.samples
        if sample.elapsed_ns
    }
