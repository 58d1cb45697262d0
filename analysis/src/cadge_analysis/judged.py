# SPDX-License-Identifier: BSD-3-Clause
"""What a campaign says of its layers, as its report, its export and its first sentences say it: one place decides."""

from __future__ import annotations

from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, judge_campaign
from cadge_analysis.stats.compare import Comparison


def judged(comparison: Comparison) -> CampaignVerdicts:
    """Return the verdicts on a campaign, at the looks that it was planned with."""
    return judge_campaign(comparison)
