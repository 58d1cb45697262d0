# SPDX-License-Identifier: BSD-3-Clause
"""Values as people read them, for messages and displays."""

from __future__ import annotations

import signal
from collections.abc import Iterable

_PLACES = {"self": "in one process", "within": "within one host", "between": "between hosts"}


def clock(seconds: float) -> str:
    """Return a duration for people: 45 s, 4:30, 1:02:03."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """Return "1 point", "6 points": the number and the right form of its noun."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def runs_only(places: Iterable[str]) -> str:
    """Return where something runs, and nowhere else: runs only within one host."""
    return f"runs only {' or '.join(_PLACES.get(place, place) for place in places)}"


def ended_how(code: int | None) -> str:
    """Return how a process ended, by its exit status; negative is a signal."""
    if code is None:
        return "without an exit status"
    if code >= 0:
        return f"with exit status {code}"
    name = next((f" ({one.name})" for one in signal.Signals if one == -code), "")
    return f"by signal {-code}{name}"
