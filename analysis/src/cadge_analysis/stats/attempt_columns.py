# SPDX-License-Identifier: BSD-3-Clause
"""What the analysis needs of a launch's attempts beside their samples, in columns and bytes: no attempt itself is kept.

As objects it would take ten times the memory, and a campaign has 300,000 attempts.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from statistics import fmean, median
from sys import intern
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from cadge_analysis.stats.disturbance import WAKE_NS, disturbed_share
from cadge_results import LaunchRecord
from cadge_results.formats.result import Attempt, CpuUse, Witness
from cadge_results.store.columns import built

MACHINE_PROBES = ("line_ns", "copy_ns", "clock_ns")
SPEED = ("copy_ns", "clock_ns")
_Item = TypeVar("_Item")
_FIELDS = tuple(CpuUse.model_fields)
_VALUES = attrgetter(*_FIELDS)
_COMPARED = {(a, b, c): (a, b, c) for a, b, c in product((False, True), repeat=3)}
"""Each of the eight once: there are as many of them as attempts."""
RoleUse = tuple[str, CpuUse]

Around = Mapping[str, float]
"""What was measured around an attempt, by machine probe."""


@dataclass(frozen=True, slots=True, eq=False)
class AttemptColumns:
    """The attempts of one launch.

    rows: the row of each point that was attempted. probed: the means of what was measured around an attempt, in ns, one
    column a probe; NaN where nothing was. compared: before, in and after the loop, whether messages were compared;
    only of attempts that say so. patterns: what was attempted. speeds: of each endpoint the medians of what it measured
    without the layer, in ns. waits: for which share of the time each endpoint waited for a processor, the median.
    """

    rows: Mapping[str, int]
    probed: NDArray[np.float64]
    compared: Mapping[str, tuple[bool, bool, bool]]
    patterns: frozenset[str]
    speeds: Sequence[Around]
    waits: Sequence[float | None]

    def around(self, point_id: str) -> Around:
        """Return what was measured around the attempt of a point; nothing where there was none."""
        row = self.rows.get(point_id)
        return {} if row is None else _known(self.probed[row])

    def every_around(self) -> Iterator[Around]:
        """Yield what was measured around each attempt."""
        return map(_known, self.probed)


def _known(values: NDArray[np.float64]) -> Around:
    return {name: value for name, value in zip(MACHINE_PROBES, values.tolist(), strict=True) if value == value}


def attempt_columns(record: LaunchRecord) -> AttemptColumns:
    """Return the columns of a launch's attempts."""
    attempts = record.result.attempts if record.result is not None else ()
    probes = record.result.witness if record.result is not None else ()
    ends = range(len(record.launch.endpoints))
    return AttemptColumns(
        rows={intern(attempt.point_id): row for row, attempt in enumerate(attempts)},
        probed=np.array(list(_probed(attempts, probes)), np.float64).reshape(len(attempts), len(MACHINE_PROBES)),
        compared={
            intern(attempt.point_id): _COMPARED[one.full_before > 0, one.in_loop > 0, one.full_after > 0]
            for attempt in attempts
            if (one := attempt.verified) is not None
        },
        patterns=frozenset(attempt.workload.pattern for attempt in attempts),
        speeds=[_speeds([one for one in probes if one.endpoint == end]) for end in ends],
        waits=[_wait_share(record, attempts, end) for end in ends],
    )


def _probed(attempts: Sequence[Attempt], probes: Sequence[Witness]) -> Iterator[list[float]]:
    """Yield the means around each attempt: of the probes just before it and just after it, by all endpoints."""
    looks: dict[int, list[Witness]] = defaultdict(list)
    for look in probes:
        looks[look.at].append(look)
    for attempt in attempts:
        near = [*looks[attempt.order], *looks[attempt.order + 1]]
        several = ([v for one in near if (v := getattr(one, name)) is not None] for name in MACHINE_PROBES)
        yield [fmean(values) if values else np.nan for values in several]


def _speeds(probes: Sequence[Witness]) -> Around:
    known = {name: [v for one in probes if (v := getattr(one, name)) is not None] for name in SPEED}
    return {name: median(values) for name, values in known.items() if values}


def _wait_share(record: LaunchRecord, attempts: Sequence[Attempt], endpoint: int) -> float | None:
    """Return for which share of the time an endpoint waited for a processor: the median over the launch's attempts."""
    threads = max(len(record.launch.endpoints[endpoint].cpus), 1)
    wake_ns = WAKE_NS if record.launch.wait == "block" else 0.0
    uses = [one.cpu[endpoint] for one in attempts if one.cpu and endpoint < len(one.cpu)]
    shares = [share for use in uses if (share := _share(use, threads, wake_ns)) is not None]
    return median(shares) if shares else None


def _share(use: CpuUse, threads: int, wake_ns: float) -> float | None:
    share = disturbed_share(use, wake_ns)
    return None if share is None else min(share / threads, 1.0)


class PackedUses(Sequence[RoleUse]):
    """The use of processors by each endpoint of an attempt, with its role. Each reading makes new objects."""

    __slots__ = ("_packed", "_roles")

    def __init__(self, roles: tuple[str, ...], uses: Iterable[CpuUse]) -> None:
        """Pack the uses of endpoints in such roles; `roles` is shared."""
        made = tuple(map(_VALUES, uses))
        self._roles = roles[: len(made)] if len(roles) > len(made) else roles
        self._packed = marshal.dumps(made[: len(roles)])

    def __len__(self) -> int:
        """Return how many endpoints have a use."""
        return len(self._roles)

    def __iter__(self) -> Iterator[RoleUse]:
        """Yield role and use of each endpoint."""
        values = marshal.loads(self._packed)  # noqa: S302 - what this object packed itself
        for role, one in zip(self._roles, values, strict=True):
            yield role, built(CpuUse, dict(zip(_FIELDS, one, strict=True)))

    @overload
    def __getitem__(self, place: int) -> RoleUse: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[RoleUse]: ...
    def __getitem__(self, place: int | slice) -> RoleUse | Sequence[RoleUse]:
        """Return the role and use of one endpoint, or of several."""
        return tuple(self)[place]


class PackedMapping(Mapping[str, _Item]):
    """Something by name, in bytes. Each reading makes new objects: `items` makes all of them once."""

    __slots__ = ("_packed",)
    _packed: bytes

    def _unpacked(self) -> dict[str, _Item]:
        found: dict[str, _Item] = marshal.loads(self._packed)  # noqa: S302 - what this object packed itself
        return found

    def __getitem__(self, name: str) -> _Item:
        """Return what has a name."""
        return self._unpacked()[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._unpacked())

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._unpacked())

    def items(self) -> ItemsView[str, _Item]:
        """Return names with what has them."""
        return self._unpacked().items()


class PackedCounts(PackedMapping[int]):
    """Counts by name."""

    __slots__ = ()

    def __init__(self, counts: Mapping[str, int]) -> None:
        """Pack them."""
        self._packed = marshal.dumps(dict(counts))
