# SPDX-License-Identifier: BSD-3-Clause
"""The cast of a launch: which endpoints its pattern asks for, with their parts, hosts and channels.

A pattern of two hosts may run over any pair of them: setting `hosts.pair` of a series, and `pairs` of a sweep. A pair
is ordered: its first host has endpoint 0, which sends first. As a setting it is part of the point, so results of
different pairs never meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from cadge_harness.errors import UsageError, named
from cadge_harness.plan.order import shuffled
from cadge_results import PatternFile, PlanEndpoint, Workload
from cadge_results.formats.base import Place
from cadge_results.formats.sweep import Pairs
from cadge_results.plugins.parameter import NEIGHBOURS

Cast = tuple[PlanEndpoint, ...]
PREFIX = "hosts."
PAIR = "hosts.pair"
NAMED_MOST = 8
"""Of a testbed's hosts, so many are named where one is not there."""
Pair = tuple[str, str]


def cast_of(pattern: PatternFile, workload: Workload, place: Place, hosts: Sequence[str]) -> Cast:
    """Return the endpoints of a workload in the order of their numbers.

    Within a host there is one host; at place self one endpoint plays every part, with channels to itself.
    """
    if place == "self":
        first = next(iter(pattern.roles))
        channels = pattern.number(pattern.self_channels, workload)
        threads = pattern.number(pattern.roles[first].threads, workload)
        hands = sum(pattern.number(pattern.roles[name].hands, workload) for name in pattern.roles_of(workload))
        return (PlanEndpoint(role=first, host=hosts[0], peers=(0,) * channels, threads=threads, hands=hands),)
    here = list(hosts) if place == "between" else [hosts[0]]
    members: dict[str, list[int]] = {}
    seats: list[tuple[str, str]] = []
    turns: Counter[str] = Counter()
    for name, role in pattern.roles.items():
        members[name] = []
        for _ in range(pattern.count_of(name, workload)):
            members[name].append(len(seats))
            seats.append((name, _host(role.hosts, here, turns[role.hosts])))
            turns[role.hosts] += 1
    return tuple(
        PlanEndpoint(
            role=name,
            host=host,
            peers=_peers(pattern, members, name, number),
            threads=pattern.number(pattern.roles[name].threads, workload),
            hands=pattern.number(pattern.roles[name].hands, workload),
        )
        for number, (name, host) in enumerate(seats)
    )


def _host(where: str, hosts: Sequence[str], turn: int) -> str:
    if where == "first" or len(hosts) == 1:
        return hosts[0]
    if where == "others":
        return hosts[1 + turn % (len(hosts) - 1)]
    return hosts[(turn + (where == "spread")) % len(hosts)]


def _peers(pattern: PatternFile, members: dict[str, list[int]], role: str, number: int) -> tuple[int, ...]:
    found: list[int] = []
    for peer in pattern.roles[role].peers:
        if peer == NEIGHBOURS:
            ring = members[role]
            at = ring.index(number)
            found += dict.fromkeys((ring[at - 1], ring[(at + 1) % len(ring)]))
        elif pattern.roles[role].paired:
            found.append(members[peer][members[role].index(number)])
        else:
            found += members[peer]
    return tuple(other for other in found if other != number)


def hosts_of(cast: Cast) -> tuple[str, ...]:
    """Return the hosts that a cast uses, that of endpoint 0 first."""
    return tuple(dict.fromkeys(endpoint.host for endpoint in cast))


def contexts_of(cast: Cast) -> int:
    """Return how many contexts of the layer a launch opens: each thread has one."""
    return sum(endpoint.threads for endpoint in cast)


def contexts_by_host(cast: Cast) -> Counter[str]:
    """Return how many contexts of the layer a launch opens on each of its hosts."""
    found: Counter[str] = Counter()
    for endpoint in cast:
        found[endpoint.host] += endpoint.threads
    return found


def say_cast(cast: Cast) -> str:
    """Return who runs where: client on n1; server on n2."""
    by_host: dict[str, Counter[str]] = {}
    for endpoint in cast:
        by_host.setdefault(endpoint.host, Counter())[endpoint.role] += 1
    return "; ".join(
        f"{', '.join(f'{count} {role}' if count > 1 else role for role, count in roles.items())} on {host}"
        for host, roles in by_host.items()
    )


def with_pair(settings: Mapping[str, str], hosts: Sequence[str]) -> dict[str, str]:
    """Return settings with a pair as plans write it, without spaces: a pair that is named twice is measured once.

    Raises UsageError where a setting names no pair of a testbed's hosts.
    """
    for name in settings:
        if name.startswith(PREFIX) and name != PAIR:
            raise UsageError(f"there is no setting {name}; there is {PAIR}, for example {PAIR}: h1,h2")
    pair = pair_of(settings)
    if pair is None:
        return {**settings}
    if len(pair) != 2 or pair[0] == pair[1]:
        raise UsageError(f"{PAIR}: {settings[PAIR]} is no pair of hosts, as h1,h2 is")
    for host in pair:
        if host not in hosts:
            has = ", ".join(hosts[:NAMED_MOST]) + (f" and {more} more" if (more := len(hosts) - NAMED_MOST) > 0 else "")
            raise UsageError(f"{PAIR}: {settings[PAIR]}: the testbed has no host {named(host)}; it has {has}")
    return {**settings, PAIR: ",".join(pair)}


def pair_of(settings: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the hosts that settings name, or None. They are two where `with_pair` is content."""
    return tuple(part.strip() for part in settings[PAIR].split(",")) if PAIR in settings else None


def pairs_of(pairs: Pairs, hosts: Sequence[str], seed: int) -> list[Pair]:
    """Return the ordered pairs that a sweep asks for, each once; none for `first`, whose hosts are the first two.

    neighbours: each host and the next one. all: each with every other, both ways. A number k: each with k others, drawn
    by the seed, both ways.
    """
    if pairs == "first" or len(hosts) < 2:
        return []
    if pairs == "neighbours":
        return list(pairwise(hosts))
    rounds = list(rounds_of(hosts if pairs == "all" else shuffled(list(hosts), str, seed, "pairs")))
    chosen = rounds if pairs == "all" else shuffled(rounds, str, seed, "rounds")[: int(pairs)]
    return [way for one in chosen for pair in one for way in (pair, (pair[1], pair[0]))]


def rounds_of(hosts: Sequence[str]) -> Iterator[list[Pair]]:
    """Yield rounds of disjoint pairs in which each host meets every other one once: the circle method."""
    circle: list[str | None] = [*hosts, *([None] if len(hosts) % 2 else [])]
    for _ in range(len(circle) - 1):
        half = len(circle) // 2
        pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
        yield [(one, other) for one, other in pairs if one is not None and other is not None]
        circle = [circle[0], circle[-1], *circle[1:-1]]
