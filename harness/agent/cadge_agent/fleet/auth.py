# SPDX-License-Identifier: BSD-3-Clause
"""How leader and follower find each other, and prove that both have the token."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import socket
import time
from re import Pattern

from cadge_agent import AGENT_VERSION
from cadge_agent.errors import HostLostError
from cadge_agent.fleet.line import JsonLines
from cadge_agent.formats import Block, BlockHost, Json
from cadge_agent.reactor import Reactor

CONNECT_S = 30.0  # leader and followers have to find each other within this
VISIT_S = 3.0  # who connects has to prove himself within this
_NONCE, _PROOF = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{64}")


def proof(token: bytes, role: str, nonces: str) -> str:
    """Show that one has the token, to a peer that chose one of the nonces."""
    return hmac.new(token, f"cadge-agent {role} {nonces}".encode(), hashlib.sha256).hexdigest()


def _stated(message: Json, key: str, form: Pattern[str]) -> str:
    """Return a text of a stranger's message that has its form. Raises HostLostError for everything else."""
    found = message.get(key)
    if not isinstance(found, str) or form.fullmatch(found) is None:
        raise HostLostError("it does not speak as an agent")
    return found


def _check(message: Json, expected: str) -> None:
    if not hmac.compare_digest(_stated(message, "proof", _PROOF), expected):
        raise HostLostError("it holds another token")


class Visitor:
    """A connection to a follower that has not proved yet to be the leader's."""

    def __init__(self, line: JsonLines, token: bytes, block_id: str, name: str) -> None:
        self.line = line
        self.until = time.monotonic() + VISIT_S
        self._token, self._block_id, self._name = token, block_id, name
        self._nonces = ""

    def waits(self) -> bool:
        """Whether there is nothing to do for it."""
        return not self.line.lines and not self.line.lost and time.monotonic() < self.until

    def proves(self) -> bool:
        """Go on with what has come; True once it is the leader. Raises HostLostError where it is not."""
        while self.line.lines:
            message = self.line.lines.pop(0)
            if self._nonces:
                _check(message, proof(self._token, "leader", self._nonces))
                self.line.trust()
                self.line.send({"ok": True})
                return True
            if message.get("hello") != AGENT_VERSION or message.get("block") != self._block_id:
                raise HostLostError("it is of another block or version")
            own = secrets.token_hex(16)
            self._nonces = f"{_stated(message, 'nonce', _NONCE)} {own} {self._name}"
            self.line.send({"nonce": own, "proof": proof(self._token, "follower", self._nonces)})
        if self.line.lost or time.monotonic() >= self.until:
            raise HostLostError("it proved nothing")
        return False


def control_ports(block: Block) -> list[int]:
    """Ports that a follower may listen on, in the order of trying."""
    last = int(block["ports"][1])
    return list(range(last, last - 4, -1))


def connect_follower(host: BlockHost, block: Block, token: bytes, reactor: Reactor) -> JsonLines:
    """Find a follower on one of its ports and prove to each other who we are. Raises HostLostError."""
    until = time.monotonic() + CONNECT_S
    why: dict[int, str] = {}
    while time.monotonic() < until:
        for port in control_ports(block):
            try:
                handle = socket.create_connection((host["management_address"], port), timeout=2)
            except OSError as error:
                why.setdefault(port, str(error.strerror or error))
                continue
            line = JsonLines(handle, reactor)
            try:
                mine = secrets.token_hex(16)
                line.send({"hello": AGENT_VERSION, "block": block["block_id"], "nonce": mine})
                answer = line.receive(VISIT_S)
                nonces = f"{mine} {_stated(answer, 'nonce', _NONCE)} {host['name']}"
                _check(answer, proof(token, "follower", nonces))
                line.trust()
                line.send({"proof": proof(token, "leader", nonces)})
                answer = line.receive(VISIT_S)
                if answer.get("ok") is not True:
                    raise HostLostError(str(answer.get("reason", "it refused")))
            except HostLostError as error:
                line.close()
                why[port] = str(error)
                continue
            return line
        reactor.wait(lambda: False, 0.05)
    said = "; ".join(f"port {port}: {reason}" for port, reason in why.items())
    raise HostLostError(f"{host['name']} does not answer on {host['management_address']}: {said}")
