# SPDX-License-Identifier: BSD-3-Clause
"""A host of the block that obeys its leader."""

from __future__ import annotations

import errno
import hmac
import secrets
import socket
import time

from cadge_agent import AGENT_VERSION
from cadge_agent.auth import CONNECT_S, control_ports, proof
from cadge_agent.errors import BadBlockError, HostLostError
from cadge_agent.formats import Json
from cadge_agent.line import Line
from cadge_agent.names import check_names, hosts_of
from cadge_agent.output import Output
from cadge_agent.reactor import Reactor
from cadge_agent.site import Site


class Follower:
    """A host of the block that is not its leader: starts and ends its endpoints as told."""

    def __init__(self, site: Site, reactor: Reactor, output: Output) -> None:
        self.site = site
        self.reactor = reactor
        self.output = output
        self.token = site.token_file.read_bytes().strip()

    def _listen(self) -> socket.socket:
        address = self.site.host["management_address"]
        for port in control_ports(self.site.block):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((address, port))
                listener.listen(4)
            except OSError as error:
                listener.close()
                if error.errno != errno.EADDRINUSE:
                    raise BadBlockError(
                        f"{self.site.name} cannot listen on {address}:{port}: {error.strerror}"
                    ) from error
                continue
            listener.setblocking(False)
            return listener
        raise BadBlockError(f"ports {control_ports(self.site.block)} of {self.site.name} are all taken")

    def _authenticate(self, line: Line) -> bool:
        try:
            hello = line.receive(3)
            if hello.get("hello") != AGENT_VERSION or hello.get("block") != self.site.block["block_id"]:
                return False
            own = secrets.token_hex(16)
            nonces = f"{hello.get('nonce')} {own} {self.site.name}"
            line.send({"nonce": own, "proof": proof(self.token, "follower", nonces)})
            answer = line.receive(3)
            if not hmac.compare_digest(str(answer.get("proof")), proof(self.token, "leader", nonces)):
                return False
            line.send({"ok": True})
        except HostLostError:
            return False
        return True

    def _leader(self) -> Line:
        listener = self._listen()
        arrived: list[bool] = []
        self.reactor.readers[listener.fileno()] = lambda: arrived.append(True)
        try:
            node, name = self.site.node, self.site.name
            self.output.emit("ready", host=name, leader=False, todo=0, agent_version=AGENT_VERSION, node=node)
            until = time.monotonic() + 2 * CONNECT_S
            while True:
                arrived.clear()
                self.reactor.wait(lambda: bool(arrived), until - time.monotonic())
                try:
                    handle, _ = listener.accept()
                except BlockingIOError:
                    if time.monotonic() >= until:
                        raise HostLostError("the leader of the block did not come") from None
                    continue
                line = Line(handle, self.reactor)
                if self._authenticate(line):
                    return line
                line.close()
        finally:
            self.reactor.readers.pop(listener.fileno(), None)
            listener.close()

    def run(self) -> int:
        """Obey the leader until it says goodbye; where no launch needs this host, no leader comes."""
        if self.site.name not in hosts_of(self.site.block["launches"]):
            self.output.emit(
                "ready", host=self.site.name, leader=False, todo=0, agent_version=AGENT_VERSION, node=self.site.node
            )
            return 0
        line = self._leader()
        reported: set[int] = set()

        def something() -> bool:
            for number, child in self.site.children.items():
                if number not in reported and child.code() not in (None, 0):
                    return True
            return bool(line.lines) or line.lost

        while True:
            self.reactor.wait(something, float("inf"))
            for number, child in self.site.children.items():
                if number not in reported and child.code() not in (None, 0):
                    reported.add(number)
                    line.send({"exited": number, "code": child.code()})
            if line.lines:
                order = line.lines.pop(0)
                if order["do"] == "bye":
                    return 0
                if order["do"] == "prepare":
                    reported.clear()
                line.send(self._obey(order))
            elif line.lost:
                raise HostLostError("the leader of the block is gone")

    def _obey(self, order: Json) -> Json:
        launch = order["launch"]
        check_names(launch["launch_id"])
        try:
            if order["do"] == "prepare":
                return {"answer": "prepare", **self.site.prepare(launch, order["attempt"])}
            if order["do"] == "start":
                self.site.start(launch, order["endpoint"], order["oob"])
                return {"answer": "start"}
            if order["do"] == "finish":
                child = self.site.children.get(1)
                if child is not None and order["grace_s"] > 0:
                    self.reactor.wait(lambda: child.code() is not None, order["grace_s"])
                return {"answer": "finish", **self.site.finish(launch)}
        except OSError as error:
            return {"answer": order["do"], "error": f"{self.site.name}: {error.strerror or error}"}
        return {"answer": "?", "error": f"unknown order {order['do']}"}
