# SPDX-License-Identifier: BSD-3-Clause
"""What of a cell is compared with that of another one: the main quantity, or the p99 of a main quantity that is a time.

A launch has a p99 of its own where enough of its samples lie beyond it. How many do is a Poisson number, nearly; with
BEYOND expected it is wrong by a third (one standard error), so that the launch's p99 is some quantile between about
98.7 and 99.3 %. With fewer it says which single operation was slow. Where one launch has fewer the cell has no p99 at
all: to leave out such launches would leave out the slow ones. Nor has it one where all launches together have fewer
than the p99 of a cell asks for (`intervals.tails`): no verdict stands on a p99 that is not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages
from cadge_analysis.stats.intervals import Estimate, over_rounds
from cadge_analysis.stats.numbers import P99, Numbers
from cadge_analysis.stats.pairing import Rounds
from cadge_results import PatternFile

say = partial(messages.say, "stats")

BEYOND = 10
"""Samples of a launch that lie beyond its own quantile, at least: 1,000 samples for a p99."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number a launch. `ending` tells it from the main quantity's name; `of` gives the values, or why not.

    `asks_all`: a point without values is an undecided comparison; else it is none.
    """

    ending: str
    asks_all: bool
    belongs: Callable[[PatternFile], bool]
    of: Callable[[Numbers], Rounds | str]


def samples_needed(per_mille: int) -> int:
    """Return how many samples a launch needs for a quantile of its own."""
    return BEYOND * 1000 // (1000 - per_mille)


def _own_p99(numbers: Numbers) -> Rounds | str:
    needed = samples_needed(P99)
    if numbers.fewest < needed:
        return say("measures.few_samples", fewest=numbers.fewest, needed=needed)
    if numbers.p99 is not None and numbers.p99.reason:
        return numbers.p99.reason
    return numbers.own_p99


def p99_of(numbers: Numbers) -> Estimate | str:
    """Return the median over launches of each one's own p99, with its interval; or why there is none."""
    found = _own_p99(numbers)
    return found if isinstance(found, str) else over_rounds(found)


MAIN = Measure(ending="", asks_all=True, belongs=lambda _: True, of=lambda numbers: numbers.by_round)
TAIL = Measure(ending="_p99", asks_all=False, belongs=lambda file: file.main_quantity.kind == "histogram", of=_own_p99)
