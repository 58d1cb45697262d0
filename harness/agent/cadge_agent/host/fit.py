# SPDX-License-Identifier: BSD-3-Clause
"""Whether a host is what the inventory says: found before a block's first launch, not by its failures."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from cadge_agent.errors import BadBlockError
from cadge_agent.faults import fault, said
from cadge_agent.formats import Block, BlockHost, Fault
from cadge_agent.host.network import address_of, device_of
from cadge_agent.host.quota import quota

PROCESSORS = Path("/sys/devices/system/cpu")


def refuse_unfit(block: Block, host: BlockHost) -> None:
    """Raise BadBlockError, with what to change, where this host cannot take part in a block of several hosts."""
    if len(block["hosts"]) < 2:
        return
    for found in (*network_faults(host), *name_faults(host)):
        if found["level"] == "fail":
            raise BadBlockError(said(found))


def network_faults(host: BlockHost) -> Iterator[Fault]:
    """Say what is wrong with the data network that the inventory states."""
    name, address = host["name"], host["address"]
    devices = sorted(found for _, found in socket.if_nameindex())
    for variable, device in (("cadge_device", host["device"]), ("cadge_raw_device", host["raw_device"])):
        if device and device not in devices:
            yield fault(
                "device",
                f"{name} has no device {device}; it has {', '.join(devices)}",
                f"Set its {variable} in the inventory",
                only_warn=variable == "cadge_raw_device",  # which AF_XDP alone needs
            )
    if host["device"] not in devices:
        return
    try:
        owner = device_of(address)
    except OSError:  # the kernel does not tell
        owner = (host["device"], 0)
    if owner is None or owner[0] != host["device"]:
        where = f"it is of {owner[0]}" if owner else "no device there has it"
        yield fault(
            "address",
            f"{name}: {address} is not an address of {host['device']}: {where}",
            "Set its cadge_address in the inventory",
        )


def name_faults(host: BlockHost) -> Iterator[Fault]:
    """Say where a host cannot listen by the name that the others use.

    Debian's /etc/hosts says that a host's own name is 127.0.1.1: an agent that listens there is found by nobody.
    """
    management = host["management_address"]
    try:
        found = address_of(management)
    except OSError as error:
        yield fault(
            "address",
            f"on {host['name']} itself, the name {management} cannot be looked up: {error.strerror}",
            "Write it into /etc/hosts there, or set its cadge_management_address in the inventory to an address",
        )
        return
    if ipaddress.ip_address(found).is_loopback:
        yield fault(
            "address",
            f"on {host['name']} itself, {management} is {found}, which no other host reaches (/etc/hosts says so, "
            "perhaps)",
            "Set its cadge_management_address in the inventory to an address of its own",
        )


def processor_faults(host: BlockHost) -> Iterator[Fault]:
    """Say which processors of the inventory nothing can be pinned to here, and what a quota takes of them."""
    allowed = os.sched_getaffinity(0)
    if missing := [str(cpu) for cpu in host["cpus"] if cpu not in allowed]:
        what = "processor" if len(missing) == 1 else "processors"
        yield fault(
            "processors",
            f"{host['name']} has no {what} {', '.join(missing)} for this user; it has {ranges(allowed)}",
            "Set its cadge_cpus in the inventory",
        )
    cores = _by_core(cpu for cpu in host["cpus"] if cpu in allowed)
    free = len(_by_core(allowed)) > len(cores)
    for shared in [of for of in cores if free and len(of) > 1]:
        yield fault(
            "processors",
            f"{host['name']}: processors {' and '.join(map(str, shared))} are threads of one core: two endpoints there "
            "slow each other down",
            "Set its cadge_cpus in the inventory to one processor of each core (lscpu -e)",
            only_warn=True,
        )
    least = quota()
    if isinstance(least, float) and least < len(host["cpus"] or allowed):
        yield fault(
            "processors",
            f"{host['name']}: a control group allows {least:g} of its {len(host['cpus'] or allowed)} processors on "
            "average: endpoints that poll are stopped for the rest of each period",
            "Raise the quota of the group (cpu.max, cpu.cfs_quota_us), or ask the scheduler for whole processors",
            only_warn=True,
        )


def _by_core(cpus: Iterable[int]) -> list[list[int]]:
    """Return processors by the core that they are threads of; without those of which the kernel does not tell."""
    cores: dict[str, list[int]] = {}
    for cpu in cpus:
        with contextlib.suppress(OSError):
            siblings = (PROCESSORS / f"cpu{cpu}" / "topology/thread_siblings_list").read_text(encoding="ascii")
            cores.setdefault(siblings.strip(), []).append(cpu)
    return list(cores.values())


def ranges(numbers: set[int]) -> str:
    """Write numbers as people do: 0-3, 8."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
