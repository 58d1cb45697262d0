# SPDX-License-Identifier: BSD-3-Clause
"""What an operation costs each side: time of processors, switches, page faults, system calls, cycles, instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cadge_analysis.stats.attempt_columns import RoleUse
from cadge_analysis.stats.load import Sample
from cadge_results.formats.result import COUNTED_ELSEWHERE, CpuUse

_SAID_OF = {"instructions": "cycles"}
"""One word says of both whether they were counted."""
Read = Callable[[CpuUse], int | None]
Used = Sequence[tuple[Sample, tuple[RoleUse, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerOperation:
    """Something that an operation took, by role: the total of all launches ÷ total operations."""

    by_role: Mapping[str, float]

    @property
    def all_roles(self) -> float:
        """All roles together: work that one side's kernel does for the other is in no single side."""
        return sum(self.by_role.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """All of it. What was not counted in a single launch is None, and `why` says by the field's name why not."""

    cpu_ns: PerOperation | None
    switches: PerOperation | None
    """Voluntary ones."""
    faults: PerOperation | None
    system_calls: PerOperation | None
    """Of operations that were not timed: to count makes them slower."""
    cycles: PerOperation | None
    instructions: PerOperation | None
    why: Mapping[str, str]


def costs_of(samples: Sequence[Sample], roles: Iterable[str]) -> Costs:
    """Return what an operation of a cell took."""
    names = tuple(roles)
    used = [(sample, tuple(sample.cpu)) for sample in samples]  # unpacked once
    counted = {
        "system_calls": _counted(used, names, lambda use: use.system_calls, lambda one: one.counted_operations),
        "cycles": _counted(used, names, lambda use: use.cycles, lambda one: one.operations),
        "instructions": _counted(used, names, lambda use: use.instructions, lambda one: one.operations),
    }
    return Costs(
        cpu_ns=_whole(used, names, lambda use: use.user_ns + use.system_ns),
        switches=_whole(used, names, lambda use: use.voluntary_switches),
        faults=_whole(used, names, lambda use: use.minor_faults + use.major_faults),
        **counted,
        why={name: _why(samples, _SAID_OF.get(name, name)) for name, found in counted.items() if found is None},
    )


def _whole(used: Used, roles: Sequence[str], read: Read) -> PerOperation | None:
    """Return what every launch has; None unless every launch does."""
    if any(not uses for _, uses in used):
        return None
    return _counted(used, roles, read, lambda one: one.operations)


def _counted(
    used: Used, roles: Sequence[str], read: Read, operations_of: Callable[[Sample], int]
) -> PerOperation | None:
    """Return what those launches have that counted it at every endpoint; None where none did."""
    totals = dict.fromkeys(roles, 0)
    operations = 0
    for sample, uses in used:
        found = [(role, read(use)) for role, use in uses]
        if not found or any(value is None for _, value in found):
            continue
        operations += operations_of(sample)
        for role, value in found:
            totals[role] = totals.get(role, 0) + (value or 0)
    return PerOperation(by_role={role: total / operations for role, total in totals.items()}) if operations else None


def _why(samples: Sequence[Sample], name: str) -> str:
    """Return why nothing was counted, as the launch that should have counted says."""
    said = dict.fromkeys(sample.counted[name] for sample in samples if name in sample.counted)
    return next((text for text in said if not text.startswith(COUNTED_ELSEWHERE)), "") or next(iter(said), "")
