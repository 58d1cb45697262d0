# SPDX-License-Identifier: BSD-3-Clause
"""The pilot of a sweep: its baseline alone, in a closed loop, at each point whose load could be given as a rate."""

from __future__ import annotations

from collections.abc import Iterator

from cadge_harness.errors import UsageError
from cadge_results import SweepFile, Workloads
from cadge_results.formats.sweep import TWIN_NONE, PatternEntry

LAUNCHES = 3
"""The middle one of three is taken of each point."""


def shares_of(workloads: Workloads, pattern: str) -> dict[str, tuple[str, str]]:
    """Return the parameters of a pattern that are shares: what replaces each, and the rate that it is a share of."""
    parameters = workloads.patterns[pattern].parameters
    return {name: (one.unless, one.of) for name, one in parameters.items() if one.unless and one.of}


def pilot_of(sweep: SweepFile, workloads: Workloads) -> tuple[SweepFile, str]:
    """Return a short sweep over the baseline alone, and the baseline's layer. Raises UsageError."""
    if sweep.baseline is None:
        raise UsageError("--pilot measures the baseline, and this sweep names none")
    entries = tuple(_relative(sweep, workloads))
    if not entries:
        raise UsageError("--pilot: this sweep has no point whose load can be given as a rate")
    changes = {
        "title": f"Pilot: {sweep.title}",
        "patterns": entries,
        "launches": LAUNCHES,
        "looks": None,
        "budget": None,
        "floors": False,
        "twin": TWIN_NONE,
    }
    return sweep.model_copy(update=changes), sweep.baseline.split()[0]


def _relative(sweep: SweepFile, workloads: Workloads) -> Iterator[PatternEntry]:
    """Yield the entries whose load can be a rate, at the usual share of a closed loop, each once."""
    seen: list[PatternEntry] = []
    for entry in sweep.patterns:
        shares = shares_of(workloads, entry.pattern)
        dropped = {*shares, *(rate for rate, _ in shares.values())}
        kept = {name: value for name, value in entry.parameters.items() if name not in dropped}
        groups = tuple(group for group in entry.zip if not dropped & set(group))
        one = entry.model_copy(update={"parameters": kept, "zip": groups})
        if shares and one not in seen:
            seen.append(one)
            yield one
