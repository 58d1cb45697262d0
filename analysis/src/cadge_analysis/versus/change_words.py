# SPDX-License-Identifier: BSD-3-Clause
"""What is said of a change in words: the same in the terminal, in Markdown and on a page."""

from __future__ import annotations

from cadge_analysis import units
from cadge_analysis.versus.against import Change


def more(change: Change) -> str:
    """Return what would decide a cell that cannot be told."""
    if change.judged.drowned:
        return "the machine's drift is as large"
    launches = change.judged.more
    return f"about {units.count_of(launches, 'launch', 'launches')} more" if launches else "far more launches"
