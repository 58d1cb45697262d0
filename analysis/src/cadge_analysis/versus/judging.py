# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts on all cells of a comparison, one family: of one campaign round by round, of two beside the machine's drift.

Two series of one campaign are judged as its own verdicts are: paired by round, at the looks that it was planned with,
with the allowance for serial correlation that its families ask for (the largest of them, as this is one family), and
withheld where the campaign's own are; of two campaigns, where those of either are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages
from cadge_analysis.judged import judged
from cadge_analysis.stats.campaign_verdicts import FamilyKey
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.family_verdicts import as_one_family
from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.paired_verdicts import PairedVerdict
from cadge_analysis.stats.inference.shift import Shift
from cadge_analysis.stats.inference.verdict import IntervalVerdict, Verdict, adjusted, judge
from cadge_analysis.stats.load import Cell
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.pairing import Pairing
from cadge_analysis.versus.drift import Drift
from cadge_analysis.versus.sides import Side

say = partial(messages.say, "versus")

Pair = tuple[Numbers, Numbers, Shift]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """A verdict on each cell, the shift of each less what the machine did, and why verdicts are withheld, if any are.

    correlation: of neighbouring rounds, as it is allowed for; 0 between campaigns.
    """

    shifts: tuple[ShiftEstimate, ...]
    judged: tuple[IntervalVerdict, ...]
    withheld: str = ""
    correlation: float = 0.0


def between_campaigns(
    pairs: Sequence[Pair], drift: Drift | None, margin: float, *, withheld: Mapping[str, str] | None = None
) -> Ruling:
    """Judge cells of two campaigns; drift is None where machines are compared, so that nothing is taken out.

    withheld: by campaign, why its own verdicts are; then none is given here.
    """
    whys = [f"{name}: {why}" for name, why in (withheld or {}).items() if why]
    if whys:
        unsaid = IntervalVerdict(verdict=Verdict.UNKNOWN, p=1.0, more=None, withheld=True)
        return Ruling(
            shifts=tuple(ShiftEstimate(shift) for _, _, shift in pairs),
            judged=(unsaid,) * len(pairs),
            withheld="; ".join(whys),
        )
    if drift is None:
        shifts = [ShiftEstimate(shift) for _, _, shift in pairs]
        return Ruling(shifts=tuple(shifts), judged=tuple(_judge(pairs, shifts, margin)))
    freed = [drift.out_of(shift, ours.cell, more_is_better=ours.more_is_better) for ours, _, shift in pairs]
    known = [at for at, one in enumerate(freed) if one is not None]
    verdicts_of = iter(_judge([pairs[at] for at in known], [one for one in freed if one is not None], margin))
    unknown = IntervalVerdict(verdict=Verdict.UNKNOWN, p=1.0, more=None, drowned=True)
    return Ruling(
        shifts=tuple(one or ShiftEstimate(pair[2]) for one, pair in zip(freed, pairs, strict=True)),
        judged=tuple(unknown if one is None else next(verdicts_of) for one in freed),
        withheld="" if len(known) == len(pairs) else say("judging.drift_unknown", n=len(pairs) - len(known)),
    )


def _judge(pairs: Sequence[Pair], shifts: Sequence[ShiftEstimate], margin: float) -> list[IntervalVerdict]:
    better = [ours.quantity.better for ours, _, _ in pairs]
    return judge(list(zip(shifts, better, strict=True)), margin)


def within_campaign(side: Side, pairs: Sequence[Pair], margin: float) -> Ruling:
    """Judge cells of one campaign, paired by round. side: one of both."""
    shifts = tuple(ShiftEstimate(shift) for _, _, shift in pairs)
    if all(ours.cell.point_id == theirs.cell.point_id for ours, theirs, _ in pairs):
        # a series beside itself: no round says anything of the next one
        families, withheld, looks = {}, "", None
    else:
        found = judged(compare(side.data, side.by_point))
        families, withheld, looks = {one.key: one for one in found.families}, found.withheld, found.looks
    concerned = [one for ours, _, _ in pairs if (one := families.get(_family(ours.cell))) is not None]
    if not withheld and any(one.withheld for one in concerned):
        withheld = say("judging.rounds_alike")
    values = {one.cell.point_id: one.by_round for ours, theirs, _ in pairs for one in (ours, theirs)}
    pairing = Pairing(side.data, looks, values)
    paired = [pairing.compared(theirs.cell, ours.cell, theirs.by_round, ours.by_round) for ours, theirs, _ in pairs]
    allowed = [one.correlation for one in concerned]
    made = as_one_family(dict(enumerate(paired)), allowed, margin, withheld=bool(withheld))
    ps = adjusted([one.p for one in made.values()])
    says = tuple(_judged(made[at], ps[at], pairs[at][0]) for at in range(len(pairs)))
    return Ruling(shifts=shifts, judged=says, withheld=withheld, correlation=max(allowed, default=0.0))


def _family(cell: Cell) -> FamilyKey:
    case = cell.case
    return FamilyKey(case.pattern, case.place, case.wait, case.file.main)


def _judged(one: PairedVerdict, p: float, ours: Numbers) -> IntervalVerdict:
    interval = None if one.low is None or one.high is None else (one.low, one.high)
    if interval and ours.more_is_better:
        interval = -interval[1], -interval[0]
    return IntervalVerdict(
        verdict=one.says,
        p=p,
        interval=interval,
        level=one.level,
        more=one.more if one.says is Verdict.UNKNOWN else None,
        withheld=one.withheld,
    )
