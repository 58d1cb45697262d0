# SPDX-License-Identifier: BSD-3-Clause
"""Values as people read them, for messages and displays."""

from __future__ import annotations


def clock(seconds: float) -> str:
    """Return a duration for people: 45 s, 4:30, 1:02:03."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
