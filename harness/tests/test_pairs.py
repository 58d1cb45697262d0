# SPDX-License-Identifier: BSD-3-Clause
"""Patterns over pairs of hosts: which pairs a sweep asks for, and how they are planned."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.plan.blocks import make_blocks
from cadge_harness.plan.cast import pairs_of, rounds_of, with_pair
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.sweep import read_sweep
from cadge_results import Plan, SweepFile
from cadge_results.errors import FormatError
from cadge_results.formats.sweep import LayerEntry

from .conftest import WORKLOADS, make_site, make_testbed

SWEEPS = Path(__file__).parents[1] / "sweeps"


def planned(catalogue: Catalogue, hosts: int = 4, **changes: Any) -> Plan:  # noqa: ANN401 - keys of a sweep
    """Return the plan of a small sweep between hosts."""
    raw = {
        "schema": "cadge.sweep/2",
        "title": "pairs",
        "layers": ["a-one"],
        "places": ["within", "between"],
        "patterns": [{"pattern": "rpc", "request_bytes": ["8B", "4KiB"]}],
        "launches": 2,
        "floors": False,
        "twin": "none",
        "duration": "40ms",
        **changes,
    }
    return make_plan(SweepFile.from_object(raw, source="test"), catalogue, WORKLOADS, make_site(hosts, cores=8))


@given(st.integers(2, 40))
def test_rounds_are_disjoint_and_meet_every_pair_once(count: int) -> None:
    hosts = [f"h{number}" for number in range(count)]
    rounds = list(rounds_of(hosts))
    assert len(rounds) == count - 1 + count % 2
    for one in rounds:
        used = [host for pair in one for host in pair]
        assert len(used) == len(set(used)) == count - count % 2
    met = Counter(frozenset(pair) for one in rounds for pair in one)
    assert len(met) == count * (count - 1) // 2
    assert set(met.values()) == {1}


def test_which_pairs_a_sweep_asks_for() -> None:
    hosts = ["a", "b", "c", "d"]
    assert pairs_of("first", hosts, 1) == []
    assert pairs_of("neighbours", hosts, 1) == [("a", "b"), ("b", "c"), ("c", "d")]
    every = pairs_of("all", hosts, 1)
    assert sorted(every) == sorted((one, other) for one in hosts for other in hosts if one != other)
    assert pairs_of("all", ["a"], 1) == []
    many = [f"h{number}" for number in range(100)]
    some = pairs_of(8, many, 1)
    assert len(some) == len(set(some)) == 8 * 100
    assert Counter(first for first, _ in some) == dict.fromkeys(many, 8)
    assert some != pairs_of(8, many, 2)
    assert len(pairs_of(50, hosts, 1)) == 12, "no pair twice, however many are asked for"


def test_a_pair_is_part_of_the_point(catalogue: Catalogue) -> None:
    plan = planned(catalogue, pairs="all")
    between = [launch for launch in plan.launches if launch.subject.place == "between"]
    pairs = Counter(launch.subject.setting("hosts.pair") for launch in between)
    assert len(pairs) == 12
    assert set(pairs.values()) == {2}
    for launch in between:
        assert launch.subject.setting("hosts.pair") == ",".join(end.host for end in launch.endpoints)
        assert launch.subject.label.startswith("a-one (hosts.pair=")
    within = {launch.subject.setting("hosts.pair") for launch in plan.launches if launch.subject.place == "within"}
    assert within == {None}
    plain = planned(catalogue)
    assert {point.point_id for point in plain.points if point.subject.place == "within"} < {
        p.point_id for p in plan.points
    }


def test_pairs_of_a_leader_share_a_block(catalogue: Catalogue) -> None:
    plan = planned(catalogue, pairs="all", places=["between"])
    assert [block.hosts[0] for block in plan.blocks] == list(dict.fromkeys(block.hosts[0] for block in plan.blocks))
    assert len(plan.blocks) == 4
    for block in make_blocks(plan, make_testbed(hosts=4), "20261130T000000Z-00000000"):
        assert {launch.endpoints[0].host for launch in block.launches} == {block.leader}
        assert len(block.hosts) == 4
        assert len(block.launches) == 6


def test_one_pair_may_be_named(catalogue: Catalogue) -> None:
    entry = {"layer": "a-one", "settings": {"hosts.pair": "h4,h2"}}
    plan = planned(catalogue, layers=[entry, "a-one"], places=["between"], pairs="neighbours")
    pairs = {tuple(end.host for end in launch.endpoints) for launch in plan.launches}
    assert pairs == {("h4", "h2"), ("h1", "h2"), ("h2", "h3"), ("h3", "h4")}


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"hosts.pair": "h1"}, "h1 is no pair of hosts, as h1,h2 is"),
        ({"hosts.pair": "h1,h1"}, "is no pair of hosts"),
        ({"hosts.pair": "h1,h2,h3"}, "is no pair of hosts"),
        ({"hosts.pair": "h1,h9"}, "hosts.pair: h1,h9: the testbed has no host h9; it has h1, h2"),
        ({"hosts.pairs": "h1,h2"}, "there is no setting hosts.pairs; there is hosts.pair"),
    ],
)
def test_a_pair_that_is_none(settings: dict[str, str], wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        with_pair(settings, ["h1", "h2"])


def test_of_many_hosts_some_are_named_where_one_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"it has h0, h1, h2, h3, h4, h5, h6, h7 and 992 more$"):
        with_pair({"hosts.pair": "h1,n9"}, [f"h{number}" for number in range(1000)])


def test_a_pair_that_is_named_twice_is_measured_once(catalogue: Catalogue) -> None:
    """With spaces or without, by an entry or by the sweep; the other way round it is another pair."""
    named = [{"layer": "a-one", "settings": {"hosts.pair": pair}} for pair in ("h1,h2", "h1, h2", " h1 ,h2", "h2,h1")]
    plan = planned(catalogue, layers=named, places=["between"])
    assert Counter(launch.subject.setting("hosts.pair") for launch in plan.launches) == {"h1,h2": 2, "h2,h1": 2}
    both = planned(catalogue, layers=[*named, "a-one"], places=["between"], pairs="neighbours")
    pairs = Counter(launch.subject.setting("hosts.pair") for launch in both.launches)
    assert pairs == dict.fromkeys(("h1,h2", "h2,h1", "h2,h3", "h3,h4"), 2)


@pytest.mark.parametrize("pairs", [0, -1, "every", 1.5])
def test_pairs_that_a_sweep_cannot_ask_for(pairs: object, catalogue: Catalogue) -> None:
    with pytest.raises(FormatError):
        planned(catalogue, pairs=pairs)


def test_a_pattern_of_many_hosts_has_no_pairs(catalogue: Catalogue) -> None:
    patterns = [{"pattern": "incast", "clients": 3, "request_bytes": "8B"}]
    plan = planned(catalogue, pairs="all", places=["between"], patterns=patterns)
    assert {point.subject.setting("hosts.pair") for point in plan.points} == {None}


def test_idle_hosts_of_a_cluster_are_named(catalogue: Catalogue) -> None:
    raw = {"schema": "cadge.sweep/2", "title": "t", "patterns": [{"pattern": "rpc", "request_bytes": "8B"}]}
    sweep = SweepFile.from_object({**raw, "launches": 1, "duration": "40ms"}, source="test")
    idle = "take no part"
    cluster = replace(make_site(7, cores=8), here=False)
    (said,) = [one for one in make_plan(sweep, catalogue, WORKLOADS, cluster).notices if idle in one]
    assert said == "5 hosts of 7 take no part: h3, h4, h5 and 2 more (pairs: all measures every pair)"
    every = sweep.model_copy(update={"pairs": "all"})
    assert not [one for one in make_plan(every, catalogue, WORKLOADS, cluster).notices if idle in one]
    assert not [
        one for one in make_plan(sweep, catalogue, WORKLOADS, replace(cluster, here=True)).notices if idle in one
    ]


def test_health_of_a_single_host_says_what_to_add(catalogue: Catalogue) -> None:
    """Once, however many layers it has."""
    site = replace(make_site(1, cores=8), here=False)
    sweep, _ = read_sweep(SWEEPS / "health.yml", WORKLOADS, set())
    sweep = sweep.model_copy(update={"layers": tuple(LayerEntry(layer=name) for name in ("a-one", "b-two"))})
    with pytest.raises(NothingSelectedError) as refused:
        make_plan(sweep, catalogue, WORKLOADS, site)
    assert str(refused.value) == (
        f"nothing can be measured: a-one between/poll, b-two between/poll: testbed {site.name} has one host; place "
        "between needs two: add another host to group cadge of the inventory"
    )


def test_mpirun_reaches_no_host_by_ipv6(catalogue: Catalogue) -> None:
    """Pairs of the others are planned, and so are layers that the agents start."""
    site = make_site(3, cores=8)
    site = replace(site, hosts=(*site.hosts[:2], replace(site.hosts[2], by_v6=True)))
    raw = {"schema": "cadge.sweep/2", "title": "t", "patterns": [{"pattern": "rpc", "request_bytes": "8B"}]}
    change = {"layers": ["a-one", "b-two"], "pairs": "all", "places": "between", "waits": "poll", "floors": False}
    sweep = SweepFile.from_object({**raw, **change, "launches": 1, "duration": "40ms", "twin": "none"}, source="test")
    plan = make_plan(sweep, catalogue, WORKLOADS, site)
    refused = {point.subject.setting("hosts.pair"): point.reason for point in plan.points if point.state == "refused"}
    assert set(refused) == {"h1,h3", "h3,h1", "h2,h3", "h3,h2"}
    assert set(refused.values()) == {
        "mpirun does not reach h3 by IPv6: set its cadge_management_address to an IPv4 one"
    }
    assert {point.subject.layer for point in plan.points if point.state == "refused"} == {"b-two"}


@pytest.mark.parametrize(("free_bytes", "refused"), [(4 << 20, {"b-two"}), (8 << 20, set()), (None, set())])
def test_mpi_within_a_host_needs_shared_memory(free_bytes: int | None, refused: set[str], catalogue: Catalogue) -> None:
    """With too little Open MPI takes TCP instead, and the attempts are unsound."""
    site = make_site(2, cores=8)
    site = replace(site, hosts=tuple(replace(host, shm_free_bytes=free_bytes) for host in site.hosts))
    raw = {"schema": "cadge.sweep/2", "title": "t", "patterns": [{"pattern": "rpc", "request_bytes": "8B"}]}
    change = {"layers": ["a-one", "b-two"], "places": ["within", "between"], "waits": "poll", "floors": False}
    sweep = SweepFile.from_object({**raw, **change, "launches": 1, "duration": "40ms", "twin": "none"}, source="test")
    found = [point for point in make_plan(sweep, catalogue, WORKLOADS, site).points if point.state == "refused"]
    assert {point.subject.layer for point in found} == refused
    assert {(point.subject.place, point.reason) for point in found} == {
        (
            "within",
            "MPI within a host needs 8 MB of shared memory; /dev/shm of h1 has 4 MB free: "
            "mount -o remount,size=1g /dev/shm; of a container: --shm-size=1g",
        )
        for _ in refused
    }


def test_a_layer_of_ipv4_alone_is_refused_where_hosts_have_ipv6(catalogue: Catalogue) -> None:
    """Within a host it uses the loopback, and other layers reach the hosts."""
    site = make_site(2, cores=8)
    site = replace(site, hosts=tuple(replace(host, data_v6=True) for host in site.hosts))
    one = catalogue.get("a-one")
    layers = [replace(one, file=one.file.model_copy(update={"ipv4_only": True})), catalogue.get("b-two")]
    raw = {"schema": "cadge.sweep/2", "title": "t", "patterns": [{"pattern": "rpc", "request_bytes": "8B"}]}
    change = {"layers": [info.name for info in layers], "places": ["within", "between"], "waits": "poll"}
    more = {"floors": False, "launches": 1, "duration": "40ms", "twin": "none"}
    plan = make_plan(
        SweepFile.from_object({**raw, **change, **more}, source="test"), Catalogue(tuple(layers)), WORKLOADS, site
    )
    assert {(point.subject.layer, point.subject.place): point.reason for point in plan.points} == {
        ("a-one", "within"): None,
        ("a-one", "between"): "a-one does not reach h1 by IPv6: set its cadge_address to an IPv4 one",
        ("b-two", "within"): None,
        ("b-two", "between"): None,
    }


def test_the_sweep_of_health() -> None:
    sweep, _ = read_sweep(SWEEPS / "health.yml", WORKLOADS, set())
    assert (sweep.pairs, sweep.launches, sweep.floors) == ("all", 2, False)
