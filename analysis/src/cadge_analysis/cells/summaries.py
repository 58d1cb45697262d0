# SPDX-License-Identifier: BSD-3-Clause
"""The tables beside `cells`, field by field: launches' own values, knees, families of comparisons, and leaders.

Exports, the numbers that a report embeds and questions in SQL read these fields. Where a table names parameters, its
fields depend on the patterns that it has rows of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cadge_analysis.cells.entry import Field, bounded, parameter_fields
from cadge_analysis.cells.table import Scalar, parameters_of
from cadge_analysis.stats.campaign_verdicts import Family, LeadingGroup
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.knee import Knee
from cadge_analysis.stats.load import Sample
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.offered import rate_s
from cadge_results import PatternFile


class LaunchValue(NamedTuple):
    """What one launch gave of a cell's main quantity."""

    numbers: Numbers
    sample: Sample

    @property
    def offered_s(self) -> float | None:
        """The rate that it was offered, of a pattern that compares at one load alone."""
        rule = self.numbers.cell.case.file.one_load
        return rate_s(self.sample, rule.offered) if rule is not None else None


def launch_values(numbers: Numbers | None) -> list[LaunchValue]:
    """Return what the launches of a cell gave, in their order."""
    return [LaunchValue(numbers, sample) for sample in numbers.cell.samples] if numbers is not None else []


def by_launch(numbers: Numbers | None) -> dict[str, Scalar]:
    """Return each launch's own value, in the quantity's base unit."""
    return {one.sample.launch_id: one.numbers.by_round[one.sample.round] for one in launch_values(numbers)}


VALUE: Field[LaunchValue] = Field("value", lambda one: one.numbers.by_round[one.sample.round])
P99: Field[LaunchValue] = Field("p99_ns", lambda one: one.numbers.own_p99.get(one.sample.round))
OFFERED: Field[LaunchValue] = Field("offered_per_s", lambda one: one.offered_s)
VALUES: tuple[Field[LaunchValue], ...] = (
    Field("point_id", lambda one: one.numbers.cell.point_id),
    Field("launch_id", lambda one: one.sample.launch_id),
    Field("round", lambda one: one.sample.round.round),
    Field("epoch", lambda one: one.sample.round.epoch),
    Field("quantity", lambda one: one.numbers.cell.case.file.main),
    Field("unit", lambda one: one.numbers.quantity.unit),
    VALUE,
    P99,
    OFFERED,
)


def _shown(of: Callable[[Knee], Estimate]) -> Callable[[Knee], Estimate | None]:
    return lambda knee: None if knee.withheld else of(knee)


def knees(files: Sequence[PatternFile]) -> tuple[Field[Knee], ...]:
    """Return what is said of the highest load that a layer bears; the axis gives its name."""
    axes = list(dict.fromkeys(file.axis for file in files))
    beside = {one.name: one for one in parameters_of(files) if one.name not in axes}
    return (
        Field("layer", lambda knee: knee.series.label),
        Field("place", lambda knee: knee.case.place),
        Field("wait", lambda knee: knee.case.wait),
        Field("pattern", lambda knee: knee.case.pattern),
        *parameter_fields(beside, lambda knee: knee.case.workload),
        *(field for axis in axes for field in bounded(axis, "", _on_axis(axis))),
        *bounded("rate", "per_s", _shown(lambda knee: knee.rate)),
        *bounded("rest_p99", "ns", _shown(lambda knee: knee.rest_ns)),
        Field("withheld", lambda knee: knee.withheld or None),
        Field("coverage", lambda knee: knee.load.coverage),
        Field("launches", lambda knee: knee.load.launches),
        Field("launches_bearing_all", lambda knee: knee.bearing_all),
        Field("launches_bearing_none", lambda knee: knee.bearing_none),
        Field("generator_limit_per_s", lambda knee: knee.generator.limit.value if knee.generator else None),
    )


def _on_axis(axis: str) -> Callable[[Knee], Estimate | None]:
    shown = _shown(lambda knee: knee.load)
    return lambda knee: shown(knee) if knee.case.file.axis == axis else None


def _says(verdict: Verdict) -> Callable[[Family], Scalar]:
    return lambda one: sum(cell.says == verdict for cell in one.cells)


FAMILIES: tuple[Field[Family], ...] = (
    Field("pattern", lambda one: one.key.pattern),
    Field("place", lambda one: one.key.place),
    Field("wait", lambda one: one.key.wait),
    Field("quantity", lambda one: one.key.quantity),
    Field("comparisons", lambda one: len(one.cells)),
    *(Field(str(verdict), _says(verdict)) for verdict in Verdict),
    Field("correlation", lambda one: one.own.correlation if one.own else None),
    Field("correlation_allowed_for", lambda one: one.correlation),
    Field("error", lambda one: one.error),
    Field("withheld", lambda one: one.withheld),
)


def leaders(files: Sequence[PatternFile]) -> tuple[Field[LeadingGroup], ...]:
    """Return what is said of the layers that lead a case."""
    return (
        Field("pattern", lambda one: one.case.pattern),
        Field("place", lambda one: one.case.place),
        Field("wait", lambda one: one.case.wait),
        *parameter_fields({one.name: one for one in parameters_of(files)}, lambda one: one.case.workload),
        Field("leading", lambda one: [] if one.withheld else [series.label for series in one.members]),
        Field("withheld", lambda one: one.withheld),
        Field("unlike", lambda one: one.unlike or None),
        Field("alike", lambda one: one.alike),
        Field("ranked", lambda one: one.ranked),
        Field("launches", lambda one: one.launches),
        Field("unranked", lambda one: [series.label for series in one.unranked]),
    )
