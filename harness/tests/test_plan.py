# SPDX-License-Identifier: BSD-3-Clause
"""Planning: pure, stable, interleaved, honest about what it refuses."""

from __future__ import annotations

import getpass
import json
import os
import platform
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.stats.intervals import rank_of_interval
from cadge_cli.commands.plan import plan_lines
from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.plan.blocks import make_blocks
from cadge_harness.plan.budget import LAYERS_LEAST, SIZES_LEAST, Demand, layers_left_out, left_out, spend
from cadge_harness.plan.cast import cast_of, say_cast
from cadge_harness.plan.catalogue import Catalogue, Context, Description, Refusal
from cadge_harness.plan.describe import read_description
from cadge_harness.plan.here import count_cells, where_it_runs
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.refuse import refuse_point
from cadge_harness.plan.site import PlanSite, site_of
from cadge_harness.plan.sweep import WantedPoint, read_sweep
from cadge_harness.testbed.logins import login_of
from cadge_harness.testbed.model import Host, Testbed, TestbedKind
from cadge_harness.words import runs_only
from cadge_results import Block, PatternFile, Plan, Point, SweepFile
from cadge_results.errors import FormatError
from cadge_results.formats.reason import Reason
from cadge_results.plugins.layerfile import BesideNative, Contexts, Limit, LimitWhen, Packages
from cadge_results.units import format_bytes

from .conftest import WORKLOADS, make_site, make_testbed

pytestmark = pytest.mark.spare

SWEEPS = Path(__file__).parents[1] / "sweeps"


def tiny(**changes: object) -> SweepFile:
    raw = {
        "schema": "cadge.sweep/2",
        "title": "tiny",
        "patterns": [
            {"pattern": "rpc", "request_bytes": ["8B", "4KiB"]},
            {"pattern": "stream", "bytes": "64KiB", "depth": 8},
        ],
        "launches": 4,
        "duration": {"default": "40ms", "least": "25ms"},
    }
    return SweepFile.from_object({**raw, **changes}, source="test")


def built(catalogue: Catalogue) -> Catalogue:
    return Catalogue(tuple(replace(info, absent=None) for info in catalogue.layers), catalogue.shims)


def only(catalogue: Catalogue, site: PlanSite, **changes: object) -> Plan:
    return make_plan(tiny(floors=False, **changes), catalogue, WORKLOADS, site, only=["a-one"])


def test_the_same_input_gives_the_same_plan(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make_plan(tiny(), catalogue, WORKLOADS, site)
    assert plan == make_plan(tiny(), catalogue, WORKLOADS, site)
    assert plan.plan_hash == plan.expected_hash()
    assert Plan.parse(plan.to_json(), source="x") == plan


def test_every_launch_attempts_each_of_its_points_once(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make_plan(tiny(), catalogue, WORKLOADS, site)
    planned = {point.point_id: point for point in plan.points if point.state == "planned"}
    attempts = Counter(item for launch in plan.launches for item in launch.point_ids)
    assert attempts == dict.fromkeys(planned, 4)
    assert len({launch.launch_id for launch in plan.launches}) == len(plan.launches)
    for launch in plan.launches:
        for item in launch.point_ids:
            point = planned[item]
            assert (point.subject.layer, point.subject.place, point.subject.wait) == (
                launch.subject.layer,
                launch.subject.place,
                launch.subject.wait,
            )


def test_a_limit_may_speak_of_the_target_alone(catalogue: Catalogue, site: PlanSite) -> None:
    limit = Limit(when=LimitWhen(place="within", parameters={"target": "passive"}), reason="it has to poll")
    layers = tuple(
        replace(info, file=info.file.model_copy(update={"limits": (limit,)}), absent=None) for info in catalogue.layers
    )
    sweep = tiny(patterns=[{"pattern": "onesided", "bytes": "8B", "operation": "put", "target": ["active", "passive"]}])
    plan = make_plan(sweep, Catalogue(layers, catalogue.shims), WORKLOADS, site, only=["a-one"])
    refused = {
        (point.subject.place, point.workload.values.get("target"))
        for point in plan.points
        if point.reason == limit.reason
    }
    assert refused == {("within", "passive")}
    assert {point.reason_code for point in plan.points if point.reason == limit.reason} == {"NO_CAP"}


def test_a_pattern_may_have_limits(catalogue: Catalogue, site: PlanSite) -> None:
    """Such points are planned as refused, each with the first reason that holds; all others are as they were."""
    raw = WORKLOADS.patterns["rpc"].to_object()
    raw["limits"] = [
        {"when": {"reply_bytes": 8}, "layers": ["a-one"], "reason": "a-one alone"},
        {"when": {"reply_bytes": 8}, "waits": ["block"], "reason": "it sleeps", "reason_code": "NO_POLL"},
        {"when": {}, "most": {"request_bytes": 8}, "reason": "it is small"},
    ]
    workloads = replace(
        WORKLOADS, patterns={**WORKLOADS.patterns, "rpc": PatternFile.from_object(raw, source="rpc.pattern.yml")}
    )
    sweep = tiny(
        layers=["a-one", "c-three"],
        places="within",
        waits=["poll", "block"],
        floors=False,
        patterns=[{"pattern": "rpc", "request_bytes": ["8B", "64B"], "reply_bytes": ["8B", "16B"]}],
    )
    found = {
        (point.subject.layer, point.subject.wait, point.workload["request_bytes"], point.workload["reply_bytes"]): (
            point.reason_code and (point.reason_code, point.reason)
        )
        for point in make_plan(sweep, built(catalogue), workloads, site).points
    }
    small = (Reason.NO_CAP, "it is small")
    assert {key: why for key, why in found.items() if key[0] == "a-one"} == {
        ("a-one", "poll", 8, 8): (Reason.NO_POLL, "it sleeps"),
        ("a-one", "block", 8, 8): None,
        ("a-one", "poll", 64, 8): (Reason.NO_POLL, "it sleeps"),
        ("a-one", "block", 64, 8): small,
        **{("a-one", wait, 8, 16): None for wait in ("poll", "block")},
        **{("a-one", wait, 64, 16): small for wait in ("poll", "block")},
    }
    assert found["c-three", "block", 8, 8] == (Reason.NO_CAP, "a-one alone")
    assert found["c-three", "block", 8, 16] is None


def test_programs_are_asked_for_where_points_need_them(catalogue: Catalogue, site: PlanSite) -> None:
    pattern = WORKLOADS.patterns["rpc"].to_object()
    pattern["programs"] = [{"when": {"touch": "none"}, "program": "made-up", "package": "made-up-tools"}]
    patterns = {**WORKLOADS.patterns, "rpc": PatternFile.from_object(pattern, source="rpc")}

    def needed(touch: str) -> tuple[str, ...]:
        sweep = tiny(floors=False, patterns=[{"pattern": "rpc", "request_bytes": "8B", "touch": touch}])
        return make_plan(sweep, catalogue, replace(WORKLOADS, patterns=patterns), site).programs

    assert (needed("none"), needed("write+read")) == (("made-up",), ())


def test_a_layer_may_have_places_of_its_own(catalogue: Catalogue, site: PlanSite) -> None:
    layers = ["a-one", {"layer": "b-two", "places": "between"}]
    plan = make_plan(tiny(layers=layers, floors=False), built(catalogue), WORKLOADS, site)
    where = {(point.subject.layer, point.subject.place) for point in plan.points}
    assert where == {("a-one", "within"), ("a-one", "between"), ("b-two", "between")}


def test_blocks_are_places_and_rounds_are_interleaved(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make_plan(tiny(), built(catalogue), WORKLOADS, site)
    assert [(block.block_id, block.place, block.hosts) for block in plan.blocks] == [
        ("b1", "within", ("h1",)),
        ("b2", "between", ("h1", "h2")),
    ]
    by_id = {launch.launch_id: launch for launch in plan.launches}
    for block in plan.blocks:
        launches = [by_id[item] for item in block.launch_ids]
        assert [launch.round for launch in launches] == sorted(launch.round for launch in launches)
        orders = {tuple(launch.subject.layer for launch in launches if launch.round == number) for number in range(4)}
        assert len(orders) > 1, "the order of layers is the same in every round"
        assert {frozenset(order) for order in orders} == {frozenset(launch.subject.layer for launch in launches)}


def test_points_are_shuffled_within_a_launch(catalogue: Catalogue, site: PlanSite) -> None:
    sizes = [f"{2**power}B" for power in range(3, 12)]
    plan = only(catalogue, site, patterns=[{"pattern": "rpc", "request_bytes": sizes}], places="within")
    orders = {launch.point_ids for launch in plan.launches}
    assert len(orders) == 4
    assert {frozenset(order) for order in orders} == {frozenset(plan.launches[0].point_ids)}


def test_the_seed_changes_the_order_and_nothing_else(catalogue: Catalogue, site: PlanSite) -> None:
    first, second = (make_plan(tiny(seed=seed), catalogue, WORKLOADS, site) for seed in (1, 2))
    assert {point.point_id for point in first.points} == {point.point_id for point in second.points}
    assert [launch.subject.layer for launch in first.launches] != [launch.subject.layer for launch in second.launches]
    assert {launch.seed for launch in first.launches}.isdisjoint(launch.seed for launch in second.launches)


def test_floors_are_paired_with_layers(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make_plan(tiny(waits=["poll", "block"]), catalogue, WORKLOADS, site)
    floors = {
        (launch.subject.layer, launch.subject.place, launch.subject.wait)
        for launch in plan.launches
        if launch.subject.kind == "floor"
    }
    assert floors == {
        ("floor-cacheline", "within", "poll"),
        ("floor-copyflag", "within", "poll"),
        ("floor-futex", "within", "block"),
        ("floor-xdp", "between", "poll"),
        ("floor-xdp", "between", "block"),
        ("floor-packet", "between", "poll"),
        ("floor-packet", "between", "block"),
        *(
            (name, place, wait)
            for name in ("floor-tcp", "floor-udp")
            for place in ("within", "between")
            for wait in ("poll", "block")
        ),
    }
    for number in range(4):
        assert {launch.subject.kind for launch in plan.launches if launch.round == number} == {"layer", "floor"}
    assert all(
        launch.subject.layer != "floor-xdp"
        for launch in make_plan(tiny(), catalogue, WORKLOADS, replace(site, raw_links=False)).launches
    )
    tcp = [point.workload for point in plan.points if point.subject.layer == "floor-tcp"]
    assert {one["bytes"] for one in tcp if one.pattern == "exchange"} == {8, 4096}
    assert {(one["bytes"], one["depth"]) for one in tcp if one.pattern == "flow"} == {(65536, 8)}
    assert set(plan.patterns) == {"rpc", "stream", "exchange", "flow"}
    assert plan.floors["floor-tcp"] == WORKLOADS.floors["floor-tcp"]


def test_a_floor_gets_the_time_of_what_is_divided_by_it(catalogue: Catalogue, site: PlanSite) -> None:
    patterns = [{"pattern": "rpc", "request_bytes": ["8B", "64B"], "reply_bytes": ["8B", "64B"]}]
    duration = {"default": "40ms", "focus": [{"pattern": "rpc", "request_bytes": "8B", "duration": "250ms"}]}
    plan = make_plan(tiny(patterns=patterns, duration=duration), catalogue, WORKLOADS, site, only=["a-one"])
    floors = {point.workload["bytes"]: point.duration_ms for point in plan.points if point.subject.kind == "floor"}
    assert floors == {8: 250, 64: 40}
    layers = {
        (point.workload["request_bytes"], point.workload["reply_bytes"]): point.duration_ms
        for point in plan.points
        if point.subject.layer == "a-one"
    }
    assert layers == {(8, 8): 250, (8, 64): 250, (64, 8): 40, (64, 64): 40}


def test_refused_points_say_why(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make_plan(tiny(waits=["poll", "block"]), catalogue, WORKLOADS, site)
    why = {
        (point.subject.layer, point.subject.wait): (point.reason_code, point.reason)
        for point in plan.points
        if point.state == "refused"
    }
    assert why["b-two", "block"] == ("NO_WAIT", "b-two only polls")
    assert why["c-three", "poll"] == ("BUILD_ABSENT", "not built: libthree is missing (pkg-config three)")
    assert ("a-one", "poll") not in why


def test_one_host_refuses_what_takes_two(catalogue: Catalogue) -> None:
    plan = make_plan(tiny(), catalogue, WORKLOADS, replace(make_site(1), here=True))
    assert [block.place for block in plan.blocks] == ["within"]
    reasons = {
        point.reason for point in plan.points if point.subject.place == "between" and point.subject.layer == "a-one"
    }
    assert reasons == {"testbed local has one host; place between needs two"}


def test_roles_that_need_a_host_each_are_refused_on_fewer(catalogue: Catalogue) -> None:
    delegated = {"pattern": "delegated", "reply_bytes": "8B", "route": "relay"}
    sweep = tiny(patterns=[delegated], waits="block", floors=False)
    few = make_plan(sweep, built(catalogue), WORKLOADS, make_site(2), only=["a-one"])
    assert {(point.subject.place, point.reason) for point in few.points} == {
        ("within", None),
        ("between", "testbed emulated has 2 hosts; delegated needs 3 at place between, one for each role"),
    }
    enough = make_plan(sweep, built(catalogue), WORKLOADS, make_site(3), only=["a-one"])
    assert {point.reason for point in enough.points} == {None}


def test_words_of_a_place_hold_for_any_number_of_hosts() -> None:
    assert runs_only(("self", "within")) == "runs only in one process or within one host"
    assert runs_only(("between",)) == "runs only between hosts"


def test_more_pollers_than_cores_are_refused(catalogue: Catalogue) -> None:
    narrow = make_site(2, 1, shared=False)
    plan = make_plan(tiny(waits=["poll", "block"]), built(catalogue), WORKLOADS, narrow)
    codes = {
        (point.subject.layer, point.subject.place, point.subject.wait): (point.reason_code, point.reason)
        for point in plan.points
    }
    sharing = "2 busy-polling threads would share 1 core of h1 and starve each other"
    offer = "; in block mode a-one sleeps instead (waits: block)"
    assert codes["a-one", "within", "poll"] == ("NODE_LACKS", sharing + offer)
    assert codes["b-two", "within", "poll"] == ("NODE_LACKS", sharing), "b-two cannot block"
    assert codes["a-one", "within", "block"] == codes["a-one", "between", "poll"] == (None, None)
    with pytest.raises(NothingSelectedError, match="would share 1 core and starve each other"):
        make_plan(tiny(), catalogue, WORKLOADS, make_site(2, 1), only=["b-two"])


def test_what_a_layer_does_not_even_claim_is_refused_unopened(catalogue: Catalogue, site: PlanSite) -> None:
    """As for layers that only mpirun can start."""
    sweep = tiny(patterns=[{"pattern": "onesided", "bytes": "8B", "operation": ["put", "get"]}], floors=False)
    said = Description(claims=frozenset({"PUT"}))
    layers = tuple(replace(info, description=said) for info in built(catalogue).layers)
    plan = make_plan(sweep, replace(catalogue, layers=layers), WORKLOADS, site, only=["a-one"])
    assert {(point.workload["operation"], point.reason) for point in plan.points if point.subject.layer == "a-one"} == {
        ("put", None),
        ("get", "a-one has no get"),
    }


def test_where_a_pattern_runs(catalogue: Catalogue, site: PlanSite) -> None:
    found = where_it_runs("rpc", built(catalogue), WORKLOADS, site)
    cells = {(cell.layer, cell.place, cell.wait): cell for cell in found}
    assert len(cells) == len(catalogue.layers) * 3 * 2
    assert (cells["a-one", "within", "poll"].runs, cells["a-one", "within", "poll"].why) == (("",), {})
    assert cells["b-two", "within", "block"].runs == ()
    assert cells["b-two", "within", "block"].why == {"b-two only polls": Reason.NO_WAIT}
    routes = {
        (cell.place, cell.wait): cell
        for cell in where_it_runs("delegated", built(catalogue), WORKLOADS, site)
        if cell.layer == "a-one"
    }
    assert routes["within", "block"].runs == ("delegated", "relay", "direct")
    ((why, code),) = routes["within", "poll"].why.items()
    assert why.startswith(
        "3 busy-polling threads would share 2 cores and starve each other; in block mode a-one sleeps"
    )
    assert code is Reason.NODE_LACKS


def test_cells_are_counted(catalogue: Catalogue, site: PlanSite) -> None:
    cells = list(where_it_runs("rpc", built(catalogue), WORKLOADS, site))
    counted = count_cells(cells)
    assert counted.cells == len(cells)
    assert counted.run == sum(bool(cell.runs) for cell in cells)
    assert counted.run + sum(counted.refused.values()) == counted.cells
    assert counted.refused[Reason.NO_WAIT] == 3  # b-two at each place
    assert list(counted.refused.values()) == sorted(counted.refused.values(), reverse=True)
    some = replace(cells[0], runs=("put",), why={"a-one has no get": Reason.NO_CAP})
    assert (count_cells([some]).run, count_cells([some]).in_part, count_cells([some]).refused) == (1, 1, {})


def test_what_the_driver_described_refuses_points(catalogue: Catalogue, site: PlanSite) -> None:
    answer = {
        "schema": "cadge.describe/1",
        "layer": "a-one",
        "table": {"library": {"name": "One", "stated_version": "1.0"}, "options": [{"name": "depth"}]},
        "reason": None,
        "opens": [
            {"place": "within", "wait": "poll", "opens": True, "caps": ["HOST", "PUT"]},
            {
                "place": "within",
                "wait": "block",
                "opens": False,
                "reason_code": "NO_WAIT",
                "reason": "it can only poll",
            },
            {
                "place": "between",
                "wait": "poll",
                "opens": False,
                "reason_code": "TRANSPORT",
                "reason": "no device here",
            },
        ],
    }
    description = read_description(answer)
    assert (description.library, description.version, description.options) == ("One", "1.0", ("depth",))
    described = Catalogue((replace(catalogue.get("a-one"), description=description),), ())
    patterns = [
        {"pattern": "rpc", "request_bytes": "8B"},
        {"pattern": "onesided", "bytes": "8B", "operation": ["put", "get", "fetch_add"]},
    ]
    plan = make_plan(tiny(patterns=patterns, waits=["poll", "block"], floors=False), described, WORKLOADS, site)
    codes = {
        (point.subject.place, point.subject.wait, point.workload.values.get("operation")): point.reason_code
        for point in plan.points
    }
    assert codes["within", "poll", None] is None
    assert codes["within", "poll", "put"] is None
    assert codes["within", "poll", "get"] == codes["within", "poll", "fetch_add"] == "NO_CAP"
    assert codes["within", "block", None] == "NO_WAIT"
    assert codes["between", "poll", None] is None, "what only this machine lacks was refused for all"
    assert codes["between", "block", "get"] is None


def test_nothing_to_measure(catalogue: Catalogue, site: PlanSite) -> None:
    with pytest.raises(
        NothingSelectedError,
        match="c-three within/poll, c-three between/poll: not built: libthree",
    ):
        make_plan(tiny(), catalogue, WORKLOADS, site, only=["c-three"])
    with pytest.raises(NothingSelectedError, match="none of the layers a-one is in this sweep"):
        make_plan(tiny(layers=["b-two"]), catalogue, WORKLOADS, site, only=["a-one"])


def test_shims_and_settings_are_points_of_their_own(catalogue: Catalogue, site: PlanSite) -> None:
    entry = {"layer": "a-one", "shims": ["delay"], "settings": {"delay.delay_ns": 20000}}
    plan = make_plan(tiny(layers=["a-one", entry], floors=False), catalogue, WORKLOADS, site)
    kinds = {(launch.subject.shims, launch.subject.settings) for launch in plan.launches}
    assert kinds == {((), ()), (("delay",), (("delay.delay_ns", "20000"),))}
    with pytest.raises(UsageError, match="unknown shim 'delya'; did you mean delay"):
        make_plan(tiny(layers=[entry | {"shims": ["delya"]}]), catalogue, WORKLOADS, site)


def test_variables_of_libraries(catalogue: Catalogue, site: PlanSite) -> None:
    def plan(layer: str, **variables: str) -> Plan:
        entry = {"layer": layer, "settings": {f"env.{name}": value for name, value in variables.items()}}
        return make_plan(tiny(layers=[entry], floors=False), catalogue, WORKLOADS, site)

    info = catalogue.get("a-one")
    steered = replace(info, file=info.file.model_copy(update={"variables": ("UCX_", "UCM_")}))
    catalogue = replace(catalogue, layers=tuple(steered if one is info else one for one in catalogue.layers))
    (point, *_) = plan("a-one", UCX_TLS="posix, self").points
    assert point.subject.settings == (("env.UCX_TLS", "posix, self"),)
    for layer, variables, said in (
        ("a-one", {"LD_PRELOAD": "x"}, r"layer a-one: a sweep may set UCX_\* or UCM_\* for it, not LD_PRELOAD"),
        ("a-one", {"UCX_A B": "x"}, "layer a-one: 'env.UCX_A B' = 'x' cannot be an environment variable"),
        ("a-one", {"UCX_A": "x\n"}, "cannot be an environment variable"),
        ("b-two", {"UCX_TLS": "x"}, "layer b-two: no environment variable steers it, so a sweep cannot set UCX_TLS"),
    ):
        with pytest.raises(UsageError, match=said):
            plan(layer, **variables)


def measured_at(plan: Plan) -> list[tuple[str, set[int], set[str | None]]]:
    """Place, rounds and rates of each block."""
    launches = {launch.launch_id: launch for launch in plan.launches}
    found = []
    for block in plan.blocks:
        here = [launches[name] for name in block.launch_ids]
        found.append((block.place, {one.round for one in here}, {one.subject.setting("link.rate") for one in here}))
    return found


def test_a_rate_of_the_link_is_a_condition_of_a_block(catalogue: Catalogue, site: PlanSite) -> None:
    def plan(*rates: object, site: PlanSite = site, catalogue: Catalogue = catalogue, layer: str = "a-one") -> Plan:
        entries = [layer, *({"layer": layer, "settings": {"link.rate": rate}} for rate in rates)]
        return make_plan(tiny(layers=entries, floors=False), built(catalogue), WORKLOADS, site)

    made = plan("100Mbit", "1Gbit")
    first, *blocks = measured_at(made)
    assert first == ("within", {0, 1, 2, 3}, {None})
    for turn in range(4):  # rates alternate: what the machine does meanwhile meets each of them
        here = blocks[3 * turn : 3 * turn + 3]
        assert {place for place, _, _ in here} == {"between"}
        assert [turns for _, turns, _ in here] == [{turn}] * 3
        assert sorted(rate or "" for _, _, rates in here for rate in rates) == ["", "100Mbit", "1Gbit"]
    assert len(blocks) == 12
    assert len({tuple(rates.pop() for _, _, rates in blocks[at : at + 3]) for at in range(0, 12, 3)}) > 1
    shown = plan_lines(made, "tiny", make_testbed())
    assert sum("between" in line and "h1" in line for line in shown) == 3  # not each of the twelve blocks
    (why,) = {point.reason for point in made.points if point.state == "refused"}
    assert why == "the link that link.rate is for is between hosts"
    given = make_blocks(made, make_testbed(), "c1")
    rates = [dict(block.launches[0].settings).get("link.rate") for block in given]
    assert rates == [rate for _, _, (rate,) in measured_at(made)]
    real = plan("1Gbit", site=make_site(shared=False))
    (why,) = {point.reason for point in real.points if point.state == "refused" and point.subject.place == "between"}
    assert why == "the link of testbed emulated is not ours to set to link.rate; that of emulated hosts is"
    raw = Description(claims=frozenset({"RAW_LINK"}))
    described = tuple(replace(info, description=raw) for info in catalogue.layers)
    refused = plan("1Gbit", catalogue=replace(catalogue, layers=described))
    assert "a-one has a raw link of its own, which link.rate does not limit" in {one.reason for one in refused.points}
    for wrong, said in (
        ({"link.rate": "100"}, "100 has no unit; a rate is written like 100Mbit or 1Gbit"),
        ({"link.rate": "1mbit"}, "did you mean Mbit"),
        ({"link.rate": "0Mbit"}, "0Mbit is not within 1Mbit to 100Gbit"),
        ({"link.loss": "1"}, "there is no setting link.loss; a link has link.rate"),
    ):
        with pytest.raises(UsageError, match=said):
            make_plan(tiny(layers=[{"layer": "a-one", "settings": wrong}]), catalogue, WORKLOADS, site)


def test_a_sweep_whose_baseline_is_not_measured_says_so(catalogue: Catalogue, site: PlanSite) -> None:
    sweep = tiny(floors=False, baseline="a-one")
    whole = make_plan(sweep, built(catalogue), WORKLOADS, site)
    assert (whole.baseline, whole.same_within) == ("a-one", None)
    assert not any("judges" in notice for notice in whole.notices)
    narrowed = make_plan(sweep, built(catalogue), WORKLOADS, site, only=["b-two"])
    assert "a-one, which this sweep judges layers against, is not measured: none is called faster or slower" in (
        narrowed.notices
    )


def test_a_star_stands_for_every_layer_that_matches(catalogue: Catalogue, site: PlanSite) -> None:
    entries = ["a-one", {"layer": "*-t*"}, "*-one", {"layer": "*-one", "settings": {"off": "all"}}]
    plan = make_plan(tiny(layers=entries, floors=False), catalogue, WORKLOADS, site)
    found = {(point.subject.layer, point.subject.setting("off"), point.state) for point in plan.points}
    assert found == {
        ("a-one", None, "planned"),
        ("a-one", "all", "planned"),
        ("b-two", None, "planned"),
        ("c-three", None, "refused"),
    }
    assert len({point.point_id for point in plan.points}) == len(plan.points)
    narrowed = make_plan(tiny(layers=entries, floors=False), catalogue, WORKLOADS, site, only=["b-two"])
    assert {point.subject.layer for point in narrowed.points} == {"b-two"}
    with pytest.raises(UsageError, match=r"no layer matches 'd-\*'; there are: a-one, b-two, c-three"):
        make_plan(tiny(layers=["d-*"]), catalogue, WORKLOADS, site)


def test_a_pattern_may_have_layers_of_its_own(catalogue: Catalogue, site: PlanSite) -> None:
    delayed = {"layer": "a-one", "shims": "delay", "settings": {"delay.send_ns": 1000}}
    patterns = [
        {"pattern": "rpc", "request_bytes": "8B"},
        {"pattern": "rpc", "request_bytes": ["8B", "64B"], "layers": "b-two"},
        {"pattern": "rpc", "request_bytes": "4KiB", "layers": ["c-*", delayed]},
    ]
    sweep = tiny(layers=["a-one", "b-two"], patterns=patterns, places="within")
    plan = make_plan(sweep, built(catalogue), WORKLOADS, site)

    def measured(plan: Plan, kind: str = "layer") -> set[tuple[str, bool, int]]:
        points = [(point.subject, point.workload) for point in plan.points if point.subject.kind == kind]
        return {(one.layer, bool(one.shims), work.integer(WORKLOADS.file(work.pattern).axis)) for one, work in points}

    ours = {("a-one", False, 8), ("b-two", False, 8), ("b-two", False, 64), ("c-three", False, 4096)}
    assert measured(plan) == ours | {("a-one", True, 4096)}
    assert len({point.point_id for point in plan.points}) == len(plan.points)  # what is asked for twice too
    assert len({launch.subject for launch in plan.launches if launch.subject.layer == "b-two"}) == 1
    assert {size for _, _, size in measured(plan, "floor")} == {8, 64, 4096}
    narrowed = make_plan(sweep, built(catalogue), WORKLOADS, site, only=["a-one"])
    assert measured(narrowed) == {("a-one", False, 8), ("a-one", True, 4096)}
    assert {size for _, _, size in measured(narrowed, "floor")} == {8, 4096}  # none beside what is left out
    assert "what this sweep measures over b-two alone is left out: not among the layers asked for" in narrowed.notices
    assert "layers" not in tiny().to_object()["patterns"][0]  # as plans of before: their hashes hold
    with pytest.raises(NothingSelectedError, match="none of the layers b-two is in this sweep"):
        make_plan(tiny(patterns=[{**patterns[0], "layers": "a-one"}]), catalogue, WORKLOADS, site, only=["b-two"])
    for wrong, said in (
        ("a-onw", "unknown layer 'a-onw'; did you mean a-one?"),
        ({**delayed, "shims": "delya"}, "unknown shim"),
        ("d-*", "no layer matches"),
    ):
        with pytest.raises(UsageError, match=said):
            make_plan(tiny(patterns=[{**patterns[0], "layers": [wrong]}]), catalogue, WORKLOADS, site)


def shuffled(value: object, draw: st.DataObject) -> object:
    """Return the same document with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = draw.draw(st.permutations(list(value)))
        return {key: shuffled(value[key], draw) for key in keys}
    return [shuffled(item, draw) for item in value] if isinstance(value, list) else value


@given(st.data())
def test_plans_do_not_depend_on_key_order_or_on_spelling_defaults(data: st.DataObject) -> None:
    spelled: dict[str, object] = {
        "schema": "cadge.sweep/2",
        "title": "t",
        "patterns": [{"pattern": "rpc", "request_bytes": "8B"}],
        "launches": 2,
        "duration": {"default": "40ms"},
    }
    plain = SweepFile.from_object(spelled, source="t")
    defaults: dict[str, object] = {"seed": 1, "floors": True, "layers": "all", "waits": ["poll"]}
    chosen = data.draw(st.sets(st.sampled_from(sorted(defaults))))
    pattern = data.draw(
        st.sampled_from(
            [
                {"pattern": "rpc", "request_bytes": ["8B"], "depth": [1]},
                {"pattern": "rpc", "request_bytes": "8B", "reply_bytes": "same"},
                {"pattern": "rpc", "request_bytes": "8 B", "reply_bytes": "8B", "depth": 1},
            ]
        )
    )
    wordy = {
        **spelled,
        **{key: defaults[key] for key in chosen},
        "patterns": [pattern],
        "duration": {"default": "40 ms"},
    }
    other = SweepFile.from_object(shuffled(wordy, data), source="t")
    ids = [
        {point.point_id for point in make_plan(sweep, CATALOGUE, WORKLOADS, SITE).points} for sweep in (plain, other)
    ]
    assert ids[0] == ids[1]


SITE = make_site()


def _catalogue(*names: str) -> Catalogue:
    from cadge_harness.plan.catalogue import LayerInfo
    from cadge_results import LayerFile

    raw = {"schema": "cadge.layer/1", "title": "t", "library": "l", "licence": "x", "rpc": "native"}
    more = {"places": ["within", "between"]}
    styles = [dict(zip(("style", "substrate"), name.split("-"), strict=True)) for name in names]
    return Catalogue(tuple(LayerInfo(file=LayerFile.from_object({**raw, **more, **one}, source="t")) for one in styles))


CATALOGUE = _catalogue("a-one")


# -- budgets


def test_what_is_said_beside_a_limited_layer_goes_over_the_management_network(
    catalogue: Catalogue, site: PlanSite
) -> None:
    """So it goes in points without the limit: what the limit is worth is divided by these."""
    limited = ["a-one", {"layer": "a-one", "settings": {"link.rate": "100Mbit"}}]
    patterns = [
        {"pattern": "press", "nodes": 2, "working_percent": 50},
        {"pattern": "rpc", "request_bytes": "8B"},
    ]
    roomy = replace(site, hosts=tuple(replace(host, cpus=(0, 1, 2, 3)) for host in site.hosts))
    testbed = make_testbed()
    addresses = {host.management_address for host in testbed.hosts}

    def apart(layers: list[Any]) -> dict[tuple[str, str | None], bool]:
        sweep = tiny(layers=layers, patterns=patterns, places="between", floors=False, twin="none")
        plan = make_plan(sweep, catalogue, WORKLOADS, roomy)
        assert not [point.reason for point in plan.points if point.reason], "all are planned"
        found = {}
        for block in make_blocks(plan, testbed, "20261121T013042Z-1f3a9c2e"):
            for launch in block.launches:
                (pattern,) = {point.workload.pattern for point in launch.points}
                given = {end.management_address for end in launch.endpoints}
                assert given <= addresses or given == {""}
                found[pattern, dict(launch.settings).get("link.rate")] = given <= addresses
        return found

    assert apart(limited) == {
        ("press", None): True,
        ("press", "100Mbit"): True,
        ("rpc", None): False,
        ("rpc", "100Mbit"): False,
    }
    assert apart(["a-one"]) == {("press", None): False, ("rpc", None): False}


def test_a_budget_leaves_out_sizes_first_and_never_launches(catalogue: Catalogue, site: PlanSite) -> None:
    patterns = [
        {"pattern": "rpc", "request_bytes": [f"{2**power}B" for power in range(3, 20)]},
        {"pattern": "stream", "bytes": ["8B", "512KiB"]},
    ]
    duration = {"default": "200ms", "least": "25ms"}
    wide = only(catalogue, site, patterns=patterns, duration=duration)
    cut = only(catalogue, site, patterns=patterns, duration=duration, budget="35s")
    assert wide.estimate.wall_s > 35 >= cut.estimate.wall_s > 25
    assert [launch.launch_id for launch in wide.launches] == [launch.launch_id for launch in cut.launches]
    (said,) = cut.notices
    kept = {point.workload.integer("request_bytes") for point in cut.points if point.workload.pattern == "rpc"}
    every = {2**power for power in range(3, 20)}
    assert {8, 2**19} < kept < every  # both ends stay
    gone = ", ".join(map(format_bytes, sorted(every - kept)))
    assert said.startswith(f"dropped to fit 35 s: {gone} (--budget ")
    assert {point.workload.integer("bytes") for point in cut.points if point.workload.pattern == "stream"} == {8, 2**19}
    assert {point.duration_ms for point in cut.points} == {200}


def test_middle_sizes_go_before_untouched_data_and_that_before_layers(site: PlanSite) -> None:
    catalogue = _catalogue("a-one", "a-two", "b-one", "b-two", "c-one")
    sizes = [f"{2**power}B" for power in range(3, 13)]
    patterns = [{"pattern": "rpc", "request_bytes": sizes, "touch": ["none", "write+read"]}]
    duration = {"default": "200ms", "least": "200ms"}

    def kept(budget: str | None) -> tuple[list[int], list[int], set[str], str]:
        given = {"places": "within", "launches": 9, "baseline": "a-two", "twin": "none"}
        file = tiny(patterns=patterns, duration=duration, **given, **({"budget": budget} if budget else {}))
        plan = make_plan(file, catalogue, WORKLOADS, site)
        by_touch: dict[str, set[int]] = {"write+read": set(), "none": set()}
        for point in plan.points:
            if point.subject.kind == "layer":
                by_touch[str(point.workload["touch"])].add(point.workload.integer("request_bytes"))
        assert {launch.round for launch in plan.launches} == set(range(9))
        layers = {point.subject.layer for point in plan.points if point.subject.kind == "layer"}
        return sorted(by_touch["write+read"]), sorted(by_touch["none"]), layers, " ".join(plan.notices)

    every, all_layers = [2**power for power in range(3, 13)], {"a-one", "a-two", "b-one", "b-two", "c-one"}
    assert kept(None)[:3] == (every, every, all_layers)
    ranking, untouched, layers, said = kept("2min")
    assert ranking == untouched
    assert {8, 4096} < set(ranking) < set(every)
    assert layers == all_layers
    assert "untouched" not in said
    ranking, untouched, layers, said = kept("100s")
    assert len(ranking) == SIZES_LEAST
    assert {8, 4096} < set(ranking)
    assert len(untouched) < SIZES_LEAST
    assert layers == all_layers
    assert "; untouched data at " in said
    ranking, untouched, layers, said = kept("35s")
    assert (len(ranking), untouched) == (SIZES_LEAST, [])
    assert LAYERS_LEAST <= len(layers) < 5
    assert {"a-two", "c-one"} < layers  # the baseline, and the only one of its style
    assert f"the layers {', '.join(sorted(all_layers - layers))}" in said


def test_layers_that_were_asked_for_are_never_dropped(catalogue: Catalogue, site: PlanSite) -> None:
    sizes = [f"{2**power}B" for power in range(3, 13)]
    wide = tiny(patterns=[{"pattern": "rpc", "request_bytes": sizes}], duration={"default": "200ms"}, budget="17s")
    names = [info.name for info in catalogue.usual]
    with pytest.raises(UsageError, match="too short"):
        make_plan(wide, catalogue, WORKLOADS, site, only=names)


def test_floors_touch_data_as_layers_do(catalogue: Catalogue, site: PlanSite) -> None:
    patterns = [
        {"pattern": "rpc", "request_bytes": "4KiB", "touch": ["none", "write+read"]},
        {"pattern": "stream", "bytes": "64KiB", "depth": 8, "touch": "none", "buffers": "same"},
    ]
    plan = make_plan(tiny(patterns=patterns, places="within"), catalogue, WORKLOADS, site)
    found = {
        (point.workload.pattern, point.workload["touch"])
        for point in plan.points
        if point.subject.layer == "floor-copyflag"
    }
    assert found == {("exchange", "none"), ("exchange", "write+read"), ("flow", "none")}


def test_sizes_in_focus_stay(catalogue: Catalogue, site: PlanSite) -> None:
    focus = [{"pattern": "rpc", "request_bytes": "4KiB", "duration": "500ms"}]
    cut = only(
        catalogue,
        site,
        patterns=[{"pattern": "rpc", "request_bytes": [f"{2**power}B" for power in range(3, 17)]}],
        duration={"default": "200ms", "focus": focus},
        budget="35s",
    )
    kept = {point.workload.integer("request_bytes") for point in cut.points}
    assert {8, 4096, 65536} <= kept
    assert len(kept) < 14


@given(
    st.dictionaries(st.integers(0, 2**22), st.integers(1, 10_000), min_size=1, max_size=20),
    st.sets(st.integers(0, 2**22), max_size=5),
    st.integers(-1000, 100_000),
)
def test_the_ends_stay_and_no_more_is_left_out_than_needed(
    cost_ms: dict[int, int], spared: set[int], over_ms: int
) -> None:
    gone = left_out(cost_ms, spared, over_ms)
    stay = set(cost_ms) - set(gone)
    assert not set(gone) & spared
    assert not gone or len(stay) >= min(SIZES_LEAST, len(cost_ms))
    if set(cost_ms) - spared - {min(cost_ms), max(cost_ms)} - set(gone):  # a middle size stays: so do both ends
        assert {min(cost_ms), max(cost_ms)} <= stay
    saved_ms = sum(cost_ms[size] for size in gone)
    free = stay - spared
    assert saved_ms >= over_ms or len(stay) <= SIZES_LEAST or not free
    assert all(saved_ms - cost_ms[size] < over_ms for size in gone)  # none could come back


def test_the_next_size_to_go_leaves_the_smallest_gap() -> None:
    cost_ms = dict.fromkeys([8, 64, 1024, 4096, 16384, 65536, 262144, 1 << 20], 10) | {65536: 11}
    assert left_out(cost_ms, (), 1) == (65536,)
    assert left_out(cost_ms, (), 12) == (4096, 65536)
    assert left_out(cost_ms, (), 1000, keep=2) == (64, 1024, 4096, 16384, 65536, 262144)
    assert left_out(cost_ms, (), 1000, keep=0) == tuple(sorted(cost_ms))


@given(
    st.dictionaries(st.sampled_from([f"{style}-{one}" for style in "abc" for one in range(4)]), st.integers(1, 99)),
    st.sets(st.sampled_from([f"{style}-{one}" for style in "abc" for one in range(4)])),
    st.integers(-10, 900),
)
def test_layers_go_while_their_style_has_another(cost_ms: dict[str, int], spared: set[str], over_ms: int) -> None:
    gone = layers_left_out(cost_ms, spared, over_ms)
    stay = set(cost_ms) - set(gone)
    assert not set(gone) & spared
    assert len(stay) >= min(LAYERS_LEAST, len(cost_ms))
    saved_ms = sum(cost_ms[name] for name in gone)
    assert saved_ms >= over_ms or len(stay) == LAYERS_LEAST or stay <= spared or len(cost_ms) < LAYERS_LEAST
    assert not gone or saved_ms - cost_ms[gone[-1]] < over_ms
    lost = {name[0] for name in cost_ms} - {name[0] for name in stay}
    if lost:  # a whole style is gone: no other has two that could have gone instead
        styles = [name[0] for name in stay - spared]
        assert all(styles.count(style) < 2 for style in styles)


def test_a_budget_shortens_points_and_never_launches(catalogue: Catalogue, site: PlanSite) -> None:
    patterns = [{"pattern": "rpc", "request_bytes": ["8B", "64B", "512B"]}]
    duration = {
        "default": "200ms",
        "least": "25ms",
        "focus": [{"pattern": "rpc", "request_bytes": "8B", "duration": "500ms"}],
    }
    wide = only(catalogue, site, patterns=patterns, duration=duration)
    cut = only(catalogue, site, patterns=patterns, duration=duration, budget="16s")
    assert wide.estimate.wall_s > 16 >= cut.estimate.wall_s > 14
    assert [launch.launch_id for launch in wide.launches] == [launch.launch_id for launch in cut.launches]
    assert [launch.point_ids for launch in wide.launches] == [launch.point_ids for launch in cut.launches]
    durations = {point.workload.integer("request_bytes"): point.duration_ms for point in cut.points}
    assert durations[8] == 500
    assert all(25 <= duration < 200 for size, duration in durations.items() if size != 8)
    assert cut.notices[0].startswith("points shortened to fit the budget of 16 s: ")


def test_a_budget_too_small_says_what_to_leave_out(catalogue: Catalogue, site: PlanSite) -> None:
    with pytest.raises(UsageError, match=r"at 20 ms a point.*it takes .*the longest: .*raise the budget to \d+min"):
        make_plan(tiny(budget="17s"), catalogue, WORKLOADS, site)


def demand(name: str, duration_ms: int, *, focus: bool = False, attempts: int = 10, warmup_percent: int = 0) -> Demand:
    return Demand(
        point_id=name,
        attempts=attempts,
        duration_ms=duration_ms,
        focus=focus,
        layer="a",
        around_ms=5,
        takes=1 + warmup_percent / 100,
    )


@given(
    st.lists(
        st.tuples(st.integers(25, 2000), st.booleans(), st.integers(1, 10), st.sampled_from((0, 80))),
        min_size=1,
        max_size=20,
    ),
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.integers(0, 200_000),
)
def test_spending_keeps_the_budget_or_refuses(
    raw: list[tuple[int, bool, int, int]], fixed_ms: int, idle_fixed_ms: int, budget_ms: int
) -> None:
    demands = [
        demand(str(index), duration, focus=focus, attempts=attempts, warmup_percent=percent)
        for index, (duration, focus, attempts, percent) in enumerate(raw)
    ]
    shortest = sum(item.attempts * item.takes for item in demands) * 20
    try:
        spent, note = spend(demands, fixed_ms=fixed_ms, idle_fixed_ms=idle_fixed_ms, budget_ms=budget_ms, least_ms=25)
    except UsageError:
        assert min(fixed_ms, idle_fixed_ms) + shortest > budget_ms - 1
        return
    total = fixed_ms + sum(item.attempts * item.takes * spent[item.point_id] for item in demands)
    assert total <= max(budget_ms, fixed_ms + shortest) + len(demands)  # rounded, each to a millisecond
    assert all(20 <= spent[item.point_id] <= item.duration_ms for item in demands)
    assert note is not None or all(spent[item.point_id] == item.duration_ms for item in demands)


def test_spending_spares_what_is_in_focus() -> None:
    demands = [demand("plain", 100), demand("focus", 1000, focus=True)]
    durations = [
        dict(spend(demands, fixed_ms=0, idle_fixed_ms=0, budget_ms=budget, least_ms=25)[0])
        for budget in (11_000, 10_300, 5250, 400)
    ]
    assert durations == [
        {"plain": 100, "focus": 1000},
        {"plain": 30, "focus": 1000},
        {"plain": 25, "focus": 500},
        {"plain": 20, "focus": 20},
    ]
    with pytest.raises(UsageError):
        spend(demands, fixed_ms=0, idle_fixed_ms=0, budget_ms=399, least_ms=25)


def test_a_pattern_that_warms_up_for_long_is_planned_with_it(catalogue: Catalogue, site: PlanSite) -> None:
    plain = WORKLOADS.patterns["pingpong"]
    walls_ms = []
    for percent in (0, 80):
        pattern = plain.model_copy(update={"warmup_percent": percent})
        workloads = replace(WORKLOADS, patterns={**WORKLOADS.patterns, "pingpong": pattern})
        plan = make_plan(tiny(patterns=[{"pattern": "pingpong", "bytes": "8B"}]), catalogue, workloads, site)
        walls_ms.append([launch.wall_ms for launch in plan.launches if launch.subject.kind == "layer"])
        durations = {point.duration_ms for point in plan.points if point.subject.kind == "layer"}
    [duration_ms] = durations
    assert {after - before for before, after in zip(*walls_ms, strict=True)} == {round(0.8 * duration_ms)}


def test_a_machine_that_is_slow_at_the_moment_is_no_reason_to_refuse() -> None:
    spent, note = spend([demand("plain", 100)], fixed_ms=90_000, idle_fixed_ms=500, budget_ms=1000, least_ms=25)
    assert spent == {"plain": 20}
    assert note is not None
    assert "may take 1 min 31 s instead of the budget of 1 s" in note


# -- the sweeps that come with Cadge


def shipped(name: str) -> SweepFile:
    """Return a sweep that comes with Cadge, of whatever layers there are."""
    sweep, _ = read_sweep(SWEEPS / f"{name}.yml", WORKLOADS)
    return sweep.model_copy(update={"without": ()})


def test_the_default_sweep_has_every_style_once() -> None:
    """Whoever adds a layer edits no sweep: it joins this one, which leaves out sizes where too many have joined."""
    sweep, _ = read_sweep(SWEEPS / "default.yml", WORKLOADS)
    files = sorted((SWEEPS.parents[1] / "layers").glob("*/*.layer.yml"))
    layers = {f"{file.parent.name}-{file.name.partition('.')[0]}" for file in files} - {"null-self"}
    layers = {name for name in layers if not name.startswith("shims-")}
    assert set(sweep.without) <= layers
    measured = layers - set(sweep.without)
    assert not {f"{style}-ofi" for style in ("am", "bip", "fm", "pm", "vmmc", "rdma")} & measured
    assert {name.partition("-")[0] for name in measured} == {name.partition("-")[0] for name in layers}


def test_layers_that_a_sweep_is_without(catalogue: Catalogue, site: PlanSite) -> None:
    sweep = tiny(without=["b-two"])
    plan = make_plan(sweep, catalogue, WORKLOADS, site)
    assert {point.subject.layer for point in plan.points if point.subject.kind == "layer"} == {"a-one", "c-three"}
    [said] = [notice for notice in plan.notices if "b-two" in notice]
    assert "--layers all" in said
    [said] = make_plan(tiny(without=["b-two", "c-three"]), catalogue, WORKLOADS, site).notices
    assert "b-two, c-three" in said
    plan = make_plan(sweep, catalogue, WORKLOADS, site, only=["b-two"])
    assert {point.subject.layer for point in plan.points if point.subject.kind == "layer"} == {"b-two"}
    with pytest.raises(UsageError, match="no-such"):
        make_plan(tiny(without=["no-such"]), catalogue, WORKLOADS, site)
    with pytest.raises(FormatError, match="where layers are named it says nothing"):
        tiny(layers=["a-one"], without=["b-two"])


def test_the_default_sweep_is_what_it_says(catalogue: Catalogue, site: PlanSite) -> None:
    sweep = shipped("default")
    plan = make_plan(sweep, built(catalogue), WORKLOADS, site)
    assert [block.place for block in plan.blocks] == ["within", "between"]
    layer_points = [point for point in plan.points if point.subject.kind == "layer"]
    assert len({point.workload["bytes"] for point in layer_points if point.workload.pattern == "stream"}) == 8
    assert {point.workload.pattern for point in layer_points} == {"rpc", "pingpong", "stream"}
    bare = {point.workload["bytes"] for point in layer_points if point.workload.pattern == "pingpong"}
    assert bare == {8, 4096, 65536, 1048576}
    # the first number of launches whose 95 % interval drops both extremes
    assert rank_of_interval(sweep.launches) == 2 > rank_of_interval(sweep.launches - 1)
    assert sweep.budget == 540_000
    # nothing is left out or shortened where the machine is idle
    assert not [said for said in plan.notices if "to fit" in said]
    assert {point.duration_ms for point in layer_points} == {sweep.duration.default}
    beside = {(p.workload.pattern, p.workload["touch"]) for p in layer_points if p.workload["touch"] == "none"}
    assert beside == {("rpc", "none"), ("stream", "none"), ("pingpong", "none")}
    cold = {p.workload["bytes"] for p in layer_points if p.workload.pattern == "stream" and p.workload["spread"]}
    assert cold == {1048576}, "large buffers lie in no cache"


@pytest.mark.parametrize("name", ["smoke", "default", "styles", "full-calls"])
def test_the_sweeps_can_be_planned(name: str, catalogue: Catalogue, site: PlanSite) -> None:
    _, text = read_sweep(SWEEPS / f"{name}.yml", WORKLOADS)
    plan = make_plan(shipped(name), built(catalogue), WORKLOADS, site)
    assert plan.launches
    schema = json.loads((SWEEPS.parents[1] / "results/schema/cadge.sweep-2.schema.json").read_text())
    import jsonschema

    jsonschema.validate(yaml.safe_load(text), schema)


def test_a_cluster_is_offered_one_rate_over_all_layers() -> None:
    """Processor time a request depends on the load: a share of each attempt's own closed loop is another load each."""
    rates: dict[str, set[int]] = {}
    for path in sorted(SWEEPS.glob("*.yml")):
        for entry in read_sweep(path, WORKLOADS)[0].patterns:
            if entry.pattern == "press":
                given = entry.parameters.get("offered_per_s", 0)
                rates.setdefault(path.stem, set()).update(given if isinstance(given, (list, tuple)) else (given,))
    assert rates.keys() >= {"press", "press-smoke", "reference"}
    assert not [name for name, found in rates.items() if 0 in found]
    assert {name: len(found) for name, found in rates.items() if len(found) != 1} == {"press": 3}


def test_the_full_sweeps_are_full(catalogue: Catalogue, site: PlanSite) -> None:
    points = []
    for path in sorted(SWEEPS.glob("full-*.yml")):
        sweep, _ = read_sweep(path, WORKLOADS)
        plan = make_plan(sweep, built(catalogue), WORKLOADS, site)
        points += [point for point in plan.points if point.subject.layer == "a-one"]
    assert len({point.point_id for point in points}) == len(points), "nothing is measured in two of them"
    by_pattern = {name: [p.workload for p in points if p.workload.pattern == name] for name in WORKLOADS.patterns}
    assert all(by_pattern[name] for name in ("rpc", "pingpong", "stream", "onesided", "delegated", "handler"))
    assert all(by_pattern[name] for name in ("msgrate", "incast", "fanout", "alltoall", "reconnect"))
    assert len({one["request_bytes"] for one in by_pattern["rpc"] if one["depth"] == 1}) == 24
    assert len({one["bytes"] for one in by_pattern["pingpong"]}) == 24 + 7, "and just below switches"
    assert {point.subject.wait for point in points} == {"poll", "block"}
    assert any(one["request_bytes"] != one["reply_bytes"] for one in by_pattern["rpc"])
    assert {one["bytes"] for one in by_pattern["onesided"] if one["operation"] == "fetch_add"} == {8}
    assert {one["depth"] for one in by_pattern["onesided"] if one["operation"] == "compare_swap"} == {1}
    assert {one["spread"] for one in by_pattern["onesided"] if one["bytes"] == 1 << 20} == {0, 1 << 27}


# -- what blocks are given


def emulated() -> Testbed:
    def host(name: str, last: int) -> Host:
        return Host(
            name=name, management_address=f"198.18.0.{last}", device="data0", address=f"198.19.0.{last}",
            raw_device="raw0", cpus=(0, 1),
        )  # fmt: skip

    return Testbed(
        name="emulated", kind=TestbedKind.EMULATED, hosts=(host("h1", 11), host("h2", 12)), inventory_path=Path("x")
    )


def test_blocks_hold_launch_files(catalogue: Catalogue) -> None:
    testbed = emulated()
    plan = make_plan(tiny(), catalogue, WORKLOADS, site_of(testbed))
    blocks = make_blocks(plan, testbed, "20261121T013042Z-00000000")
    assert [(block.place, [host.name for host in block.hosts], block.leader) for block in blocks] == [
        ("within", ["h1"], "h1"),
        ("between", ["h1", "h2"], "h1"),
    ]
    assert [Block.parse(block.to_json(), source="x") for block in blocks] == blocks
    files = [launch for block in blocks for launch in block.launches]
    assert [file.launch_id for file in files] == [item for block in plan.blocks for item in block.launch_ids]
    for file in files:
        assert [(end.role, end.peers) for end in file.endpoints] == [("client", (1,)), ("server", (0,))]
        ends = [(end.host, end.cpus, end.device, end.address) for end in file.endpoints]
        if file.place == "within":
            assert ends == [("h1", (0,), "lo", "127.0.0.1"), ("h1", (1,), "lo", "127.0.0.1")]
        else:
            assert ends == [("h1", (0,), "data0", "198.19.0.11"), ("h2", (1,), "data0", "198.19.0.12")]
        assert all(point.deadline_ms > point.duration_ms for point in file.points)
        assert file.deadline_ms > sum(point.duration_ms for point in file.points)
        assert set(file.patterns) == {point.workload.pattern for point in file.points}
        for point in file.points:
            assert set(file.patterns[point.workload.pattern]) == set(point.workload.values)
            assert Point(subject=file.subject, workload=point.workload).point_id == point.point_id


def test_launches_that_are_done_are_left_out(catalogue: Catalogue) -> None:
    testbed = emulated()
    plan = make_plan(tiny(), catalogue, WORKLOADS, site_of(testbed))
    first = plan.blocks[0].launch_ids
    blocks = make_blocks(plan, testbed, "c", done=frozenset(first))
    assert [block.block_id for block in blocks] == ["b2"]


def test_a_cluster_without_cpu_lists_pins_nothing(catalogue: Catalogue) -> None:
    hosts = emulated().hosts
    loose = replace(emulated(), kind=TestbedKind.CLUSTER, hosts=tuple(replace(host, cpus=()) for host in hosts))
    plan = make_plan(tiny(), catalogue, WORKLOADS, site_of(loose), only=["a-one"])
    assert all(point.state == "planned" for point in plan.points if point.subject.layer == "a-one")
    blocks = make_blocks(plan, loose, "c")
    assert {end.cpus for block in blocks for file in block.launches for end in file.endpoints} == {(-1,)}


@pytest.mark.parametrize(
    ("kind", "refused"), [(TestbedKind.CLUSTER, {"within"}), (TestbedKind.EMULATED, {"within", "between"})]
)
def test_hosts_of_one_core(kind: TestbedKind, refused: set[str], catalogue: Catalogue) -> None:
    one_each = replace(emulated(), kind=kind, hosts=tuple(replace(host, cpus=(3,)) for host in emulated().hosts))
    plan = make_plan(tiny(waits=["poll", "block"]), catalogue, WORKLOADS, site_of(one_each), only=["a-one"])
    points = [point for point in plan.points if point.subject.layer == "a-one" and point.subject.wait == "poll"]
    assert {point.subject.place for point in points if point.state == "refused"} == refused


# -- patterns with other casts


RING = {
    "schema": "cadge.pattern/1",
    "title": "Ring",
    "summary": "A token goes round.",
    "measures": {"clock": "c", "side": "s", "synchronised": "s", "reduced": "r"},
    "roles": {"member": {"count": "members", "peers": ["neighbours"], "hosts": "all", "acts": True}},
    "parameters": {
        "bytes": {"title": "token", "unit": "bytes", "min": 0, "max": 4096},
        "members": {"title": "members", "unit": "count", "min": 2, "max": 100, "default": 3},
        "pause_ns": {"title": "pause", "unit": "ns", "min": 0, "max": 10**9, "default": 0},
    },
    "quantities": {"lap": {"title": "lap", "unit": "ns", "better": "low", "kind": "histogram"}},
    "axis": "bytes",
    "floor": {"none": "no floor goes round"},
}
FAN = {
    **RING,
    "title": "Fan",
    "roles": {
        "sink": {"count": 1, "peers": ["source"], "hosts": "first", "acts": False, "threads": 2},
        "source": {"count": "members", "peers": ["sink"], "hosts": "others", "acts": True},
    },
}
SERVED = {
    **RING,
    "title": "Site",
    "roles": {
        "visitor": {"count": 1, "peers": ["node"], "hosts": "first", "acts": True},
        "node": {"count": "members", "peers": ["visitor"], "hosts": "spread", "acts": False},
    },
}
GUEST = {
    **RING,
    "title": "Guest",
    "roles": {
        "host": {"peers": ["guest", "guest", "friend"], "hosts": "first", "acts": True},
        "guest": {"peers": ["host", "host"], "hosts": "others", "acts": False},
        "friend": {"when": {"members": 3}, "peers": ["host"], "hosts": "others", "acts": True},
    },
}
MORE = replace(
    WORKLOADS,
    patterns={
        **WORKLOADS.patterns,
        "ring": PatternFile.from_object(RING, source="ring"),
        "fan": PatternFile.from_object(FAN, source="fan"),
        "guest": PatternFile.from_object(GUEST, source="guest"),
        "site": PatternFile.from_object(SERVED, source="site"),
    },
)


def cast(name: str, place: Any, hosts: int, **values: int) -> list[tuple[str, str, tuple[int, ...]]]:  # noqa: ANN401
    workload = MORE.patterns[name].workload(name, {"bytes": 8, **values})
    found = cast_of(MORE.patterns[name], workload, place, [f"h{number}" for number in range(1, hosts + 1)])
    return [(end.role, end.host, end.peers) for end in found]


def test_a_ring_has_neighbours() -> None:
    assert cast("ring", "within", 4) == [("member", "h1", (2, 1)), ("member", "h1", (0, 2)), ("member", "h1", (1, 0))]
    assert [host for _, host, _ in cast("ring", "between", 4, members=6)] == ["h1", "h2", "h3", "h4", "h1", "h2"]
    assert cast("ring", "between", 2, members=2) == [("member", "h1", (1,)), ("member", "h2", (0,))]
    assert cast("ring", "self", 4) == [("member", "h1", (0,))]


@pytest.mark.parametrize(
    ("hosts", "on"),
    [(2, ["h2", "h1", "h2"]), (3, ["h2", "h3", "h1"]), (4, ["h2", "h3", "h4"]), (9, ["h2", "h3", "h4"])],
)
def test_who_is_spread_shares_the_first_host_only_where_hosts_are_few(hosts: int, on: list[str]) -> None:
    assert [host for role, host, _ in cast("site", "between", hosts, members=3) if role == "node"] == on


def test_a_role_may_be_there_for_some_values_alone_and_have_two_channels_to_another() -> None:
    assert cast("guest", "between", 2, members=2) == [("host", "h1", (1, 1)), ("guest", "h2", (0, 0))]
    assert cast("guest", "between", 2, members=3) == [
        ("host", "h1", (1, 1, 2)),
        ("guest", "h2", (0, 0)),
        ("friend", "h2", (0,)),
    ]


def test_a_role_of_some_values_is_none_of_the_one_endpoint_at_self(catalogue: Catalogue) -> None:
    info = replace(catalogue.get("a-one"), absent=None)
    info = replace(info, file=info.file.model_copy(update={"places": ("self",)}))
    patterns = [{"pattern": "guest", "bytes": "8B", "members": [2, 3]}]
    sweep = tiny(patterns=patterns, places="self", floors=False)
    plan = make_plan(sweep, Catalogue((info,), ()), MORE, make_site(1, 2), only=["a-one"])
    why = {point.workload["members"]: point.reason for point in plan.points}
    assert why == {2: None, 3: "place self has one endpoint; friend is another one"}


def test_pairs_have_channels_to_themselves() -> None:
    assert cast("pingpong", "between", 3, pairs=2) == [
        ("client", "h1", (2,)),
        ("client", "h1", (3,)),
        ("server", "h2", (0,)),
        ("server", "h3", (1,)),
    ]
    assert cast("pingpong", "self", 1, pairs=2) == [("client", "h1", (0,))]


def test_others_are_spread_over_the_other_hosts() -> None:
    assert cast("fan", "between", 3, members=3) == [
        ("sink", "h1", (1, 2, 3)),
        ("source", "h2", (0,)),
        ("source", "h3", (0,)),
        ("source", "h2", (0,)),
    ]
    assert {host for _, host, _ in cast("fan", "within", 3, members=3)} == {"h1"}


@given(
    st.sampled_from(["ring", "fan"]),
    st.sampled_from(["self", "within", "between"]),
    st.integers(2, 63),
    st.integers(1, 5),
)
def test_channels_have_two_ends(name: str, place: str, members: int, hosts: int) -> None:
    found = cast(name, place, hosts, members=members)
    for number, (_, _, peers) in enumerate(found):
        assert len(set(peers)) == len(peers)
        assert all(number in found[peer][2] for peer in peers)
        assert place == "self" or number not in peers


def test_launches_share_a_cast(catalogue: Catalogue) -> None:
    patterns = [
        {"pattern": "rpc", "request_bytes": "8B"},
        {"pattern": "pingpong", "bytes": "8B"},
        {"pattern": "ring", "bytes": "8B", "members": [3, 4], "pause_ns": "20us"},
        {"pattern": "fan", "bytes": "8B", "members": 2},
    ]
    site = make_site(4, 8)
    sweep = tiny(patterns=patterns, waits="block", floors=False)
    plan = make_plan(sweep, catalogue, MORE, site, only=["a-one"])
    by_cast = {
        (launch.subject.place, len(launch.endpoints)): {plan.by_id[item].workload.pattern for item in launch.point_ids}
        for launch in plan.launches
        if launch.endpoints[0].role != "sink"
    }
    assert by_cast == {
        **{(place, 2): {"rpc", "pingpong"} for place in ("within", "between")},
        **{(place, count): {"ring"} for place in ("within", "between") for count in (3, 4)},
    }
    assert [(block.place, block.hosts) for block in plan.blocks] == [
        ("within", ("h1",)),
        ("between", ("h1", "h2")),
        ("between", ("h1", "h2", "h3")),
        ("between", ("h1", "h2", "h3", "h4")),
    ]
    launch = next(one for one in plan.launches if one.endpoints[0].role == "sink" and one.subject.place == "between")
    assert say_cast(launch.endpoints) == "sink on h1; source on h2; source on h3"
    ring = next(point for point in plan.points if point.workload.pattern == "ring")
    assert ring.workload["pause_ns"] == 20_000


def test_every_thread_has_a_processor_of_its_own(catalogue: Catalogue) -> None:
    testbed = emulated()
    patterns = [{"pattern": "fan", "bytes": "8B", "members": 2}]
    sweep = tiny(patterns=patterns, waits=["poll", "block"], floors=False, places="within")
    plan = make_plan(sweep, catalogue, MORE, site_of(testbed), only=["a-one"])
    refused = [point for point in plan.points if point.state == "refused"]
    assert [point.reason for point in refused] == [
        "4 busy-polling threads would share 2 cores and starve each other; "
        "in block mode a-one sleeps instead (waits: block)"
    ]
    file = make_blocks(plan, testbed, "c")[0].launches[0]
    assert [end.cpus for end in file.endpoints] == [(0, 1), (0,), (1,)]


def test_a_host_bears_so_many_contexts_of_a_layer(catalogue: Catalogue) -> None:
    """One context has the host's link to itself; between two hosts, the two threads of a sink would be on one."""
    bears = Contexts(a_host=1, reason="a context has the link to itself")
    layers = tuple(replace(info, file=info.file.model_copy(update={"contexts": bears})) for info in catalogue.layers)
    patterns = [{"pattern": "fan", "bytes": "8B", "members": 2}, {"pattern": "rpc", "request_bytes": "8B", "depth": 1}]
    workloads = replace(MORE, patterns={**MORE.patterns, **WORKLOADS.patterns})
    sweep = tiny(patterns=patterns, waits="block", places="between", floors=False)
    site = make_site(4, 8)
    plan = make_plan(sweep, Catalogue(layers, catalogue.shims), workloads, site, only=["a-one"])
    assert {point.workload.pattern: (point.reason_code, point.reason) for point in plan.points} == {
        "fan": ("NODE_LACKS", "a context has the link to itself; here 2 would have to share a host"),
        "rpc": (None, None),
    }


def test_hands_are_threads_with_processors(catalogue: Catalogue) -> None:
    testbed = emulated()
    roles = {**FAN["roles"], "sink": {**FAN["roles"]["sink"], "threads": 1, "hands": 2}}
    workloads = replace(MORE, patterns={"fan": PatternFile.from_object({**FAN, "roles": roles}, source="fan")})
    sweep = tiny(patterns=[{"pattern": "fan", "bytes": "8B", "members": 2}], waits=["poll", "block"], floors=False)
    plan = make_plan(sweep, catalogue, workloads, site_of(testbed), only=["a-one"])
    sharing = "5 busy-polling threads would share 2 cores and starve each other; "
    why = {(point.subject.place, point.subject.wait): point.reason for point in plan.points}
    assert why["within", "poll"] == f"{sharing}in block mode a-one sleeps instead (waits: block)"
    assert why["within", "block"] is None
    files = [launch for block in make_blocks(plan, testbed, "c") for launch in block.launches]
    assert {(end.role, end.cpus, end.hands) for file in files for end in file.endpoints} == {
        ("sink", (0,), (1, 0)),
        ("source", (1,), ()),
        ("source", (0,), ()),
    }


def test_threads_by_a_choice(catalogue: Catalogue) -> None:
    """Each word of a choice has a number of its own, or names the parameter that says it."""
    way = {"title": "way", "type": "choice", "values": ["alone", "many"], "default": "alone"}
    sink = {**FAN["roles"]["sink"], "threads": {"way": {"alone": 1, "many": "members"}}}
    fan = {
        **FAN,
        "roles": {**FAN["roles"], "sink": {**sink, "hands": {"way": {"alone": 3, "many": 0}}}},
        "parameters": {**FAN["parameters"], "way": way},
    }
    workloads = replace(MORE, patterns={"fan": PatternFile.from_object(fan, source="fan")})
    points = [{"pattern": "fan", "bytes": "8B", "members": 2, "way": ["alone", "many"]}]
    plan = make_plan(
        tiny(patterns=points, places="within", waits="block", floors=False),
        catalogue,
        workloads,
        make_site(2, 8),
        only=["a-one"],
    )
    seats = {launch.endpoints[0] for launch in plan.launches}
    assert {(seat.role, seat.threads, seat.hands) for seat in seats} == {("sink", 1, 3), ("sink", 2, 0)}
    patience = {launch.endpoints[0].threads: launch.deadline_ms - 4 * launch.wall_ms for launch in plan.launches}
    assert patience == {1: 10_500, 2: 11_000}, "each context beyond two takes time to open and to connect"


def test_threads_by_two_choices(catalogue: Catalogue) -> None:
    """Where one is given by two, or is one less than a parameter: a thread that has the context is one of them."""
    words = {"way": ["alone", "many"], "who": ["each", "one"]}
    chosen = {name: {"title": name, "type": "choice", "values": two, "default": two[0]} for name, two in words.items()}
    sink = {**FAN["roles"]["sink"], "threads": {"way": {"alone": 1, "many": "members"}}}
    sink["hands"] = {"way": {"alone": {"who": {"each": "members - 1", "one": "members"}}, "many": 0}}
    fan = {
        **FAN,
        "roles": {**FAN["roles"], "sink": sink},
        "parameters": {**FAN["parameters"], **chosen},
    }
    workloads = replace(MORE, patterns={"fan": PatternFile.from_object(fan, source="fan")})
    points = [{"pattern": "fan", "bytes": "8B", "members": 3, **words}]
    sweep = tiny(patterns=points, places="within", waits="block", floors=False)
    plan = make_plan(sweep, catalogue, workloads, make_site(2, 8), only=["a-one"])
    seats = {launch.endpoints[0] for launch in plan.launches}
    assert {(seat.threads, seat.hands) for seat in seats} == {(1, 2), (1, 3), (3, 0)}
    for hands, problem in (
        ({"way": {"alone": {"who": {"each": 1}}, "many": 0}}, "has to be given for each of each, one"),
        ({"way": {"alone": "nobody - 1", "many": 0}}, "there is no number nobody - 1"),
    ):
        with pytest.raises(FormatError, match=problem):
            PatternFile.from_object({**fan, "roles": {**FAN["roles"], "sink": {**sink, "hands": hands}}}, source="fan")
    sink["threads"] = "members - 1"
    with pytest.raises(FormatError, match="one thread at least"):
        PatternFile.from_object(fan, source="fan")


def test_hands_sleep_where_the_layer_has_a_descriptor(catalogue: Catalogue) -> None:
    roles = {**FAN["roles"], "sink": {**FAN["roles"]["sink"], "threads": 1, "hands": 2}}
    workloads = replace(MORE, patterns={"fan": PatternFile.from_object({**FAN, "roles": roles}, source="fan")})
    sweep = tiny(patterns=[{"pattern": "fan", "bytes": "8B", "members": 2}], waits="block", floors=False)

    def plan_of(*caps: str) -> Plan:
        info = replace(catalogue.get("a-one"), description=Description(claims=frozenset(caps)))
        return make_plan(sweep, Catalogue((info,), ()), workloads, make_site(2, 8), only=["a-one"])

    assert {point.reason for point in plan_of("WAIT", "EVENT_FD").points} == {None}
    with pytest.raises(NothingSelectedError, match=r"a-one has no descriptor to wait for \(event_fd\)"):
        plan_of("WAIT")


def test_a_layer_with_settings_may_grant_whatever_it_claims(catalogue: Catalogue) -> None:
    """What it grants was found without settings; what it does not even claim it lacks with any."""
    file = PatternFile.from_object({**FAN, "needs": [{"caps": ["LEND"]}]}, source="fan")
    info = next(one for one in catalogue.layers if one.name == "a-one")

    def plan(claims: frozenset[str]) -> Plan:
        description = Description(claims=claims, contexts={("within", "block"): Context()})
        layers = [{"layer": "a-one"}, {"layer": "a-one", "settings": {"lend": "yes"}}]
        patterns = [{"pattern": "fan", "bytes": "8B", "members": 2}]
        sweep = tiny(layers=layers, patterns=patterns, waits="block", places="within", floors=False)
        known = replace(catalogue, layers=(replace(info, description=description),))
        return make_plan(sweep, known, replace(MORE, patterns={"fan": file}), make_site(2, 8))

    found = {bool(point.subject.settings): point.reason for point in plan(frozenset({"LEND"})).points}
    assert found == {False: "a-one has no lend", True: None}
    with pytest.raises(NothingSelectedError, match="a-one has no lend"):
        plan(frozenset())


def test_more_endpoints_than_there_may_be(catalogue: Catalogue, site: PlanSite) -> None:
    sweep = tiny(patterns=[{"pattern": "fan", "bytes": "8B", "members": 64}], waits="block")
    with pytest.raises(UsageError, match=r"patterns\.0: fan: 65 endpoints are more than 64"):
        make_plan(sweep, catalogue, MORE, site)


def test_one_host_is_not_two(catalogue: Catalogue, site: PlanSite) -> None:
    alone = {**RING, "roles": {"member": {**RING["roles"]["member"], "hosts": "first"}}}  # type: ignore[index]
    lone = replace(MORE, patterns={"ring": PatternFile.from_object(alone, source="ring")})
    sweep = tiny(patterns=[{"pattern": "ring", "bytes": "8B"}], waits="block")
    plan = make_plan(sweep, catalogue, lone, site, only=["a-one"])
    between = [point for point in plan.points if point.subject.place == "between"]
    assert [(point.reason_code, point.reason) for point in between] == [
        ("PLACE", "all its endpoints would run on one host; use place within")
    ]


def test_launch_ids_rise_in_the_order_of_running(catalogue: Catalogue, site: PlanSite) -> None:
    for block in make_plan(tiny(), catalogue, WORKLOADS, site).blocks:
        numbers = [int(item.split("-")[1]) for item in block.launch_ids]
        assert all(after == before + 1 for before, after in pairwise(numbers))


@pytest.mark.parametrize(
    ("loader", "reason"),
    [
        ("libfoo.so.1: cannot open shared object file: No such file or directory",
         "libfoo.so.1 is not on this machine; Debian: apt install libfoo1"),
        ("/x/a-one.so: version `GLIBC_2.38' not found (required by /x/a-one.so)",
         f"it needs GLIBC_2.38, and this machine has {' '.join(platform.libc_ver())}; build Cadge on this machine"),
        ("/x/a-one.so: undefined symbol: foo", "layer 'a-one' cannot be loaded: /x/a-one.so: undefined symbol: foo"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_refused_where_the_hosts_are_this_machine(
    loader: str, reason: str, catalogue: Catalogue, site: PlanSite
) -> None:
    """On the hosts of a cluster the library may be there: that is theirs to say."""
    info = catalogue.get("a-one")
    file = info.file.model_copy(update={"packages": Packages(run=("libfoo1",))})
    info = replace(
        info, file=file, description=read_description({"reason": f"layer 'a-one' cannot be loaded: {loader}"})
    )
    pattern = WORKLOADS.patterns["rpc"]
    item = WantedPoint(workload=pattern.workload("rpc", {"request_bytes": 8}), place="between", wait="poll")
    cast = cast_of(pattern, item.workload, item.place, site.host_names)
    assert refuse_point(info, item, pattern, cast, replace(site, here=False)) is None
    found = refuse_point(info, item, pattern, cast, replace(site, here=True))
    assert found == Refusal(code=Reason.NODE_LACKS, reason=reason)


@pytest.mark.parametrize("here", [True, False])
def test_what_this_user_may_not_open_is_refused_where_the_hosts_are_this_machine(
    here: bool, catalogue: Catalogue, site: PlanSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the hosts of a cluster he may: that is theirs to say."""
    forbidden = {"opens": False, "reason_code": "PERMISSION", "reason": "a raw socket needs CAP_NET_RAW"}
    answer: dict[str, object] = {
        "table": {"caps": ["NET"]},
        "opens": [{"place": "between", "wait": "poll", **forbidden}],
    }
    info = replace(catalogue.get("a-one"), description=read_description(answer))
    item = WantedPoint(
        workload=WORKLOADS.patterns["rpc"].workload("rpc", {"request_bytes": 8}), place="between", wait="poll"
    )
    file = WORKLOADS.patterns["rpc"]
    cast = cast_of(file, item.workload, item.place, site.host_names)
    found = refuse_point(info, item, file, cast, replace(site, here=here))
    assert (found and found.code) == (Reason.PERMISSION if here else None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    context = read_description(answer).contexts["between", "poll"]
    assert isinstance(context, Refusal)
    assert "run cadge with sudo" in context.reason


def cluster(*users: str, **more: object) -> Testbed:
    """Two hosts that other users log in to."""
    made = emulated()
    variables = {host.name: {"ansible_user": user, **more} for host, user in zip(made.hosts, users, strict=True)}
    return replace(made, kind=TestbedKind.CLUSTER, name="lab", host_variables=variables)


@pytest.mark.parametrize(
    ("testbed", "refused"),
    [
        (cluster("root", "root"), set()),
        (cluster("root", "alice"), {"floor-packet", "floor-xdp"}),
        (cluster("alice", "alice"), {"floor-packet", "floor-xdp"}),
        (cluster("alice", "alice", cadge_build_path="/opt/build"), set()),  # its driver may have the rights
        (cluster("alice", "alice", ansible_become=True), set()),
        (cluster("{{ me }}", "{{ me }}"), set()),
        (replace(cluster("alice", "alice"), kind=TestbedKind.EMULATED), set()),  # these hosts lend them
    ],
)
def test_what_a_clusters_user_may_not_open_is_refused(
    catalogue: Catalogue, testbed: Testbed, refused: set[str]
) -> None:
    """Raw sockets take root, or rights that a plain user does not have: no attempt is made to find that out."""
    plan = make_plan(tiny(places="between"), catalogue, WORKLOADS, site_of(testbed), only=["a-one"])
    raw = {point.subject.layer for point in plan.points if point.subject.kind == "floor"}
    assert {"floor-packet", "floor-xdp"} <= raw
    forbidden = [point for point in plan.points if point.reason_code is Reason.PERMISSION]
    assert {point.subject.layer for point in forbidden} == refused
    assert all(point.state == "refused" for point in forbidden)
    said = {point.reason or "" for point in forbidden if point.subject.layer == "floor-packet"}
    assert all(" needs CAP_NET_RAW, which alice does not have on h" in reason for reason in said)
    assert all("ansible_user" in reason and "setcap cap_net_raw+ep" in reason for reason in said)


def test_a_layer_that_takes_rights_is_refused_likewise(catalogue: Catalogue) -> None:
    file = catalogue.get("a-one").file.model_copy(update={"rights": ("net_raw",)})
    layers = tuple(
        replace(info, file=file) if info.name == "a-one" else info
        for info in catalogue.layers
        if info.name != "c-three"
    )
    plan = make_plan(tiny(places="between"), replace(catalogue, layers=layers), WORKLOADS, site_of(cluster("al", "al")))
    codes = {(point.subject.layer, point.reason_code) for point in plan.points if point.subject.kind == "layer"}
    assert codes == {("a-one", Reason.PERMISSION), ("b-two", None)}


def test_who_logs_in_is_what_the_inventory_says_else_sshs_configuration(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host 198.18.0.12\n  User root\nHost *\n  User alice\n")
    made = emulated()
    given = {"ansible_ssh_common_args": f"-F '{config}'"}
    variables: dict[str, dict[str, object]] = {
        "h1": {"ansible_host": "198.18.0.11", **given},
        "h2": {"ansible_host": "198.18.0.12", **given},
        "h3": {"ansible_host": "198.18.0.12", "ansible_user": "bob", **given},
        "h4": {"ansible_connection": "local"},
        "h5": {"ansible_connection": "docker"},
        "h6": {"ansible_ssh_common_args": "-F 'no end"},
    }
    testbed = replace(made, kind=TestbedKind.CLUSTER, host_variables=variables)
    assert [login_of(testbed, name) for name in variables] == ["alice", "root", "bob", getpass.getuser(), None, None]
    assert login_of(replace(testbed, kind=TestbedKind.EMULATED), "h1") is None


def test_a_plan_says_what_is_known_of_its_layers_beside_plain_programs(catalogue: Catalogue, site: PlanSite) -> None:
    """Of those that it has, over the library that the build found by itself."""
    known = BesideNative(
        pattern="rpc", bytes_max=8, ratio=(0.5, 0.7), command="cadge crosscheck --layers a-one", measured="today"
    )
    first, *others = (
        replace(info, file=info.file.model_copy(update={"beside_native": (known,)})) for info in catalogue.layers
    )
    told = Catalogue((first, *others), catalogue.shims)
    plan = make_plan(tiny(floors=False), told, WORKLOADS, site, only=[first.name])
    assert plan.beside_native == {first.name: (known,)}
    assert plan.plan_hash == plan.expected_hash()
    assert Plan.parse(plan.to_json(), source="x") == plan
    assert make_plan(tiny(floors=False), catalogue, WORKLOADS, site, only=[first.name]).beside_native == {}
