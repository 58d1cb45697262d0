# SPDX-License-Identifier: BSD-3-Clause
"""Four verdicts on a layer beside its baseline in one campaign, at looks that were fixed beforehand.

From paired log-ratios, round by round, at the last look that was reached (sequential.py), at the level that the family
asks for (families.py), by the rule of verdict.py. How many of a family are on two levels from launch to launch limits
what the distance from zero may add to signs (range_test.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from cadge_analysis.stats.inference.plan_power import launches_to_decide
from cadge_analysis.stats.inference.range_test import LAUNCHES_LEAST, factor, has_two_levels, stretch
from cadge_analysis.stats.inference.sequential import ERROR, LookPlan
from cadge_analysis.stats.inference.signs import two_sided
from cadge_analysis.stats.inference.verdict import Evidence, Verdict, bounds, levels, said
from cadge_analysis.stats.intervals import median

Pairs = Mapping[int, float] | Mapping[tuple[int, int], float]
"""The logarithm of (ours / baseline) by round, of a quantity of which less is better."""
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedVerdict:
    """What the launches say of one comparison.

    `low` and `high` are None where the launches are too few for an interval at this level. `launches`: those that were
    looked at; `early`: a decision before the plan's last look, whose estimate lies further from zero than the truth
    does, on average. `more`: about how many launches more would decide it, with a probability of 80 %, if the rounds go
    on as they went; only where the verdict is "cannot tell", and None where that would be too many, or a guess.
    `switching`: the share of comparisons on two levels that it allows for; 1 where it is itself one of them.
    """

    says: Verdict
    log_ratio: float | None
    low: float | None
    high: float | None
    p: float
    """Of no difference, over all looks; not corrected for the family, which is in `level`."""
    p_same: float
    """Of a difference of delta or more, two-sided."""
    level: float
    launches: int
    early: bool
    correlation: float
    more: int | None
    withheld: bool = False
    switching: float = 0.0

    @property
    def two_levels(self) -> bool:
        """True where its own launches switch between two levels: it is judged by signs alone."""
        return self.switching >= 1

    @property
    def mark(self) -> str:
        """How a ratio is marked: by whether it is separated from 1; by nothing where that is withheld."""
        return "" if self.withheld else "differs" if self.differs else "same"

    @property
    def differs(self) -> bool:
        """True where it is faster or slower."""
        return self.says in (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one look shows: the values, and how many of them speak against each finding."""

    values: tuple[float, ...]
    look: int
    against_difference: int
    against_same: int
    p: float
    p_same: float
    stretches: tuple[float, float]
    """How far they lie from zero, and within the margin: see range_test.py."""
    switching: float


def _seen(pairs: Pairs, delta: float, looks: LookPlan, correlation: float, switching: float) -> _Seen | None:
    look = looks.reached(len(pairs))
    if look is None:
        return None
    values = tuple(value for _, value in sorted(pairs.items())[: looks.looks[look]])
    low, high = bounds(delta)
    different = min(sum(value <= 0 for value in values), sum(value >= 0 for value in values))
    outside = max(sum(value >= high for value in values), sum(value <= low for value in values))
    away = stretch(values, max(min(values), -max(values)), correlation=correlation)
    inside = stretch(values, min(high - max(values), min(values) - low), correlation=correlation)
    return _Seen(
        values=values,
        look=look,
        against_difference=different,
        against_same=outside,
        p=looks.p(look, different, stretch=away, switching=switching, correlation=correlation),
        p_same=looks.p(look, outside, stretch=inside, switching=switching, correlation=correlation),
        stretches=(away, inside),
        switching=switching,
    )


def _unseen(
    pairs: Pairs, looks: LookPlan, level: float, correlation: float, switching: float, *, withheld: bool
) -> PairedVerdict:
    values = list(pairs.values())
    return PairedVerdict(
        says=Verdict.UNKNOWN,
        log_ratio=median(values) if values else None,
        low=None,
        high=None,
        p=1.0,
        p_same=1.0,
        level=level,
        launches=len(values),
        early=False,
        correlation=correlation,
        more=None if withheld else looks.looks[0] - len(values),
        withheld=withheld,
        switching=switching,
    )


def unsaid(looks: LookPlan) -> PairedVerdict:
    """Return the verdict on what cannot be compared at all."""
    return _unseen({}, looks, ERROR, 0.0, 0.0, withheld=True)


def _more(seen: _Seen, level: float) -> int | None:
    """Return how many launches more would do, from the shares that spoke for each finding.

    A share is estimated as (k + 1/2) / (n + 1): nine of nine do not say that it is always so. Where they all agree, and
    lie as far away as they do, it is the first number of launches whose p is small enough if all the others agree too.
    """
    n = len(seen.values)
    both = seen.against_difference, seen.against_same
    shares = [(n - against + 0.5) / (n + 1) for against in both]
    needed = [found for share in shares if (found := launches_to_decide(round(share, 3), level)) is not None]
    needed += [
        next(more for more in count(n + 1) if two_sided(more, 0) * factor(more, stretched, seen.switching) <= level)
        for against, stretched in zip(both, seen.stretches, strict=True)
        if against == 0 and stretched > 1
    ]
    return max(1, min(needed) - n) if needed else None


def _evidence(seen: _Seen, looks: LookPlan, correlation: float) -> Evidence:
    def interval(level: float) -> tuple[float, float] | None:
        return looks.interval(seen.values, seen.look, level, correlation=correlation, switching=seen.switching)

    return Evidence(p=seen.p, p_same=seen.p_same, interval=interval)


def _verdict(
    seen: _Seen, delta: float, looks: LookPlan, level: float, level_same: float, correlation: float
) -> PairedVerdict:
    found = said(_evidence(seen, looks, correlation), delta, level, level_same)
    is_open = found.says == Verdict.UNKNOWN
    return PairedVerdict(
        says=found.says,
        log_ratio=median(seen.values),
        low=found.interval[0] if found.interval else None,
        high=found.interval[1] if found.interval else None,
        p=seen.p,
        p_same=seen.p_same,
        level=found.level,
        launches=len(seen.values),
        early=not is_open and seen.look < len(looks.looks) - 1,
        correlation=correlation,
        more=_more(seen, found.level) if is_open else None,
        switching=seen.switching,
    )


def verdict(
    pairs: Pairs,
    delta: float,
    looks: LookPlan,
    family: int = 1,
    *,
    error: float = ERROR,
    correlation: float = 0.0,
    switching: float = 0.0,
    withheld: bool = False,
) -> PairedVerdict:
    """Return the verdict on one comparison among `family`, of which nothing but their number is known (Bonferroni).

    correlation: that of neighbouring rounds' differences (`Serial.used`); withheld: it is too large
    (`Serial.withheld`). switching: see `PairedVerdict`.
    """
    level = error / family
    seen = None if withheld else _seen(pairs, delta, looks, correlation, switching)
    if seen is None:
        return _unseen(pairs, looks, level, correlation, switching, withheld=withheld)
    return _verdict(seen, delta, looks, level, level, correlation)


def verdicts(
    family: Mapping[_Key, Pairs],
    delta: float,
    looks: LookPlan | Mapping[_Key, LookPlan],
    *,
    error: float = ERROR,
    correlation: float = 0.0,
    withheld: bool = False,
    on_two_levels: Collection[_Key] = (),
) -> dict[_Key, PairedVerdict]:
    """Return the verdicts on all comparisons of a family.

    By BY's rule, once for differences and once for "same": of each kind at most `error` are wrong, on average. Those of
    which no look was reached count as members that say nothing. looks: of all, or of each: where launches gave no
    number a look has fewer pairs. on_two_levels: members of which one side is; differences that are, are found here.
    """
    plans = {key: looks if isinstance(looks, LookPlan) else looks[key] for key in family}
    switching = _switching(family, on_two_levels)
    seen = {
        key: None if withheld else _seen(pairs, delta, plans[key], correlation, switching[key])
        for key, pairs in family.items()
    }
    known = [_evidence(one, plans[key], correlation) for key, one in seen.items() if one]
    level, level_same = levels(known, max(1, len(family)), error)
    return {
        key: _verdict(one, delta, plans[key], level, level_same, correlation)
        if (one := seen[key])
        else _unseen(pairs, plans[key], level, correlation, switching[key], withheld=withheld)
        for key, pairs in family.items()
    }


def _switching(family: Mapping[_Key, Pairs], on_two_levels: Collection[_Key]) -> dict[_Key, float]:
    """Return for each member which share of differences like it is on two levels: 1 of those that are seen to be."""
    seen = {key for key, pairs in family.items() if has_two_levels(list(pairs.values()))}
    tried = sum(len(pairs) >= LAUNCHES_LEAST for pairs in family.values())
    share = len(seen) / tried if tried else 0.0
    return {key: 1.0 if key in seen or key in on_two_levels else share for key in family}
