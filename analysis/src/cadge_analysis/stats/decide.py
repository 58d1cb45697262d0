# SPDX-License-Identifier: BSD-3-Clause
"""The decision at a look: what the launches so far separate, and what needs more of them.

A pure function of the stored records: of the rounds up to the look and no others, so that it comes out the same when
it is made again, also when later rounds are there. No later look holds to what an earlier one decided: a comparison
that no longer stands up to its family goes on again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from cadge_analysis import messages
from cadge_analysis.errors import NoDataError
from cadge_analysis.judged import disturbed
from cadge_analysis.stats.campaign_verdicts import Family, LeadingGroup, judge_campaign
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.look_plan import looks_planned
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.load import Case, Dataset, read
from cadge_results import Campaign, Decision, JudgedFamily, LaunchRecord, PointComparison
from cadge_results.formats.base import Place, Wait
from cadge_results.plugins.build import is_variant
from cadge_results.store.looks import spent_s

say = partial(messages.say, "stats")

RULE = say("decide.rule")


def decide(campaign: Campaign, look: int, *, version: str) -> Decision:
    """Return what the launches up to a look, counted from 1, decide. Raises NoDataError where no look was planned.

    version: of the cadge that decides.
    """
    looks = looks_planned(campaign.stored_plan)
    if looks is None:
        raise NoDataError(say("decide.no_looks", campaign_id=campaign.campaign_id))
    launches = looks.looks[look - 1]
    data = read(campaign, rounds=launches)
    one_family = is_variant(data.plan.baseline or "")  # two builds or settings: `cadge ab` says all in one table
    judged = judge_campaign(compare(data), looks, withhold=disturbed(data), one_family=one_family)
    planned_s = campaign.stored_plan.estimate.wall_s + sum(one.wall_s for one in campaign.later_looks()[: look - 1])
    count, digest = campaign.records_digest(launches)
    return Decision(
        schema_=Decision.schema_id(),
        campaign_id=campaign.campaign_id,
        plan_hash=data.plan.plan_hash,
        look=look,
        launches=launches,
        looks=looks.looks,
        levels=looks.parts,
        error=ERROR,
        same_within=judged.delta,
        seed=data.plan.seed,
        records=count,
        records_sha256=digest,
        families=tuple(_family(family, data) for family in judged.families),
        leading=tuple(_leading(judged.groups, data)),
        pace=pace(data.records, data.meta.created_utc, planned_s),
        tool_version=version,
        rule=RULE,
    )


def _family(family: Family, data: Dataset) -> JudgedFamily:
    layers = {(cell.case, cell.series.label): cell for cell in data.cells if cell.series.kind == "layer"}
    is_there = any(data.plan.baseline_of(label) == label for _, label in layers)
    decided: list[PointComparison] = []
    undecided: list[PointComparison] = []
    unmeasured: list[PointComparison] = []
    for one in family.cells:
        beside = layers[one.cell.case, data.plan.baseline_of(one.cell.series.label) or ""]
        found = PointComparison(
            point_id=one.cell.point_id, baseline_id=beside.point_id, says=one.says.value, level=one.verdict.level
        )
        if one.says != Verdict.UNKNOWN:
            decided.append(found)
        elif one.cell.samples and beside.samples:
            undecided.append(found)
        else:
            unmeasured.append(found)
    place: Place = family.key.place  # type: ignore[assignment]  # as a case has it
    wait: Wait = family.key.wait  # type: ignore[assignment]
    return JudgedFamily(
        pattern=family.key.pattern,
        place=place,
        wait=wait,
        quantity=family.key.quantity,
        baseline=data.plan.baseline if is_there else None,
        correlation=family.correlation,
        withheld=family.withheld,
        decided=tuple(decided),
        undecided=tuple(undecided),
        unmeasured=tuple(unmeasured),
    )


def _leading(groups: Mapping[Case, LeadingGroup], data: Dataset) -> Iterator[tuple[str, ...]]:
    """Yield the points of each case of which several layers may be the best, by more than what counts as the same.

    Where builds or settings are compared nobody asks which layer is the best.
    """
    if is_variant(data.plan.baseline or ""):
        return
    points = {(cell.case, cell.series): cell.point_id for cell in data.cells}
    for case, group in groups.items():
        if len(group.members) > 1 and not group.alike and not group.unlike:
            yield tuple(sorted(points[case, series] for series in group.members))


def pace(records: Iterable[LaunchRecord], created_utc: str, planned_s: float) -> float:
    """Return how many times the planned time a campaign took so far, with what Ansible took before and between looks.

    Never less than once, since not all is seen.
    """
    return max(1.0, round(spent_s(records, created_utc) / planned_s, 2)) if planned_s else 1.0
