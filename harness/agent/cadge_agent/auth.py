# SPDX-License-Identifier: BSD-3-Clause
"""How leader and follower find each other, and prove that both have the token."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import time

from cadge_agent import AGENT_VERSION
from cadge_agent.errors import HostLostError
from cadge_agent.formats import Block, BlockHost
from cadge_agent.line import Line
from cadge_agent.reactor import Reactor

CONNECT_S = 30.0  # leader and followers have to find each other within this


def proof(token: bytes, role: str, nonces: str) -> str:
    """Show that one has the token, to a peer that chose one of the nonces."""
    return hmac.new(token, f"cadge-agent {role} {nonces}".encode(), hashlib.sha256).hexdigest()


def control_ports(block: Block) -> list[int]:
    """Ports that a follower may listen on, in the order of trying."""
    last = int(block["ports"][1])
    return list(range(last, last - 4, -1))


def connect_follower(host: BlockHost, block: Block, token: bytes, reactor: Reactor) -> Line:
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
            line = Line(handle, reactor)
            try:
                mine = secrets.token_hex(16)
                line.send({"hello": AGENT_VERSION, "block": block["block_id"], "nonce": mine})
                answer = line.receive(3)
                nonces = f"{mine} {answer.get('nonce')} {host['name']}"
                if not hmac.compare_digest(str(answer.get("proof")), proof(token, "follower", nonces)):
                    raise HostLostError("it holds another token")
                line.send({"proof": proof(token, "leader", nonces)})
                answer = line.receive(3)
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
