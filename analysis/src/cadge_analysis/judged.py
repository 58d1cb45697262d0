# SPDX-License-Identifier: BSD-3-Clause
"""What a campaign says of its layers, as its report, its export and its first sentences say it: one place decides."""

from __future__ import annotations

from cadge_analysis.selftest.pinned import withholds
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, judge_campaign
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.look_plan import looks_planned
from cadge_analysis.stats.twin import TwinRate, reason, twin_rate


def judged(comparison: Comparison) -> CampaignVerdicts:
    """Return the verdicts on a campaign, at the looks that it was planned with.

    They are withheld where what was measured twice differs from itself more often than chance lets it, and where the
    self-test that they were to rest on failed, or is of another build or machine.
    """
    looks = looks_planned(comparison.data.plan)
    if why := withholds(comparison.data.meta, comparison.data.nodes):
        return judge_campaign(comparison, looks, withhold=why)
    verdicts = judge_campaign(comparison, looks)
    rate = twin_rate(comparison, verdicts)
    if rate is not None and rate.withhold:
        return judge_campaign(comparison, looks, withhold=reason(rate))
    return verdicts


def against_itself(comparison: Comparison) -> TwinRate | None:
    """Return what A against A came to; None where nothing was measured twice."""
    if not comparison.data.twins:
        return None
    return twin_rate(comparison, judge_campaign(comparison, looks_planned(comparison.data.plan)))
