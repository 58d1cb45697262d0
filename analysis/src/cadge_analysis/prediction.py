# SPDX-License-Identifier: BSD-3-Clause
"""Which differences a plan would find, and how often: from how launches scattered in stored campaigns.

The newest stored campaign that has a family with three launches or more predicts it. From there come the standard
deviations of its comparisons' paired log ratios, and their sizes: of comparisons as large so many are expected to be
found, at least a tenth, that the level is that of their choice (families.py). A standard deviation of few launches
scatters by itself. What that adds is taken out, by the moments of log s^2 (Smyth, Statistical Applications in Genetics
and Molecular Biology 3, 2004, article 3, section 6). The probability is the mean over spreads of the share of simulated
campaigns that decide (signed_rank.py); where launches switch between two levels about as if all have to agree.

After a campaign the same is asked of each comparison's estimate: numbers predicted and decided are shown side by side,
by size of the difference. By simulation they agree within 11 points above 5 % and to 2 %. Between these, near the
margin of "the same", up to 28 points more are predicted than come (harness/bench/verdicts/predicted_power.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, expm1, inf, log, log1p, sqrt
from statistics import fmean, median, stdev, variance

from cadge_analysis.judged import disturbed
from cadge_analysis.stats.campaign_verdicts import SAME_WITHIN, CampaignVerdicts, CellVerdict, paired_families
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.families import level_of
from cadge_analysis.stats.inference.look_plan import looks_planned
from cadge_analysis.stats.inference.plan_power import EXPECTED, PlannedFamily, families_of
from cadge_analysis.stats.inference.scatter import polygamma
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.signed_rank import LAUNCHES_MAX, POWER, ends, estimate
from cadge_analysis.stats.inference.verdict import Verdict, bounds
from cadge_analysis.stats.load import read
from cadge_analysis.stats.pairing import PairedRatios
from cadge_results import Campaign, Plan, ResultsError
from cadge_results.formats.plan import PlanPrediction

SIZES = (0.02, 0.05, 0.10, 0.25)
"""Differences that a plan is asked for, and where the classes of what came end."""
BOUND = 0.05
CAMPAIGNS_READ = 3
ROUNDS_LEAST = 3
_QUANTILES = 9
_STEPS = 20
_FamilyName = tuple[str, str, str]


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
    spreads = true_spreads(pairs)
    if not spreads:
        return None
    predicted = PlanPrediction(
        pattern=family.pattern,
        place=family.place,
        wait=family.wait,
        comparisons=family.comparisons,
        launches=family.launches,
        level=ERROR * share,
        spreads=_quantiles(spreads),
        two_levels=sum(one.two_levels for one in pairs) / len(pairs),
        campaign_id=campaign_id,
        disturbed=disturbed,
    )
    sizes = _quantiles(sorted(expm1(abs(estimate(one.in_order))) for one in pairs if one.pairs))
    found = 1.0  # Benjamini and Hochberg step up: the largest share that its own level finds
    for _ in range(_STEPS):
        rank = max(1, ceil(family.comparisons * max(EXPECTED, found) * (1 - 1e-9)))
        predicted = predicted.model_copy(update={"level": level_of(rank, family.comparisons) * share})
        found, before = fmean(chance(predicted, size) for size in sizes), found
        if before - found < 0.5 / family.comparisons:
            break
    return predicted


def _quantiles(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(values[int((at + 0.5) / _QUANTILES * len(values))] for at in range(_QUANTILES))


def true_spreads(pairs: Sequence[PairedRatios]) -> list[float]:
    """Return standard deviations of paired log ratios, ascending, without what few launches add to their scatter."""
    sides = [one.in_order for one in pairs]
    known = [(stdev(one), len(one)) for one in sides if len(one) >= ROUNDS_LEAST and stdev(one) > 0]
    if not known:
        return []
    half = (median(launches for _, launches in known) - 1) / 2
    logs = [log(spread) for spread, _ in known]
    middle = fmean(logs)
    every = variance(logs) if len(logs) > 1 else 0.0
    shrunk = sqrt(max(0.0, 1 - polygamma(half)[1] / 4 / every)) if every > 0 else 0.0
    middle_true = middle - (polygamma(half)[0] - log(half)) / 2
    return sorted(exp(middle_true + shrunk * (one - middle)) for one in logs)


def chance(one: PlanPrediction, size: float, launches: int | None = None, *, same_within: float = SAME_WITHIN) -> float:
    """Return with which probability a comparison of a family is decided that differs by `size`, 0.1 for 10 %."""
    away, (_, margin) = log1p(size), bounds(same_within)

    def decided(low: float, high: float) -> bool:
        return low + away > 0 or (-margin < low + away and high + away < margin)

    return _share(one, launches or one.launches, decided)


def bound_chance(one: PlanPrediction, launches: int, bound: float = BOUND) -> float:
    """Return with which probability a comparison without a difference is bounded by `bound`."""
    return _share(one, launches, lambda low, high: max(-low, high) <= log1p(bound))


def _share(one: PlanPrediction, launches: int, holds: Callable[[float, float], bool]) -> float:
    found = 0.0
    for two_levels, weight in ((False, 1 - one.two_levels), (True, one.two_levels)):
        drawn = ends(launches, one.level, two_levels=two_levels) if weight else ()
        if drawn:
            each = (holds(spread * low, spread * high) for spread in one.spreads for low, high in drawn)
            found += weight * sum(each) / len(drawn) / len(one.spreads)
    return found


def launches_for_bound(one: PlanPrediction, bound: float = BOUND) -> int | None:
    """Return with how many launches most comparisons without a difference are bounded so, of those on one level.

    Most: a share of POWER. None: more than anybody makes.
    """
    plain = one.model_copy(update={"two_levels": 0.0})
    few, many = 1, LAUNCHES_MAX
    if bound_chance(plain, many, bound) < POWER:
        return None
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if bound_chance(plain, middle, bound) >= POWER else (middle + 1, many)
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
    known = {(one.pattern, one.place, one.wait): one for one in plan.predicted}
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
            chance(one, size, cell.verdict.launches, same_within=verdicts.delta) for one, cell, size in held
        )
        decided = sum(cell.says is not Verdict.UNKNOWN for _, cell, _ in held)
        if held:
            found.append(SizeClass(most=most, comparisons=len(held), predicted=predicted, decided=decided))
    return tuple(found)


def _size(cell: CellVerdict) -> float:
    return expm1(abs(cell.verdict.log_ratio or 0.0))
