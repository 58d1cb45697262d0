# SPDX-License-Identifier: BSD-3-Clause
"""What a campaign says of its layers, as its report, its export and its first sentences say it: one place decides.

It also decides whether anything may be concluded at all: every page, table and answer that concludes from a campaign
asks `gated`, `withheld_of` or `judged`, so that none concludes what the report withholds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.selftest.pinned import withholds
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, judge_campaign, tail_verdicts
from cadge_analysis.stats.compare import Comparison, Row, compare
from cadge_analysis.stats.disturbance import DISTURBED_MOST
from cadge_analysis.stats.inference.look_plan import looks_planned
from cadge_analysis.stats.load import Dataset
from cadge_analysis.stats.measures import TAIL
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.twin import reason, twin_rate
from cadge_results.uncollected import uncollected

say = partial(messages.say, "general")


@uncollected()
def judged(comparison: Comparison) -> CampaignVerdicts:
    """Return the verdicts on a campaign, at the looks that it was planned with, on main quantities and on their p99.

    They are withheld where what was measured twice differs from itself more often than chance lets it, where the
    machine was too busy (`in_doubt`), and where the self-test that they were to rest on failed, or is of another build
    or machine. Where it is the p99 alone that differs from itself, those on the p99 alone are.
    """
    looks = looks_planned(comparison.data.plan)
    verdicts = _of_main(comparison, in_doubt(comparison.data))
    why = verdicts.withheld
    verdicts = replace(verdicts, tails=tail_verdicts(comparison, looks, withhold=why))
    of_tails = None if why else twin_rate(comparison, verdicts, measure=TAIL)
    if of_tails is not None and of_tails.withhold:
        verdicts = replace(verdicts, tails=tail_verdicts(comparison, looks, withhold=reason(of_tails)))
    return verdicts


def _of_main(comparison: Comparison, why: str) -> CampaignVerdicts:
    """Return the verdicts on main quantities. why: nothing may be said, whatever A against A says."""
    looks = looks_planned(comparison.data.plan)
    verdicts = judge_campaign(comparison, looks, withhold=why)
    rate = None if why else twin_rate(comparison, verdicts)
    if rate is not None and rate.withhold:
        verdicts = judge_campaign(comparison, looks, withhold=reason(rate))
    return verdicts


def in_doubt(data: Dataset) -> str:
    """Return why nothing may be concluded from a campaign, by what is known before anything is compared; "" else."""
    return withholds(data.meta, data.nodes) or disturbed(data) if data.withheld is None else data.withheld


def disturbed(data: Dataset) -> str:
    """Return why nothing may be concluded where other work on the machine had too many of its attempts; "" else."""
    samples = [sample for cell in data.cells if cell.series.kind == "layer" for sample in cell.samples]
    often = sum(sample.disturbed for sample in samples)
    if often <= DISTURBED_MOST * len(samples):
        return ""
    share = units.percent(often / len(samples), 0)
    return say("judged.disturbed", share=share, n=len(samples), limit=DISTURBED_MOST)


def withheld_of(data: Dataset, numbers: Mapping[str, Numbers] | None = None) -> str:
    """Return why the report of a campaign withholds its verdicts; "" where it gives them. numbers: as of `compare`."""
    return in_doubt(data) or (_of_main(compare(data, numbers), "").withheld if data.twins else "")


def gated(comparison: Comparison, verdicts: CampaignVerdicts | None = None) -> Comparison:
    """Return a campaign that knows why nothing may be concluded from it, or from one of its families.

    verdicts: its own, where they are at hand.
    """
    found = verdicts if verdicts is not None else _of_main(comparison, in_doubt(comparison.data))
    held = frozenset((one.key.pattern, one.key.place, one.key.wait) for one in found.families if one.withheld)
    known = replace(comparison, withheld=found.withheld, alike=held)
    return replace(
        known, rows=tuple(replace(row, beats_floor=row.beats_floor and not _held(known, row)) for row in known.rows)
    )


def _held(comparison: Comparison, row: Row) -> bool:
    case = row.cell.case
    return bool(comparison.why_not(case.pattern, case.place, case.wait))
