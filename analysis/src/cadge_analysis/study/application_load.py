# SPDX-License-Identifier: BSD-3-Clause
"""The load of an application's points: how many requests a second were offered, and which points stand at one load.

Processor time a request depends on the load: at a low one a node sleeps and is woken for each request. So points are
compared at one load alone. A point has a rate that was given, or each of its launches offered a share of what its own
closed loop reached, which differs from launch to launch and from layer to layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cadge_analysis import units
from cadge_analysis.stats import intervals
from cadge_analysis.stats.load import Cell, Sample
from cadge_analysis.study.published_application import ApplicationOf
from cadge_results.point import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """Requests a second that the launches of a point were offered, the least and the most of them.

    given: the rate was a parameter, and both are that. answered: which part of them was answered in that time, in the
    median launch; None where that was not recorded.
    """

    low: float
    high: float
    given: bool
    answered: float | None

    @property
    def text(self) -> str:
        """Return "200", or "120 to 9 564"."""
        low, high = (units.grouped(round(one)) for one in (self.low, self.high))
        return low if low == high else f"{low} to {high}"

    def refused(self, within: float) -> str:
        """Return why the point stands at no one load itself; empty where it does."""
        if not _one_load((self,), within):
            return f"offered {self.text} requests a second from launch to launch"
        if self.answered is not None and self.answered < 1 - within:
            return f"offered {self.text} requests a second, of which {units.percent(self.answered, 0)} were answered"
        return ""

    def apart(self, other: Offered, name: str, within: float) -> str:
        """Return why two points cannot be compared, of which the other is called `name`; empty where they can."""
        if _one_load((self, other), within):
            return ""
        return f"offered {self.text} requests a second, {name} {other.text}"


def _one_load(found: Sequence[Offered], within: float) -> bool:
    return max(one.high for one in found) <= min(one.low for one in found) * (1 + within)


def rate_s(sample: Sample, quantity: str) -> float | None:
    """Return a rate of one launch in 1/s, of all endpoints together; None where it has none."""
    found = sample.quantities.get(quantity)
    return sum(units.per_second(amount, ns) for amount, ns in found.amounts) if found and found.amounts else None


def offered(cell: Cell, spec: ApplicationOf) -> Offered | None:
    """Return what the launches of a point were offered; None where no launch says so."""
    names = spec.quantities
    rates = [(rate, rate_s(one, names.answered)) for one in cell.samples if (rate := rate_s(one, names.offered))]
    shares = [done / rate for rate, done in rates if done is not None]
    answered = intervals.median(shares) if shares else None
    if given := given_rate(cell.case.workload.values, spec):
        return Offered(low=given, high=given, given=True, answered=answered)
    every = [rate for rate, _ in rates]
    return Offered(low=min(every), high=max(every), given=False, answered=answered) if every else None


def given_rate(values: Mapping[str, Value], spec: ApplicationOf) -> float:
    """Return the rate that a point's parameters give, in 1/s; 0 where they give a share."""
    return float(values.get(spec.parameters.rate, 0))
