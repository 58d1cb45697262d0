# SPDX-License-Identifier: BSD-3-Clause
"""A against A: how often a campaign calls a difference what is none, from what it measured twice.

A twin is a second series of the very same layer (formats.point.Subject.twin). Each of its cells that ranks is
judged against the layer's own by the test that judges all others: signed ranks of paired log-ratios, at the same looks,
with the same allowance for serial correlation and for launches on two levels. What is called different there is wrong.

How many that may be: a cell alone is called different with the level that the test attains at the look that was
reached, which for nine launches at 5 % is 3.9 %, as rank sums are whole numbers (`LookPlan.attained`). If cells were
independent their number would be binomial; where more are called than in 999 of 1,000 such campaigns, the machine or
the method does something that the test does not know of, and the campaign's verdicts are withheld. Cells of one
campaign are not independent, as all share the machine's drift: a sound campaign is over that limit more often than once
in 1,000 times, the more so the more cells hang together. So it errs towards withholding. Which true rate of false
calls would be over that limit in four of five campaigns follows from the same distribution (`TwinRate.would_catch`). A
rate that stands for the method is pooled over campaigns, see selftest/pooled.py.

*Tails*: the p99 is counted apart, by the same rules (measures.py says which cells have one). Where it is called
different too often, verdicts on the p99 alone are withheld.

*After correction*: within a pattern at a place (families.py), as for layers. The twin's family is smaller
than one of all layers, so it is corrected less: what layers are called is no more often wrong than this.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import exp, lgamma, log, log1p

from cadge_analysis import messages
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, FamilyKey, pair_twins
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.inference.families import findings
from cadge_analysis.stats.inference.paired_verdicts import verdict
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.serial import error_for
from cadge_analysis.stats.inference.signed_rank import POWER
from cadge_analysis.stats.load import Cell, Series
from cadge_analysis.stats.measures import MAIN, TAIL, Measure

say = partial(messages.say, "stats")

QUANTILE = 0.999
"""Of so many campaigns whose cells are independent and whose test is right, none is withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinCell:
    """A against A in one case; above zero the second series is the slower one.

    `level`: how often this test, with so many launches, calls what is no difference one. `family`: what it is corrected
    within. `rounds`: the log-ratios in the order of rounds.
    """

    family: FamilyKey
    cell: Cell
    launches: int
    log_ratio: float
    p: float
    level: float
    rounds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinRate:
    """What A against A came to in a campaign.

    `called` of `cells` were called different at `error` without correction, `after_correction` with it. `nominal`: the
    level that the test attains, the mean over cells. `quantile_999`: of so many independent cells no more are called in
    999 of 1,000 campaigns. `without`: cells of a twin that could not be judged: too few launches in
    common, or rounds that follow one another too closely; of the p99 also too few samples. `ending`: the measure's.
    """

    series: tuple[Series, ...]
    cells: int
    called: int
    nominal: float
    quantile_999: int
    after_correction: int
    error: float
    launches: tuple[int, ...]
    without: int = 0
    ending: str = ""

    @property
    def withhold(self) -> bool:
        """True where verdicts of this campaign are not to be given."""
        return self.called > self.quantile_999

    @property
    def would_catch(self) -> float | None:
        """The least true rate of false calls that would be over the limit with a probability of POWER.

        By the binomial distribution, of independent cells; None where there are no more cells than the limit.
        """
        return caught_from(self.cells, self.quantile_999)

    @property
    def rate(self) -> float:
        """The share that was called different."""
        return self.called / self.cells if self.cells else 0.0


def twin_cells(
    comparison: Comparison, verdicts: CampaignVerdicts, *, error: float = ERROR, measure: Measure = MAIN
) -> tuple[TwinCell, ...]:
    """Return each cell of A against A that can be judged, by the looks and with the allowance of its family."""
    judged_by = verdicts.tails if measure is TAIL else verdicts
    families = {family.key: family for family in (judged_by.families if judged_by else ())}
    found = []
    for pair in pair_twins(comparison, verdicts.looks, measure):
        family = families.get(pair.key)
        pairs, looks = pair.compared.pairs, pair.compared.looks
        look = looks.reached(len(pairs))
        if (family is not None and family.withheld) or look is None:
            continue
        correlation = family.correlation if family else 0.0
        judged = verdict(pairs, 0.0, looks, correlation=correlation, levels=pair.compared.levels)
        if judged.log_ratio is not None:
            found.append(
                TwinCell(
                    family=pair.key,
                    cell=pair.cell,
                    launches=judged.launches,
                    log_ratio=judged.log_ratio,
                    p=judged.p,
                    level=looks.attained(look, error_for(correlation, error)),
                    rounds=tuple(pair.compared.in_order),
                )
            )
    return tuple(found)


def is_called(cell: TwinCell, error: float = ERROR) -> bool:
    """Tell whether a cell is called different without correction."""
    return cell.p <= error * (1 + 1e-9)


def corrected(members: Iterable[tuple[Hashable, float]], error: float = ERROR) -> int:
    """Return how many are called different within their families; each is its family and its p."""
    families: dict[Hashable, list[float]] = defaultdict(list)
    for family, p in members:
        families[family].append(p)
    return sum(findings(ps, error) for ps in families.values())


def twin_rate(
    comparison: Comparison, verdicts: CampaignVerdicts, *, error: float = ERROR, measure: Measure = MAIN
) -> TwinRate | None:
    """Return what A against A came to, judged as the campaign's verdicts were; None where no cell of it could be."""
    cells = twin_cells(comparison, verdicts, error=error, measure=measure)
    if not cells:
        return None
    levels = [cell.level for cell in cells]
    ranking = (cell for cell in comparison.data.twins if cell.case.does_rank and measure.belongs(cell.case.file))
    planned = sum(cell.planned > 0 for cell in ranking)
    return TwinRate(
        series=tuple(sorted({cell.cell.series for cell in cells})),
        cells=len(cells),
        called=sum(is_called(cell, error) for cell in cells),
        nominal=sum(levels) / len(levels),
        quantile_999=called_at_most(levels, QUANTILE),
        after_correction=corrected(((cell.family, cell.p) for cell in cells), error),
        error=error,
        launches=tuple(sorted({cell.launches for cell in cells})),
        without=planned - len(cells),
        ending=measure.ending,
    )


def reason(rate: TwinRate) -> str:
    """Return why verdicts are withheld, or would be."""
    names = ", ".join(series.label for series in rate.series[:3]) + (" and others" if len(rate.series) > 3 else "")
    return say(
        "twin.differs_from_itself",
        names=names,
        of_what="the p99 of " if rate.ending else "",
        called=rate.called,
        cells=rate.cells,
        limit=rate.quantile_999,
    )


def called_at_most(levels: Sequence[float], share: float) -> int:
    """Return the smallest number that so many cells, each called with its own level, exceed in no more than 1 - share.

    All levels alike: the binomial distribution's quantile; else that of the sum of one for each level.
    """
    sums = [1.0]
    for level, often in sorted(Counter(levels).items()):
        sums = _convolved(sums, _binomial(often, level))
    reached = 0.0
    for number, chance in enumerate(sums):
        reached += chance
        if reached >= share - 1e-12:
            return number
    return len(levels)


@lru_cache(maxsize=1024)
def caught_from(cells: int, limit: int) -> float | None:
    """Return the least rate, in whole percent, at which with a probability of POWER more than `limit` are called."""
    rates = (percent / 100 for percent in range(1, 101))
    return next((rate for rate in rates if sum(_binomial(cells, rate)[limit + 1 :]) >= POWER), None)


def _binomial(often: int, level: float) -> list[float]:
    """Return the probability of each number from 0 to `often`."""
    if level <= 0 or level >= 1:
        return [1.0 if number == (often if level >= 1 else 0) else 0.0 for number in range(often + 1)]
    whole = lgamma(often + 1)
    return [
        exp(whole - lgamma(k + 1) - lgamma(often - k + 1) + k * log(level) + (often - k) * log1p(-level))
        for k in range(often + 1)
    ]


def _convolved(one: Sequence[float], other: Sequence[float]) -> list[float]:
    found = [0.0] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        if a > 1e-18:
            for k, b in enumerate(other):
                found[i + k] += a * b
    return found
