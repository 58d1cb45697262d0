# SPDX-License-Identifier: BSD-3-Clause
"""A small plan with two layers, one of which is refused, and records that fit it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]  # publishes no types
from hypothesis import settings

from cadge_results import CampaignMeta, CampaignWriter, LaunchRecord, Plan, campaign_id, read_workloads
from cadge_results.plugins.pattern import declared

settings.register_profile("untimed", deadline=None)  # machines are shared: how long an example takes says nothing
settings.load_profile("untimed")

CREATED = datetime(2026, 11, 21, 1, 30, 42, tzinfo=UTC)
SUBJECT = {"kind": "layer", "layer": "sockets-tcp", "shims": [], "settings": {}, "place": "within", "wait": "poll"}
WORKLOADS = read_workloads(Path(__file__).parents[2] / "harness")
BYTES_OF = {"a" * 16: 8, "b" * 16: 64}
CAST = [
    {"role": "client", "host": "here", "peers": [1], "threads": 1},
    {"role": "server", "host": "here", "peers": [0], "threads": 1},
]


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """What tests store need not outlast the machine: each fsync takes milliseconds, and a campaign has hundreds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _descriptor: None)
        yield


def make_workload(request_bytes: int = 8) -> dict[str, object]:
    """Return an RPC whose reply has 8 bytes."""
    made = WORKLOADS.patterns["rpc"].workload("rpc", {"request_bytes": request_bytes, "reply_bytes": 8})
    return made.model_dump(mode="json")


def make_point(point_id: str, **changes: object) -> dict[str, object]:
    """Return a planned point of 8 bytes."""
    point = {"point_id": point_id, "subject": SUBJECT, "workload": make_workload(), "duration_ms": 25}
    return {**point, "state": "planned", **changes}


def make_plan() -> Plan:
    """Two launches of sockets-tcp with two points each, and one refused point of mpi-p2p."""
    points = [
        make_point("a" * 16),
        make_point("b" * 16, workload=make_workload(BYTES_OF["b" * 16])),
        make_point(
            "c" * 16,
            subject={**SUBJECT, "layer": "mpi-p2p", "wait": "block"},
            state="refused",
            reason="MPI has no blocking wait",
            reason_code="NO_WAIT",
        ),
    ]
    launches = [
        {
            "launch_id": f"b1-000{index}-0123abcd",
            "block": "b1",
            "subject": SUBJECT,
            "launcher": "direct",
            "endpoints": CAST,
            "round": index,
            "seed": 11 + index,
            "point_ids": ["b" * 16, "a" * 16],
            "wall_ms": 400,
            "deadline_ms": 9000,
        }
        for index in range(2)
    ]
    block = {
        "block_id": "b1",
        "place": "within",
        "hosts": ["here"],
        "launch_ids": [launch["launch_id"] for launch in launches],
        "wall_ms": 800,
    }
    content: dict[str, object] = {
        "schema": "cadge.plan/2",
        "sweep": {"title": "tiny"},
        "seed": 1,
        "points": points,
        "launches": launches,
        "blocks": [block],
        "patterns": {"rpc": WORKLOADS.patterns["rpc"].to_object()},
        "estimate": {"wall_s": 2.5, "disk_bytes": 100_000},
    }
    unhashed = Plan.from_object({**content, "plan_hash": "0" * 64}, source="test")
    return unhashed.model_copy(update={"plan_hash": unhashed.expected_hash()})


def make_meta(plan: Plan) -> CampaignMeta:
    """Return the campaign file that belongs to a plan."""
    return CampaignMeta.from_object(
        {
            "schema": "cadge.campaign/1",
            "campaign_id": campaign_id(CREATED, plan.plan_hash),
            "created_utc": "2026-11-21T01:30:42Z",
            "status": "running",
            "sweep": "tiny",
            "testbed": {"name": "local", "kind": "local", "hosts": ["here"]},
            "seed": 1,
            "plan_hash": plan.plan_hash,
            "tool": {"version": "0.2.0", "revision": "abc", "dirty": False},
            "command": ["cadge", "run"],
            "planned": {"points": 3, "attempts": 4, "launches": 2, "wall_s": 2.5},
        },
        source="test",
    )


def make_histogram(values: list[int]) -> str:
    """Return values as HdrHistogram's own library encodes them, with the driver's parameters."""
    histogram = HdrHistogram(1, 10**11, 3)
    for value in values:
        histogram.record_value(value)
    encoded: bytes = histogram.encode()
    base64.b64decode(encoded, validate=True)
    return encoded.decode()


def make_attempt(point_id: str, order: int, **changes: object) -> dict[str, object]:
    """Return an attempt as the driver writes it."""
    return {
        "attempt_id": str(order),
        "point_id": point_id,
        "workload": make_workload(BYTES_OF.get(point_id, 8)),
        "order": order,
        "status": "done",
        "reason": None,
        "reason_code": None,
        "started_ns_since_launch": 1000,
        "warmup": {"operations": 10, "ns": 1000, "steady": True, "rule": "three windows within 5 %"},
        "elapsed_ns": 25_000_000,
        "operations": 3,
        "bytes": 24,
        "lost": 0,
        "late": 0,
        "quantities": {
            "latency": [
                {
                    "endpoint": 0,
                    "histogram": make_histogram([1000, 2000, 3000]),
                    "count": 3,
                    "sum_ns": 6000,
                    "min_ns": 1000,
                    "max_ns": 3000,
                    "sum_sq_ns2": "14000000",
                    "first_ns": [1000, 2000, 3000],
                }
            ]
        },
        "executions": {"expected": 3, "server": 3},
        "verified": {"in_loop": 3, "full_before": 1, "full_after": 1, "mismatches": 0},
        "cpu": [
            {
                "user_ns": 1,
                "system_ns": 2,
                "voluntary_switches": 0,
                "involuntary_switches": 0,
                "minor_faults": 0,
                "major_faults": 0,
            }
        ]
        * 2,
        "checks": [{"name": "payload", "ok": True, "detail": ""}],
        **changes,
    }


def make_record(plan: Plan, index: int, **changes: object) -> LaunchRecord:
    """Return a record of the plan's launch number `index` with all attempts done."""
    launch = plan.launches[index]
    campaign = campaign_id(CREATED, plan.plan_hash)
    points = {point.point_id: point for point in plan.points}
    endpoint = {"host": "here", "device": "lo", "address": "127.0.0.1", "raw_device": ""}
    record: dict[str, object] = {
        "schema": "cadge.launch-record/2",
        "launch": {
            "schema": "cadge.launch/2",
            "launch_id": launch.launch_id,
            "campaign_id": campaign,
            "kind": "layer",
            "layer": launch.subject.layer,
            "shims": [],
            "launcher": "direct",
            "place": "within",
            "wait": "poll",
            "settings": {},
            "seed": launch.seed,
            "deadline_ms": 9000,
            "ports": [18600, 18699],
            "endpoints": [
                {**endpoint, "role": "client", "cpus": [0], "peers": [1]},
                {**endpoint, "role": "server", "cpus": [1], "peers": [0]},
            ],
            "patterns": {
                name: {key: one.model_dump(mode="json") for key, one in parameters.items()}
                for name, parameters in declared(WORKLOADS.patterns).items()
            },
            "points": [
                {
                    "attempt_id": str(order),
                    "point_id": point_id,
                    "workload": points[point_id].workload.model_dump(mode="json"),
                    "duration_ms": 25,
                    "deadline_ms": 2000,
                }
                for order, point_id in enumerate(launch.point_ids)
            ],
        },
        "result": {
            "schema": "cadge.result/2",
            "launch_id": launch.launch_id,
            "kind": "layer",
            "layer": launch.subject.layer,
            "place": "within",
            "wait": "poll",
            "seed": launch.seed,
            "status": "done",
            "reason": None,
            "reason_code": None,
            "driver": {"version": "0.2.0", "abi": 1, "revision": "abc", "compiler": "gcc"},
            "started_utc": "2026-11-21T03:00:00.123456Z",
            "wall_ns": 400_000_000,
            "phases_ns": {"open": 1, "connect": 2, "verify": 3, "warmup": 4, "measure": 5, "close": 6},
            "attempts": [make_attempt(point_id, order) for order, point_id in enumerate(launch.point_ids)],
        },
        "status": "done",
        "reason": None,
        "reason_code": None,
        "exit_codes": [0, 0],
        "log_tail": ["", ""],
        "agent_version": "0.2.0",
    }
    return LaunchRecord.from_object({**record, **changes}, source="test")


@pytest.fixture
def plan() -> Plan:
    """The small plan."""
    return make_plan()


@pytest.fixture
def record(plan: Plan) -> Callable[..., LaunchRecord]:
    """Make a record: record(index, **changes)."""
    return lambda index, **changes: make_record(plan, index, **changes)


@pytest.fixture
def attempt() -> Callable[..., dict[str, object]]:
    """Make an attempt: attempt(point_id, order, **changes)."""
    return make_attempt


@pytest.fixture
def new_writer(plan: Plan, tmp_path: Path) -> Callable[[], CampaignWriter]:
    """Begin the small campaign in tmp_path."""
    return lambda: CampaignWriter.create(tmp_path, meta=make_meta(plan), plan=plan, sweep_text="title: tiny\n")
