# SPDX-License-Identifier: BSD-3-Clause
"""How far campaigns of one build on one machine lie apart, and how often `cadge compare` takes that for a change.

From the campaigns of A against A, which are of one sweep: each pair of them that was made without a load beside it, and
of each place, wait mode and form of exchange by itself, as streams drift otherwise than calls. A pair shows a common
shift, the median over series, and a spread, how far cells of different series lie apart beyond what their launches
explain (stats/inference/between.py). Of one campaign each is as large as the mean square over pairs, halved: a
difference has the variance of two. Of what is common, what the spread makes of a median over so few series is taken
away.

n campaigns tell what is common with n - 1 degrees of freedom, and the spread with n - 1 for each series but one. The
sum of both has as many as Satterthwaite's rule gives (Biometrics Bulletin 2, 1946, p. 110).

*The rate*: each pair is compared as `cadge compare` compares two campaigns of few series, with what the other pairs
show of the machine; nothing changed between them, so all that is called is wrong. Pairs share campaigns and the others
are few, so that it is told and not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import pi, sqrt
from statistics import fmean

from pydantic import JsonValue

from cadge_analysis import messages
from cadge_analysis.stats.inference.between import CellMove, of_series, spread_of
from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.shift import Shift
from cadge_analysis.stats.inference.verdict import Verdict, judge
from cadge_analysis.stats.intervals import median
from cadge_analysis.versus.drift import Group, allowed, group_of, moved_cells
from cadge_analysis.versus.sides import Side
from cadge_results.formats.selftest import BetweenCampaigns

say = partial(messages.say, "selftest")

CAMPAIGNS_LEAST = 3
"""With two there is one pair, which cannot be compared with what others show."""
MARGIN = 0.05
Cell = tuple[CellMove, Shift]
_CALLED = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPairs:
    """What pairs of campaigns show: their drift, and of so many cells how many were called changed.

    `by_launches`: how many the rank sum of launches alone would call, as if campaigns did not drift.
    """

    between: tuple[BetweenCampaigns, ...]
    pairs: int
    cells: int
    called: int
    by_launches: int

    @property
    def says(self) -> str:
        """The finding, in a sentence's part."""
        most = max(self.between, key=lambda one: one.common**2 + one.spread**2)
        return say(
            "campaign_pairs.called_changed",
            pairs=self.pairs,
            called=self.called,
            cells=self.cells,
            by_launches=self.by_launches,
            common=100 * most.common,
            spread=100 * most.spread,
            form=most.form,
            place=most.place,
        )

    @property
    def figures(self) -> dict[str, JsonValue]:
        """The same as plain values."""
        return {
            "pairs": self.pairs,
            "cells": self.cells,
            "called": self.called,
            "called_by_launches_alone": self.by_launches,
            "between": [one.model_dump(mode="json") for one in self.between],
        }


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two campaigns: their cells by what these have in common."""

    groups: Mapping[Group, Sequence[Cell]]


def campaign_pairs(sides: Sequence[Side]) -> CampaignPairs | None:
    """Return what every pair of campaigns of one sweep shows; None of fewer than three, or of a single series."""
    pairs = [_pair(first, second) for first, second in combinations(sides, 2)]
    groups = sorted(group for group in set().union(*(one.groups for one in pairs)) if _is_seen(group, pairs))
    if len(sides) < CAMPAIGNS_LEAST or not groups:
        return None
    cells = called = by_launches = 0
    for at, pair in enumerate(pairs):
        others = [*pairs[:at], *pairs[at + 1 :]]
        shifts = {group: [shift for _, shift in pair.groups[group]] for group in groups}
        usual = {group: _between(group, others, len(sides)) for group in groups}
        cells += sum(map(len, shifts.values()))
        called += _called([allowed(shift, usual[group]) for group, of in shifts.items() for shift in of])
        by_launches += _called([ShiftEstimate(shift) for of in shifts.values() for shift in of])
    return CampaignPairs(
        between=tuple(_between(group, pairs, len(sides)) for group in groups),
        pairs=len(pairs),
        cells=cells,
        called=called,
        by_launches=by_launches,
    )


def _pair(first: Side, second: Side) -> _Pair:
    groups: dict[Group, list[Cell]] = defaultdict(list)
    for case, one, shift in moved_cells(first, second):
        groups[group_of(case)].append((one, shift))
    return _Pair(groups)


def _is_seen(group: Group, pairs: Sequence[_Pair]) -> bool:
    """Tell whether every pair has several series of a group."""
    return all(len({one.series for one, _ in pair.groups.get(group, ())}) > 1 for pair in pairs)


def _called(shifts: Sequence[ShiftEstimate]) -> int:
    return sum(one.verdict in _CALLED for one in judge([(shift, "low") for shift in shifts], MARGIN))


def _between(group: Group, pairs: Sequence[_Pair], campaigns: int) -> BetweenCampaigns:
    seen = [[one for one, _ in pair.groups[group]] for pair in pairs]
    series = min(len({one.series for one in cells}) for cells in seen)
    spread = fmean(spread_of([cells]) ** 2 for cells in seen) / 2
    middle = fmean(median(list(of_series(cells).values())) ** 2 for cells in seen) / 2
    common = max(0.0, middle - pi / 2 * spread / series)
    freedom = float(campaigns - 1)
    if common + spread > 0:
        shares = common**2 / (campaigns - 1) + spread**2 / ((campaigns - 1) * (series - 1))
        freedom = (common + spread) ** 2 / shares
    place, wait, form = group
    return BetweenCampaigns(
        place=place,
        wait=wait,
        form=form,
        common=sqrt(common),
        spread=sqrt(spread),
        freedom=freedom,
        campaigns=campaigns,
    )
