# SPDX-License-Identifier: BSD-3-Clause
"""The load of an application's points: how many requests a second were offered, and which points stand at one load.

Processor time a request depends on the load: at a low one a node sleeps and is woken for each request. So points are
compared at one load alone. A point has a rate that was given, or each of its launches offered a share of what its own
closed loop reached, which differs from launch to launch and from layer to layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cadge_analysis.stats import intervals
from cadge_analysis.stats import offered as loads
from cadge_analysis.stats.load import Cell
from cadge_analysis.stats.offered import are_one_load, rate_s
from cadge_analysis.study.plugin import ParameterValue as Value
from cadge_study_press.spec import ApplicationOf, say


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRequests(loads.OfferedLoad):
    """Requests a second that the launches of a point were offered.

    given: the rate was a parameter, and the least and the most are that. answered: which part of them was
    answered in the median launch; None where that was not recorded.
    """

    given: bool
    answered: float | None

    def refused(self, within: float) -> str:
        """Return why the point stands at no one load itself; empty where it does."""
        if not are_one_load((self,), within):
            return say("load.several", offered=self.text)
        if self.answered is not None and self.answered < 1 - within:
            return say("load.unanswered", offered=self.text, share=self.answered)
        return ""

    def apart(self, other: OfferedRequests, name: str, within: float) -> str:
        """Return why two points cannot be compared, of which the other is called `name`; empty where they can."""
        if are_one_load((self, other), within):
            return ""
        return say("load.apart", offered=self.text, name=name, other=other.text)


def offered(cell: Cell, spec: ApplicationOf) -> OfferedRequests | None:
    """Return what the launches of a point were offered; None where no launch says so."""
    names = spec.quantities
    rates = [(rate, rate_s(one, names.answered)) for one in cell.samples if (rate := rate_s(one, names.offered))]
    shares = [done / rate for rate, done in rates if done is not None]
    answered = intervals.median(shares) if shares else None
    if given := given_rate(cell.case.workload.values, spec):
        return OfferedRequests(low=given, high=given, given=True, answered=answered)
    every = [rate for rate, _ in rates]
    return OfferedRequests(low=min(every), high=max(every), given=False, answered=answered) if every else None


def given_rate(values: Mapping[str, Value], spec: ApplicationOf) -> float:
    """Return the rate that a point's parameters give, in 1/s; 0 where they give a share."""
    return float(values.get(spec.parameters.rate, 0))
