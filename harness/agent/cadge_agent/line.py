# SPDX-License-Identifier: BSD-3-Clause
"""JSON lines between two agents."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from cadge_agent.errors import HostLostError
from cadge_agent.formats import Json
from cadge_agent.reactor import Reactor

ANSWER_S = 10.0  # a follower has to answer an order within this


class Line:
    """JSON lines over one TCP connection between agents."""

    def __init__(self, handle: socket.socket, reactor: Reactor) -> None:
        self.handle = handle
        self.reactor = reactor
        self.lines: list[Json] = []
        self.lost = False
        self._partial = b""
        handle.setblocking(False)
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reactor.readers[handle.fileno()] = self._read

    def _read(self) -> None:
        try:
            data = self.handle.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lost = True
            self.reactor.readers.pop(self.handle.fileno(), None)
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                self.lost = True  # not one of ours
                return
            self.lines.append(message)

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
