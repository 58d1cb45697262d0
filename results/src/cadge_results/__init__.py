# SPDX-License-Identifier: BSD-3-Clause
"""The results room: formats, and the only code that knows paths and bytes of a campaign.

    store = Store(Path("results/campaigns"))
    campaign = store.open("last")
    for outcome in campaign.outcomes():
        ...

formats: one module a document (plan, launch, record, ...), and what they stand on. plugins: the files of patterns,
floors and layers. store: where files lie, and what reads, writes, proves and moves them. publish: a copy without names.
"""

from __future__ import annotations

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
from cadge_results.formats.block import Block, BlockHost
from cadge_results.formats.campaign import CampaignMeta, PlanSize, TestbedFacts, ToolFacts
from cadge_results.formats.decision import Decision, JudgedFamily, LaterLook, PointComparison
from cadge_results.formats.event import Event, read_event
from cadge_results.formats.launch import Endpoint, LaunchFile, LaunchPoint, LaunchTrace
from cadge_results.formats.native import NativeAbsent, NativeCell, NativeFile, NativeReading
from cadge_results.formats.node import NodeFacts
from cadge_results.formats.plan import Plan, PlanBlock, PlanEndpoint, PlanLaunch, PlanPoint
from cadge_results.formats.point import Point, Subject, Workload
from cadge_results.formats.reason import Reason
from cadge_results.formats.record import LaunchRecord
from cadge_results.formats.result import Attempt, Check, Result
from cadge_results.formats.selftest import SelftestFile, SelftestPart, SelftestPin
from cadge_results.formats.sweep import SweepFile
from cadge_results.formats.trace import Omission, Trace, TraceFacts
from cadge_results.plugins.catalogue import Workloads, read_workloads
from cadge_results.plugins.floor import FloorFile
from cadge_results.plugins.layerfile import LayerFile
from cadge_results.plugins.pattern import PatternFile
from cadge_results.store.campaigns import Campaign, Store, outcomes
from cadge_results.store.files import NO_ROOM, WrittenOutput, is_stream, own_descriptor, write_output, write_together
from cadge_results.store.outcomes import PointOutcome, PointSummary
from cadge_results.store.writer import CampaignWriter, campaign_id

__all__ = [
    "NO_ROOM",
    "Attempt",
    "Block",
    "BlockHost",
    "Campaign",
    "CampaignMeta",
    "CampaignWriter",
    "Check",
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
    "NativeAbsent",
    "NativeCell",
    "NativeFile",
    "NativeReading",
    "NodeFacts",
    "NotFoundError",
    "Omission",
    "OutputError",
    "PatternFile",
    "Plan",
    "PlanBlock",
    "PlanEndpoint",
    "PlanLaunch",
    "PlanPoint",
    "PlanSize",
    "Point",
    "PointComparison",
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
    "WrittenOutput",
    "campaign_id",
    "is_stream",
    "outcomes",
    "own_descriptor",
    "read_event",
    "read_workloads",
    "write_output",
    "write_together",
]
