# SPDX-License-Identifier: BSD-3-Clause
"""What changed since the same sweep was last measured on the same testbed: one sentence, with `compare`'s verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.errors import AnalysisError
from cadge_analysis.page.parts.since import share_text
from cadge_analysis.stats.inference.verdict import LAUNCHES_FOR_AN_INTERVAL, Verdict
from cadge_analysis.stats.load import Dataset
from cadge_analysis.versus.against import Change, SideComparison, against
from cadge_analysis.versus.conditions import HARMLESS
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign, ResultsError, Store

say = partial(messages.say, "report")

MARGIN = 0.05
"""As `cadge compare` has it: within this share two numbers are the same."""
CHANGES_NAMED = 2
CONDITIONS_NAMED = 2


def earlier(store: Store, campaign: Campaign) -> Campaign | None:
    """Return the campaign before this one of the same sweep on the same testbed; None where there is none to read."""
    found = None
    for one in store.campaigns():
        try:
            if one.campaign_id == campaign.campaign_id:
                return found
            meta = one.meta
            alike = (meta.sweep, meta.testbed) == (campaign.meta.sweep, campaign.meta.testbed)
            found = one if alike and one.launch_ids() else found
        except ResultsError:  # damaged: `cadge verify` says so
            continue
    return None


def changed_since(store: Store, campaign: Campaign, data: Dataset) -> str:
    """Return what changed since the campaign before, which `data` is not; "" where there is none."""
    before = earlier(store, campaign)
    if before is None:
        return ""
    try:
        found = against(Side.lean(before), Side(data.campaign_id, data), MARGIN)
    except (AnalysisError, ResultsError) as error:
        return say("last_time.cannot_compare", campaign_id=before.campaign_id, error=error)
    return sentence(found, date=before.meta.created_utc[:10])


def sentence(found: SideComparison, *, date: str) -> str:
    """Return it of a comparison with a campaign of that date."""
    head = f"Against {found.first}, {date}: "
    if not found.changes:
        whys = Counter({**found.refused, **found.missing})
        why = whys.most_common(1)[0][0] if whys else say("last_time.no_cell")
        return say("last_time.nothing", head=head, why=why)
    moved = [one for one in found.changes if one.judged.verdict in (Verdict.SLOWER, Verdict.FASTER)]
    undecided, same = found.count(Verdict.UNKNOWN), found.count(Verdict.SAME)
    if undecided == len(found.changes):
        said = say("last_time.undecided", cells=undecided, why=_why_nothing(found))
    else:
        parts = [_change(one) for one in moved[:CHANGES_NAMED]]
        if left := len(moved) - CHANGES_NAMED:
            parts += [f"{units.count_of(left, 'more point')} changed"] if left > 0 else []
        parts += [f"{units.count_of(same, 'point')} the same within {units.percent(found.margin, 0)}"] if same else []
        parts += [f"{units.count_of(undecided, 'point')} undecided"] if undecided else []
        said = "; ".join(parts)
    return f"{head}{said}{_conditions(found)}."


def _change(one: Change) -> str:
    place = words.PLACES[one.case.place]
    return f"{one.series} {one.workload} {place} {one.judged.verdict} by {share_text(one)}"


def _why_nothing(found: SideComparison) -> str:
    """Return why no cell of any is decided."""
    launches = max(min(len(side.by_round) for side in one.sides) for one in found.changes)
    if launches < LAUNCHES_FOR_AN_INTERVAL[False]:
        return say("last_time.few_launches", launches=launches)
    if found.changes[0].judged.withheld:
        return "verdicts are withheld: " + found.withheld.partition("; ")[0].partition(": ")[2]
    if found.drift_is_unknown and not found.usual:
        return say("last_time.few_series")
    return say("last_time.none_separated", launches=launches)


def _conditions(found: SideComparison) -> str:
    """Return what else differed that a number may depend on; "" for nothing."""
    names = list(dict.fromkeys(one.what.partition(" (")[0] for one in found.conditions if one.what not in HARMLESS))
    if not names:
        return ""
    return f"; also changed: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - CONDITIONS_NAMED
    return ", ".join(names[:CONDITIONS_NAMED]) + (f" and {more} more" if more > 0 else "")
