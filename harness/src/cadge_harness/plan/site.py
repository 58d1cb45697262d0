# SPDX-License-Identifier: BSD-3-Clause
"""What the planner has to know of a testbed: how many hosts, cores and links there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cadge_harness.plan.catalogue import Refusal
from cadge_harness.plan.timemodel import TimeModel
from cadge_results.base import Place, Wait

if TYPE_CHECKING:
    from cadge_harness.testbed.model import Testbed

POLLERS = 2
"""Both ends of a launch spin in poll mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A testbed as far as a plan depends on it.

    cores_within is the smallest number of processors that one host gives to endpoints, cores_between the number of
    different processors that two hosts give together; None where nothing is pinned and nobody counted. times is how
    long things take there.
    """

    name: str
    hosts: int
    cores_within: int | None
    cores_between: int | None
    raw_links: bool
    ports: tuple[int, int]
    times: TimeModel = field(default_factory=TimeModel)


def site_of(testbed: Testbed, times: TimeModel | None = None) -> Site:
    """Return what the planner needs of a resolved testbed, on which things take `times`."""
    hosts = testbed.hosts
    pinned = all(host.cpus for host in hosts)
    within = min(len(set(host.cpus)) for host in hosts) if pinned else None
    between = None
    if pinned and len(hosts) > 1:
        shared = str(testbed.kind) == "emulated"
        first, second = set(hosts[0].cpus), set(hosts[1].cpus)
        between = len(first | second) if shared else min(len(first), 1) + min(len(second), 1)
    return Site(
        name=testbed.name,
        hosts=len(hosts),
        cores_within=within,
        cores_between=between,
        raw_links=len(hosts) > 1 and all(host.raw_device for host in hosts[:2]),
        ports=testbed.ports,
        times=times or TimeModel(),
    )


def refuse_place(site: Site, place: Place, wait: Wait) -> Refusal | None:
    """Return why nothing can be measured at a place of this testbed, or None."""
    if place == "between" and site.hosts < 2:
        return Refusal(code="NODE_LACKS", reason=f"testbed {site.name} has one host, and between takes two")
    if wait == "poll" and place != "self":
        cores = site.cores_between if place == "between" else site.cores_within
        if cores is not None and cores < POLLERS:
            return Refusal(
                code="NODE_LACKS",
                reason=f"{POLLERS} busy-polling processes would share {cores} core and starve each other",
            )
    return None
