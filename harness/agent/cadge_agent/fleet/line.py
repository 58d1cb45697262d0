# SPDX-License-Identifier: BSD-3-Clause
"""JSON lines between two agents."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from cadge_agent.errors import HostLostError
from cadge_agent.formats import Json
from cadge_agent.reactor import Reactor

ANSWER_S = 10.0  # a follower has to answer an order within this
STRANGER_BYTES = 65536
STRANGER_LINES = 4
TRUSTED_BYTES = 1 << 30


def _message(line: bytes) -> Json | None:
    """Return the object that a line holds, None where it holds none: brackets may be nested deeper than can be read."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class JsonLines:
    """JSON lines over one TCP connection between agents.

    Until `trust` was called a stranger may be at the other end: whatever he sends is a message or ends the connection,
    and costs no more than a line of STRANGER_BYTES.
    """

    def __init__(self, handle: socket.socket, reactor: Reactor) -> None:
        self.handle = handle
        self.reactor = reactor
        self.lines: list[Json] = []
        self.lost = False
        self._partial = b""
        self._most_bytes = STRANGER_BYTES
        self._most_lines = STRANGER_LINES
        handle.setblocking(False)
        with contextlib.suppress(OSError):  # it is gone already, as reading will tell
            handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reactor.readers[handle.fileno()] = self._read

    def trust(self) -> None:
        """Take messages of any length and number: the other end has proved that it has the token."""
        self._most_bytes, self._most_lines = TRUSTED_BYTES, sys.maxsize

    def _read(self) -> None:
        try:
            data = self.handle.recv(min(self._most_bytes, 1 << 20))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines if data else ():
            message = _message(line) if len(line) <= self._most_bytes else None
            if message is None or len(self.lines) == self._most_lines:
                self._lose()
                return
            self.lines.append(message)
        if not data or len(self._partial) > self._most_bytes:
            self._lose()

    def _lose(self) -> None:
        self.lost, self._partial = True, b""
        self.reactor.readers.pop(self.handle.fileno(), None)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; raises HostLostError."""
        data = memoryview((json.dumps(message) + "\n").encode())
        until = time.monotonic() + ANSWER_S
        while data:
            try:
                data = data[self.handle.send(data) :]
            except BlockingIOError:
                left = until - time.monotonic()
                if left <= 0 or not self.reactor.wait(lambda: False, left, writable=self.handle.fileno()):
                    raise HostLostError("it does not read what is sent to it") from None
            except OSError as error:
                raise HostLostError(os.strerror(error.errno or 0)) from error

    def receive(self, timeout_s: float) -> Json:
        """Return the next message; raises HostLostError."""
        if not self.reactor.wait(lambda: bool(self.lines) or self.lost, timeout_s):
            raise HostLostError(f"no answer within {timeout_s:.0f} s")
        if not self.lines:
            raise HostLostError("the connection ended")
        return self.lines.pop(0)

    def close(self) -> None:
        """Close the connection."""
        self.reactor.readers.pop(self.handle.fileno(), None)
        self.handle.close()
