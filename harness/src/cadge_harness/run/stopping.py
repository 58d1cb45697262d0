# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C and termination: the first asks for an orderly end, the second ends now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from cadge_harness.errors import EXIT_INTERRUPTED, EXIT_STOPPED

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopping:
    """Turns signals into an event while it is entered. Has to be entered in the main thread."""

    def __init__(self, on_first: Callable[[str], None]) -> None:
        self.event = threading.Event()
        self.signal: int | None = None
        self._on_first = on_first
        self._old: dict[int, object] = {}

    @property
    def exit_code(self) -> int | None:
        """The exit code that the signal asks for; None where there was none."""
        if self.signal is None:
            return None
        return EXIT_INTERRUPTED if self.signal == signal.SIGINT else EXIT_STOPPED

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._old[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in _SIGNALS:
            old = self._old[number]
            signal.signal(number, old if callable(old) or isinstance(old, signal.Handlers) else signal.SIG_DFL)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the system's signature
        if self.event.is_set():
            raise KeyboardInterrupt
        self.signal = number
        self.event.set()
        again = "; press Ctrl-C again to stop now" if number == signal.SIGINT else ""
        self._on_first(f"stopping after this launch{again}")
