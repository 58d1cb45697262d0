# SPDX-License-Identifier: BSD-3-Clause
"""A cluster of servers that pass requests to each other, as open M/M/1 stations: demands, times, throughput.

A reconstruction of the analytical model behind PRESS (Bianchini and Carrera, HPDC 2000; Carrera and others, HPCA 2002):
its relations are not verified with the papers, and its service times are ours, fitted to measured points. With N nodes
whose caches hold S bytes each, and R the part of a cache that holds copies of what the others hold as well:

    h = mass(R S)                        requests for what every node holds
    H = kept(N (1 - R) S + R S)          requests for what some node holds
    Q = (N - 1) / N (H - h)              requests that are forwarded
    M = 1 - H                            requests that wait for a disk
    messages = Q (1 + pieces) + M (N - 1) changes, and some for credits
    arrivals = 1 + messages + M          what may wake a node
    sleeps = k arrivals (1 - busy)       a node that is busy need not be woken
    D = request + M miss + messages per message + KiB of messages per KiB + sleeps per sleep

`changes` is 1 where all files fit into the caches, and 2 where each file that comes drives out another one: all nodes
are told of both. `busy` is the part of the time that a node works, rate D / N, so that D is on both sides. A station
with c servers and demand D is one of demand D / c and a pause of D (c - 1) / c (Seidmann's approximation).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cadge_analysis.models.least_squares import can_tell, costs
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_study_press.popularity import FileSet
from cadge_study_press.spec import say

KIB = 1024
STEPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a point asks for, in numbers: nodes, the bytes of a cache, its files, and the time of a disk."""

    nodes: int
    cache_bytes: float
    site: FileSet
    disk_ns: float
    disks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Who computes where: how many processors all share, or how many each node has for itself."""

    processors: int
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What happens to a request, by shares of one, and how much nodes say of it."""

    hit: float
    replicated: float
    forwarded: float
    messages: float
    message_bytes: float

    @property
    def missed(self) -> float:
        """Requests that wait for a disk."""
        return 1 - self.hit

    @property
    def arrivals(self) -> float:
        """What comes to nodes, a request: itself, messages, and files from disks."""
        return 1 + self.messages + self.missed


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """A measured point: what happened to requests there, and what they took."""

    cluster: Cluster
    flow: Flow
    files: float
    """Messages with files, a request."""
    told: float
    """Messages that only say what is cached, a request."""
    sleeps: float
    """Of all nodes, a request."""
    load: Hashable
    """Which load was to be offered: equal where it is the same, as a rate or as a share of what it can bear."""
    rate_s: float
    """Requests a second that were offered."""
    cpu_ns: float
    """Of all nodes, a request."""
    cpu_by_round: Mapping[RoundKey, float] = field(default_factory=dict)
    """The same, launch by launch."""
    asker_ns: float
    """Of whoever asks, a request."""
    usual_ns: float
    """The median of response times: that of a request which needs no disk, where most need none."""
    response_ns: float
    """The mean of response times."""
    machine: Machine | None
    """None where nobody knows."""


Costs = tuple[float, ...]
"""Of a request, a miss, a message, a KiB of messages, and a sleep, in ns."""
UNKNOWNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What was fitted, in ns and shares; `unknown` says what could not be separated."""

    replicas: float
    pieces: float
    spare: float
    head_bytes: float
    request_ns: float
    miss_ns: float
    message_ns: float
    kib_ns: float
    sleep_ns: float
    woken: float
    """How many times an arrival ends a sleep where the node sleeps: less than once, if several come together."""
    asker_ns: float
    pause_ns: float
    forward_pause_ns: float
    points: int
    slept: bool
    """Whether what a sleep costs could be told from the other costs."""
    unknown: str = ""
    by_round: Mapping[RoundKey, Costs] = field(default_factory=dict)
    """The four costs as each round alone would have them."""

    def flow(self, cluster: Cluster) -> Flow:
        """Return what would happen to a request."""
        return flow_of(cluster, self.replicas, pieces=self.pieces, spare=self.spare, head_bytes=self.head_bytes)

    def busy_ns(self, flow: Flow) -> float:
        """Return what all nodes' processors would do for a request if none of them ever slept."""
        return _priced(flow, 0.0, self.costs)

    def cpu_ns(self, cluster: Cluster, flow: Flow, rate_s: float) -> float:
        """Return what they do at a rate: D = busy + s (1 - rate D / N), solved for D."""
        sleeps_ns = self.woken * flow.arrivals * self.sleep_ns
        per_node = rate_s / cluster.nodes / 1e9
        found = (self.busy_ns(flow) + sleeps_ns) / (1 + sleeps_ns * per_node)
        return max(found, self.busy_ns(flow))

    def given_ns(self, seen: MeasuredPoint) -> float:
        """Return the same from misses, messages and sleeps as they were measured."""
        return _priced(seen.flow, seen.sleeps, self.costs)

    @property
    def costs(self) -> Costs:
        """The five costs."""
        return self.request_ns, self.miss_ns, self.message_ns, self.kib_ns, self.sleep_ns

    def of_round(self, costs: Costs) -> Demands:
        """Return the same with the costs of one round."""
        request, miss, message, kib, sleep = costs
        return replace(self, request_ns=request, miss_ns=miss, message_ns=message, kib_ns=kib, sleep_ns=sleep)

    def usual_ns(self, cluster: Cluster, flow: Flow, machine: Machine | None, rate_s: float) -> float:
        """Return how long a request would take that needs no disk; infinite where the rate cannot be borne.

        It is infinite as well where nobody knows who computes where.
        """
        fixed = self.pause_ns + flow.forwarded * self.forward_pause_ns
        cpu_ns = self.cpu_ns(cluster, flow, rate_s)
        return fixed + processors_ns(cpu_ns, self.asker_ns, cluster, machine, rate_s)

    def response_ns(self, cluster: Cluster, flow: Flow, machine: Machine | None, rate_s: float) -> float:
        """Return how long requests would take in the mean, with the disks of those that need one."""
        usual = self.usual_ns(cluster, flow, machine, rate_s)
        if not flow.missed or not cluster.disk_ns:
            return usual
        disk = station_ns(cluster.disk_ns, cluster.disks, rate_s * flow.missed / cluster.nodes)
        return usual + flow.missed * disk


def _units(flow: Flow, sleeps: float) -> tuple[float, ...]:
    return 1.0, flow.missed, flow.messages, flow.message_bytes / KIB, sleeps


def _priced(flow: Flow, sleeps: float, costs: Costs) -> float:
    return sum(unit * cost for unit, cost in zip(_units(flow, sleeps), costs, strict=True))


def flow_of(
    cluster: Cluster, replicas: float, *, pieces: float = 1.0, spare: float = 0.0, head_bytes: float = 0.0
) -> Flow:
    """Return what happens to requests, by the relations above. `spare`: further messages for each one."""
    nodes, own = cluster.nodes, cluster.cache_bytes
    site = cluster.site
    replicated = site.mass(replicas * own) if nodes > 1 else 0.0
    hit = site.kept((nodes * (1 - replicas) + replicas) * own)
    forwarded = (nodes - 1) / nodes * max(0.0, hit - replicated)
    changes = 1 if site.bytes <= nodes * own else 2
    spoken = forwarded * (1 + pieces) + (1 - hit) * (nodes - 1) * changes
    messages = spoken * (1 + spare)
    carried = forwarded * site.asked_bytes + messages * head_bytes
    return Flow(hit=hit, replicated=replicated, forwarded=forwarded, messages=messages, message_bytes=carried)


def station_ns(demand_ns: float, servers: float, rate_s: float) -> float:
    """Return the time at a station of several servers; infinite where they cannot bear the rate."""
    if servers <= 0:
        return float("inf")
    busy = rate_s * demand_ns / servers / 1e9
    if busy >= 1:
        return float("inf")
    return demand_ns * (servers - 1) / servers + demand_ns / servers / (1 - busy)


def processors_ns(nodes_ns: float, asker_ns: float, cluster: Cluster, machine: Machine | None, rate_s: float) -> float:
    """Return the time at the processors: one station for all, or one for each node."""
    if machine is None:
        return float("inf")
    if machine.shared:
        return station_ns(nodes_ns + asker_ns, machine.processors, rate_s)
    return station_ns(nodes_ns, machine.processors, rate_s / cluster.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The rate at which the first station has no time left, and which one that is."""

    rate_s: float
    limit: str


def throughput(demands: Demands, flow: Flow, cluster: Cluster, *, processors: float, faster: float = 1.0) -> Throughput:
    """Return what a cluster bears whose nodes have `processors` each, so many times as fast as the measured ones.

    None of them sleeps then.
    """
    demand = demands.busy_ns(flow)
    cpu = cluster.nodes * processors * faster * 1e9 / demand if demand else float("inf")
    disks = float("inf")
    if flow.missed and cluster.disk_ns:
        disks = cluster.nodes * cluster.disks * 1e9 / (flow.missed * cluster.disk_ns)
    return Throughput(rate_s=min(cpu, disks), limit="processors" if cpu <= disks else "disks")


def fit(points: Sequence[MeasuredPoint], head_bytes: float) -> Demands | str:
    """Return the demands of one layer, or why there are none."""
    # at one load sleeps go with messages and misses, and what they cost cannot be separated
    slept = len({one.load for one in points}) > 1
    count = UNKNOWNS - (not slept)
    if len(points) < count:
        return say("cluster.too_few", costs=count, points=len(points))
    rows = [_units(one.flow, one.sleeps if slept else 0.0) for one in points]
    cpu = [one.cpu_ns for one in points]
    told_apart = can_tell([row[:count] for row in rows], cpu)
    request, miss, message, kib, sleep = costs(rows, cpu)
    several = [one for one in points if one.cluster.nodes > 1 and one.flow.forwarded]
    pieces = _middle([one.files / one.flow.forwarded for one in several])
    spare = _middle([one.flow.messages / _spoken(one) - 1 for one in several if _spoken(one)])
    asker = _middle([one.asker_ns for one in points])
    rest = [
        one.usual_ns - processors_ns(one.cpu_ns, one.asker_ns, one.cluster, one.machine, one.rate_s) for one in points
    ]
    pause, forward = _pauses(points, rest)
    rounds = set.intersection(*(set(one.cpu_by_round) for one in points))
    return Demands(
        replicas=_replicas(several),
        pieces=pieces,
        spare=spare,
        head_bytes=head_bytes,
        request_ns=request,
        miss_ns=miss,
        message_ns=message,
        kib_ns=kib,
        sleep_ns=sleep,
        woken=_middle([one.sleeps / one.flow.arrivals / (1 - _busy(one)) for one in points if _busy(one) < 1]),
        asker_ns=asker,
        pause_ns=pause,
        forward_pause_ns=forward,
        points=len(points),
        slept=slept,
        unknown="" if told_apart else say("cluster.not_separated"),
        by_round={key: costs(rows, [one.cpu_by_round[key] for one in points]) for key in sorted(rounds)},
    )


def _busy(one: MeasuredPoint) -> float:
    """Return the part of the time that a node works."""
    return one.rate_s * one.cpu_ns / one.cluster.nodes / 1e9


def _spoken(one: MeasuredPoint) -> float:
    return one.flow.forwarded + one.files + one.told


def _pauses(points: Sequence[MeasuredPoint], rest: Sequence[float]) -> tuple[float, float]:
    """Return what is no processor's time: of each request, and of one that is forwarded."""
    usable = [(one, left) for one, left in zip(points, rest, strict=True) if 0 < left < float("inf")]
    if len(usable) < 2:
        return max(0.0, _middle([left for _, left in usable])), 0.0
    found = costs([(1.0, one.flow.forwarded) for one, _ in usable], [left for _, left in usable])
    return found[0], found[1]


def _middle(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2 if ordered else 0.0


def _replicas(points: Sequence[MeasuredPoint]) -> float:
    """Return the part of a cache that holds copies, so that as much is forwarded as was, all points together."""

    def more_than_seen(replicas: float) -> float:
        return sum(flow_of(one.cluster, replicas).forwarded - one.flow.forwarded for one in points)

    if not points or more_than_seen(0.0) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    if more_than_seen(high) > 0:
        return high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if more_than_seen(middle) > 0 else (low, middle)
    return high
