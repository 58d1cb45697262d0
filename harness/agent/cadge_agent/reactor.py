# SPDX-License-Identifier: BSD-3-Clause
"""Waiting: for children, descriptors and the clock, under the controller's lease."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from typing import Callable

from cadge_agent.errors import EndedError
from cadge_agent.orders import FromController


class Reactor:
    """Sleeps until a child ends, a descriptor can be read, or time is up; and notices that the lease ends.

    All waiting of the agent happens in `wait`. It raises EndedError when standard input ends or the deadline passes.
    """

    def __init__(self, deadline_s: float, lease: int = 0) -> None:
        self.deadline = time.monotonic() + deadline_s
        self.lease = lease
        self.stop_reason: str | None = None
        self.acks: set[str] = set()
        self.on_ping: Callable[[], None] = lambda: None
        self.on_order: Callable[[FromController], None] = lambda _order: None
        self.readers: dict[int, Callable[[], None]] = {}
        self._partial = b""
        self._signal: int | None = None
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)
        os.set_blocking(lease, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, _frame: object) -> None:
        self._signal = number

    def _read_lease(self) -> None:
        try:
            data = os.read(self.lease, 65536)
        except BlockingIOError:
            return
        except ConnectionResetError:  # a socket whose other end went away with something unread
            data = b""
        if not data:
            raise EndedError("the controller's lease ended")
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            try:
                order: FromController = json.loads(line)
            except ValueError:
                continue
            if "stop" in order:
                self.stop_reason = order["stop"]
            elif "ack" in order:
                self.acks.add(order["ack"])
            elif "ping" in order:
                self.on_ping()
            else:
                self.on_order(order)

    def wait(self, done: Callable[[], bool], timeout_s: float, writable: int | None = None) -> bool:
        """Sleep until `done()` or `timeout_s`; True if done. `writable`: also return when it can be written."""
        until = time.monotonic() + timeout_s
        while True:
            if self._signal is not None:
                raise EndedError(f"signal {self._signal}")
            if done():
                return True
            now = time.monotonic()
            if now >= self.deadline:
                raise EndedError("the block's deadline passed")
            if now >= until:
                return False
            readers = [self.lease, self._wake_read, *self.readers]
            writers = [] if writable is None else [writable]
            ready, can_write, _ = select.select(readers, writers, [], min(until, self.deadline) - now)
            for descriptor in ready:
                if descriptor == self._wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                elif descriptor == self.lease:
                    self._read_lease()
                elif descriptor in self.readers:
                    self.readers[descriptor]()
            if can_write:
                return True

    def check(self) -> None:
        """Notice the lease's end or a stop without sleeping."""
        self.wait(lambda: False, 0)
        ready, _, _ = select.select([self.lease], [], [], 0)
        if ready:
            self._read_lease()
