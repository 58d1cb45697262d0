# SPDX-License-Identifier: BSD-3-Clause
"""One layer is measured twice, and nobody who measures can tell which of both series is the second."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from cadge_harness.errors import UsageError
from cadge_harness.plan.blocks import make_blocks
from cadge_harness.plan.catalogue import Catalogue, Context, Description
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import PlanSite, site_of
from cadge_harness.plan.timemodel import TimeModel
from cadge_results import LaunchFile, Plan, PlanLaunch, Point, Subject

from .conftest import WORKLOADS
from .test_plan import built, emulated, tiny

pytestmark = pytest.mark.spare


def twins(plan: Plan) -> set[tuple[str, str]]:
    return {(one.subject.layer, one.subject.place) for one in plan.points if one.subject.twin}


def test_the_seed_chooses_a_layer_for_each_place(catalogue: Catalogue, site: PlanSite) -> None:
    found = {}
    for seed in range(12):
        plan = make_plan(tiny(launches=9, seed=seed), built(catalogue), WORKLOADS, site)
        assert plan == make_plan(tiny(launches=9, seed=seed), built(catalogue), WORKLOADS, site)
        chosen = {(one.subject.place, one.subject.wait): one.subject.layer for one in plan.points if one.subject.twin}
        planned = [one.subject for one in plan.points if one.subject.kind == "layer" and one.state == "planned"]
        assert chosen.keys() == {(one.place, one.wait) for one in planned}
        names = sorted(set(chosen.values()))
        assert len(names) == min(len(chosen), len({one.layer for one in planned})), "as many layers as may be"
        assert any(" and ".join(names) in one and "measured twice" in one for one in plan.notices)
        found[seed] = chosen["within", "poll"]
    assert len(set(found.values())) > 1


def test_the_twin_has_the_points_and_the_launches_of_its_layer(catalogue: Catalogue, site: PlanSite) -> None:
    plan = make_plan(tiny(launches=9, twin="a-one"), built(catalogue), WORKLOADS, site)
    for place in ("within", "between"):
        alone = [p for p in plan.points if (p.subject.layer, p.subject.place) == ("a-one", place)]
        both = {twin: {p.workload for p in alone if p.subject.twin is twin} for twin in (True, False)}
        assert both[True] == both[False]
        assert len({p.point_id for p in alone}) == 2 * len(both[True])
        assert len({p.duration_ms for p in alone}) == 1
        rounds = Counter(
            (one.round, one.subject.twin)
            for one in plan.launches
            if (one.subject.layer, one.subject.place) == ("a-one", place)
        )
        assert rounds == {(turn, twin): 1 for turn in range(9) for twin in (True, False)}
    without = make_plan(tiny(launches=9, twin="none"), built(catalogue), WORKLOADS, site)
    assert not twins(without)
    assert {p.point_id for p in without.points} == {p.point_id for p in plan.points if not p.subject.twin}
    assert {one.launch_id[-8:] for one in without.launches} == {
        one.launch_id[-8:] for one in plan.launches if not one.subject.twin
    }


def test_who_is_measured_twice(catalogue: Catalogue, site: PlanSite) -> None:
    ready = built(catalogue)
    assert not twins(make_plan(tiny(launches=5), ready, WORKLOADS, site)), "A/A could say nothing"
    assert not twins(make_plan(tiny(launches=9), ready, WORKLOADS, site, only=["a-one"])), "nothing is compared"
    assert {name for name, _ in twins(make_plan(tiny(twin="b-two"), ready, WORKLOADS, site))} == {"b-two"}
    every = make_plan(tiny(twin="all"), ready, WORKLOADS, site)
    assert twins(every) == {
        (p.subject.layer, p.subject.place) for p in every.points if p.subject.kind == "layer" and p.state == "planned"
    }
    elsewhere = make_plan(tiny(twin="b-two", launches=9), ready, WORKLOADS, site, only=["a-one"])
    assert not twins(elsewhere)
    assert "no layer is measured twice: b-two, the sweep's twin, is not measured here" in elsewhere.notices
    with pytest.raises(UsageError, match="twin: 'a-on' is not a layer of this sweep; did you mean a-one"):
        make_plan(tiny(twin="a-on"), ready, WORKLOADS, site)
    # a plain layer before one with settings, and another one at each place where there is another
    layers = [{"layer": "a-one", "settings": {"x": "1"}}, "b-two", {"layer": "c-three", "places": ["within"]}]
    for seed in range(8):
        found = twins(make_plan(tiny(launches=9, seed=seed, layers=layers), ready, WORKLOADS, site))
        assert found in ({("b-two", "between"), ("c-three", "within")}, {("b-two", "between"), ("b-two", "within")})
    # one that has few points only where no other is there
    few = [{"pattern": "rpc", "request_bytes": ["8B", "1KiB", "4KiB"], "layers": ["b-two", "c-three"]}]
    few += [{"pattern": "rpc", "request_bytes": "8B", "layers": ["a-one"]}]
    for seed in range(8):
        found = twins(make_plan(tiny(launches=9, seed=seed, patterns=few), ready, WORKLOADS, site))
        assert not {name for name, _ in found} & {"a-one"}


def test_what_will_be_refused_is_not_measured_twice(catalogue: Catalogue) -> None:
    """Neither what the driver cannot open here, nor what it refused when it was last attempted."""
    sweep, ready, testbed = tiny(launches=9), built(catalogue), emulated()
    opens = {(place, "poll"): Context() for place in ("within", "between")}
    closed = Description(contexts={("within", "poll"): Context()})
    described = Catalogue(
        tuple(
            replace(info, description=closed if info.name == "a-one" else Description(contexts=opens))
            for info in ready.layers
        ),
        ready.shims,
    )
    refused = frozenset(
        point.point_id
        for point in make_plan(sweep, ready, WORKLOADS, site_of(testbed)).points
        if point.subject.layer == "a-one" and point.subject.place == "between"
    )
    for seed in range(12):
        one = tiny(launches=9, seed=seed)
        assert ("a-one", "between") not in twins(make_plan(one, described, WORKLOADS, site_of(testbed)))
        after = site_of(testbed, TimeModel(refused=refused))
        assert ("a-one", "between") not in twins(make_plan(one, ready, WORKLOADS, after))


def test_points_that_are_no_twins_keep_their_ids() -> None:
    plain = Subject(layer="a-one", place="within", wait="poll")
    assert "twin" not in plain.model_dump(mode="json")
    again = plain.model_copy(update={"twin": True})
    workload = WORKLOADS.file("rpc").workload("rpc", {"request_bytes": 8})
    assert Point(subject=plain, workload=workload).point_id != Point(subject=again, workload=workload).point_id
    assert (plain.label, again.label) == ("a-one", "a-one (again)")


def blinded(launch: LaunchFile) -> dict[str, object]:
    """Return what a launch file says but for names, seed and order, which differ between any two launches."""
    said = launch.to_object()
    del said["launch_id"], said["seed"]
    points = [{**one, "point_id": "", "attempt_id": ""} for one in said["points"]]
    return {**said, "points": sorted(points, key=lambda one: json.dumps(one, sort_keys=True))}


def test_nothing_that_reaches_a_host_tells_the_twin(catalogue: Catalogue) -> None:
    testbed = emulated()
    plan = make_plan(tiny(launches=9, twin="a-one"), built(catalogue), WORKLOADS, site_of(testbed))
    planned = {one.launch_id: one for one in plan.launches}
    pairs: dict[tuple[str, int], dict[bool, LaunchFile]] = {}
    for block in make_blocks(plan, testbed, "20261121T013042Z-00000000"):
        text = block.to_json().lower()
        assert "twin" not in text
        assert "again" not in text
        for launch in block.launches:
            one = planned[launch.launch_id]
            assert not launch.subject.twin
            if launch.layer == "a-one":
                pairs.setdefault((launch.place, one.round), {})[one.subject.twin] = launch
    assert len(pairs) == 2 * 9
    for both in pairs.values():
        assert blinded(both[True]) == blinded(both[False])
        # the order of points is its own in each launch, as of any two
    assert any([p.workload for p in a[True].points] != [p.workload for p in a[False].points] for a in pairs.values())


def test_a_twin_is_shuffled_like_any_other(catalogue: Catalogue, site: PlanSite) -> None:
    """It is as often before its layer as behind it, and as often next to it as any two of three layers are."""
    plan = make_plan(tiny(launches=200, twin="a-one", floors=False), built(catalogue), WORKLOADS, site)
    orders: dict[tuple[str, int], list[PlanLaunch]] = {}
    for one in plan.launches:
        orders.setdefault((one.block, one.round), []).append(one)
    first, next_to = 0, 0
    for order in orders.values():
        assert len(order) == 4
        own, twin = (
            next(k for k, one in enumerate(order) if one.subject.layer == "a-one" and one.subject.twin is is_twin)
            for is_twin in (False, True)
        )
        first += twin < own
        next_to += abs(twin - own) == 1
    assert 160 < first < 240  # of 400; half of them, and four standard deviations
    assert 160 < next_to < 240  # of 6 pairs of places 3 are next to each other
