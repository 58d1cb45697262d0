# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that are slow, found beside the others of the same launches: in what no layer has a part in.

Two things are looked at. *Speed*: how long copies in memory and readings of the clock took at an endpoint, as the
probe measured them without the layer; a processor of a lower frequency takes longer for both. *Waits*: for which
share of the time an endpoint was ready to run and had no processor, or the host took it away; a busy neighbour or a
limit of a control group does that. What one host gave is divided by what the others of the same launch gave, so that
what befell all of them at a time falls out; and only what stands through most launches, most of the campaign, and
most of what was measured is named. A load that wanders from processor to processor is none of a host.

Where endpoints of a launch share one host, its processors stand beside each other instead of hosts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cadge_analysis.stats.attempt_columns import SPEED, AttemptColumns
from cadge_analysis.stats.inference import signed_rank
from cadge_analysis.stats.load import Dataset, Series, series_of
from cadge_results import LaunchRecord

ONE_MACHINE = frozenset({"local", "emulated"})
"""Testbeds whose hosts share the processors of one machine."""
WAITS = "waits"
LEAST = {"copy_ns": 1.10, "clock_ns": 1.10, WAITS: 0.05}
"""From how many times as long, and from which share of the time more, a host is slow; half of it in every part."""
LAUNCHES_SHARE = 0.8
"""In so many launches at least it is by half as much."""
LEVEL = 0.001
"""Of the signed rank over launches: what falls one way as often as the other is nobody's."""
PARTS = 4
"""Into which a campaign is cut; in three of them at least it has to be so."""
SERIES_SHARE = 0.75
"""Of layers and floors, by place and wait mode: a library's own threads make its own endpoints wait, and no others."""

Unit = tuple[str, int | None]
"""A host, or one of its processors."""
Where = tuple[Series, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What was seen of a slow unit: `here` and `others` are medians over launches, in ns, of waits a share of the time.

    `often`: in how many of `launches` it was so.
    """

    what: str
    here: float
    others: float
    often: int
    launches: int

    @property
    def ratio(self) -> float:
        """How many times as long things take there; of waits from the time that was left to run."""
        if self.what == WAITS:
            return (1 - self.others) / max(1 - self.here, 0.01)
        return self.here / self.others


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowUnit:
    """A host, or a processor of it (None: all that were used), that is slower than those beside it."""

    host: str
    processor: int | None
    beside: tuple[str, ...]
    symptoms: tuple[Symptom, ...]

    @property
    def ratio(self) -> float:
        """The largest of its ratios."""
        return max(one.ratio for one in self.symptoms)


@dataclass(frozen=True, slots=True)
class _LaunchUnits:
    """One launch: what each unit gave there."""

    where: Where
    values: Mapping[str, Mapping[Unit, float]]


def slow_hosts(data: Dataset) -> tuple[SlowUnit, ...]:
    """Return what is slow, the worst first."""
    one_machine = data.meta.testbed.kind in ONE_MACHINE
    records = sorted(_done(data), key=lambda one: (one.result.started_utc if one.result else "", one.launch_id))
    by_place: dict[str, list[_LaunchUnits]] = defaultdict(list)
    for record in records:
        several = len({end.host for end in record.launch.endpoints}) > 1
        seen = _seen(record, data.attempts[record.launch_id], by_host=several, one_machine=one_machine)
        by_place["" if several else record.launch.endpoints[0].host].append(seen)
    found = [slow for group in by_place.values() for slow in _slow(group)]
    return tuple(sorted(found, key=lambda one: (-one.ratio, one.host, one.processor or 0)))


def _done(data: Dataset) -> Iterator[LaunchRecord]:
    for record in data.records:
        if record.result is not None and record.result.status == "done" and len(record.launch.endpoints) > 1:
            yield record


def _seen(record: LaunchRecord, attempts: AttemptColumns, *, by_host: bool, one_machine: bool) -> _LaunchUnits:
    ends = record.launch.endpoints
    units: list[Unit | None] = []
    for end in ends:
        pinned = [cpu for cpu in end.cpus if cpu >= 0]
        units.append((end.host, None) if by_host else (end.host, pinned[0]) if len(pinned) == 1 else None)
    values: dict[str, dict[Unit, list[float]]] = defaultdict(lambda: defaultdict(list))
    for unit, speeds in zip(units, attempts.speeds, strict=False):
        if unit is not None:
            for name, speed in speeds.items():
                values[name][unit].append(speed)
    if not _crowded(record, one_machine=one_machine):
        for unit, share in zip(units, attempts.waits, strict=False):
            if unit is not None and share is not None:
                values[WAITS][unit].append(share)
    launch = record.launch
    return _LaunchUnits(
        (series_of(launch.subject), launch.place, launch.wait),
        {name: {unit: median(several) for unit, several in of.items()} for name, of in values.items()},
    )


def _crowded(record: LaunchRecord, *, one_machine: bool) -> bool:
    """Tell whether the plan itself lets threads of a launch share a processor, or does not say where they run."""
    used: Counter[tuple[str, int]] = Counter()
    for end in record.launch.endpoints:
        used.update(("" if one_machine else end.host, cpu) for cpu in (*(end.cpus or (-1,)), *end.hands))
    return any(often > 1 or (cpu < 0 and one_machine) for (_, cpu), often in used.items())


def _slow(group: Sequence[_LaunchUnits]) -> Iterator[SlowUnit]:
    units = sorted({unit for seen in group for of in seen.values.values() for unit in of}, key=repr)
    for unit in units:
        symptoms = tuple(one for what in (*SPEED, WAITS) if (one := _symptom(group, unit, what)) is not None)
        if symptoms:
            host, processor = unit
            beside = [other for other, _ in units if other != host]
            if processor is not None:
                beside = [f"processor {cpu}" for _, cpu in units if cpu != processor]
            yield SlowUnit(host=host, processor=processor, beside=tuple(beside), symptoms=symptoms)


def _symptom(group: Sequence[_LaunchUnits], unit: Unit, what: str) -> Symptom | None:
    """Return what is seen of a unit in one quantity; None where that is nothing that stands."""
    pairs, where = [], []
    for seen in group:
        of = seen.values.get(what, {})
        others = [value for other, value in of.items() if other != unit]
        if unit in of and others:
            pairs.append((of[unit], median(others)))
            where.append(seen.where)
    if not pairs:
        return None
    least = LEAST[what] if what == WAITS else LEAST[what] - 1
    excess = [here - others if what == WAITS else here / others - 1 for here, others in pairs]
    often = sum(one >= least / 2 for one in excess)
    by_series: dict[Where, list[float]] = defaultdict(list)
    for one, key in zip(excess, where, strict=True):
        by_series[key].append(one)
    if (
        median(excess) < least
        or often < LAUNCHES_SHARE * len(excess)
        or signed_rank.p_value(excess) > LEVEL
        or not _mostly([median(part) for part in _parts(excess)], least / 2, 3 / PARTS)
        or not _mostly([median(several) for several in by_series.values()], least / 2, SERIES_SHARE)
    ):
        return None
    return Symptom(
        what=what,
        here=median(here for here, _ in pairs),
        others=median(others for _, others in pairs),
        often=often,
        launches=len(pairs),
    )


def _mostly(values: Sequence[float], least: float, share: float) -> bool:
    return sum(value >= least for value in values) >= share * len(values)


def _parts(values: Sequence[float]) -> Iterator[Sequence[float]]:
    """Cut launches in the order of time into parts, none of them empty."""
    count = min(PARTS, len(values))
    for number in range(count):
        yield values[number * len(values) // count : (number + 1) * len(values) // count]
