# SPDX-License-Identifier: BSD-3-Clause
"""The results room: formats, and the only code that knows paths and bytes of a campaign.

    store = Store(Path("results/campaigns"))
    campaign = store.open("last")
    for outcome in campaign.outcomes():
        ...

A point and a reason are declared in point and reason; pattern, floor and layerfile hold the plug-ins' files, which
catalogue finds. The other models are in sweep, plan, decision, block, launch, result, record, node, campaign and event;
histogram reads the stored histograms; looks says how far a campaign is; writer is for the harness alone.
"""

from __future__ import annotations

from cadge_results.block import Block, BlockHost
from cadge_results.campaign import CampaignMeta, Planned, TestbedFacts, ToolFacts
from cadge_results.catalogue import Workloads, read_workloads
from cadge_results.decision import Compared, Decision, JudgedFamily, LaterLook
from cadge_results.errors import (
    Damage,
    DamagedError,
    DuplicateLaunchError,
    FormatError,
    NotFoundError,
    OutputError,
    ResultsError,
    SchemaTooNewError,
    SchemaTooOldError,
    StoreBusyError,
    StoreFullError,
    StoreUnwritableError,
)
from cadge_results.event import Event, read_event
from cadge_results.files import NO_ROOM, Written, is_stream, own_descriptor, write_output, write_together
from cadge_results.floor import FloorFile
from cadge_results.launch import Endpoint, LaunchFile, LaunchPoint, LaunchTrace
from cadge_results.layerfile import LayerFile
from cadge_results.native import NativeAbsent, NativeCell, NativeFile, NativeReading
from cadge_results.node import NodeFacts
from cadge_results.outcomes import PointOutcome, PointSummary
from cadge_results.pattern import PatternFile
from cadge_results.plan import Plan, PlanBlock, PlanEndpoint, PlanLaunch, PlanPoint
from cadge_results.point import Point, Subject, Workload
from cadge_results.reason import Reason
from cadge_results.record import LaunchRecord
from cadge_results.result import Attempt, Check, Result
from cadge_results.selftest import SelftestFile, SelftestPart, SelftestPin
from cadge_results.store import Campaign, Store, outcomes
from cadge_results.sweep import SweepFile
from cadge_results.trace import LeftOut, Trace, TraceFacts
from cadge_results.writer import CampaignWriter, campaign_id

__all__ = [
    "NO_ROOM",
    "Attempt",
    "Block",
    "BlockHost",
    "Campaign",
    "CampaignMeta",
    "CampaignWriter",
    "Check",
    "Compared",
    "Damage",
    "DamagedError",
    "Decision",
    "DuplicateLaunchError",
    "Endpoint",
    "Event",
    "FloorFile",
    "FormatError",
    "JudgedFamily",
    "LaterLook",
    "LaunchFile",
    "LaunchPoint",
    "LaunchRecord",
    "LaunchTrace",
    "LayerFile",
    "LeftOut",
    "NativeAbsent",
    "NativeCell",
    "NativeFile",
    "NativeReading",
    "NodeFacts",
    "NotFoundError",
    "OutputError",
    "PatternFile",
    "Plan",
    "PlanBlock",
    "PlanEndpoint",
    "PlanLaunch",
    "PlanPoint",
    "Planned",
    "Point",
    "PointOutcome",
    "PointSummary",
    "Reason",
    "Result",
    "ResultsError",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "SelftestFile",
    "SelftestPart",
    "SelftestPin",
    "Store",
    "StoreBusyError",
    "StoreFullError",
    "StoreUnwritableError",
    "Subject",
    "SweepFile",
    "TestbedFacts",
    "ToolFacts",
    "Trace",
    "TraceFacts",
    "Workload",
    "Workloads",
    "Written",
    "campaign_id",
    "is_stream",
    "outcomes",
    "own_descriptor",
    "read_event",
    "read_workloads",
    "write_output",
    "write_together",
]
