# SPDX-License-Identifier: BSD-3-Clause
"""Where a cluster's hosts find each other: names become addresses once, here, and every host is given the same ones.

A host asked for its own name may answer 127.0.1.1, which Debian's installer writes into /etc/hosts.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import replace

from cadge_harness.errors import UsageError
from cadge_harness.testbed.inventory_rules import is_address, is_v6
from cadge_harness.testbed.model import Host, Testbed, TestbedKind


def address_of(name: str) -> str:
    """Return the address of a name: the first IPv4 one, else the first IPv6 one. Raises OSError."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return str(min(found, key=lambda one: one[0] != socket.AF_INET)[4][0])


def with_addresses(testbed: Testbed, lookup: Callable[[str], str] = address_of) -> Testbed:
    """Return the testbed with an address for each host's management address.

    A name that only its own hosts can look up stays a name. Raises UsageError where one is this machine's alone.
    """
    if testbed.kind is not TestbedKind.CLUSTER or len(testbed.hosts) < 2:
        return testbed
    return replace(testbed, hosts=tuple(_addressed(host, lookup) for host in testbed.hosts))


def _addressed(host: Host, lookup: Callable[[str], str]) -> Host:
    name = host.management_address
    if is_address(name) or is_v6(name):
        return host
    try:
        found = lookup(name)
    except OSError:
        return host
    if ipaddress.ip_address(found).is_loopback:
        raise UsageError(
            f"host {host.name}: {name} is {found} on this machine, which no other host reaches (/etc/hosts says so, "
            "perhaps); set its cadge_management_address to an address of its own"
        )
    return replace(host, management_address=found)
