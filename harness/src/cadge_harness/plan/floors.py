# SPDX-License-Identifier: BSD-3-Clause
"""Floors: which of the machine's own limits belong beside which points.

A floor is measured in launches of its own, in the same rounds and the same random order as the layers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cadge_harness.plan.catalogue import Refusal
from cadge_harness.plan.site import Site
from cadge_harness.plan.sweep import Wanted, Workload
from cadge_results.base import Pattern, Place, Wait

CACHE_LINE_BYTES = 64
FRAME_BYTES_MAX = 1498
"""Payload of a raw frame on a link with the usual MTU of 1,500 bytes, less two bytes for its length."""
DATAGRAM_BYTES_MAX = 65_507


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """One floor: where it can be measured, and what it can carry."""

    name: str
    places: frozenset[Place]
    waits: frozenset[Wait]
    patterns: frozenset[Pattern]
    bytes_min: int = 0
    bytes_max: int | None = None
    limit_reason: str = ""
    needs_raw_link: bool = False


def _floor(
    name: str,
    places: Iterable[Place],
    waits: Iterable[Wait],
    *,
    patterns: Iterable[Pattern] = ("pingpong",),
    bytes_min: int = 0,
    bytes_max: int | None = None,
    limit_reason: str = "",
    needs_raw_link: bool = False,
) -> Floor:
    return Floor(
        name=name,
        places=frozenset(places),
        waits=frozenset(waits),
        patterns=frozenset(patterns),
        bytes_min=bytes_min,
        bytes_max=bytes_max,
        limit_reason=limit_reason,
        needs_raw_link=needs_raw_link,
    )


FLOORS = (
    _floor(
        "floor-cacheline",
        ["within"],
        ["poll"],
        bytes_max=CACHE_LINE_BYTES - 8,
        limit_reason="a cache line with its flag carries at most 56 bytes",
    ),
    _floor("floor-copyflag", ["within"], ["poll"], patterns=["pingpong", "stream"]),
    _floor("floor-futex", ["within"], ["block"], patterns=["pingpong", "stream"]),
    _floor(
        "floor-tcp",
        ["within", "between"],
        ["poll", "block"],
        patterns=["pingpong", "stream"],
        bytes_min=1,
        limit_reason="a byte stream carries no empty message",
    ),
    _floor(
        "floor-udp",
        ["within", "between"],
        ["poll", "block"],
        bytes_max=DATAGRAM_BYTES_MAX,
        limit_reason="a datagram carries at most 65,507 bytes",
    ),
    _floor(
        "floor-xdp",
        ["between"],
        ["poll", "block"],
        bytes_max=FRAME_BYTES_MAX,
        limit_reason="a raw frame carries at most 1,498 bytes",
        needs_raw_link=True,
    ),
)


def floor_wanted(wanted: Iterable[Wanted]) -> list[tuple[Floor, Wanted]]:
    """Return which floors go with the points of a sweep: same place, wait mode and bytes.

    An exchange of messages goes with every size that rpc, pingpong and onesided use (requests and replies alike), a
    stream with every size that streams use.
    """
    found: dict[tuple[Floor, Wanted], None] = {}
    for item in wanted:
        for floor in FLOORS:
            if item.place not in floor.places or item.wait not in floor.waits:
                continue
            for workload in _bare(item.workload, floor):
                found[floor, Wanted(workload=workload, place=item.place, wait=item.wait)] = None
    return list(found)


def _bare(workload: Workload, floor: Floor) -> list[Workload]:
    """Return the bare exchanges that a workload is compared with."""
    if workload.pattern == "stream":
        if "stream" not in floor.patterns:
            return []
        return [Workload(pattern="stream", request_bytes=workload.request_bytes, reply_bytes=0, depth=workload.depth)]
    sizes = {workload.request_bytes}
    if workload.pattern == "rpc":
        sizes.add(workload.reply_bytes)
    return [Workload(pattern="pingpong", request_bytes=size, reply_bytes=size) for size in sorted(sizes)]


def refuse_floor(floor: Floor, wanted: Wanted, site: Site) -> Refusal | None:
    """Return why a floor cannot be measured here, or None."""
    if floor.needs_raw_link and not site.raw_links:
        return Refusal(code="NODE_LACKS", reason="raw frames need a link of their own and root on every host")
    size = wanted.workload.request_bytes
    if size < floor.bytes_min:
        return Refusal(code="NO_CAP", reason=floor.limit_reason)
    if floor.bytes_max is not None and size > floor.bytes_max:
        return Refusal(code="MSG_TOO_LARGE", reason=floor.limit_reason)
    return None
