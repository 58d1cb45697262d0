# SPDX-License-Identifier: BSD-3-Clause
"""A host of the block that obeys its leader."""

from __future__ import annotations

import socket
import time
from typing import cast

from cadge_agent import AGENT_VERSION
from cadge_agent.block import check_names, hosts_of
from cadge_agent.errors import BadBlockError, HostLostError, LaunchFailedError
from cadge_agent.fleet.auth import CONNECT_S, Visitor, control_ports
from cadge_agent.fleet.line import JsonLines
from cadge_agent.formats import Launch
from cadge_agent.host.kernel import boot_id
from cadge_agent.orders import EndpointExit, FollowerAnswer, Order, Programs
from cadge_agent.output import LeaseOutput
from cadge_agent.reactor import Reactor
from cadge_agent.site import HostSite

VISITORS_MOST = 64


class Follower:
    """A host of the block that is not its leader: starts and ends its endpoints as told."""

    def __init__(self, site: HostSite, reactor: Reactor, output: LeaseOutput) -> None:
        self.site = site
        self.reactor = reactor
        self.output = output
        self.token = site.token_file.read_bytes().strip()

        self._launch: Launch | None = None
        self._programs: Programs | None = None

    def _say_ready(self) -> None:
        self.output.emit(
            {
                "event": "ready",
                "host": self.site.name,
                "leader": False,
                "todo": 0,
                "agent_version": AGENT_VERSION,
                "realtime_ns": time.time_ns(),
                "node": self.site.node,
            }
        )

    def _listen(self) -> socket.socket:
        ports = control_ports(self.site.block)
        listener = self.site.listener(ports)
        if listener is None:
            raise BadBlockError(f"ports {ports} of {self.site.name} are all taken")
        listener.setblocking(False)
        return listener

    def _leader(self) -> JsonLines:
        """Let strangers come and go until one has proved to be the leader. Raises HostLostError."""
        listener = self._listen()
        arrived: list[bool] = []
        visitors: list[Visitor] = []
        self.reactor.readers[listener.fileno()] = lambda: arrived.append(True)
        try:
            self._say_ready()
            until = time.monotonic() + 2 * CONNECT_S
            while time.monotonic() < until:
                soonest = min([until, *(one.until for one in visitors)])
                self.reactor.wait(
                    lambda: bool(arrived) or not all(one.waits() for one in visitors),
                    max(0.0, soonest - time.monotonic()),
                )
                if arrived:
                    arrived.clear()
                    self._accept(listener, visitors)
                for one in [one for one in visitors if not one.waits()]:
                    try:
                        if one.proves():
                            visitors.remove(one)
                            return one.line
                    except HostLostError:
                        visitors.remove(one)
                        one.line.close()
            raise HostLostError("the leader of the block did not connect")
        finally:
            self.reactor.readers.pop(listener.fileno(), None)
            listener.close()
            for one in visitors:
                one.line.close()

    def _accept(self, listener: socket.socket, visitors: list[Visitor]) -> None:
        """Take one connection. The oldest goes where there are many: a leader is done within milliseconds."""
        try:
            handle, _ = listener.accept()
        except OSError:  # it went away again, or this process has no descriptor left: the next one may come
            self.reactor.wait(lambda: False, 0.01)
            return
        visitors.append(
            Visitor(JsonLines(handle, self.reactor), self.token, self.site.block["block_id"], self.site.name)
        )
        if len(visitors) > VISITORS_MOST:
            visitors.pop(0).line.close()

    def run(self) -> int:
        """Obey the leader until it says goodbye; where no launch needs this host, no leader comes."""
        if self.site.name not in hosts_of(self.site.block["launches"]):
            self._say_ready()
            return 0
        line = self._leader()
        reported: dict[int, int] = {}

        def news() -> dict[int, int]:
            return {number: code for number, code in self.site.ended_badly().items() if number not in reported}

        while True:
            self.reactor.wait(lambda: bool(news() or line.lines or line.lost), float("inf"))
            for number, code in news().items():
                reported[number] = code
                said: EndpointExit = {"exited": number, "code": code}
                line.send(said)
            if line.lines:
                order = cast("Order", line.lines.pop(0))
                if order["do"] == "bye":
                    return 0
                if order["do"] == "prepare":
                    reported.clear()
                line.send(self._obey(order))
            elif line.lost:
                raise HostLostError("the leader of the block is gone")

    def _obey(self, order: Order) -> FollowerAnswer:
        try:
            if order["do"] == "prepare":
                check_names(order["launch"]["launch_id"])
                self._programs = None
                self._launch = order["launch"]
                self._programs = self.site.prepare(self._launch, of_machine=order["boot"] != boot_id())
                return {"answer": "prepare", "programs": self._programs}
            if self._launch is None:
                return {"answer": order["do"], "error": f"{self.site.name} was given no launch"}
            if order["do"] == "start" and self._programs is not None:
                self.site.start(self._launch, self._programs, order["oob"])
                return {"answer": "start"}
            if order["do"] == "finish":
                if order["grace_s"] > 0:
                    self.reactor.wait(self.site.ended, order["grace_s"])
                return {"answer": "finish", "report": self.site.finish(self._launch)}
        except LaunchFailedError as error:
            return {"answer": order["do"], "error": str(error), "code": error.code}
        except OSError as error:
            return {"answer": order["do"], "error": f"{self.site.name}: {error.strerror or error}"}
        return {"answer": order["do"], "error": f"{self.site.name} cannot do that now: {order['do']}"}
