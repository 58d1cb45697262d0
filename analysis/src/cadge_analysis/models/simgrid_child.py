# SPDX-License-Identifier: BSD-3-Clause
"""Simulate traffic with SimGrid: one JSON object on stdin, one on stdout. A program of its own.

It is run by the system's Python, whose SimGrid it uses, and has nothing of Cadge or of the virtual environment. A
process simulates once: SimGrid's engine cannot begin anew.

Asked: {platform, routes, expects, bytes, send_ns, receive_ns, gap_ns, sends_every_ns}; `platform` is the path of a
platform file, `routes` lists for each endpoint to whom it sends, and `expects` from whom it takes, both in order.
Answered: {simgrid, finished_ns, messages}.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from typing import Any

import simgrid  # type: ignore[import-not-found]

S = 1e-9  # a nanosecond
FINER = ("precision/timing:1e-13", "surf/precision:1e-13")  # its name since 3.33, and before


class SimulatedEndpoint:
    """A processor that sends and takes messages, one at a time, and an interface that leaves a gap between messages."""

    def __init__(self, asked: dict[str, Any], number: int) -> None:
        self.asked = asked
        self.number = number
        self.places: list[object] = []
        self.arriving: deque[simgrid.Comm] = deque()
        self.takes_at_s = 0.0
        self.done_s = 0.0

    def __call__(self) -> None:
        """Have a place for each message that is to come, send, and take the rest."""
        self.places = [mailbox(sender, self.number).get_async() for sender in self.asked["expects"][self.number]]
        self.arriving.extend(comm_of(place) for place in self.places)
        sent = [self.send(to) for to in self.asked["routes"][self.number]]
        while self.arriving:
            self.arriving[0].wait()
            self.take()
        for comm in sent:  # what an actor sends is lost with it
            comm.wait()

    def send(self, to: int) -> simgrid.Comm:
        """Send one message; before the next one, take what has arrived."""
        begun_s = now_s()
        simgrid.this_actor.sleep_for(self.asked["send_ns"] * S)
        comm = mailbox(self.number, to).put_async(0, self.asked["bytes"])
        while self.arriving and now_s() >= self.takes_at_s and self.arriving[0].test():
            self.take()
        simgrid.this_actor.sleep_until(begun_s + self.asked["sends_every_ns"] * S)
        return comm

    def take(self) -> None:
        """Take the first message that has arrived."""
        self.arriving.popleft()
        simgrid.this_actor.sleep_until(max(now_s(), self.takes_at_s))
        self.takes_at_s = now_s() + self.asked["gap_ns"] * S
        simgrid.this_actor.sleep_for(self.asked["receive_ns"] * S)
        self.done_s = now_s()


def mailbox(sender: int, receiver: int) -> simgrid.Mailbox:
    """Return where one endpoint's messages for another come."""
    return simgrid.Mailbox.by_name(f"{sender}-{receiver}")


def now_s() -> float:
    """Return the simulated time."""
    return float(simgrid.Engine.clock)


def comm_of(place: simgrid.Comm | tuple[simgrid.Comm, object]) -> simgrid.Comm:
    """Return the communication; older versions return beside it where its data will be, which has to be kept."""
    return place[0] if isinstance(place, tuple) else place


def simulate(asked: dict[str, Any]) -> dict[str, Any]:
    """Carry out all traffic, and return when the last message was taken."""
    finer = FINER[simgrid.simgrid_version.split(".")[:2] < ["3", "33"]]
    engine = simgrid.Engine(["cadge", f"--cfg={finer}", "--log=root.thresh:error"])
    engine.load_platform(asked["platform"])
    endpoints = [SimulatedEndpoint(asked, number) for number in range(len(asked["routes"]))]
    for endpoint in endpoints:
        host = simgrid.Host.by_name(f"node-{endpoint.number}")
        simgrid.Actor.create(str(endpoint.number), host, endpoint)
    engine.run()
    done_s = max(endpoint.done_s for endpoint in endpoints)
    return {"simgrid": simgrid.simgrid_version, "finished_ns": done_s / S, "messages": sum(map(len, asked["routes"]))}


if __name__ == "__main__":
    json.dump(simulate(json.load(sys.stdin)), sys.stdout)
