# SPDX-License-Identifier: BSD-3-Clause
"""What a campaign says of its layers, as its report, its export and its first sentences say it: one place decides."""

from __future__ import annotations

from dataclasses import replace

from cadge_analysis.selftest.pinned import withholds
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, judge_campaign, tail_verdicts
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.look_plan import looks_planned
from cadge_analysis.stats.measures import TAIL
from cadge_analysis.stats.twin import TwinRate, reason, twin_rate
from cadge_results.uncollected import uncollected


@uncollected()
def judged(comparison: Comparison, withhold: str | None = None) -> CampaignVerdicts:
    """Return the verdicts on a campaign, at the looks that it was planned with, on main quantities and on their p99.

    They are withheld where what was measured twice differs from itself more often than chance lets it, and where the
    self-test that they were to rest on failed, or is of another build or machine. Where it is the p99 alone that
    differs from itself, those on the p99 alone are.

    withhold: why verdicts are withheld, "" for not at all, where a report tells it and there are no hosts to ask.
    """
    looks = looks_planned(comparison.data.plan)
    why = withhold if withhold is not None else withholds(comparison.data.meta, comparison.data.nodes)
    verdicts = judge_campaign(comparison, looks, withhold=why)
    rate = None if why else twin_rate(comparison, verdicts)
    if rate is not None and rate.withhold:
        why = reason(rate)
        verdicts = judge_campaign(comparison, looks, withhold=why)
    verdicts = replace(verdicts, tails=tail_verdicts(comparison, looks, withhold=why))
    of_tails = None if why else twin_rate(comparison, verdicts, measure=TAIL)
    if of_tails is not None and of_tails.withhold:
        verdicts = replace(verdicts, tails=tail_verdicts(comparison, looks, withhold=reason(of_tails)))
    return verdicts


def against_itself(comparison: Comparison) -> TwinRate | None:
    """Return what A against A came to; None where nothing was measured twice."""
    if not comparison.data.twins:
        return None
    return twin_rate(comparison, judge_campaign(comparison, looks_planned(comparison.data.plan)))
