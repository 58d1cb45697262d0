# SPDX-License-Identifier: BSD-3-Clause
"""The ports of the inventory: which are free here, and whether the other hosts are reached at theirs."""

from __future__ import annotations

import contextlib
import errno
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from cadge_agent.faults import fault
from cadge_agent.formats import BlockHost, Fault, ReachReport
from cadge_agent.host.network import address_of, family_of
from cadge_agent.launchers import reached_as
from cadge_agent.orders import Login, Target
from cadge_agent.site import RESERVED_PORTS, listening

REACH_S = 5.0
"""A host that a firewall hides does not answer at all."""
AT_ONCE = 32
LOGIN_S = 20.0
LOGINS_AT_ONCE = 2
OTHERS_LEAST = 24
"""For layers, beside the reserved ones at the range's end."""
_GREETING = b"cadge "
_NAME_BYTES = 256


def taken_ports(addresses: list[str], first: int, last: int) -> list[int]:
    """Return the ports that another program has at one of these addresses, by TCP or UDP; others' cannot be tried."""
    return [port for port in range(first, last + 1) if any(_is_taken(address, port) for address in addresses)]


def _is_taken(address: str, port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(family_of(address), kind) as trial:
            if kind == socket.SOCK_STREAM:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((address, port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return True
    return False


def port_faults(host: str, taken: list[int], first: int, last: int) -> Iterator[Fault]:
    """Say where a launch would find no port: endpoints meet at one of four, agents at one of the last four."""
    reserved = range(last - RESERVED_PORTS + 1, last + 1)
    half = RESERVED_PORTS // 2
    others = len(range(first, reserved[0])) - len([port for port in taken if port < reserved[0]])
    full = [part for part in (reserved[:half], reserved[half:]) if set(part) <= set(taken)]
    for part in full:
        yield fault("ports", f"{host}: other programs have all of the ports {part[0]}-{part[-1]}", _OTHER_RANGE)
    if others < OTHERS_LEAST:
        text = f"{host}: other programs have {len(taken)} of the ports {first}-{last}; {others} are left for layers"
        yield fault("ports", text, _OTHER_RANGE)


_OTHER_RANGE = "Set cadge_port_first and cadge_port_last in the inventory to a range that is free on all hosts"


class Greeters:
    """Sockets at which this host tells its name, at addresses of its own, until they are closed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sockets: list[socket.socket] = []

    def listen(self, address: str, ports: range) -> int:
        """Greet at the first free one of `ports`. Returns it, 0 where there is none. Raises OSError."""
        listener = listening(address, ports)
        if listener is None:
            return 0
        self._sockets.append(listener)
        threading.Thread(target=self._greet, args=(listener,), daemon=True).start()
        return int(listener.getsockname()[1])

    def _greet(self, listener: socket.socket) -> None:
        while listener.fileno() >= 0:
            try:
                peer, _ = listener.accept()
            except OSError:  # closed, or a stranger went away again
                time.sleep(0.01)
                continue
            with peer, contextlib.suppress(OSError):
                peer.sendall(_GREETING + self._name.encode() + b"\n")

    def close(self) -> None:
        """End them."""
        for listener in self._sockets:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
            listener.close()


def reach(host: str, targets: list[Target]) -> ReachReport:
    """Try to reach other hosts."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = list(zip(targets, pool.map(lambda target: _reach_one(host, target), targets)))
    missed = {target["host"] for target, found in tried if found}
    return {
        "event": "reached",
        "host": host,
        "reached": sorted({target["host"] for target in targets} - missed),
        "no_login": {},
        "faults": [found for _, found in tried if found],
    }


def try_logins(ssh: Sequence[str], logins: Sequence[Login]) -> dict[str, str]:
    """Log in to other hosts as mpirun will. Returns those that cannot be logged in to, each with the reason.

    A few at a time: sshd drops connections at random where more than ten (MaxStartups) have not logged in yet.
    """
    with ThreadPoolExecutor(LOGINS_AT_ONCE) as pool:
        tried = zip(logins, pool.map(lambda login: _try_login(ssh, login), logins))
        return {login["host"]: why for login, why in tried if why}


def _try_login(ssh: Sequence[str], login: Login) -> str:
    options = ["-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={REACH_S:.0f}"]
    argv = [*(ssh or ("ssh",)), *options, reached_as(ssh, login["host"], login["address"]), "true"]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LOGIN_S,
            check=False,
        )
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"no answer within {LOGIN_S:.0f} s"
    lines = [line.strip().rstrip(".") for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit status {done.returncode}")


def _reach_one(host: str, target: Target) -> Fault | None:
    peer, address, port = target["host"], target["address"], target["port"]
    where = f"Set {target['variable']} of {peer} in the inventory"
    try:
        with socket.create_connection((address, port), timeout=REACH_S) as connection:
            greeting = _first_line(connection)
    except OSError as error:
        why = (error.strerror or f"no answer within {REACH_S:.0f} s").lower()
        text = f"{host} does not reach {peer} at {address}, port {port}: {why}"
        return fault("reach", text, f"Open the ports of the inventory between these hosts, or s{where[1:]}")
    if greeting != _GREETING + peer.encode() + b"\n":
        return fault("reach", f"{host} finds another host or program than {peer} at {address}, port {port}", where)
    return None


def _first_line(connection: socket.socket) -> bytes:
    """Return what comes to the end of a line, within REACH_S however it drips. Raises OSError."""
    until, found = time.monotonic() + REACH_S, b""
    while not found.endswith(b"\n") and len(found) < _NAME_BYTES:
        connection.settimeout(max(0.001, until - time.monotonic()))
        data = connection.recv(1)
        if not data:
            break
        found += data
    return found


def own_addresses(host: BlockHost) -> dict[str, str]:
    """Return where others find this host, by the variable of the inventory that says so."""
    found = {"cadge_address": host["address"]}
    with contextlib.suppress(OSError):
        found["cadge_management_address"] = address_of(host["management_address"])
    return found
