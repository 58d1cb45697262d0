# SPDX-License-Identifier: BSD-3-Clause
"""A against A over several campaigns: whether verdicts are wrong as often as they say, and no more often.

Cells of one campaign share its machine and its hour, so that 1,000 cells of five campaigns are nothing like 1,000
independent ones: what they are worth shows between campaigns. The band around the nominal rate is therefore made by
drawing campaigns, all of their cells at a time, as many as there are, in every way that this can be done (for five
3,125), and taking how far the rate of those drawn spreads. With n campaigns that spread has n - 1 degrees of freedom,
which Student's t allows for; percentiles of the draws themselves would be too narrow, and call a sound instrument
unsound in about one self-test of ten. Nor is the band ever narrower than independent cells would make it (binomial):
five campaigns that chance to agree say nothing of the sixth.

By simulation of 2,000 self-tests of five campaigns with 200 cells each at 3.9 %, campaigns' own rates drawn from a beta
distribution: outside the band are 0.05, 0.5, 0.9 and 2.4 % where cells of a campaign correlate by 0, 0.005, 0.01 and
0.02; percentiles of the draws would be 11 to 15 %. Of instruments that are wrong in 6, 8 and 9.6 % (what a correlation
of 0.3 makes of nine launches) 17, 62 and 85 % are outside, and with HIGHEST as well more than 88 % of the last: so few
campaigns tell a rate that is off by a half from a right one only now and then.

After correction at CORRECTED_ERROR next to nothing is to be called: neither within the campaigns, whose nine launches
have to lie far away before anything is, nor of any cell over all of them (across.py).

The p99 is counted apart, and told; nothing is asked of it here, since a campaign withholds its verdicts on the p99 by
itself (stats/twin.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations_with_replacement
from math import factorial, prod, sqrt

from cadge_analysis import messages, units
from cadge_analysis.selftest.across import CampaignsCheck, Rounds, across
from cadge_analysis.stats.campaign_verdicts import judge_campaign, tail_verdicts
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.load import read
from cadge_analysis.stats.measures import TAIL
from cadge_analysis.stats.twin import TwinCell, called_at_most, corrected, twin_cells
from cadge_results import Campaign

say = partial(messages.say, "selftest")

CELLS_LEAST = 1000
CAMPAIGNS_LEAST = 5
HIGHEST = 0.10
"""No campaign alone has a rate above this."""
CORRECTED_ERROR = 0.01
CORRECTED_MOST = 1
BAND = 0.99
_STUDENT = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106)
"""Student's t at 99.5 % for 1, 2, ... degrees of freedom; with more the last is taken, which is a little wide."""


Judged = tuple[Hashable, float, float, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikeOutcome:
    """What one campaign says of A against A: `cells` are (family, p, attainable level, launches); `tails` of the p99.

    `rounds`: the cells' paired log-ratios, by point.
    """

    campaign_id: str
    disturbed: bool
    cells: tuple[Judged, ...]
    tails: tuple[Judged, ...] = ()
    rounds: Rounds = field(default_factory=dict)
    error: float = ERROR

    @property
    def called(self) -> int:
        """How many were called different without correction."""
        return sum(p <= self.error * (1 + 1e-9) for _, p, _, _ in self.cells)

    @property
    def rate(self) -> float:
        """The share that was."""
        return self.called / len(self.cells) if self.cells else 0.0

    @property
    def after_correction(self) -> int:
        """How many are with the families' correction, at CORRECTED_ERROR."""
        return corrected(((family, p) for family, p, _, _ in self.cells), CORRECTED_ERROR)


def alike(campaign: Campaign, *, disturbed: bool = False) -> AlikeOutcome:
    """Return what a stored campaign brings to the pool. Raises AnalysisError, cadge_results.ResultsError."""
    comparison = compare(read(campaign))
    verdicts = replace(judge_campaign(comparison), tails=tail_verdicts(comparison))
    cells = twin_cells(comparison, verdicts)
    return AlikeOutcome(
        campaign_id=campaign.meta.campaign_id,
        disturbed=disturbed,
        cells=_judged(cells),
        tails=_judged(twin_cells(comparison, verdicts, measure=TAIL)),
        rounds={cell.cell.point_id: cell.rounds for cell in cells},
    )


def _judged(cells: Iterable[TwinCell]) -> tuple[Judged, ...]:
    return tuple((cell.family, cell.p, cell.level, cell.launches) for cell in cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRate:
    """How many of `cells` were called different, and the band around the `nominal` rate, as shares."""

    cells: int
    called: int
    nominal: float
    low: float
    high: float

    @property
    def rate(self) -> float:
        """The share that was called different."""
        return self.called / self.cells

    @property
    def in_band(self) -> bool:
        """The rate is the nominal one, as far as so many campaigns can tell."""
        return self.low <= self.rate <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledRates:
    """What all campaigns together say: `of_all` cells, and of the `tails`, where two campaigns or more have these."""

    campaigns: tuple[AlikeOutcome, ...]
    of_all: DifferenceRate
    tails: DifferenceRate | None
    after_correction: int
    across: CampaignsCheck

    @property
    def enough(self) -> bool:
        """True where there are as many cells and campaigns as the test asks for, one of these disturbed."""
        made = [one for one in self.campaigns if one.cells]
        return self.of_all.cells >= CELLS_LEAST and len(made) >= CAMPAIGNS_LEAST and any(one.disturbed for one in made)

    @property
    def none_high(self) -> bool:
        """No campaign by itself has a rate above HIGHEST."""
        return all(one.rate <= HIGHEST for one in self.campaigns)

    @property
    def few_corrected(self) -> bool:
        """After correction next to nothing is called different, in a campaign or over all of them."""
        within = self.after_correction <= CORRECTED_MOST
        return within and self.across.called <= CORRECTED_MOST and not self.across.withheld

    @property
    def passes(self) -> bool:
        """All of it."""
        return self.enough and self.of_all.in_band and self.none_high and self.few_corrected


def pooled(campaigns: Sequence[AlikeOutcome]) -> PooledRates:
    """Pool campaigns; any number of them, of which two or more have cells. Raises ValueError for fewer."""
    made = [one for one in campaigns if one.cells]
    if len(made) < 2:
        raise ValueError(say("pooled.one_campaign"))
    tailed = [replace(one, cells=one.tails) for one in made if one.tails]
    return PooledRates(
        campaigns=tuple(campaigns),
        of_all=_rate(made),
        tails=_rate(tailed) if len(tailed) > 1 else None,
        after_correction=sum(one.after_correction for one in made),
        across=across([one.rounds for one in made], CORRECTED_ERROR),
    )


def _rate(made: Sequence[AlikeOutcome]) -> DifferenceRate:
    cells, called = sum(len(one.cells) for one in made), sum(one.called for one in made)
    levels = [level for one in made for _, _, level, _ in one.cells]
    nominal = sum(levels) / cells
    low, high = _band([(one.called, len(one.cells)) for one in made], levels, nominal)
    return DifferenceRate(cells=cells, called=called, nominal=nominal, low=low, high=high)


def _band(counts: Sequence[tuple[int, int]], levels: Sequence[float], nominal: float) -> tuple[float, float]:
    freedom = len(counts) - 1
    reach = _STUDENT[min(freedom, len(_STUDENT)) - 1] * spread_of_draws(counts)
    tail = (1 - BAND) / 2
    few, many = (called_at_most(levels, share) / len(levels) for share in (tail, 1 - tail))
    return max(0.0, min(nominal - reach, few)), max(nominal + reach, many)


def spread_of_draws(counts: Sequence[tuple[int, int]]) -> float:
    """Return the standard error of the rate of all, from all draws of as many campaigns; each is (called, cells)."""
    n = len(counts)
    draws: list[tuple[int, float]] = []
    for drawn in combinations_with_replacement(range(n), n):
        ways = factorial(n) // prod(factorial(often) for often in Counter(drawn).values())
        draws.append((ways, sum(counts[k][0] for k in drawn) / sum(counts[k][1] for k in drawn)))
    ways_in_all = sum(ways for ways, _ in draws)
    mean = sum(ways * rate for ways, rate in draws) / ways_in_all
    variance = sum(ways * (rate - mean) ** 2 for ways, rate in draws) / ways_in_all
    return sqrt(variance * n / (n - 1))  # draws from n spread by (n - 1)/n of what they stand for


def spoken(found: PooledRates) -> tuple[tuple[str, bool, str], ...]:
    """Return each criterion for people: what is asked, whether it holds, and what came."""
    of_all = found.of_all
    by_campaign = ", ".join(
        f"{100 * one.rate:.1f} %{' beside a load' if one.disturbed else ''}" for one in found.campaigns if one.cells
    )
    return (
        (
            say("pooled.enough", cells=CELLS_LEAST, campaigns=CAMPAIGNS_LEAST),
            found.enough,
            f"{units.grouped(of_all.cells)} points of {sum(bool(one.cells) for one in found.campaigns)} campaigns",
        ),
        (
            say("pooled.within_band", band=_band_sentence(of_all)),
            of_all.in_band,
            f"{100 * of_all.rate:.1f} %, {of_all.called} of {units.grouped(of_all.cells)}{_of_tails(found.tails)}",
        ),
        (f"no campaign above {100 * HIGHEST:.0f} %", found.none_high, by_campaign),
        (
            say("pooled.corrected", level=100 * CORRECTED_ERROR, most=CORRECTED_MOST),
            found.few_corrected,
            f"{found.after_correction} of {units.grouped(found.of_all.cells)} within a campaign; "
            f"{_across(found.across)}",
        ),
    )


def _band_sentence(rate: DifferenceRate) -> str:
    return f"{100 * rate.low:.1f} to {100 * rate.high:.1f} % around {100 * rate.nominal:.1f} %"


def _of_tails(rate: DifferenceRate | None) -> str:
    if rate is None:
        return ""
    where = "within" if rate.in_band else "outside"
    return " " + say(
        "pooled.of_the_p99",
        share=100 * rate.rate,
        called=rate.called,
        cells=rate.cells,
        where=where,
        band=_band_sentence(rate),
    )


def _across(found: CampaignsCheck) -> str:
    if found.withheld:
        return say("pooled.rounds_alike")
    text = say("pooled.by_rounds", called=found.called, cells=found.cells, rounds=found.rounds)
    return text if found.possible else say("pooled.too_few", text=text)
