# SPDX-License-Identifier: BSD-3-Clause
"""The model of a cluster of servers: hits beside a simulated cache, costs that were known beforehand, stations."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import replace
from itertools import accumulate

import pytest

from cadge_analysis.models.least_squares import can_tell, costs, solve
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_study_press.cluster import Cluster, Demands, Machine, MeasuredPoint, fit, flow_of, station_ns, throughput
from cadge_study_press.model import gain
from cadge_study_press.popularity import FileSet
from cadge_study_press.spec import say

KIB = 1024
SITE = FileSet(total_bytes=600 * 14200, file_bytes=14200, reply_bytes=9700, alpha=0.8)


def of_sizes(site: FileSet) -> list[tuple[float, float]]:
    """Return share and size of every file, rank by rank."""
    return [(one.share, one.size) for one in site.groups for _ in range(round(one.files))]


def test_files_have_the_means_that_they_are_made_of() -> None:
    assert SITE.count == 600
    assert sum(one.files * one.share for one in SITE.groups) == pytest.approx(1, rel=1e-3)
    assert SITE.bytes / SITE.count == pytest.approx(14200, rel=0.01)
    assert SITE.asked_bytes == pytest.approx(9700, rel=0.01)
    assert replace(SITE, alpha=1.0).asked_bytes < SITE.asked_bytes, "more requests for what is popular, and short"


@pytest.mark.parametrize("alpha", [0.6, 0.8, 1.0])
def test_a_cache_that_forgets_has_what_a_simulated_one_has(alpha: float) -> None:
    site = replace(SITE, alpha=alpha)
    files, cache = of_sizes(site), 2_000_000
    rng = random.Random(3)
    below = list(accumulate(share for share, _ in files))
    kept: OrderedDict[int, float] = OrderedDict()
    used = hits = 0.0
    asked = rng.choices(range(len(files)), cum_weights=below, k=30_000)
    for number, one in enumerate(asked):
        if one in kept:
            kept.move_to_end(one)
            hits += number >= 10_000
            continue
        kept[one] = files[one][1]
        used += files[one][1]
        while used > cache:
            used -= kept.popitem(last=False)[1]
    assert site.kept(cache) == pytest.approx(hits / 20_000, abs=0.015)
    assert site.mass(cache) > site.kept(cache) + 0.05, "to hold what is most popular would be better"


def test_mass_is_that_of_the_first_files() -> None:
    files = of_sizes(SITE)
    wanted, left = 0.0, 500_000.0
    for share, size in files:
        wanted += share * min(1.0, left / size)
        left -= min(left, size)
    assert SITE.mass(500_000) == pytest.approx(wanted, rel=0.01)
    assert SITE.mass(1e9) == pytest.approx(1)
    assert SITE.kept(1e9) == 1


def cluster(nodes: int, percent: int, alpha: float = 0.8) -> Cluster:
    cache = 4096 * KIB
    site = FileSet(nodes * cache * percent / 100, 14200, 9700, alpha)
    return Cluster(nodes=nodes, cache_bytes=cache, site=site, disk_ns=2e6, disks=8)


TRUE = Demands(
    replicas=0.004,
    pieces=1.05,
    spare=0.02,
    head_bytes=48,
    request_ns=7000,
    miss_ns=50_000,
    message_ns=3000,
    kib_ns=800,
    sleep_ns=6000,
    woken=0.7,
    asker_ns=10_000,
    pause_ns=60_000,
    forward_pause_ns=40_000,
    points=0,
    slept=True,
)
SHARED = Machine(processors=2, shared=True)


def seen(where: Cluster, load: float, rate_s: float) -> MeasuredPoint:
    """Return a point as it would be measured if TRUE held exactly."""
    flow = TRUE.flow(where)
    cpu_ns = TRUE.cpu_ns(where, flow, rate_s)
    busy = rate_s * cpu_ns / where.nodes / 1e9
    changes = 1 if where.site.bytes <= where.nodes * where.cache_bytes else 2
    return MeasuredPoint(
        cluster=where,
        flow=flow,
        files=flow.forwarded * TRUE.pieces,
        told=flow.missed * (where.nodes - 1) * changes,
        sleeps=TRUE.woken * flow.arrivals * (1 - busy),
        load=load,
        rate_s=rate_s,
        cpu_ns=cpu_ns,
        cpu_by_round={RoundKey(0): cpu_ns, RoundKey(1): 2 * cpu_ns},
        asker_ns=TRUE.asker_ns,
        usual_ns=TRUE.usual_ns(where, flow, SHARED, rate_s),
        response_ns=TRUE.response_ns(where, flow, SHARED, rate_s),
        machine=SHARED,
    )


FITTED = [
    seen(cluster(1, 50), 50, 60_000),
    seen(cluster(1, 400), 50, 8000),
    seen(cluster(2, 50), 50, 30_000),
    seen(cluster(2, 400), 50, 9000),
    seen(cluster(4, 50), 50, 35_000),
    seen(cluster(4, 400), 50, 15_000),
    seen(cluster(4, 100), 20, 5000),
    seen(cluster(4, 100), 80, 40_000),
]


def test_known_costs_are_found_again_and_predict_other_points() -> None:
    found = fit(FITTED, 48)
    assert isinstance(found, Demands)
    assert found.costs == pytest.approx(TRUE.costs, rel=1e-3)
    assert found.replicas == pytest.approx(TRUE.replicas, rel=1e-3)
    assert (found.pieces, found.spare, found.woken) == pytest.approx((TRUE.pieces, TRUE.spare, TRUE.woken), rel=1e-3)
    assert (found.pause_ns, found.forward_pause_ns) == pytest.approx((TRUE.pause_ns, TRUE.forward_pause_ns), rel=1e-3)
    for where, rate_s in ((cluster(8, 100), 30_000), (cluster(4, 200, 0.6), 20_000)):
        new = seen(where, 50, rate_s)
        flow = found.flow(where)
        assert found.cpu_ns(where, flow, rate_s) == pytest.approx(new.cpu_ns, rel=1e-3)
        assert found.usual_ns(where, flow, SHARED, rate_s) == pytest.approx(new.usual_ns, rel=1e-3)
        assert found.response_ns(where, flow, SHARED, rate_s) == pytest.approx(new.response_ns, rel=1e-3)
    assert found.by_round[RoundKey(1)] == pytest.approx([2 * one for one in TRUE.costs], rel=1e-3)


def test_at_one_load_sleeps_have_no_cost_of_their_own() -> None:
    found = fit([one for one in FITTED if one.load == 50], 48)
    assert isinstance(found, Demands)
    assert (found.slept, found.sleep_ns) == (False, 0)
    assert found.request_ns > TRUE.request_ns, "they are in the other costs"


def test_too_few_points_are_refused_and_points_that_tell_nothing_apart_say_so() -> None:
    assert fit(FITTED[:3], 48) == "the model has 4 costs, and 3 of the points that it is fitted to have a number"
    found = fit([FITTED[0]] * 5, 48)
    assert isinstance(found, Demands)
    assert found.unknown == say("cluster.not_separated")


def test_what_is_forwarded_is_the_rule_less_copies_and_misses() -> None:
    where = cluster(4, 50)
    assert flow_of(where, 0.0).forwarded == pytest.approx(3 / 4)
    copied = flow_of(where, 0.01)
    assert copied.replicated == pytest.approx(where.site.mass(0.01 * where.cache_bytes))
    assert copied.forwarded == pytest.approx(3 / 4 * (1 - copied.replicated))
    full = cluster(4, 400)
    missing = flow_of(full, 0.0)
    assert missing.forwarded == pytest.approx(3 / 4 * missing.hit)
    assert missing.messages == pytest.approx(2 * missing.forwarded + 6 * missing.missed), "both changes to three others"
    assert flow_of(cluster(1, 400), 0.0).messages == 0


def test_who_shares_processors_waits_for_all() -> None:
    where = cluster(4, 400)
    flow = TRUE.flow(where)
    own = Machine(processors=1, shared=False)
    together, apart = (TRUE.usual_ns(where, flow, machine, 15_000) for machine in (SHARED, own))
    demand = TRUE.cpu_ns(where, flow, 15_000)
    fixed = TRUE.pause_ns + flow.forwarded * TRUE.forward_pause_ns
    assert together == pytest.approx(fixed + station_ns(demand + TRUE.asker_ns, 2, 15_000))
    assert apart == pytest.approx(fixed + station_ns(demand, 1, 15_000 / 4))
    assert TRUE.response_ns(where, flow, own, 15_000) > apart + flow.missed * 2e6, "and misses wait for a disk"
    assert TRUE.usual_ns(where, flow, None, 15_000) == float("inf"), "nobody knows"


def test_stations() -> None:
    assert station_ns(1000, 1, 0) == 1000
    assert station_ns(1000, 1, 500_000) == pytest.approx(2000), "half of the time busy: twice as long"
    assert station_ns(1000, 2, 1_000_000) == pytest.approx(500 + 1000)
    assert station_ns(1000, 1, 1_000_000) == float("inf")


def test_the_first_station_without_time_is_the_limit() -> None:
    where = cluster(4, 400)
    flow = TRUE.flow(where)
    one = throughput(TRUE, flow, replace(where, disk_ns=1e5), processors=1)
    assert (one.limit, one.rate_s) == ("processors", pytest.approx(4e9 / TRUE.busy_ns(flow)))
    fast = throughput(TRUE, flow, where, processors=1, faster=4)
    assert (fast.limit, fast.rate_s) == ("disks", pytest.approx(4 * 8 * 1e9 / (flow.missed * 2e6)))


def test_a_gain_is_the_median_of_rounds_that_have_a_limit() -> None:
    where = replace(cluster(4, 50), disk_ns=0)
    rounds = {RoundKey(number): tuple(cost * (1 + number) for cost in TRUE.costs) for number in range(6)}
    base = replace(TRUE, by_round=rounds)
    faster = replace(TRUE, by_round={key: tuple(cost / 2 for cost in costs_) for key, costs_ in rounds.items()})
    found = gain(faster, base, where, 1.0, 1)
    assert (found.text, found.flag) == ("+100\u202f%", "differs")
    assert gain(base, base, where, 1.0, 1).text == "the base"
    free = replace(TRUE, by_round={**faster.by_round, RoundKey(0): (0.0,) * 5})
    assert gain(free, base, where, 1.0, 1).text == "+100\u202f%", "a round in which nothing costs anything has no limit"
    none = replace(TRUE, by_round=dict.fromkeys(rounds, (0.0,) * 5))
    assert gain(none, base, where, 1.0, 1).reason == "no fit to one round has a limit"


def test_costs_are_never_negative() -> None:
    assert solve([[2, 1], [1, 3]], [3, 4]) == pytest.approx([1, 1])
    assert solve([[1, 1], [1, 1]], [1, 1]) is None
    assert costs([(1, 0), (1, 1), (1, 2)], [3, 5, 7]) == pytest.approx((3, 2))
    found = costs([(1, 0), (1, 1), (1, 2)], [3, 2, 1])
    assert found[1] == 0
    assert found[0] > 0
    assert not can_tell([(1, 2), (2, 4), (3, 6)], [1, 1, 1])
