# SPDX-License-Identifier: BSD-3-Clause
"""The hosts of a block as their leader sees them: its own, and the followers, who obey orders."""

from __future__ import annotations

import errno
from typing import cast

from cadge_agent.block import hosts_of
from cadge_agent.errors import HostLostError, LaunchFailedError
from cadge_agent.fleet.auth import connect_follower
from cadge_agent.fleet.line import ANSWER_S, JsonLines
from cadge_agent.formats import Launch
from cadge_agent.host.kernel import boot_id
from cadge_agent.orders import FollowerAnswer, Order, Programs, Report
from cadge_agent.reactor import Reactor
from cadge_agent.site import HostSite


class Fleet:
    """Does on every host of a launch what has to be done there, in one way for one host or many."""

    def __init__(self, site: HostSite, reactor: Reactor) -> None:
        self.site = site
        self._reactor = reactor
        self._followers: dict[str, JsonLines] = {}

    def connect(self, token: bytes) -> None:
        """Find every follower that some launch needs. Raises HostLostError."""
        needed = set(hosts_of(self.site.block["launches"])) - {self.site.name}
        for host in self.site.block["hosts"]:
            if host["name"] in needed:
                self._followers[host["name"]] = connect_follower(host, self.site.block, token, self._reactor)

    def _ask(self, host: str, order: Order, timeout_s: float = ANSWER_S) -> FollowerAnswer:
        line = self._followers[host]
        try:
            line.send(order)
            while True:
                answer = cast("FollowerAnswer", line.receive(timeout_s))
                if answer.get("answer") == order["do"]:
                    break
        except HostLostError as error:
            raise HostLostError(f"{host}: {error}") from error
        if "code" in answer:
            raise LaunchFailedError(answer["code"], answer["error"])
        if "error" in answer:
            raise OSError(errno.EIO, answer["error"])
        return answer

    def prepare(self, launch: Launch) -> dict[str, Programs]:
        """Have every host get ready; returns what makes the commands of its endpoints."""
        return {
            host: self.site.prepare(launch, of_machine=True)
            if host == self.site.name
            else self._ask(host, {"do": "prepare", "launch": launch, "boot": boot_id()})["programs"]
            for host in hosts_of([launch])
        }

    def start(self, launch: Launch, programs: Programs, oob: str) -> None:
        """Have every host start its endpoints. `programs` are those of the leader's own host."""
        self.site.start(launch, programs, oob)
        for host in self._others(launch):
            self._ask(host, {"do": "start", "oob": oob})

    def finish(self, launch: Launch, grace_s: float) -> list[Report]:
        """Have every host end the launch and report, after so long for endpoints to end by themselves."""
        reports = [self.site.finish(launch)]
        for host in self._others(launch):
            answer = self._ask(host, {"do": "finish", "grace_s": grace_s}, ANSWER_S + grace_s)
            reports.append(answer["report"])
        return reports

    def goodbye(self) -> None:
        """Let the followers go."""
        for line in self._followers.values():
            line.send({"do": "bye"})

    def _others(self, launch: Launch) -> list[str]:
        return [host for host in hosts_of([launch]) if host != self.site.name]

    def lost(self, launch: Launch) -> bool:
        """Whether a host of the launch is gone."""
        return any(self._followers[host].lost for host in self._others(launch))

    def ended_badly(self, launch: Launch) -> dict[int, int]:
        """Return the endpoints that ended otherwise than well, as far as it is known, with their exit statuses."""
        found = self.site.ended_badly()
        for host in self._others(launch):
            for message in self._followers[host].lines:
                if "exited" in message:
                    found[message["exited"]] = message["code"]
        return found
