# SPDX-License-Identifier: BSD-3-Clause
"""What is said of a change in words: the same in the terminal, in Markdown and on a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp

from cadge_analysis import messages, units
from cadge_analysis.versus.against import Change

say = partial(messages.say, "versus")


def interval(change: Change, say: Callable[[float], str] = units.sig3) -> str:
    """Return the interval that a verdict is read from, as [low, high]; "" where there is none."""
    ends = change.judged.interval
    return units.ratio_interval(exp(ends[0]), exp(ends[1]), say) if ends else ""


def disagreement(change: Change) -> str:
    """Say that the ratio is another one than that of both medians; "" where it is not."""
    return f"; {units.PAIRS_DISAGREE}" if change.pairs_disagree else ""


def more(change: Change) -> str:
    """Return what stands against a decision, and not the spread alone; "" where nothing does."""
    if change.judged.withheld:
        return "withheld"
    if change.judged.drowned:
        return say("change_words.drift_as_large")
    return say("change_words.at_least_more", n=change.judged.more) if change.judged.more else ""
