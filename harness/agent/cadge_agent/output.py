# SPDX-License-Identifier: BSD-3-Clause
"""JSON lines to the controller."""

from __future__ import annotations

import json
import os

from cadge_agent.errors import EndedError
from cadge_agent.formats import Event
from cadge_agent.reactor import Reactor


class LeaseOutput:
    """JSON lines to the controller. Never blocks without watching the lease."""

    def __init__(self, reactor: Reactor, descriptor: int = 1) -> None:
        self._reactor = reactor
        self._descriptor = descriptor
        self._writing = False
        os.set_blocking(descriptor, False)

    def answer(self, host: str) -> None:
        """Say that this host's agent lives; not in the middle of another line, which says so as well."""
        if not self._writing:
            self.emit({"event": "alive", "host": host})

    def emit(self, event: Event) -> None:
        """Write one line; raises EndedError where nobody reads any more."""
        data = memoryview((json.dumps(event, separators=(",", ":")) + "\n").encode())
        self._writing = True
        try:
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:
                    self._reactor.wait(lambda: False, 60.0, writable=self._descriptor)
                except (BrokenPipeError, ConnectionResetError) as error:
                    raise EndedError("nobody reads the agent's output") from error
        finally:
            self._writing = False


def tell_removed(output: LeaseOutput, host: str, names: list[str]) -> None:
    """Tell the user what was removed, if anything."""
    if names:
        output.emit({"event": "note", "host": host, "text": say_removed(names)})


def say_removed(names: list[str]) -> str:
    """Put it in words."""
    return f"removed what an earlier process left: {', '.join(names)}"
