# SPDX-License-Identifier: BSD-3-Clause
"""What an operation costs each side: time of processors, switches, page faults, system calls, cycles, instructions.

`COSTS` has an entry for each. Numbers, exports, questions in SQL, tables of a report and `cadge compare` follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cadge_analysis.stats.attempt_columns import RoleUse
from cadge_analysis.stats.load import Sample
from cadge_results.formats.result import COUNTED_ELSEWHERE, CpuUse

Used = Sequence[tuple[Sample, tuple[RoleUse, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerOperation:
    """Something that an operation took, by role: the total of all launches ÷ total operations."""

    by_role: Mapping[str, float]

    @property
    def all_roles(self) -> float:
        """All roles together: work that one side's kernel does for the other is in no single side."""
        return sum(self.by_role.values())


@dataclass(frozen=True, slots=True)
class Cost:
    """One thing that an operation takes: how it is read of what an endpoint used, and how it is called.

    `key`: its column in a report. `title`: that column's heading. `told`: its name in `cadge compare --point`.
    """

    key: str
    title: str
    told: str
    read: Callable[[CpuUse], int | None]
    unit: str = ""
    """ns of times."""
    field: str = ""
    """How its columns in exports begin, where that is not its key."""
    said: str = ""
    """Under which name a launch says whether it was counted, of what only some launches count."""
    operations: Callable[[Sample], int] = lambda sample: sample.operations
    """The operations that it is of."""
    is_parted: bool = False
    """Whether a report has a column for each side."""
    is_seen: bool = True
    """Whether a report has it at all."""

    @property
    def begins(self) -> str:
        """How its columns in exports begin."""
        return self.field or self.key

    @property
    def ends(self) -> str:
        """How they end."""
        return f"_{self.unit}" if self.unit else ""


COSTS = (
    Cost("cpu", "CPU", "processors' time", lambda use: use.user_ns + use.system_ns, "ns", is_parted=True),
    Cost("switches", "switches", "context switches (voluntary)", lambda use: use.voluntary_switches, is_parted=True),
    Cost("faults", "page faults", "page faults", lambda use: use.minor_faults + use.major_faults, field="page_faults"),
    # of operations that are not timed: to count makes them slower
    Cost(
        "system_calls", "system calls", "system calls", lambda use: use.system_calls,
        said="system_calls", operations=lambda sample: sample.counted_operations,
    ),
    Cost("cycles", "cycles", "cycles", lambda use: use.cycles, said="cycles"),
    Cost("instructions", "instructions", "instructions", lambda use: use.instructions, said="cycles"),
    Cost(
        "preemptions", "preemptions", "context switches (involuntary)", lambda use: use.involuntary_switches,
        is_seen=False,
    ),
    Cost("run_wait", "ready to run", "ready, not running", lambda use: use.run_wait_ns, "ns", is_seen=False),
    Cost("steal", "steal", "stolen by hypervisor", lambda use: use.stolen_ns, "ns", is_seen=False),
)  # fmt: skip
"""All of them in the order of an export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What an operation of a cell took, by a cost's key. What no launch counted is absent; `why` has the reason."""

    of: Mapping[str, PerOperation]
    why: Mapping[str, str]


def costs_of(samples: Sequence[Sample], roles: Iterable[str]) -> Costs:
    """Return what an operation of a cell took."""
    names = tuple(roles)
    used = [(sample, tuple(sample.cpu)) for sample in samples]  # unpacked once
    found = {cost.key: _taken(used, names, cost) for cost in COSTS}
    return Costs(
        of={key: one for key, one in found.items() if one is not None},
        why={cost.key: _why(samples, cost.said) for cost in COSTS if cost.said and found[cost.key] is None},
    )


def _taken(used: Used, roles: Sequence[str], cost: Cost) -> PerOperation | None:
    """Return what a cost was in the launches that have it at every endpoint; None where none has.

    What every launch counts is None unless every launch has it.
    """
    totals = dict.fromkeys(roles, 0)
    operations = 0
    for sample, uses in used:
        known = [(role, value) for role, use in uses if (value := cost.read(use)) is not None]
        if not uses or len(known) < len(uses):
            if not cost.said:
                return None
            continue
        operations += cost.operations(sample)
        for role, value in known:
            totals[role] = totals.get(role, 0) + value
    return PerOperation(by_role={role: total / operations for role, total in totals.items()}) if operations else None


def _why(samples: Sequence[Sample], name: str) -> str:
    """Return why nothing was counted, as the launch that should have counted says."""
    said = dict.fromkeys(sample.counted[name] for sample in samples if name in sample.counted)
    return next((text for text in said if not text.startswith(COUNTED_ELSEWHERE)), "") or next(iter(said), "")
