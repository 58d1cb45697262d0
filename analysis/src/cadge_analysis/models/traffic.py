# SPDX-License-Identifier: BSD-3-Clause
"""Traffic among many endpoints: who sends to whom, and how long LogGP says that it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from cadge_analysis.models.message import Message


class Traffic(StrEnum):
    """All begin at the same time with messages of one size, and it is over when the last one was taken."""

    INCAST = "incast"  # cadge: another incast
    """Everybody sends one message to endpoint 0."""
    SHIFT = "shift"
    """Everybody sends one message to the endpoint half of them further on."""
    ALLTOALL = "alltoall"  # cadge: another alltoall
    """Everybody sends one message to each other one, its next neighbour first, and between two takes what has come."""

    @property
    def simulated_most(self) -> int:
        """How many endpoints are simulated at most: beyond, it takes an hour or all memory."""
        return 128 if self is Traffic.ALLTOALL else 5_000


def routes(traffic: Traffic, endpoints: int) -> list[list[int]]:
    """Return for each endpoint to whom it sends, in order."""
    if traffic is Traffic.INCAST:
        return [[], *([0] for _ in range(1, endpoints))]
    if traffic is Traffic.SHIFT:
        return [[(sender + endpoints // 2) % endpoints] for sender in range(endpoints)]
    return [[(sender + step) % endpoints for step in range(1, endpoints)] for sender in range(endpoints)]


def pairs(traffic: Traffic, endpoints: int) -> Iterator[tuple[int, int]]:
    """Yield who sends to whom; of alltoall no more than it takes to know the longest way."""
    if traffic is not Traffic.SHIFT:
        yield from ((sender, 0) for sender in range(1, endpoints))
    if traffic is not Traffic.INCAST:
        yield from ((sender, (sender + endpoints // 2) % endpoints) for sender in range(endpoints))


def closed_form_ns(traffic: Traffic, endpoints: int, message: Message, ways_ns: Sequence[float]) -> float:
    """Return how long the traffic takes where endpoints alone hold it up, and never the network between them.

    `ways_ns`: the latencies of its ways, which need not all be as long as the one that was measured.
    """
    own_ns = message.one_way_ns - message.latency_ns
    if traffic is Traffic.INCAST:
        # the k-th that comes is followed by all others, one after the other
        after = zip(sorted(ways_ns), range(endpoints - 2, -1, -1), strict=True)
        return own_ns + max(way_ns + left * message.receives_every_ns for way_ns, left in after)
    if traffic is Traffic.SHIFT:
        return own_ns + max(ways_ns)
    both_ns = message.send_ns + message.receive_ns  # of each round, by one processor
    return own_ns + max(ways_ns) + (endpoints - 2) * max(message.sends_every_ns, both_ns)
