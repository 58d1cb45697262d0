# SPDX-License-Identifier: BSD-3-Clause
"""A comparison of which a side's launches may be on two levels: each level is compared by itself.

Differences between such sides are not symmetric, so signed ranks find what only is how often a side was on its slow
level. So both sides are cut where their launches lie farthest apart (modes.py), and each level of the one is compared
with each of the other, unpaired, by the rank sum (Mann and Whitney 1947; shift.py). One side is faster only where it is
with each of these pairs of levels: an intersection-union test, whose p is the largest of them (Berger, Technometrics
24, 1982, p. 295), and whose interval holds theirs. Levels of two or three launches can hardly be compared so. Where
no launch of one side reaches any of the other's, all agree, however they are paired: then p is the sign test's, if
that is smaller.

Levels count where they show in the differences. Where both sides switch in the same rounds, or drift, it is the machine
that does, and pairs cancel it. Where differences are on two levels and no side by itself is, they are decided where all
of them agree, by the sign test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from cadge_analysis.stats.inference.modes import has_two_levels, may_have_two_levels, split
from cadge_analysis.stats.inference.scatter import Scatter
from cadge_analysis.stats.inference.shift import at_most, rank_at
from cadge_analysis.stats.inference.signed_rank import Interval, launches_needed

_CUT_LEAST = 4


@dataclass(frozen=True, slots=True)
class Levels:
    """Both sides' launches as logarithms, in the order of rounds, and which of them are cut in two; none: by pairs."""

    ours: tuple[float, ...]
    base: tuple[float, ...]
    are_cut: tuple[bool, bool]

    def first(self, launches: int) -> Levels:
        """Return those of the first rounds."""
        return Levels(self.ours[:launches], self.base[:launches], self.are_cut)

    def p_value(self) -> float:
        """Return the two-sided p of no difference."""
        return min(1.0, 2 * min(self.p_not_below(), self.p_not_above()))

    def p_not_below(self, shift: float = 0.0) -> float:
        """Return the one-sided p of a difference that is not below a shift."""
        pairs = self._differences()
        do_agree = max(max(each) for each, _ in pairs) < shift
        return self._p(do_agree, [at_most(sum(one >= shift for one in each), *sizes) for each, sizes in pairs])

    def p_not_above(self, shift: float = 0.0) -> float:
        """Return the one-sided p of a difference that is not above a shift."""
        pairs = self._differences()
        do_agree = min(min(each) for each, _ in pairs) > shift
        return self._p(do_agree, [at_most(sum(one <= shift for one in each), *sizes) for each, sizes in pairs])

    def p_outside(self, within: Interval) -> float:
        """Return the two-sided p of a difference that does not lie between two values."""
        return min(1.0, 2 * max(self.p_not_above(within[0]), self.p_not_below(within[1])))

    def interval(self, level: float) -> Interval | None:
        """Return the differences that are not refused at a level; None where none is."""
        found: list[Interval] = []
        pairs = self._differences()
        ranks = [rank_at(*sizes, level) for _, sizes in pairs]
        if any(self.are_cut) and all(ranks):
            ends = [(each[rank - 1], each[-rank]) for (each, _), rank in zip(pairs, ranks, strict=True)]
            found.append((min(low for low, _ in ends), max(high for _, high in ends)))
        if launches_needed(level) <= self._launches:
            found.append((min(each[0] for each, _ in pairs), max(each[-1] for each, _ in pairs)))
        return (max(low for low, _ in found), min(high for _, high in found)) if found else None

    def _p(self, do_agree: bool, of_levels: Sequence[float]) -> float:
        found = max(of_levels) if any(self.are_cut) else 1.0
        return min(found, 2.0**-self._launches) if do_agree else found

    @property
    def _launches(self) -> int:
        return len(self.ours)

    def _differences(self) -> list[tuple[list[float], tuple[int, int]]]:
        """Return for each pair of levels all differences between them, ascending, and how many launches both have."""
        if not any(self.are_cut):
            n = self._launches
            return [(sorted(one - other for one, other in zip(self.ours, self.base, strict=True)), (n, n))]
        every = zip((self.ours, self.base), self.are_cut, strict=True)
        sides = [_cut(side) if is_cut else [list(side)] for side, is_cut in every]
        return [
            (sorted(one - other for one in ours for other in base), (len(ours), len(base)))
            for ours, base in product(*sides)
        ]


def levels_of(ours: Sequence[float], base: Sequence[float], scatter: Scatter) -> Levels | None:
    """Return both sides, as logarithms round by round, where one may be on two levels or differences are; else None.

    scatter: of the family's launches within levels.
    """
    differences = [one - other for one, other in zip(ours, base, strict=True)]
    is_cut, is_base_cut = (may_have_two_levels(side, scatter) and _show(side, differences) for side in (ours, base))
    if not is_cut and not is_base_cut and not has_two_levels(differences):
        return None
    return Levels(tuple(ours), tuple(base), (is_cut, is_base_cut))


def _show(side: Sequence[float], differences: Sequence[float]) -> bool:
    """Tell whether at least half of what parts a side's levels parts the differences of the same rounds."""
    in_order = sorted(range(len(side)), key=side.__getitem__)
    at = split([side[place] for place in in_order]).at
    lower, upper = in_order[:at], in_order[at:]

    def gap(values: Sequence[float]) -> float:
        return fmean(values[place] for place in upper) - fmean(values[place] for place in lower)

    return 2 * abs(gap(differences)) > gap(side)


def _cut(side: Sequence[float]) -> list[list[float]]:
    ordered = sorted(side)
    if len(ordered) < _CUT_LEAST:
        return [ordered]
    at = split(ordered).at
    return [ordered[:at], ordered[at:]]
