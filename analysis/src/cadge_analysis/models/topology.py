# SPDX-License-Identifier: BSD-3-Clause
"""Networks for more endpoints than were measured, as SimGrid's platform files describe them.

What was measured is a way through two links and what lies between them, so that a link has half of the latency, and the
whole rate. A longer way pays for each of its links. That is an assumption, and `cadge export --format scale` says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from xml.sax.saxutils import quoteattr

from cadge_analysis.models.message import Message

LINKS_MEASURED = 2
RATE_MOST = 1e15
"""Bytes a second of a layer whose bytes take no time: more than anything has."""
S = 1e-9
"""A nanosecond."""
GREEN_LINKS = 2
"""Between two routers of a group: what comes for a third group, and what comes from there, shares them."""


class Kind(StrEnum):
    """A kind of network."""

    STAR = "star"
    """One switch."""
    FAT_TREE = "fat-tree"
    """Two levels of switches, with as many links up as down."""
    DRAGONFLY = "dragonfly"
    """Groups of routers, all to all within a group; two groups have as many links as a router has endpoints."""


@dataclass(frozen=True)
class Topology:
    """A network with room for so many endpoints or a few more, which are numbered place by place."""

    kind: Kind
    endpoints: int

    @cached_property
    def switch_endpoints(self) -> int:
        """Endpoints at one switch or router."""
        if self.kind is Kind.STAR:
            return self.endpoints
        if self.kind is Kind.FAT_TREE:
            return max(2, math.isqrt(self.endpoints - 1) + 1)
        return max(1, math.ceil(self.endpoints / self.groups**2))

    @cached_property
    def groups(self) -> int:
        """Of a dragonfly: groups, and routers of each."""
        return next(n for n in range(2, self.endpoints + 3) if n**3 >= self.endpoints)

    @property
    def places(self) -> int:
        """Endpoints that there is room for."""
        squared = {Kind.STAR: 1, Kind.FAT_TREE: self.switch_endpoints, Kind.DRAGONFLY: self.groups**2}
        return squared[self.kind] * self.switch_endpoints

    def links(self, one: int, other: int) -> int:
        """Return how many links lie between two endpoints."""
        here, there = one // self.switch_endpoints, other // self.switch_endpoints
        if here == there:
            return 2
        if self.kind is Kind.FAT_TREE:
            return 4
        group, target = here // self.groups, there // self.groups
        if group == target:
            return 3
        # the router of this number in a group is the one with links to the group of this number
        return 3 + (here % self.groups != target) + (there % self.groups != group)

    @property
    def shape(self) -> str:
        """SimGrid's attributes of a cluster of this kind."""
        n, groups = self.switch_endpoints, self.groups
        if self.kind is Kind.STAR:
            return ""
        if self.kind is Kind.FAT_TREE:
            return f'topology="FAT_TREE" topo_parameters="2;{n},{n};1,{n};1,1"'
        return f'topology="DRAGONFLY" topo_parameters="{groups},{n};1,1;{groups},{GREEN_LINKS};{n}"'


def latency_ns(message: Message, links: int) -> float:
    """Return the latency of a way through so many links."""
    return message.latency_ns * links / LINKS_MEASURED


def platform(topology: Topology, message: Message, about: str) -> str:
    """Return a platform file of SimGrid (3.32 or later); `about` says where the parameters come from.

    What processors do is not in a network: it stands in properties of the zone, for the simulated program.
    """
    settings = {
        "network/model": "CM02",  # latency, and rates that are shared fairly, without the factors of a TCP
        "network/latency-factor": "1",
        "network/bandwidth-factor": "1",
        "network/weight-S": "0",
        "network/TCP-gamma": "0",
        "network/crosstraffic": "0",
    }
    own = {"send_s": message.send_ns, "receive_s": message.receive_ns, "gap_s": message.gap_ns}
    properties = {name: f"{value_ns * S:.9g}" for name, value_ns in own.items()}
    properties["smpirun"] = "--cfg=smpi/os:0:{send_s}:0 --cfg=smpi/or:0:{receive_s}:0".format(**properties)
    rate = 1 / (message.byte_ns * S) if message.byte_ns else RATE_MOST
    shape = f"\n           {topology.shape}" if topology.shape else ""
    return f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<!-- {_comment(about)} -->
<platform version="4.1">
  <config id="General">
{_props(settings)}
  </config>
  <zone id="world" routing="Full">
{_props(properties)}
    <cluster id="cadge" prefix="node-" suffix="" radical="0-{topology.places - 1}" speed="1Gf"
           bw="{rate:.9g}Bps" lat="{message.latency_ns / LINKS_MEASURED * S:.9g}s"
           sharing_policy="SPLITDUPLEX"{shape}/>
  </zone>
</platform>
"""


def _props(values: Mapping[str, str]) -> str:
    return "\n".join(f"    <prop id={quoteattr(name)} value={quoteattr(value)}/>" for name, value in values.items())


def _comment(text: str) -> str:
    """Return a text as a comment of XML may hold it."""
    return text.replace("--", "- -")
