# SPDX-License-Identifier: BSD-3-Clause
"""The results room: formats, and the only code that knows paths and bytes of a campaign.

    store = Store(Path("results/campaigns"))
    campaign = store.open("last")
    for outcome in campaign.outcomes():
        ...

Models are in base, sweep, layerfile, plan, launch, result, record, node and campaign; histogram reads the
stored histograms; writer is for the harness alone.
"""

from __future__ import annotations

from cadge_results.campaign import CampaignMeta, Planned, TestbedFacts, ToolFacts
from cadge_results.errors import (
    DuplicateLaunchError,
    FormatError,
    NotFoundError,
    OutputError,
    ResultsError,
    SchemaTooNewError,
    StoreBusyError,
    StoreFullError,
    StoreUnwritableError,
)
from cadge_results.files import Written, own_descriptor, write_output
from cadge_results.histogram import Histogram
from cadge_results.launch import Endpoint, LaunchFile, LaunchPoint
from cadge_results.layerfile import LayerFile
from cadge_results.node import NodeFacts
from cadge_results.outcomes import PointOutcome, PointSummary
from cadge_results.plan import Plan, PlanBlock, PlanLaunch, PlanPoint
from cadge_results.record import LaunchRecord
from cadge_results.result import Attempt, Check, Result
from cadge_results.store import Campaign, Store, outcomes
from cadge_results.sweep import SweepFile
from cadge_results.writer import CampaignWriter, campaign_id

__all__ = [
    "Attempt",
    "Campaign",
    "CampaignMeta",
    "CampaignWriter",
    "Check",
    "DuplicateLaunchError",
    "Endpoint",
    "FormatError",
    "Histogram",
    "LaunchFile",
    "LaunchPoint",
    "LaunchRecord",
    "LayerFile",
    "NodeFacts",
    "NotFoundError",
    "OutputError",
    "Plan",
    "PlanBlock",
    "PlanLaunch",
    "PlanPoint",
    "Planned",
    "PointOutcome",
    "PointSummary",
    "Result",
    "ResultsError",
    "SchemaTooNewError",
    "Store",
    "StoreBusyError",
    "StoreFullError",
    "StoreUnwritableError",
    "SweepFile",
    "TestbedFacts",
    "ToolFacts",
    "Written",
    "campaign_id",
    "outcomes",
    "own_descriptor",
    "write_output",
]
