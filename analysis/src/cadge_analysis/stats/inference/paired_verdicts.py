# SPDX-License-Identifier: BSD-3-Clause
"""Four verdicts on a layer beside its baseline in one campaign, at looks that were fixed beforehand.

From paired log-ratios, round by round, by signed ranks (signed_rank.py), at the last look that was reached
(sequential.py), at the level that the family asks for (families.py), by the rule of verdict.py. Where launches may
switch between two levels, signed ranks are wrong: each level is compared by itself (levels.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import expm1
from typing import TypeVar

from cadge_analysis.stats.inference.families import level_of
from cadge_analysis.stats.inference.levels import Levels
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST, RoundKey, do_agree
from cadge_analysis.stats.inference.sequential import ERROR, LookPlan
from cadge_analysis.stats.inference.serial import error_for
from cadge_analysis.stats.inference.verdict import Evidence, Verdict, bounds, level_chosen, said

Pairs = Mapping[int, float] | Mapping[RoundKey, float]
"""The logarithm of (ours / baseline) by round, of a quantity of which less is better."""
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedVerdict:
    """What the launches say of one comparison.

    `log_ratio`: the middle of the Walsh averages. `low` and `high` are None where the launches are too few for an
    interval at this level. `launches`: those that were looked at; `early`: a decision before the plan's last look,
    whose estimate lies further from zero than the truth does, on average. `more`: how many launches are missing
    before any could decide, where the verdict is "cannot tell"; None: none are. `two_levels`: its launches, or those
    of one side, switch.
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
    two_levels: bool = False
    epochs: tuple[float, ...] = ()
    """The estimate of each epoch, where there are several."""

    @property
    def epochs_disagree(self) -> bool:
        """True where epochs lie on both sides, and are too few for a test: then it is undecided, or the same."""
        return 0 < len(self.epochs) < EPOCHS_LEAST and not do_agree(self.epochs)

    @property
    def bound(self) -> float | None:
        """By how much both sides differ at most, 0.14 for 14 % of the smaller one; None without an interval."""
        return None if self.low is None or self.high is None else expm1(max(-self.low, self.high))

    @property
    def mark(self) -> str:
        """How a ratio is marked: by whether it is separated from 1; by nothing where that is withheld."""
        return "" if self.withheld else "differs" if self.differs else "same"

    @property
    def differs(self) -> bool:
        """True where it is faster or slower."""
        return self.says in (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LookResult:
    """What one look shows: the values, and how surely they speak for each finding."""

    values: tuple[float, ...]
    look: int
    looks: LookPlan
    evidence: Evidence
    two_levels: bool


def _seen(pairs: Pairs, delta: float, looks: LookPlan, levels: Levels | None) -> _LookResult | None:
    look = looks.reached(len(pairs))
    if look is None:
        return None
    values = tuple(value for _, value in sorted(pairs.items())[: looks.looks[look]])
    seen = levels.first(len(values)) if levels else None
    evidence = Evidence(
        p=looks.p(look, values, levels=seen),
        p_same=looks.p_outside(look, values, bounds(delta), levels=seen),
        interval=partial(looks.interval, look, values, levels=seen),
    )
    return _LookResult(values=values, look=look, looks=looks, evidence=evidence, two_levels=levels is not None)


def _unseen(
    pairs: Pairs, looks: LookPlan, level: float, correlation: float, *, two_levels: bool, withheld: bool
) -> PairedVerdict:
    values = list(pairs.values())
    return PairedVerdict(
        says=Verdict.UNKNOWN,
        log_ratio=looks.estimate(values) if values else None,
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
        two_levels=two_levels,
    )


def unsaid(looks: LookPlan) -> PairedVerdict:
    """Return the verdict on what cannot be compared at all."""
    return _unseen({}, looks, ERROR, 0.0, two_levels=False, withheld=True)


def _more(seen: _LookResult, level: float) -> int | None:
    """Return how many launches are missing before any could decide, even if all agree; None: none are.

    None also for two levels, and of several epochs.
    """
    if seen.two_levels or seen.looks.epochs(seen.values):
        return None
    missing = seen.looks.launches_needed(seen.look, level) - len(seen.values)
    return missing if missing > 0 else None


def _verdict(seen: _LookResult, delta: float, level: float, correlation: float) -> PairedVerdict:
    found = said(seen.evidence, delta, level)
    is_open = found.says == Verdict.UNKNOWN
    return PairedVerdict(
        says=found.says,
        log_ratio=seen.looks.estimate(seen.values),
        low=found.interval[0] if found.interval else None,
        high=found.interval[1] if found.interval else None,
        p=seen.evidence.p,
        p_same=seen.evidence.p_same,
        level=found.level,
        launches=len(seen.values),
        early=not is_open and seen.look < len(seen.looks.looks) - 1,
        correlation=correlation,
        more=_more(seen, found.level) if is_open else None,
        two_levels=seen.two_levels,
        epochs=seen.looks.epochs(seen.values),
    )


def verdict(
    pairs: Pairs,
    delta: float,
    looks: LookPlan,
    family: int = 1,
    *,
    error: float = ERROR,
    correlation: float = 0.0,
    levels: Levels | None = None,
    withheld: bool = False,
) -> PairedVerdict:
    """Return the verdict on one comparison among `family`, of which nothing but their number is known (Bonferroni).

    correlation: that of neighbouring rounds' differences (`Serial.used`); withheld: it is too large
    (`Serial.withheld`). levels: of what switches.
    """
    level = level_of(1, family, error_for(correlation, error))
    seen = None if withheld else _seen(pairs, delta, looks, levels)
    if seen is None:
        return _unseen(pairs, looks, level, correlation, two_levels=levels is not None, withheld=withheld)
    return _verdict(seen, delta, level, correlation)


def verdicts(
    family: Mapping[_Key, Pairs],
    delta: float,
    looks: LookPlan | Mapping[_Key, LookPlan],
    *,
    error: float = ERROR,
    correlation: float = 0.0,
    withheld: bool = False,
    levels: Mapping[_Key, Levels] | None = None,
) -> dict[_Key, PairedVerdict]:
    """Return the verdicts on all comparisons of a family, of which at most `error` are wrong, on average.

    Those of which no look was reached count as members that say nothing. looks: of all, or of each: where launches gave
    no number a look has fewer pairs. levels: of members that switch, in the order of their pairs.
    """
    levels = levels or {}
    plans = {key: looks if isinstance(looks, LookPlan) else looks[key] for key in family}
    seen = {
        key: None if withheld else _seen(pairs, delta, plans[key], levels.get(key)) for key, pairs in family.items()
    }
    known = [one.evidence for one in seen.values() if one]
    level = level_chosen(known, len(family), error_for(correlation, error))
    return {
        key: _verdict(one, delta, level, correlation)
        if (one := seen[key])
        else _unseen(pairs, plans[key], level, correlation, two_levels=key in levels, withheld=withheld)
        for key, pairs in family.items()
    }
