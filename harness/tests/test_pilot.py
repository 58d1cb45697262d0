# SPDX-License-Identifier: BSD-3-Clause
"""`cadge plan --pilot`: the baseline alone in a closed loop, and the rate that is proposed for all layers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cadge_harness.errors import UsageError
from cadge_harness.paths import Checkout
from cadge_harness.plan.narrow import PILOT_LAUNCHES, pilot_of
from cadge_results import SweepFile

from .conftest import TINY, Answer, FakeRunner
from .test_plan import SWEEPS, WORKLOADS, read_sweep


def sweep_of(*patterns: dict[str, object], **more: object) -> SweepFile:
    document = {
        "schema": "cadge.sweep/2",
        "title": "Some",
        "layers": ["a-one", "b-two"],
        "baseline": "a-one",
        "patterns": list(patterns),
        "launches": 9,
        "budget": "5min",
        "duration": {"default": "1s"},
    }
    return SweepFile.from_object(document | more, source="a test")


def test_a_pilot_is_the_baseline_at_the_usual_share() -> None:
    """Points that differ in their load alone are one."""
    sweep = sweep_of(
        {"pattern": "press", "nodes": 4, "working_percent": [50, 200], "offered_per_s": 1000},
        {"pattern": "press", "nodes": 4, "working_percent": [50, 200], "offered_per_s": [400, 2000]},
        {"pattern": "load", "request_bytes": "8B", "load_percent": [10, 50]},
        {"pattern": "rpc", "request_bytes": "8B"},
        looks=[9, 18],
    )
    pilot, layer = pilot_of(sweep, WORKLOADS)
    assert layer == "a-one"
    assert [(one.pattern, one.parameters) for one in pilot.patterns] == [
        ("press", {"nodes": 4, "working_percent": [50, 200]}),
        ("load", {"request_bytes": "8B"}),
    ]
    assert (pilot.launches, pilot.looks, pilot.budget, pilot.floors, pilot.twin) == (
        PILOT_LAUNCHES,
        None,
        None,
        False,
        "none",
    )


def test_a_baseline_with_settings_is_measured_as_its_layer() -> None:
    sweep = sweep_of({"pattern": "load", "request_bytes": "8B"}, baseline="a-one + delay (delay.send_ns=5)")
    assert pilot_of(sweep, WORKLOADS)[1] == "a-one"


def test_what_has_no_pilot_says_why() -> None:
    with pytest.raises(UsageError, match="names none"):
        pilot_of(sweep_of({"pattern": "load", "request_bytes": "8B"}, baseline=None), WORKLOADS)
    with pytest.raises(UsageError, match="no point whose load"):
        pilot_of(sweep_of({"pattern": "rpc", "request_bytes": "8B"}), WORKLOADS)


@pytest.mark.parametrize("name", ["press", "press-smoke"])
def test_sweeps_with_rates_have_a_pilot(name: str) -> None:
    sweep, _ = read_sweep(SWEEPS / f"{name}.yml", WORKLOADS)
    pilot, layer = pilot_of(sweep, WORKLOADS)
    assert layer == sweep.baseline
    assert not [one for one in pilot.patterns if "offered_per_s" in one.parameters]


def test_the_pilot_proposes_half_of_the_slowest_closed_loop(
    checkout: Checkout, cadge: Callable[..., Answer], runner: FakeRunner, tmp_path: Path
) -> None:
    assert checkout

    def closed(record: dict[str, Any]) -> dict[str, object]:
        for attempt in record["result"]["attempts"]:
            amount = 4000 if attempt["workload"]["parameters"]["request_bytes"] == 8 else 1999
            rate = {"endpoint": 0, "amount": amount, "elapsed_ns": 200_000_000}
            attempt["quantities"]["closed_loop"] = [rate]
        return record

    runner.change = closed
    path = tmp_path / "some.yml"
    entry = "pattern: load, request_bytes: sizes, offered_per_s: 900"
    path.write_text(TINY.replace("pattern: rpc, request_bytes: sizes", entry) + "baseline: a-one\nplaces: within\n")
    answer = cadge("plan", "--sweep", str(path), "--pilot", "--testbed", "local", "--json")
    assert answer.code == 0, answer.out + answer.err
    found = json.loads(answer.out)["data"]["pilot"]["load"]
    assert (found["parameter"], found["value"]) == ("offered_per_s", 4900)
    assert sorted(found["closed_loops_per_s"].values()) == [9995, 20_000]
    assert "  offered_per_s: 4900" in cadge("plan", "--sweep", str(path), "--pilot", "--testbed", "local").out
