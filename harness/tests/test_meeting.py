# SPDX-License-Identifier: BSD-3-Clause
"""Names of hosts become addresses once, where the campaign is started."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from cadge_harness.errors import UsageError
from cadge_harness.testbed.meeting import address_of, with_addresses
from cadge_harness.testbed.model import Testbed, TestbedKind

from .conftest import make_testbed

NAMES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "debian": "127.0.1.1"}


def lookup(name: str) -> str:
    if name not in NAMES:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return NAMES[name]


def cluster(*management: str) -> Testbed:
    made = make_testbed()
    hosts = tuple(
        replace(made.hosts[0], name=f"n{number}", management_address=one) for number, one in enumerate(management, 1)
    )
    return replace(made, kind=TestbedKind.CLUSTER, hosts=hosts)


def managed(testbed: Testbed) -> list[str]:
    return [host.management_address for host in with_addresses(testbed, lookup).hosts]


def test_names_become_addresses() -> None:
    assert managed(cluster("n1", "n2")) == ["10.0.0.1", "10.0.0.2"]
    assert managed(cluster("10.9.9.9", "n2")) == ["10.9.9.9", "10.0.0.2"]


def test_an_address_of_ipv6_is_taken_as_it_is() -> None:
    assert managed(cluster("fd00::1", "n2")) == ["fd00::1", "10.0.0.2"]


def test_of_several_addresses_the_first_ipv4_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*_: object, **__: object) -> list[tuple[object, ...]]:
        six, four = socket.AF_INET6, socket.AF_INET
        return [
            (six, 1, 6, "", ("fd00::1", 0, 0, 0)),
            (four, 1, 6, "", ("10.0.0.7", 0)),
            (four, 1, 6, "", ("10.0.0.8", 0)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    assert address_of("n7") == "10.0.0.7"


def test_a_name_that_is_known_only_there_stays() -> None:
    assert managed(cluster("n1", "behind-a-gateway")) == ["10.0.0.1", "behind-a-gateway"]


def test_this_machine_by_its_own_name() -> None:
    with pytest.raises(UsageError, match=r"host n2: debian is 127\.0\.1\.1 on this machine.*cadge_management_address"):
        managed(cluster("n1", "debian"))


def test_one_host_may_be_this_machine() -> None:
    assert managed(cluster("debian")) == ["debian"]
    assert managed(replace(cluster("debian", "n2"), kind=TestbedKind.EMULATED)) == ["debian", "n2"]
