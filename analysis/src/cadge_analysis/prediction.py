# SPDX-License-Identifier: BSD-3-Clause
"""Which differences a plan would find, and how often: from how launches scattered in stored campaigns.

The newest stored campaign that has a family with three launches or more predicts it. What its comparisons are like is
kept: shift, spread, and levels where a side has two. Few launches make a spread too wide or too narrow by chance, and a
shift too large. That is taken out by moments, of the logarithms of widths and of the squares of shifts (as Smyth,
Statistical Applications in Genetics and Molecular Biology 3, 2004, article 3, section 6). From each of them comparisons
are simulated, both sides with normal launches, and judged by what judges campaigns: levels.py, signed ranks, and the
level of a choice (families.py) at which as many are decided as are expected, at least a tenth.

A plan is asked what it finds of a true difference (`chance`). After a campaign estimates are known and not truths, and
an interval lies about its estimate: so the same simulated comparisons are asked how often one is decided with such an
estimate (`chance_of_estimate`). Taken for truths, estimates from 2 to 5 % had up to 28 points too many predicted.

By simulation numbers predicted and decided agree within 8 points in every class of size. Where one launch in thirty
stalls, up to 15 points too few are predicted in one class (5 to 10 %). Where a third of the layers is on two levels
they agree within 11 points after a campaign of nine launches or more. Three launches never show levels: then up to 18
points too many are predicted from 5 to 25 % (harness/bench/verdicts/predicted_power.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, exp, expm1, inf, log, log1p, sqrt
from random import Random
from statistics import fmean, stdev, variance
from typing import TypeVar

from cadge_analysis.judged import disturbed
from cadge_analysis.stats.campaign_verdicts import SAME_WITHIN, CampaignVerdicts, CellVerdict, paired_families
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.families import level_of
from cadge_analysis.stats.inference.levels import Levels, levels_of
from cadge_analysis.stats.inference.look_plan import looks_planned
from cadge_analysis.stats.inference.modes import RESOLUTION, split
from cadge_analysis.stats.inference.plan_power import EXPECTED, PlannedFamily, families_of
from cadge_analysis.stats.inference.scatter import FREEDOM_MOST, Scatter
from cadge_analysis.stats.inference.sequential import ERROR, fixed
from cadge_analysis.stats.inference.signed_rank import DRAWN_MOST, DRAWS, LAUNCHES_MAX, POWER, estimate, interval
from cadge_analysis.stats.inference.verdict import Verdict, bounds
from cadge_analysis.stats.load import read
from cadge_analysis.stats.pairing import PairedRatios
from cadge_results import Campaign, Plan, ResultsError
from cadge_results.formats.plan import PlanPrediction, PredictedComparison

SIZES = (0.02, 0.05, 0.10, 0.25)
"""Differences that a plan is asked for, and where the classes of what came end."""
BOUND = 0.05
CAMPAIGNS_READ = 3
ROUNDS_LEAST = 3
_QUANTILES = 9
_STEPS = 20
LIKE_MOST = 30
"""Of so many comparisons of a family a plan keeps what they are like."""
_WEIGHT_LEAST = 1e-3
FARTHEST = 12
"""Levels that lie farther apart, in standard deviations, are judged alike."""
_FamilyName = tuple[str, str, str]
_Value = TypeVar("_Value")


def predict(plan: Plan, campaigns: Iterable[Campaign]) -> tuple[PlanPrediction, ...]:
    """Return what stored campaigns, the newest first, say beforehand of a plan's families, the largest first."""
    if plan.epochs > 1:
        return ()  # how launches scatter says nothing of how epochs do
    wanted = {(one.pattern, one.place, one.wait): one for one in families_of(plan)}
    found: dict[_FamilyName, PlanPrediction] = {}
    reads = 0
    for campaign in campaigns:
        if reads == CAMPAIGNS_READ or found.keys() == wanted.keys():
            break
        try:
            has = {(one.pattern, one.place, one.wait) for one in families_of(campaign.plan)}
            if campaign.plan.rounds < ROUNDS_LEAST or not has & (wanted.keys() - found.keys()):
                continue
            reads += 1
            found = _of_campaign(plan, wanted, campaign) | found
        except (ResultsError, OSError):
            continue  # an older format, or a folder that somebody is removing: the next is as good
    return tuple(found[name] for name in wanted if name in found)


def _of_campaign(
    plan: Plan, wanted: dict[_FamilyName, PlannedFamily], campaign: Campaign
) -> dict[_FamilyName, PlanPrediction]:
    comparison = compare(read(campaign))
    looks, found = looks_planned(plan), {}
    for key, pairs in paired_families(comparison).items():
        name = (key.pattern, key.place, key.wait)
        if name not in wanted:
            continue
        family = replace(wanted[name], launches=looks.looks[-1] if looks else wanted[name].launches)
        share = looks.share(len(looks.looks) - 1) if looks else 1.0
        predicted = of_pairs(
            pairs, family, campaign.campaign_id, share=share, disturbed=bool(disturbed(comparison.data))
        )
        if predicted is not None:
            found[name] = predicted
    return found


def of_pairs(
    pairs: Sequence[PairedRatios],
    family: PlannedFamily,
    campaign_id: str,
    *,
    share: float = 1.0,
    disturbed: bool = False,
) -> PlanPrediction | None:
    """Return what a family's pairs in a stored campaign predict of it; None where they are too few.

    share: of the error, the one of the plan's last look.
    """
    like = comparisons_of(pairs)
    if not like:
        return None
    predicted = PlanPrediction(
        pattern=family.pattern,
        place=family.place,
        wait=family.wait,
        comparisons=family.comparisons,
        launches=family.launches,
        level=ERROR * share,
        spreads=_spaced(sorted(one.spread for one in like), _QUANTILES),
        two_levels=sum(one.two_levels for one in pairs) / len(pairs),
        like=_spaced(like, min(len(like), LIKE_MOST)),
        campaign_id=campaign_id,
        disturbed=disturbed,
    )
    found = 1.0  # Benjamini and Hochberg step up: the largest share that its own level finds
    for _ in range(_STEPS):
        rank = max(1, ceil(family.comparisons * max(EXPECTED, found) * (1 - 1e-9)))
        predicted = predicted.model_copy(update={"level": level_of(rank, family.comparisons) * share})
        found, before = _share_decided(predicted), found
        if before - found < 0.5 / family.comparisons:
            break
    return predicted


def _spaced(values: Sequence[_Value], count: int) -> tuple[_Value, ...]:
    return tuple(values[int((at + 0.5) / count * len(values))] for at in range(count))


@dataclass(frozen=True, slots=True)
class _Levels:
    """How far levels lie apart, and which share of launches is on the upper one: (0, 0) of one level."""

    apart: float = 0.0
    upper: float = 0.0


def comparisons_of(pairs: Sequence[PairedRatios]) -> list[PredictedComparison]:
    """Return what comparisons are like, the smallest shift first, without what few launches add to their scatter.

    All shifts are shrunk alike, so that their second moment is the true one's (Efron and Morris, Journal of the
    American Statistical Association 70, 1975, p. 311).
    """
    known = [(one.in_order, *_parted(one)) for one in pairs if len(one.pairs) >= ROUNDS_LEAST]
    known = [(values, levels, within) for values, levels, within in known if _width(within) > 0]
    if not known:
        return []
    spreads = true_spreads([within for *_, within in known])
    shifts = [estimate(values) for values, *_ in known]
    errors, second = fmean(variance(values) / len(values) for values, *_ in known), fmean(one**2 for one in shifts)
    shrunk = sqrt(max(0.0, 1 - errors / second)) if second else 0.0
    uppers = iter(_true_shares([(levels.upper, len(values)) for values, levels, _ in known if levels.apart]))
    found = [
        PredictedComparison(
            shift=round(shrunk * abs(shift), 4),
            spread=max(spread, RESOLUTION),
            apart=levels.apart,
            upper=next(uppers) if levels.apart else 0.0,
        )
        for shift, spread, (_, levels, _) in zip(shifts, spreads, known, strict=True)
    ]
    return sorted(found, key=lambda one: one.shift)


def _parted(one: PairedRatios) -> tuple[_Levels, Sequence[float]]:
    """Return the levels of a comparison, and its differences without them.

    Levels are taken for such where the fewer launches lie closer together than to the others: else they are stalls.
    """
    values, levels = one.in_order, one.levels
    if levels is None:
        return _Levels(), values
    every = ((levels.ours, 1, levels.are_cut[0]), (levels.base, -1, levels.are_cut[1]))
    sides: list[tuple[Sequence[float], int]] = [(side, way) for side, way, is_cut in every if is_cut]
    for side, way in sides or [(values, 1)]:
        in_order = sorted(side)
        at = split(in_order).at
        parts = in_order[:at], in_order[at:]
        apart = fmean(parts[1]) - fmean(parts[0])
        fewer = min(parts, key=len)
        if 3 * stdev(fewer) < apart:
            within = [value - way * apart * (own >= in_order[at]) for value, own in zip(values, side, strict=True)]
            return _Levels(round(apart, 4), round(1 - at / len(in_order), 2)), within
    return _Levels(), values


def _true_shares(shares: Sequence[tuple[float, int]]) -> list[float]:
    """Return which share of launches is on an upper level, without what few launches add; each with their number."""
    if len(shares) < 2:
        return [one for one, _ in shares]
    middle = fmean(one for one, _ in shares)
    explained, every = fmean(middle * (1 - middle) / n for _, n in shares), variance(one for one, _ in shares)
    shrunk = sqrt(max(0.0, 1 - explained / every)) if every > 0 else 0.0
    return [round(middle + shrunk * (one - middle), 2) for one, _ in shares]


def _width(differences: Sequence[float]) -> float:
    """Return how wide the interval of 95 % is, or the range where there is none: as it is that verdicts are read from.

    So one stalled launch says no more than it does there.
    """
    ends = interval(differences, ERROR) or (min(differences), max(differences))
    return ends[1] - ends[0]


def true_spreads(sides: Sequence[Sequence[float]]) -> list[float]:
    """Return standard deviations of paired log ratios without what few launches add to their scatter."""
    usual = [_usual_width(len(one)) for one in sides]
    logs = [log(_width(one)) - middle for one, (middle, _) in zip(sides, usual, strict=True)]
    middle, explained = fmean(logs), fmean(square for _, square in usual)
    every = variance(logs) if len(logs) > 1 else 0.0
    shrunk = sqrt(max(0.0, 1 - explained / every)) if every > 0 else 0.0
    return [exp(middle + shrunk * (one - middle)) for one in logs]


@lru_cache(maxsize=64)
def _usual_width(launches: int) -> tuple[float, float]:
    """Return the mean and the variance of the logarithm of a width, of differences with a spread of 1."""
    logs = [log(_width(differences)) for differences, _ in _drawn(min(launches, DRAWN_MOST), _Levels())]
    return fmean(logs) + log(min(launches, DRAWN_MOST) / launches) / 2, variance(logs)


Holds = Callable[[float, float, float], bool]
"""What is asked of an interval's ends and of the estimate."""


def chance(one: PlanPrediction, size: float, launches: int | None = None, *, same_within: float = SAME_WITHIN) -> float:
    """Return with which probability a comparison of a family is decided that differs by `size`, 0.1 for 10 %."""
    holds = _decided(log1p(size), same_within)
    return fmean(_share(launches or one.launches, one.level, like, holds) for like in one.like)


def chance_of_estimate(
    one: PlanPrediction, size: float, launches: int | None = None, *, same_within: float = SAME_WITHIN
) -> float:
    """Return with which probability a comparison is decided whose estimate comes out as `size`.

    An interval lies about its estimate, and not about the truth. Which comparisons may have such an estimate: each by
    its density there (Bayes).
    """
    made, away = launches or one.launches, log1p(size)
    holds = _decided(away, same_within)
    errors = [like.spread * _error(made, _shape(like)) for like in one.like]
    far = [
        min(((away - like.shift) / error) ** 2, ((away + like.shift) / error) ** 2) / 2 + log(error)
        for like, error in zip(one.like, errors, strict=True)
    ]
    weights = [exp(min(far) - one) for one in far]
    found = (
        weight * _share(made, one.level, like, lambda low, high, middle: holds(low - middle, high - middle, 0.0))
        for like, weight in zip(one.like, weights, strict=True)
        if weight > _WEIGHT_LEAST
    )
    return sum(found) / sum(weight for weight in weights if weight > _WEIGHT_LEAST)


def _decided(away: float, same_within: float) -> Holds:
    """Return whether an interval decides that is so far away from the simulated one."""
    _, margin = bounds(same_within)

    def decided(low: float, high: float, _: float) -> bool:
        return low + away > 0 or high + away < 0 or (-margin < low + away and high + away < margin)

    return decided


def _share_decided(one: PlanPrediction) -> float:
    """Return which share of a family is decided at its level, if comparisons are as they were."""
    return fmean(_share(one.launches, one.level, like, _decided(like.shift, SAME_WITHIN)) for like in one.like)


def bound_chance(one: PlanPrediction, launches: int, bound: float = BOUND) -> float:
    """Return with which probability a comparison without a difference, on one level, is bounded by `bound`."""
    plain = (PredictedComparison(shift=0.0, spread=spread) for spread in one.spreads)
    return fmean(
        _share(launches, one.level, like, lambda low, high, _: max(-low, high) <= log1p(bound)) for like in plain
    )


def _share(launches: int, level: float, like: PredictedComparison, holds: Holds) -> float:
    """Return the share of simulated comparisons like this one of which something holds."""
    found, spread = _outcomes(launches, level, _shape(like)), like.spread
    return sum(holds(spread * low, spread * high, spread * middle) for low, high, middle in found) / DRAWS


def _shape(like: PredictedComparison) -> _Levels:
    """Return the levels in standard deviations, coarsely; which of them has more launches does not matter."""
    if not like.apart:
        return _Levels()
    return _Levels(min(FARTHEST, round(like.apart / like.spread)), round(min(like.upper, 1 - like.upper), 1))


@lru_cache(maxsize=64)
def _drawn(launches: int, shape: _Levels) -> tuple[tuple[tuple[float, ...], Levels | None], ...]:
    """Return DRAWS simulated comparisons, whose differences have a spread of 1 within levels and a mean of 0."""
    chance = Random(launches)  # noqa: S311 - the same answer each time is what is wanted
    own, found = sqrt(0.5), []
    for _ in range(DRAWS):
        ours, base = ([chance.gauss(0, own) for _ in range(launches)] for _ in range(2))
        if shape.upper:
            ours = [one + shape.apart * ((chance.random() < shape.upper) - shape.upper) for one in ours]
        differences = tuple(one - other for one, other in zip(ours, base, strict=True))
        found.append((differences, levels_of(ours, base, Scatter(own**2, FREEDOM_MOST))))
    return tuple(found)


@lru_cache(maxsize=64)
def _error(launches: int, shape: _Levels) -> float:
    """Return the standard error of an estimate."""
    made = min(launches, DRAWN_MOST)
    return sqrt(made / launches) * stdev(estimate(differences) for differences, _ in _drawn(made, shape))


@lru_cache(maxsize=1024)
def _outcomes(launches: int, level: float, shape: _Levels) -> tuple[tuple[float, float, float], ...]:
    """Return interval and estimate of the simulated comparisons that have an interval at a level.

    Of more than DRAWN_MOST launches they are as far from the truth as of so many, less the root of the launches.
    """
    made = min(launches, DRAWN_MOST)
    looks, less, found = fixed(made), sqrt(made / launches), []
    for differences, levels in _drawn(made, shape):
        ends, middle = looks.interval(0, differences, level, levels=levels), looks.estimate(differences)
        if ends is not None:
            found.append((less * ends[0], less * ends[1], less * middle))
    return tuple(found)


def launches_for_bound(one: PlanPrediction, bound: float = BOUND) -> int | None:
    """Return with how many launches most comparisons without a difference are bounded so, of those on one level.

    Most: a share of POWER. None: more than anybody makes.
    """
    few, many = 1, LAUNCHES_MAX
    if bound_chance(one, many, bound) < POWER:
        return None
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if bound_chance(one, middle, bound) >= POWER else (middle + 1, many)
    return few


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Comparisons whose estimate lies above the class before and no more than `most` away.

    `predicted`: how many were to be decided, the sum of their probabilities.
    """

    most: float
    comparisons: int
    predicted: float
    decided: int


def by_size(plan: Plan, verdicts: CampaignVerdicts) -> tuple[SizeClass, ...]:
    """Return what was predicted beside what was decided, with the launches made; empty where nothing was predicted."""
    known = {(one.pattern, one.place, one.wait): one for one in plan.predicted if one.like}
    cells: list[tuple[PlanPrediction, CellVerdict]] = [
        (one, cell)
        for family in verdicts.families
        if (one := known.get((family.key.pattern, family.key.place, family.key.wait)))
        for cell in family.cells
        if cell.verdict.log_ratio is not None and not cell.verdict.withheld
    ]
    found, below = [], -1.0
    for most in (*SIZES, inf):
        held = [(one, cell, size) for one, cell in cells if below < (size := _size(cell)) <= most]
        below = most
        predicted = sum(
            chance_of_estimate(one, size, cell.verdict.launches, same_within=verdicts.delta) for one, cell, size in held
        )
        decided = sum(cell.says is not Verdict.UNKNOWN for _, cell, _ in held)
        if held:
            found.append(SizeClass(most=most, comparisons=len(held), predicted=predicted, decided=decided))
    return tuple(found)


def _size(cell: CellVerdict) -> float:
    return expm1(abs(cell.verdict.log_ratio or 0.0))
