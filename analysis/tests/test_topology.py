# SPDX-License-Identifier: BSD-3-Clause
"""Networks for more endpoints than there are: room, ways, and files that SimGrid reads as they are meant."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from simgrid_here import MESSAGE, simgrid_needed

from cadge_analysis.models.simulate import SimulationAnswer, Simulator
from cadge_analysis.models.topology import Kind, Topology, latency_ns, platform


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("endpoints", [2, 3, 7, 64, 65, 1024, 5000, 100_000])
def test_there_is_room_and_not_much_more(kind: Kind, endpoints: int) -> None:
    places = Topology(kind, endpoints).places
    assert endpoints <= places <= max(2 * endpoints, 8)


def test_a_way_has_the_links_that_its_network_has() -> None:
    assert Topology(Kind.STAR, 9).links(0, 8) == 2
    fat = Topology(Kind.FAT_TREE, 16)  # four switches with four endpoints
    assert (fat.links(0, 3), fat.links(3, 4), fat.links(0, 15)) == (2, 4, 4)
    fly = Topology(Kind.DRAGONFLY, 27)  # three groups of three routers with three endpoints
    assert fly.links(0, 2) == 2
    assert fly.links(0, 3) == 3
    # router 1 of group 0 has the link to group 1, whose router 0 has it
    assert fly.links(3, 9) == 3
    assert fly.links(0, 9) == 4
    assert fly.links(0, 12) == 5


@pytest.mark.parametrize("kind", Kind)
def test_a_platform_has_what_was_measured(kind: Kind) -> None:
    root = ET.fromstring(platform(Topology(kind, 10), MESSAGE, "x -- y")[len('<?xml version="1.0"?>\n') :])  # noqa: S314
    cluster = root.find("zone/cluster")
    assert cluster is not None
    assert float(cluster.attrib["lat"].removesuffix("s")) == pytest.approx(MESSAGE.latency_ns / 2 * 1e-9)
    assert float(cluster.attrib["bw"].removesuffix("Bps")) == pytest.approx(1e9 / MESSAGE.byte_ns)
    own = {prop.attrib["id"]: prop.attrib["value"] for prop in root.findall("zone/prop")}
    assert float(own["send_s"]) == pytest.approx(MESSAGE.send_ns * 1e-9)
    assert float(own["receive_s"]) == pytest.approx(MESSAGE.receive_ns * 1e-9)
    assert float(own["gap_s"]) == pytest.approx(MESSAGE.gap_ns * 1e-9)


def test_bytes_that_take_no_time_have_a_rate_all_the_same() -> None:
    text = platform(Topology(Kind.STAR, 2), replace(MESSAGE, byte_ns=0.0), "x")
    assert 'bw="1e+15Bps"' in text


@simgrid_needed
@pytest.mark.parametrize("kind", Kind)
@pytest.mark.first(1)
def test_simgrid_takes_the_same_ways(kind: Kind) -> None:
    topology = Topology(kind, 30)
    pick = random.Random(1)
    for _ in range(6):
        sender, receiver = pick.sample(range(topology.endpoints), 2)
        way = latency_ns(MESSAGE, topology.links(sender, receiver))
        expected = replace(MESSAGE, latency_ns=way).one_way_ns
        routes = [[receiver] if number == sender else [] for number in range(topology.endpoints)]
        found = Simulator().simulate(routes, topology, MESSAGE)
        assert isinstance(found, SimulationAnswer), found
        assert found.finished_ns == pytest.approx(expected, rel=1e-6), (sender, receiver)
