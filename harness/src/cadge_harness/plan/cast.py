# SPDX-License-Identifier: BSD-3-Clause
"""The cast of a launch: which endpoints its pattern asks for, with their parts, hosts and channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cadge_results import PatternFile, PlanEndpoint, Workload
from cadge_results.formats.base import Place
from cadge_results.plugins.parameter import NEIGHBOURS

Cast = tuple[PlanEndpoint, ...]


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
