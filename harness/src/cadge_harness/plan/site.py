# SPDX-License-Identifier: BSD-3-Clause
"""What the planner has to know of a testbed: which hosts, cores and links there are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING

from cadge_harness.plan.cast import Cast, hosts_of
from cadge_harness.plan.catalogue import Refusal
from cadge_harness.plan.kernel import SetHere, set_here_of
from cadge_harness.plan.timemodel import TimeModel
from cadge_harness.surroundings import MORE_MEMORY, SHM
from cadge_harness.testbed.logins import login_of
from cadge_harness.words import count_of
from cadge_results import Reason
from cadge_results.formats.base import Place, Wait

if TYPE_CHECKING:
    from cadge_harness.testbed.model import Testbed

RANKS_BYTES = 8 << 20
"""Free shared memory below which MPI connects ranks of one host by TCP: Open MPI 4.1 does so at 4 MiB, not at 6."""

TO_LOG_IN = "the hosts' own ~/.ssh needs a key and the other hosts' keys (ssh-copy-id, ssh-keyscan)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteHost:
    """A host by its name, and the processors that it gives to endpoints; none: nothing is pinned.

    by_v6: the other hosts find it at an IPv6 address. data_v6: and so do layers, on the data network.
    """

    name: str
    cpus: tuple[int, ...] = ()
    by_v6: bool = False
    shm_free_bytes: int | None = None
    """None where nobody looked."""
    data_v6: bool = False
    no_login: tuple[tuple[str, str], ...] = ()
    """Other hosts that it cannot log in to, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSite:
    """A testbed as far as a plan depends on it.

    shared: the hosts are one machine's, and have the same processors. times is how long things take there.
    """

    name: str
    hosts: tuple[SiteHost, ...]
    shared: bool
    raw_links: bool
    ports: tuple[int, int]
    times: TimeModel = field(default_factory=TimeModel)
    own_link: bool = False
    """Whether the data link between the hosts is made for the testbed, and its rate therefore ours to set."""

    here: bool = False
    """Whether the hosts are this machine: what a layer is not permitted here, it is not permitted there."""

    login: Callable[[str], str | None] = lambda _host: None
    """The user whose rights the drivers of a host have; None where that is not known."""

    set_here: SetHere = lambda _host, _name: None
    """Why a host cannot be given a value of the kernel; None where it can, or that is not known."""

    @property
    def host_names(self) -> tuple[str, ...]:
        """Names of the hosts, in the testbed's order."""
        return tuple(host.name for host in self.hosts)


def site_of(testbed: Testbed, times: TimeModel | None = None) -> PlanSite:
    """Return what the planner needs of a resolved testbed, on which things take `times`."""
    hosts = testbed.hosts
    return PlanSite(
        name=testbed.name,
        hosts=tuple(
            SiteHost(
                name=host.name,
                cpus=tuple(host.cpus),
                by_v6=":" in host.management_address,
                shm_free_bytes=host.shm_free_bytes,
                no_login=host.no_login,
                data_v6=":" in host.address,
            )
            for host in hosts
        ),
        shared=str(testbed.kind) == "emulated",
        raw_links=len(hosts) > 1 and all(host.raw_device for host in hosts[:2]),
        ports=testbed.ports,
        own_link=str(testbed.kind) == "emulated",
        here=str(testbed.kind) != "cluster",
        times=times or TimeModel(),
        login=cache(partial(login_of, testbed)),
        set_here=cache(set_here_of(testbed)),
    )


def refuse_place(site: PlanSite, place: Place) -> Refusal | None:
    """Return why nothing can be measured at a place of this testbed, or None."""
    if place == "between" and len(site.hosts) < 2:
        more = "" if site.here else ": add another host to group cadge of the inventory"
        reason = f"testbed {site.name} has one host; place between needs two{more}"
        return Refusal(code=Reason.NODE_LACKS, reason=reason)
    return None


def refuse_launcher(site: PlanSite, launcher: str, cast: Cast) -> Refusal | None:
    """Return why a launcher cannot start the ranks of a cast on its hosts, or None."""
    used = hosts_of(cast)
    if launcher == "direct":
        return None
    for host in site.hosts:
        free_bytes = host.shm_free_bytes
        if free_bytes is not None and free_bytes < RANKS_BYTES and [one.host for one in cast].count(host.name) > 1:
            reason = (
                f"MPI within a host needs {RANKS_BYTES / 1e6:.0f} MB of shared memory; {SHM} of {host.name} has "
                f"{free_bytes / 1e6:.0f} MB free: {MORE_MEMORY}"
            )
            return Refusal(code=Reason.NODE_LACKS, reason=reason)
    if len(used) < 2:
        return None
    for host in site.hosts:
        if host.name in used and host.by_v6:
            reason = f"{launcher} does not reach {host.name} by IPv6: set its cadge_management_address to an IPv4 one"
            return Refusal(code=Reason.NODE_LACKS, reason=reason)
    first = next(host for host in site.hosts if host.name == cast[0].host)
    for name, why in first.no_login:
        if name in used:
            reason = f"{launcher} cannot log in between these hosts by SSH: {why}; {TO_LOG_IN}"
            return Refusal(code=Reason.NODE_LACKS, reason=reason)
    return None


def refuse_address(site: PlanSite, name: str, cast: Cast) -> Refusal | None:
    """Return why what knows IPv4 alone cannot reach the hosts of a cast, or None."""
    used = hosts_of(cast)
    for host in site.hosts if len(used) > 1 else ():
        if host.name in used and host.data_v6:
            reason = f"{name} does not reach {host.name} by IPv6: set its cadge_address to an IPv4 one"
            return Refusal(code=Reason.NODE_LACKS, reason=reason)
    return None


def refuse_rights(site: PlanSite, name: str, rights: Collection[str], cast: Cast) -> Refusal | None:
    """Return why a host's user may not open what takes these rights (capabilities, as setpriv names them), or None."""
    for host in hosts_of(cast) if rights else ():
        user = site.login(host)
        if user not in (None, "root"):
            listed = ", ".join(f"CAP_{right.upper()}" for right in rights)
            granted = ",".join(f"cap_{right}" for right in rights)
            reason = (
                f"{name} needs {listed}, which {user} does not have on {host}: log in there as root (ansible_user), or "
                f"set cadge_build_path to a build there whose driver has it (sudo setcap {granted}+ep bin/cadge-driver)"
            )
            return Refusal(code=Reason.PERMISSION, reason=reason)
    return None


def refuse_cast(site: PlanSite, place: Place, wait: Wait, cast: Cast, *, sleeper: str = "") -> Refusal | None:
    """Return why a cast cannot run here, or None. `sleeper`: who sleeps in block mode, "" where nobody does."""
    if place == "between" and len(hosts_of(cast)) < 2:
        return Refusal(code=Reason.PLACE, reason="all its endpoints would run on one host; use place within")
    if wait != "poll" or (place == "self" and not any(endpoint.hands for endpoint in cast)):
        return None
    for names, cores in _processors(site):
        threads = sum(endpoint.threads + endpoint.hands for endpoint in cast if endpoint.host in names)
        if cores is not None and threads > cores:
            where = "" if len(site.hosts) == 1 or site.shared else f" of {names[0]}"
            reason = (
                f"{threads} busy-polling threads would share {count_of(cores, 'core')}{where} and starve each other"
            )
            if sleeper:
                reason += f"; in block mode {sleeper} sleeps instead (waits: block)"
            return Refusal(code=Reason.NODE_LACKS, reason=reason)
    return None


def _processors(site: PlanSite) -> list[tuple[tuple[str, ...], int | None]]:
    """Return groups of hosts that share processors, and how many; None where nobody counted."""
    if site.shared:
        pinned = all(host.cpus for host in site.hosts)
        every = {cpu for host in site.hosts for cpu in host.cpus}
        return [(site.host_names, len(every) if pinned else None)]
    return [((host.name,), len(set(host.cpus)) or None) for host in site.hosts]
