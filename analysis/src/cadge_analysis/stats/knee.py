# SPDX-License-Identifier: BSD-3-Clause
"""The highest load that a layer bears, and how near an offered rate comes to what whoever makes it can offer at most.

A pattern whose axis is a load says in its file what a knee is: from which load on the tail is too long, or less than
was offered is done. It is found launch by launch, as every number is; the report shows the median and its rank
interval. What the maker of the load can offer is what it achieves over a layer that does nothing, in the same campaign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Case, Sample, Series
from cadge_analysis.stats.measures import samples_needed
from cadge_analysis.stats.numbers import P99, Numbers, per_launch, tail_by_round
from cadge_results import PatternFile
from cadge_results.formats.point import Value
from cadge_results.plugins.rules import KneeRule

say = partial(messages.say, "stats")

Apart = tuple[str, tuple[tuple[str, Value], ...]]
"""A pattern, and the values of all its parameters but the axis."""
P99_SAMPLES = samples_needed(P99)
"""With fewer samples a launch's own p99 decides nothing, here as in verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """What whoever makes a load can offer at most, 1/s. `reached`: more was offered than that."""

    limit: Estimate
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The knee of a series at one place, in one wait mode and with one set of values beside the axis.

    `load` is a value of the axis, 0 in a launch that bears none of them; `rate` is what was achieved there, and
    `rest_ns` the p99 at rest. `bearing_all` and `bearing_none` count launches whose knee is the highest load measured,
    or below the lowest. `fewest` is the smallest number of samples that a p99 of a launch rests on.
    """

    series: Series
    point_id: str
    case: Case
    """Of the point at rest, as the line above."""
    load: Estimate
    rate: Estimate
    rest_ns: Estimate
    loads: tuple[int, ...]
    bearing_all: int
    bearing_none: int
    fewest: int
    generator: Generator | None
    why_not: str
    """Why nothing may be concluded of its pattern, place and wait mode; empty where it may."""

    @property
    def withheld(self) -> str:
        """Why it is not to be shown: nothing may be concluded, or a p99 of few samples would decide; "" where it is."""
        if self.why_not:
            return self.why_not
        if self.fewest >= P99_SAMPLES:
            return ""
        return say("knee.few_samples", fewest=self.fewest, needed=P99_SAMPLES)

    @property
    def share(self) -> float | None:
        """The rate at the knee as a share of the generator's limit."""
        return None if self.generator is None else self.rate.value / self.generator.limit.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """Everything that a campaign says of loads; empty where it has none."""

    knees: tuple[Knee, ...]
    shares: Mapping[str, float]
    """By point: its offered rate as a share of the generator's limit, where that was measured."""
    generators: Mapping[Apart, Generator]


def loads(comparison: Comparison) -> Loads:
    """Return what the measured points of a campaign say of loads; knees as far as it may be concluded from."""
    rows = comparison.rows
    limits = _generators(rows)
    return Loads(knees=_knees(comparison, limits), shares=_shares(rows, limits), generators=limits)


def _apart(case: Case) -> Apart:
    return case.pattern, tuple((name, case.workload[name]) for name in case.file.parameters if name != case.file.axis)


def _rate(sample: Sample, name: str, file: PatternFile) -> float:
    """Return a rate of one launch; 0 where nothing was counted."""
    measured = sample.quantities.get(name)
    return 0.0 if measured is None else per_launch(measured, file.quantities[name])


def _keeps_up(sample: Sample, rule: KneeRule, file: PatternFile) -> bool:
    return _rate(sample, rule.achieved, file) >= rule.share * _rate(sample, rule.offered, file)


def does_nothing(row: Row, rule: KneeRule) -> bool:
    """Tell whether a row is the generator's own."""
    return row.cell.series.layer.partition("-")[0] == rule.generator


def _generators(rows: Iterable[Row]) -> dict[Apart, Generator]:
    """Return what can be offered at most with each set of values: the most that was achieved over nothing."""
    found: dict[Apart, list[Numbers]] = defaultdict(list)
    for row in rows:
        rule = row.cell.case.file.knee
        if rule is not None and does_nothing(row, rule):
            found[_apart(row.cell.case)].append(row.numbers)
    made = {}
    for apart, members in found.items():
        file = members[0].cell.case.file
        rule = file.knee
        known = [one for one in members if rule is not None and rule.achieved in one.others]
        if rule is None or not known:
            continue
        most = max(known, key=lambda one: one.others[rule.achieved].value)
        overloaded = any(not _keeps_up(sample, rule, file) for one in known for sample in one.cell.samples)
        made[apart] = Generator(limit=most.others[rule.achieved], reached=overloaded)
    return made


def _shares(rows: Iterable[Row], limits: Mapping[Apart, Generator]) -> dict[str, float]:
    found = {}
    for row in rows:
        rule, limit = row.cell.case.file.knee, limits.get(_apart(row.cell.case))
        offered = None if rule is None else row.numbers.others.get(rule.offered)
        if limit is not None and offered is not None:
            found[row.cell.point_id] = offered.value / limit.limit.value
    return found


def _knees(comparison: Comparison, limits: Mapping[Apart, Generator]) -> tuple[Knee, ...]:
    """Return the knee of every series that has points at rest and at another load, in the order of the rows."""
    groups: dict[tuple[Series, str, str, Apart], dict[int, Row]] = defaultdict(dict)
    for row in comparison.rows:
        case = row.cell.case
        if case.file.knee is not None and not does_nothing(row, case.file.knee):
            groups[row.cell.series, case.place, case.wait, _apart(case)][case.size] = row
    made = []
    for (_, place, wait, apart), by_load in groups.items():
        found = _knee(by_load, limits.get(apart), comparison.why_not(apart[0], place, wait))
        made += [found] if found is not None else []
    return tuple(made)


def _knee(by_load: Mapping[int, Row], generator: Generator | None, why_not: str) -> Knee | None:
    file = next(iter(by_load.values())).cell.case.file
    rule = file.knee
    if rule is None or rule.rest not in by_load or len(by_load) < 2:
        return None
    samples = {load: {sample.round: sample for sample in row.cell.samples} for load, row in by_load.items()}
    tails = {load: tail_by_round(row.numbers, P99) for load, row in by_load.items()}
    # a launch without a number at one of the loads could have its knee there
    rounds = sorted(set.intersection(*(set(found) for found in tails.values())))
    if not rounds:
        return None
    found = {
        key: _of_launch(
            {load: samples[load][key] for load in by_load}, {load: tails[load][key] for load in by_load}, file, rule
        )
        for key in rounds
    }
    highest, rest = max(by_load), by_load[rule.rest]
    return Knee(
        series=rest.cell.series,
        point_id=rest.cell.point_id,
        case=rest.cell.case,
        load=intervals.over_rounds({key: float(load) for key, (load, _) in found.items()}),
        rate=intervals.over_rounds({key: rate for key, (_, rate) in found.items()}),
        rest_ns=intervals.over_rounds({key: tails[rule.rest][key] for key in rounds}),
        loads=tuple(sorted(by_load)),
        bearing_all=sum(load == highest for load, _ in found.values()),
        bearing_none=sum(load == 0 for load, _ in found.values()),
        fewest=min(row.numbers.fewest for row in by_load.values()),
        generator=generator,
        why_not=why_not,
    )


def _of_launch(
    samples: Mapping[int, Sample], tails: Mapping[int, float], file: PatternFile, rule: KneeRule
) -> tuple[int, float]:
    """Return the highest load that a launch bears and the rate that it achieved there; (0, 0) where it bears none."""
    longest = rule.times * tails[rule.rest]
    borne = [load for load, sample in samples.items() if tails[load] <= longest and _keeps_up(sample, rule, file)]
    return (max(borne), _rate(samples[max(borne)], rule.achieved, file)) if borne else (0, 0.0)
