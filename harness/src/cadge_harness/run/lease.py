# SPDX-License-Identifier: BSD-3-Clause
"""The controller's side of the lease that agents hold, and of Ansible's events: one unix socket, one loop.

Agents reach it through playbooks/action_plugins/cadge_agent.py, Ansible through callback_plugins/cadge_events.py. As
long as this process lives and keeps their connections open, they work. The loop sleeps until somebody speaks.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cadge_results import FormatError
from cadge_results.formats.event import Event, Problem, read_event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEAT_S = 5.0
"""How often every agent is asked whether it lives. It costs an agent some ten microseconds."""
BEATS_MISSED = 4
"""So many questions in a row without an answer: an agent, its connection or its host is frozen."""
BEATS_IDLE = 120
"""So many beats without a word from Ansible while no agent is connected: it, or what it runs on a host, is frozen."""
_CHUNK_BYTES = 1 << 20


@dataclass(slots=True)
class Peer:
    """One connection: an agent's (host and block set) or Ansible's."""

    connection: socket.socket
    host: str = ""
    block_id: str = ""
    told_to_stop: bool = False
    greeted: bool = False
    partial: bytearray = field(default_factory=bytearray)
    unanswered: int = 0
    """Questions since it was heard last. They are counted, not timed: whoever sleeps himself has asked none."""

    @property
    def is_agent(self) -> bool:
        """Whether an agent is at the other end."""
        return bool(self.host)

    def send(self, message: dict[str, object]) -> None:
        """Send one line; a peer that is gone is noticed when it is read."""
        with contextlib.suppress(OSError):
            self.connection.sendall((json.dumps(message) + "\n").encode())


class LeaseServer:
    """Accepts, reads lines, and calls `on_event(peer, event)` and `on_gone(peer)` from `run`'s thread."""

    def __init__(
        self,
        path: Path,
        on_event: Callable[[Peer, Event], None],
        on_gone: Callable[[Peer], None],
    ) -> None:
        """`path`: where to listen; in a folder that nobody else may enter, for whoever connects is believed."""
        self._on_event = on_event
        self._on_gone = on_gone
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._listener.bind(str(path))
        self._listener.listen(128)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self.peers: list[Peer] = []
        self.frozen: str | None = None
        """Who gives no sign of life, once that is known."""
        self.frozen_host = ""
        """The host where that is; empty where it is Ansible."""
        self._idle_beats = 0
        self._next_beat = time.monotonic() + BEAT_S
        self._closed = threading.Lock()

    def wake(self) -> None:
        """Make `run` look at its condition; from any thread."""
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"w")

    def wake_when(self, event: threading.Event) -> None:
        """Call `wake` once `event` is set, without looking at it again and again."""

        def wait() -> None:
            event.wait()
            if self._closed.acquire(blocking=False):
                self.wake()
                self._closed.release()

        threading.Thread(target=wait, name="cadge-stop", daemon=True).start()

    def watch_process(self, pid: int) -> int:
        """Wake `run` when a process ends; returns the descriptor to close afterwards."""
        descriptor = os.pidfd_open(pid)
        self._selector.register(descriptor, selectors.EVENT_READ, "once")
        return descriptor

    def run(self, until: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Serve until `until()` holds (it is asked whenever something happened), or for `timeout_s` at most."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not until():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return
            to_beat = max(0.0, self._next_beat - time.monotonic())
            ready = self._selector.select(to_beat if left is None else min(left, to_beat))
            for key, _ in ready:
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.data, Peer):
                    self._read(key.data)
                elif key.data == "once":
                    self._selector.unregister(key.fileobj)
                else:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
            if time.monotonic() >= self._next_beat:
                self._beat()

    def _beat(self) -> None:
        """Ask every agent whether it lives, and find those that have not answered for long."""
        self._next_beat = time.monotonic() + BEAT_S
        agents = [peer for peer in self.peers if peer.is_agent]
        for peer in agents:
            if peer.unanswered >= BEATS_MISSED and self.frozen is None:
                self.frozen_host = peer.host
                self.frozen = f"no sign of life from {peer.host} for {BEATS_MISSED * BEAT_S:.0f} s"
            peer.unanswered += 1
            peer.send({"ping": peer.unanswered})
        self._idle_beats = 0 if agents else self._idle_beats + 1
        if self._idle_beats > BEATS_IDLE and self.frozen is None:
            self.frozen = f"no sign of life from Ansible for {BEATS_IDLE * BEAT_S:.0f} s"

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        peer = Peer(connection)
        self.peers.append(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def _read(self, peer: Peer) -> None:
        try:
            data = peer.connection.recv(_CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:
            self._drop(peer)
            self._on_gone(peer)
            return
        peer.unanswered = self._idle_beats = 0
        peer.partial += data
        *lines, rest = bytes(peer.partial).split(b"\n")
        peer.partial = bytearray(rest)
        for line in lines:
            if peer.greeted:
                self._event(peer, line)
            else:
                self._greet(peer, line)

    def _greet(self, peer: Peer, line: bytes) -> None:
        """Read the first line: who speaks. An agent says hello; what anybody else says is an event."""
        peer.greeted = True
        with contextlib.suppress(ValueError, AttributeError, KeyError):
            message = json.loads(line)
            if message.get("hello") == "agent":
                peer.host, peer.block_id = str(message["host"]), str(message["block_id"])
                return
        self._event(peer, line)

    def _event(self, peer: Peer, line: bytes) -> None:
        source = f"the agent on {peer.host}" if peer.is_agent else "Ansible"
        try:
            event = read_event(line, source=source)
        except FormatError as error:
            event = Problem(host=peer.host, reason=f"a line that is no event: {error}")
        self._on_event(peer, event)

    def _drop(self, peer: Peer) -> None:
        self._selector.unregister(peer.connection)
        peer.connection.close()
        self.peers.remove(peer)

    def end_leases(self) -> None:
        """End the lease of every agent, and go on listening to what they say meanwhile."""
        for peer in self.peers:
            if peer.is_agent:
                self.end_lease(peer)

    @staticmethod
    def end_lease(peer: Peer) -> None:
        """End the lease of one agent."""
        with contextlib.suppress(OSError):
            peer.connection.shutdown(socket.SHUT_WR)

    def drop_all(self) -> None:
        """Close every connection: Ansible ends itself when it sees that."""
        for peer in list(self.peers):
            self._drop(peer)

    def close(self) -> None:
        """End every lease and stop listening."""
        self._closed.acquire()
        self.drop_all()
        self._selector.close()
        self._listener.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
