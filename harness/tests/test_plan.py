# SPDX-License-Identifier: BSD-3-Clause
"""Planning: pure, stable, interleaved, honest about what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.plan.blocks import make_blocks
from cadge_harness.plan.budget import Demand, spend
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.describe import read_description
from cadge_harness.plan.floors import FLOORS
from cadge_harness.plan.planner import Subject, make_plan, point_id
from cadge_harness.plan.site import Site, site_of
from cadge_harness.plan.sweep import Workload, read_sweep
from cadge_harness.testbed.model import Host, Kind, Testbed
from cadge_results import LaunchFile, Plan, SweepFile
from cadge_results.layerfile import Limit, LimitWhen

SWEEPS = Path(__file__).parents[1] / "sweeps"


def tiny(**changes: object) -> SweepFile:
    raw = {
        "schema": "cadge.sweep/1",
        "title": "tiny",
        "patterns": [
            {"pattern": "rpc", "request": ["8B", "4KiB"]},
            {"pattern": "stream", "bytes": "64KiB", "depth": 8},
        ],
        "launches": 4,
        "duration": {"default": "40ms", "least": "25ms"},
    }
    return SweepFile.from_object({**raw, **changes}, source="test")


def built(catalogue: Catalogue) -> Catalogue:
    return Catalogue(tuple(replace(info, absent=None) for info in catalogue.layers), catalogue.shims)


def only(catalogue: Catalogue, site: Site, **changes: object) -> Plan:
    return make_plan(tiny(floors=False, **changes), catalogue, site, only=["a-one"])


def test_the_same_input_gives_the_same_plan(catalogue: Catalogue, site: Site) -> None:
    plan = make_plan(tiny(), catalogue, site)
    assert plan == make_plan(tiny(), catalogue, site)
    assert plan.plan_hash == plan.expected_hash()
    assert Plan.parse(plan.to_json(), source="x") == plan


def test_every_launch_attempts_each_of_its_points_once(catalogue: Catalogue, site: Site) -> None:
    plan = make_plan(tiny(), catalogue, site)
    planned = {point.point_id: point for point in plan.points if point.state == "planned"}
    attempts = Counter(item for launch in plan.launches for item in launch.point_ids)
    assert attempts == dict.fromkeys(planned, 4)
    assert len({launch.launch_id for launch in plan.launches}) == len(plan.launches)
    for launch in plan.launches:
        for item in launch.point_ids:
            point = planned[item]
            assert (point.layer, point.place, point.wait) == (launch.layer, launch.place, launch.wait)


def test_a_limit_may_speak_of_the_target_alone(catalogue: Catalogue, site: Site) -> None:
    limit = Limit(when=LimitWhen(place="within", target="passive"), reason="it has to poll")
    layers = tuple(
        replace(info, file=info.file.model_copy(update={"limits": (limit,)}), absent=None) for info in catalogue.layers
    )
    sweep = tiny(patterns=[{"pattern": "onesided", "bytes": "8B", "operation": "put", "target": ["active", "passive"]}])
    plan = make_plan(sweep, Catalogue(layers, catalogue.shims), site, only=["a-one"])
    refused = {(point.place, point.target) for point in plan.points if point.reason == limit.reason}
    assert refused == {("within", "passive")}
    assert {point.reason_code for point in plan.points if point.reason == limit.reason} == {"NO_CAP"}


def test_blocks_are_places_and_rounds_are_interleaved(catalogue: Catalogue, site: Site) -> None:
    plan = make_plan(tiny(), built(catalogue), site)
    assert [(block.block_id, block.place, block.hosts) for block in plan.blocks] == [
        ("b1", "within", 1),
        ("b2", "between", 2),
    ]
    by_id = {launch.launch_id: launch for launch in plan.launches}
    for block in plan.blocks:
        launches = [by_id[item] for item in block.launch_ids]
        assert [launch.round for launch in launches] == sorted(launch.round for launch in launches)
        orders = {tuple(launch.layer for launch in launches if launch.round == number) for number in range(4)}
        assert len(orders) > 1, "the order of layers is the same in every round"
        assert {frozenset(order) for order in orders} == {frozenset(launch.layer for launch in launches)}


def test_points_are_shuffled_within_a_launch(catalogue: Catalogue, site: Site) -> None:
    sizes = [f"{2**power}B" for power in range(3, 12)]
    plan = only(catalogue, site, patterns=[{"pattern": "rpc", "request": sizes}], places="within")
    orders = {launch.point_ids for launch in plan.launches}
    assert len(orders) == 4
    assert {frozenset(order) for order in orders} == {frozenset(plan.launches[0].point_ids)}


def test_the_seed_changes_the_order_and_nothing_else(catalogue: Catalogue, site: Site) -> None:
    first, second = (make_plan(tiny(seed=seed), catalogue, site) for seed in (1, 2))
    assert {point.point_id for point in first.points} == {point.point_id for point in second.points}
    assert [launch.layer for launch in first.launches] != [launch.layer for launch in second.launches]
    assert {launch.seed for launch in first.launches}.isdisjoint(launch.seed for launch in second.launches)


def test_floors_are_paired_with_layers(catalogue: Catalogue, site: Site) -> None:
    plan = make_plan(tiny(waits=["poll", "block"]), catalogue, site)
    floors = {(launch.layer, launch.place, launch.wait) for launch in plan.launches if launch.kind == "floor"}
    assert floors == {
        ("floor-cacheline", "within", "poll"),
        ("floor-copyflag", "within", "poll"),
        ("floor-futex", "within", "block"),
        ("floor-xdp", "between", "poll"),
        ("floor-xdp", "between", "block"),
        *(
            (name, place, wait)
            for name in ("floor-tcp", "floor-udp")
            for place in ("within", "between")
            for wait in ("poll", "block")
        ),
    }
    for number in range(4):
        assert {launch.kind for launch in plan.launches if launch.round == number} == {"layer", "floor"}
    assert all(
        launch.layer != "floor-xdp" for launch in make_plan(tiny(), catalogue, replace(site, raw_links=False)).launches
    )
    sizes = {point.request_bytes for point in plan.points if point.layer == "floor-tcp" and point.pattern == "pingpong"}
    assert sizes == {8, 4096}


def test_the_planner_knows_what_the_floors_program_does() -> None:
    program = Path(os.environ.get("CADGE_BUILD") or SWEEPS.parents[1] / "build") / "bin/cadge-floor"
    if not program.is_file():
        pytest.skip(f"{program} is not built")
    listed = subprocess.run([str(program), "list"], capture_output=True, text=True, check=True, timeout=30)
    theirs = {}
    for line in listed.stdout.splitlines():
        name, rest = line.split(maxsplit=1)
        places, waits, patterns = rest.rsplit("  ", 1)[1].strip().split("; ")
        theirs[name] = tuple(frozenset(words.split(", ")) for words in (places, waits, patterns))
    assert theirs == {floor.name: (floor.places, floor.waits, floor.patterns) for floor in FLOORS}


def test_refused_points_say_why(catalogue: Catalogue, site: Site) -> None:
    plan = make_plan(tiny(waits=["poll", "block"]), catalogue, site)
    why = {
        (point.layer, point.wait): (point.reason_code, point.reason)
        for point in plan.points
        if point.state == "refused"
    }
    assert why["b-two", "block"] == ("NO_WAIT", "b-two only polls")
    assert why["c-three", "poll"] == ("BUILD_ABSENT", "not built: libthree is missing (pkg-config three)")
    assert ("a-one", "poll") not in why


def test_one_host_refuses_what_takes_two(catalogue: Catalogue, site: Site) -> None:
    plan = make_plan(tiny(), catalogue, replace(site, name="local", hosts=1))
    assert [block.place for block in plan.blocks] == ["within"]
    reasons = {point.reason for point in plan.points if point.place == "between" and point.layer == "a-one"}
    assert reasons == {"testbed local has one host, and between takes two"}


def test_more_pollers_than_cores_are_refused(catalogue: Catalogue, site: Site) -> None:
    narrow = replace(site, cores_within=1, cores_between=2)
    plan = make_plan(tiny(waits=["poll", "block"]), catalogue, narrow)
    within = {
        point.wait: point.reason_code for point in plan.points if point.layer == "a-one" and point.place == "within"
    }
    assert within == {"poll": "NODE_LACKS", "block": None}
    assert any("share 1 core" in (point.reason or "") for point in plan.points)


def test_what_the_driver_described_refuses_points(catalogue: Catalogue, site: Site) -> None:
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
        {"pattern": "rpc", "request": "8B"},
        {"pattern": "onesided", "bytes": "8B", "operation": ["put", "get", "fetch_add"]},
    ]
    plan = make_plan(tiny(patterns=patterns, waits=["poll", "block"], floors=False), described, site)
    codes = {(point.place, point.wait, point.operation): point.reason_code for point in plan.points}
    assert codes["within", "poll", None] is None
    assert codes["within", "poll", "put"] is None
    assert codes["within", "poll", "get"] == codes["within", "poll", "fetch_add"] == "NO_CAP"
    assert codes["within", "block", None] == "NO_WAIT"
    assert codes["between", "poll", None] is None, "what only this machine lacks was refused for all"
    assert codes["between", "block", "get"] is None


def test_nothing_to_measure(catalogue: Catalogue, site: Site) -> None:
    with pytest.raises(
        NothingSelectedError, match=r"nothing can be measured: c-three within/poll: not built: libthree"
    ):
        make_plan(tiny(), catalogue, site, only=["c-three"])
    with pytest.raises(NothingSelectedError, match="none of the layers a-one is in this sweep"):
        make_plan(tiny(layers=["b-two"]), catalogue, site, only=["a-one"])


def test_shims_and_settings_are_points_of_their_own(catalogue: Catalogue, site: Site) -> None:
    entry = {"layer": "a-one", "shims": ["delay"], "settings": {"delay.delay_ns": 20000}}
    plan = make_plan(tiny(layers=["a-one", entry], floors=False), catalogue, site)
    kinds = {(launch.shims, tuple(launch.settings.items())) for launch in plan.launches}
    assert kinds == {((), ()), (("delay",), (("delay.delay_ns", "20000"),))}
    with pytest.raises(UsageError, match="unknown shim 'delya'; did you mean delay"):
        make_plan(tiny(layers=[entry | {"shims": ["delya"]}]), catalogue, site)


def test_a_star_stands_for_every_layer_that_matches(catalogue: Catalogue, site: Site) -> None:
    entries = ["a-one", {"layer": "*-t*"}, "*-one", {"layer": "*-one", "settings": {"off": "all"}}]
    plan = make_plan(tiny(layers=entries, floors=False), catalogue, site)
    found = {(point.layer, point.settings.get("off"), point.state) for point in plan.points}
    assert found == {
        ("a-one", None, "planned"),
        ("a-one", "all", "planned"),
        ("b-two", None, "planned"),
        ("c-three", None, "refused"),
    }
    assert len({point.point_id for point in plan.points}) == len(plan.points)
    narrowed = make_plan(tiny(layers=entries, floors=False), catalogue, site, only=["b-two"])
    assert {point.layer for point in narrowed.points} == {"b-two"}
    with pytest.raises(UsageError, match=r"no layer matches 'd-\*'; there are: a-one, b-two, c-three"):
        make_plan(tiny(layers=["d-*"]), catalogue, site)


SIZES = st.sampled_from([0, 1, 8, 64, 4096])


@given(st.sampled_from(["a", "b"]), SIZES, SIZES, st.integers(1, 64), st.dictionaries(st.text(), st.text(), max_size=4))
def test_ids_do_not_depend_on_the_order_of_settings(
    layer: str, request: int, reply: int, depth: int, settings: dict[str, str]
) -> None:
    work = Workload(pattern="rpc", request_bytes=request, reply_bytes=reply, depth=depth)
    there, back = (
        Subject(kind="layer", layer=layer, place="within", wait="poll", settings=tuple(items))
        for items in (sorted(settings.items()), sorted(settings.items(), reverse=True))
    )
    assert point_id(there, work) == point_id(back, work)
    other = replace(work, depth=depth + 1)
    assert point_id(there, other) != point_id(there, work)


def shuffled(value: object, draw: st.DataObject) -> object:
    """Return the same document with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = draw.draw(st.permutations(list(value)))
        return {key: shuffled(value[key], draw) for key in keys}
    return [shuffled(item, draw) for item in value] if isinstance(value, list) else value


@given(st.data())
def test_plans_do_not_depend_on_key_order_or_on_spelling_defaults(data: st.DataObject) -> None:
    spelled: dict[str, object] = {
        "schema": "cadge.sweep/1",
        "title": "t",
        "patterns": [{"pattern": "rpc", "request": "8B"}],
        "launches": 2,
        "duration": {"default": "40ms"},
    }
    plain = SweepFile.from_object(spelled, source="t")
    defaults: dict[str, object] = {"seed": 1, "floors": True, "layers": "all", "waits": ["poll"]}
    chosen = data.draw(st.sets(st.sampled_from(sorted(defaults))))
    pattern = data.draw(
        st.sampled_from(
            [
                {"pattern": "rpc", "request": ["8B"], "depth": [1]},
                {"pattern": "rpc", "request": "8B", "reply": "same"},
                {"pattern": "rpc", "request": "8 B", "reply": "8B", "depth": 1},
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
    ids = [{point.point_id for point in make_plan(sweep, CATALOGUE, SITE).points} for sweep in (plain, other)]
    assert ids[0] == ids[1]


SITE = Site(name="x", hosts=2, cores_within=2, cores_between=2, raw_links=True, ports=(1, 2))


def _catalogue() -> Catalogue:
    from cadge_harness.plan.catalogue import LayerInfo
    from cadge_results import LayerFile

    raw = {"schema": "cadge.layer/1", "title": "t", "style": "a", "substrate": "one", "library": "l", "licence": "x"}
    file = LayerFile.from_object({**raw, "rpc": "native", "places": ["within", "between"]}, source="t")
    return Catalogue((LayerInfo(file=file),))


CATALOGUE = _catalogue()


# -- budgets


def test_a_budget_shortens_points_and_never_launches(catalogue: Catalogue, site: Site) -> None:
    sizes = [f"{2**power}B" for power in range(3, 20)]
    patterns = [{"pattern": "rpc", "request": sizes}]
    duration = {
        "default": "200ms",
        "least": "25ms",
        "focus": [{"pattern": "rpc", "request": "8B", "duration": "500ms"}],
    }
    wide = only(catalogue, site, patterns=patterns, duration=duration)
    cut = only(catalogue, site, patterns=patterns, duration=duration, budget="35s")
    assert wide.estimate.wall_s > 35 >= cut.estimate.wall_s > 30
    assert [launch.launch_id for launch in wide.launches] == [launch.launch_id for launch in cut.launches]
    assert [launch.point_ids for launch in wide.launches] == [launch.point_ids for launch in cut.launches]
    durations = {point.request_bytes: point.duration_ms for point in cut.points}
    assert durations[8] == 500
    assert all(25 <= duration < 200 for size, duration in durations.items() if size != 8)
    assert cut.notices[0].startswith("points shortened to fit the budget of 35 s: ")


def test_a_budget_too_small_says_what_to_leave_out(catalogue: Catalogue, site: Site) -> None:
    with pytest.raises(UsageError, match=r"at 20 ms a point.*it takes .*the dearest: .*raise the budget to \d+min"):
        make_plan(tiny(budget="17s"), catalogue, site)


def demand(name: str, duration_ms: int, *, focus: bool = False, attempts: int = 10) -> Demand:
    return Demand(point_id=name, attempts=attempts, duration_ms=duration_ms, focus=focus, layer="a", around_ms=5)


@given(
    st.lists(st.tuples(st.integers(25, 2000), st.booleans(), st.integers(1, 10)), min_size=1, max_size=20),
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.integers(0, 200_000),
)
def test_spending_keeps_the_budget_or_refuses(
    raw: list[tuple[int, bool, int]], fixed_ms: int, idle_fixed_ms: int, budget_ms: int
) -> None:
    demands = [
        demand(str(index), duration, focus=focus, attempts=attempts)
        for index, (duration, focus, attempts) in enumerate(raw)
    ]
    shortest = sum(item.attempts for item in demands) * 20
    try:
        spent, note = spend(demands, fixed_ms=fixed_ms, idle_fixed_ms=idle_fixed_ms, budget_ms=budget_ms, least_ms=25)
    except UsageError:
        assert min(fixed_ms, idle_fixed_ms) + shortest > budget_ms
        return
    total = fixed_ms + sum(item.attempts * spent[item.point_id] for item in demands)
    assert total <= max(budget_ms, fixed_ms + shortest)
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


def test_a_machine_that_is_slow_at_the_moment_is_no_reason_to_refuse() -> None:
    spent, note = spend([demand("plain", 100)], fixed_ms=90_000, idle_fixed_ms=500, budget_ms=1000, least_ms=25)
    assert spent == {"plain": 20}
    assert note is not None
    assert "may take 1 min 31 s instead of the budget of 1 s" in note


# -- the sweeps that come with Cadge


def test_the_default_sweep_is_what_it_says(catalogue: Catalogue, site: Site) -> None:
    sweep, _ = read_sweep(SWEEPS / "default.yml")
    plan = make_plan(sweep, built(catalogue), site)
    assert [block.place for block in plan.blocks] == ["within", "between"]
    layer_points = [point for point in plan.points if point.kind == "layer"]
    assert len({point.request_bytes for point in layer_points}) == 9
    assert {point.pattern for point in layer_points} == {"rpc", "stream"}
    assert sweep.launches == 6
    assert sweep.budget == 300_000
    durations = {(point.pattern, point.request_bytes): point.duration_ms for point in layer_points}
    assert durations["rpc", 8] == 250
    assert min(durations.values()) >= 25


@pytest.mark.parametrize("name", ["smoke", "default", "full"])
def test_the_sweeps_can_be_planned(name: str, catalogue: Catalogue, site: Site) -> None:
    sweep, text = read_sweep(SWEEPS / f"{name}.yml")
    plan = make_plan(sweep, built(catalogue), site)
    assert plan.launches
    schema = json.loads((SWEEPS.parents[1] / "results/schema/cadge.sweep-1.schema.json").read_text())
    import jsonschema

    jsonschema.validate(yaml.safe_load(text), schema)


def test_the_full_sweep_is_full(catalogue: Catalogue, site: Site) -> None:
    sweep, _ = read_sweep(SWEEPS / "full.yml")
    plan = make_plan(sweep, built(catalogue), site)
    points = [point for point in plan.points if point.layer == "a-one"]
    assert len({point.request_bytes for point in points if point.pattern == "rpc" and point.depth == 1}) == 24
    assert {point.wait for point in points} == {"poll", "block"}
    assert {point.pattern for point in points} == {"pingpong", "rpc", "stream", "onesided"}
    assert any(point.request_bytes != point.reply_bytes for point in points if point.pattern == "rpc")
    assert {point.request_bytes for point in points if point.operation == "fetch_add"} == {8}


# -- what blocks are given


def emulated() -> Testbed:
    def host(name: str, last: int) -> Host:
        return Host(
            name=name, management_address=f"198.18.0.{last}", device="data0", address=f"198.19.0.{last}",
            raw_device="raw0", cpus=(0, 1),
        )  # fmt: skip

    return Testbed(
        name="emulated", kind=Kind.EMULATED, hosts=(host("h1", 11), host("h2", 12)), inventory_path=Path("x")
    )


def test_blocks_hold_launch_files(catalogue: Catalogue) -> None:
    testbed = emulated()
    plan = make_plan(tiny(), catalogue, site_of(testbed))
    blocks = make_blocks(plan, testbed, "20261121T013042Z-00000000")
    assert [(block["place"], len(block["hosts"] or [])) for block in blocks] == [("within", 1), ("between", 2)]  # type: ignore[arg-type]
    files = [
        LaunchFile.from_object(launch, source="x") for block in blocks for launch in block["launches"] or []  # type: ignore[union-attr]
    ]  # fmt: skip
    assert [file.launch_id for file in files] == [item for block in plan.blocks for item in block.launch_ids]
    for file in files:
        ends = [(end.host, end.cpu, end.device, end.address) for end in file.endpoints]
        if file.place == "within":
            assert ends == [("h1", 0, "lo", "127.0.0.1"), ("h1", 1, "lo", "127.0.0.1")]
        else:
            assert ends == [("h1", 0, "data0", "198.19.0.11"), ("h2", 1, "data0", "198.19.0.12")]
        assert all(point.deadline_ms > point.duration_ms for point in file.points)
        assert file.deadline_ms > sum(point.duration_ms for point in file.points)


def test_launches_that_are_done_are_left_out(catalogue: Catalogue) -> None:
    testbed = emulated()
    plan = make_plan(tiny(), catalogue, site_of(testbed))
    first = plan.blocks[0].launch_ids
    blocks = make_blocks(plan, testbed, "c", done=frozenset(first))
    assert [block["block_id"] for block in blocks] == ["b2"]


def test_a_cluster_without_cpu_lists_pins_nothing() -> None:
    testbed = replace(emulated(), kind=Kind.CLUSTER, hosts=tuple(replace(host, cpus=()) for host in emulated().hosts))
    assert site_of(testbed).cores_within is None
    one_each = replace(
        emulated(), kind=Kind.CLUSTER, hosts=tuple(replace(host, cpus=(3,)) for host in emulated().hosts)
    )
    assert (site_of(one_each).cores_within, site_of(one_each).cores_between) == (1, 2)
    shared = replace(emulated(), hosts=tuple(replace(host, cpus=(0,)) for host in emulated().hosts))
    assert site_of(shared).cores_between == 1


def test_launch_ids_rise_in_the_order_of_running(catalogue: Catalogue, site: Site) -> None:
    for block in make_plan(tiny(), catalogue, site).blocks:
        numbers = [int(item.split("-")[1]) for item in block.launch_ids]
        assert all(after == before + 1 for before, after in pairwise(numbers))
