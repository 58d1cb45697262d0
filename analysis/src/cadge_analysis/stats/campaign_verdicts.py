# SPDX-License-Identifier: BSD-3-Clause
"""All that a campaign decides: each layer against the declared baseline, and which layers lead, case by case.

A family is a pattern at a place, in a wait mode, with its main quantity. It holds each series against the sweep's
baseline in each case that ranks, whatever became of it: what failed is an undecided comparison. Each is paired,
round by round (pairing.py), and all of a family stand up to its correction (family_verdicts.py).

Where the main quantity is a time, its p99 makes a second family (`tail_verdicts`), with a correction and a correlation
of rounds of its own. It holds what has a p99 in every launch of both sides (measures.py); what has not is no comparison
that is undecided, since nothing of it was looked at but how many samples there are.

Leading groups need no baseline: any two are compared in the rounds that both have, at the level of their case. They are
of the main quantity alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import combinations
from math import comb, exp
from statistics import median

from cadge_analysis import messages
from cadge_analysis.stats.beside_native import taxed
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.family_verdicts import FamilyMember, as_one_family, judge_families
from cadge_analysis.stats.inference.families import not_beaten
from cadge_analysis.stats.inference.paired_verdicts import PairedVerdict
from cadge_analysis.stats.inference.sequential import ERROR, LookPlan
from cadge_analysis.stats.inference.serial import Serial, error_for
from cadge_analysis.stats.inference.verdict import Verdict, bounds
from cadge_analysis.stats.intervals import do_disagree
from cadge_analysis.stats.load import Case, Cell, Series
from cadge_analysis.stats.measures import MAIN, TAIL, Measure
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.offered import unlike
from cadge_analysis.stats.pairing import PairedRatios, Pairing, Rounds
from cadge_results import Plan
from cadge_results.plugins.layerfile import BesideNative

say = partial(messages.say, "stats")

SAME_WITHIN = 0.05
"""Two layers are the same where they surely differ by less, unless the sweep says otherwise."""
NO_NUMBER = say("campaign_verdicts.no_number")
RANKED_LEAST = 0.5
"""A layer with a smaller share of its launches is not ranked: too few to be separated from anything."""


@dataclass(frozen=True, slots=True, order=True)
class FamilyKey:
    """What the comparisons of one family have in common."""

    pattern: str
    place: str
    wait: str
    quantity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times the baseline's number a series' own is, with the interval that its verdict is read from."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellVerdict:
    """What is said of a series in a case beside the baseline. `lost`: rounds in which one of both gave no number.

    `pairs_disagree`: the ratio of both medians, which stand beside, contradicts the median of paired ratios.
    """

    cell: Cell
    verdict: PairedVerdict
    more_is_better: bool
    lost: int
    pairs_disagree: bool

    @property
    def says(self) -> Verdict:
        """The verdict in a word."""
        return self.verdict.says

    @property
    def epochs(self) -> tuple[float, ...]:
        """The ratio that each epoch gives by itself; none where there is one epoch alone."""
        return tuple(exp(-one if self.more_is_better else one) for one in self.verdict.epochs)

    @property
    def ratio(self) -> Ratio | None:
        """The ratio of the quantity itself, whatever is better."""
        found = self.verdict
        if found.log_ratio is None:
            return None
        low, high = (exp(end) if end is not None else None for end in (found.low, found.high))
        if not self.more_is_better:
            return Ratio(value=exp(found.log_ratio), low=low, high=high)
        return Ratio(value=exp(-found.log_ratio), low=1 / high if high else None, high=1 / low if low else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The comparisons of a family. `serial`: how rounds followed one another, as its tests allow for.

    That is the campaign's, or its `own` where that is clearly there; None where no rounds can tell.
    """

    key: FamilyKey
    cells: tuple[CellVerdict, ...]
    serial: Serial | None
    own: Serial | None

    @property
    def withheld(self) -> bool:
        """True where neighbouring rounds are too much alike for verdicts."""
        return self.serial is not None and self.serial.withheld

    @property
    def correlation(self) -> float:
        """What its tests and intervals allow for."""
        return self.serial.used if self.serial else 0.0

    @property
    def error(self) -> float:
        """How many findings of it may be wrong."""
        return error_for(self.correlation, ERROR)

    @property
    def decided(self) -> int:
        """How many comparisons are faster, slower or the same."""
        return sum(one.says != Verdict.UNKNOWN for one in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadingGroup:
    """The layers of a case of which one is the best, by what they measured; one alone is the best.

    `launches` and `launches_most`: the fewest and most valid ones that a ranked layer has. `unranked` have too few.
    `alike`: several lead, and surely all lie within the sweep's `same_within` of one another: more launches would only
    tell which of them is the best by less than that. `unlike`: why they cannot be ranked at all; then it is withheld.
    """

    case: Case
    members: tuple[Series, ...]
    ranked: int
    launches: int
    launches_most: int
    unranked: tuple[Series, ...]
    withheld: bool
    alike: bool = False
    unlike: str = ""

    @property
    def best(self) -> Series | None:
        """The one that leads alone, of several."""
        return self.members[0] if len(self.members) == 1 and self.ranked > 1 and not self.withheld else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyVerdicts:
    """What is said of all comparisons with one measure. `serial`: over all families.

    `withheld`: why nothing may be said, for a reason that lies outside these numbers. `without`: of points that were
    measured beside a baseline, by point, why they are not compared with it.
    """

    families: tuple[Family, ...]
    serial: Serial | None
    by_point: Mapping[str, CellVerdict]
    withheld: str
    without: Mapping[str, str]

    @property
    def comparisons(self) -> int:
        """How many there are in all families."""
        return len(self.by_point)

    @property
    def decided(self) -> int:
        """How many of them are faster, slower or the same."""
        return sum(family.decided for family in self.families)

    @property
    def undecided(self) -> tuple[CellVerdict, ...]:
        """Those that cannot be told."""
        return tuple(one for family in self.families for one in family.cells if one.says == Verdict.UNKNOWN)

    def count(self, verdict: Verdict) -> int:
        """How many comparisons have this verdict."""
        return sum(one.says == verdict for one in self.by_point.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TailVerdicts(FamilyVerdicts):
    """What is said of the p99."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignVerdicts(FamilyVerdicts):
    """What a campaign says of its main quantities, and of their `tails`, where these were asked for.

    `looks` is None where each comparison is looked at once, when all launches that were planned are there.
    """

    baseline: str | None
    delta: float
    looks: LookPlan | None
    groups: Mapping[Case, LeadingGroup]
    tails: TailVerdicts | None = None
    epochs: int = 1
    """How many were planned: from EPOCHS_LEAST on verdicts are over them."""
    baseline_chosen: bool = False
    """The baseline is not the sweep's: it was chosen after the measurement."""
    baselines: frozenset[str] = frozenset()
    """The layers that others are judged against: of builds of Cadge one for each adapter."""
    taxes: Mapping[str, BesideNative] = field(default_factory=dict)
    """What is known of points beside plain programs over the same library, by point: wherever these are ranked."""


def judge_campaign(
    comparison: Comparison, looks: LookPlan | None = None, *, withhold: str = "", one_family: bool = False
) -> CampaignVerdicts:
    """Return what a campaign says of its layers by their main quantities.

    looks: those that it was planned with; None for one look, at all launches that were planned. withhold: why nothing
    may be said, where the instrument itself is in doubt. one_family: every verdict allows for the comparisons of all
    families, as `cadge compare` does, whose table and exit code tell of them together.
    """
    judging = _VerdictInputs.of(comparison, looks, MAIN)
    drafts = judging.drafts(comparison)
    families, whole = _judged(drafts, judging.delta, withheld=bool(withhold))
    if one_family:
        families = _as_one(drafts, families, judging.delta, withheld=bool(withhold))
    groups: dict[Case, LeadingGroup] = {}
    for family in families:
        for case, cells in drafts[family.key].cases.items():
            is_withheld = bool(withhold) or family.withheld
            groups[case] = judging.leading(case, cells, family, withheld=is_withheld)
    plan = comparison.data.plan
    labels = {series.label for series in comparison.data.layers}
    return CampaignVerdicts(
        baseline=plan.baseline,
        baselines=frozenset(label for label in labels if plan.baseline_of(label) == label),
        delta=judging.delta,
        looks=looks,
        families=families,
        serial=whole,
        groups=groups,
        by_point=_by_point(families),
        withheld=withhold,
        without=_without(drafts),
        epochs=comparison.data.plan.epochs,
        baseline_chosen=comparison.data.baseline_chosen,
        taxes=taxed(comparison.data),
    )


def tail_verdicts(comparison: Comparison, looks: LookPlan | None = None, *, withhold: str = "") -> TailVerdicts:
    """Return what a campaign says of its layers by the p99 of what they are timed by; see `judge_campaign`."""
    judging = _VerdictInputs.of(comparison, looks, TAIL)
    drafts = judging.drafts(comparison)
    families, whole = _judged(drafts, judging.delta, withheld=bool(withhold))
    return TailVerdicts(
        families=families,
        serial=whole,
        by_point=_by_point(families),
        withheld=withhold,
        without=_without(drafts),
    )


def paired_families(comparison: Comparison) -> dict[FamilyKey, list[PairedRatios]]:
    """Return what verdicts on main quantities are judged from, at all launches; no baseline: beside some layer."""
    judging = _VerdictInputs.of(comparison, None, MAIN)
    return {key: judging.pairs(cases, comparison.data.plan) for key, cases in _cases(comparison, MAIN).items()}


def _without(drafts: Mapping[FamilyKey, _Draft]) -> dict[str, str]:
    return {name: why for draft in drafts.values() for name, why in draft.without.items()}


def _by_point(families: Iterable[Family]) -> dict[str, CellVerdict]:
    return {one.cell.point_id: one for family in families for one in family.cells}


def _key(case: Case, measure: Measure) -> FamilyKey:
    return FamilyKey(case.pattern, case.place, case.wait, case.file.main + measure.ending)


def _cases(comparison: Comparison, measure: Measure) -> dict[FamilyKey, dict[Case, list[Cell]]]:
    """Return what is compared: every cell of a layer that ranks and that can be measured here."""
    found: dict[FamilyKey, dict[Case, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in comparison.data.cells:
        case = cell.case
        is_measured = cell.series.kind == "layer" and cell.planned and cell.state != "refused"
        if is_measured and case.does_rank and measure.belongs(case.file):
            found[_key(case, measure)][case].append(cell)
    return found


@dataclass(frozen=True, slots=True)
class _Draft:
    """A family before anything is judged: its cases, what is compared by point, and differences that tell of rounds.

    `without`: why points are not compared, though they and the baseline were planned.
    """

    cases: Mapping[Case, Sequence[Cell]]
    compared: Mapping[str, tuple[Cell, PairedRatios]]
    differences: Sequence[Sequence[float]]
    without: Mapping[str, str]


def _judged(
    drafts: Mapping[FamilyKey, _Draft], delta: float, *, withheld: bool
) -> tuple[tuple[Family, ...], Serial | None]:
    """Judge all families; return them, and how rounds followed one another over all of them."""
    found, whole = judge_families(
        {key: {name: one for name, (_, one) in draft.compared.items()} for key, draft in drafts.items()},
        delta,
        others={key: draft.differences for key, draft in drafts.items()},
        withheld=withheld,
    )
    return tuple(_family(key, draft, found[key]) for key, draft in drafts.items()), whole


def _as_one(
    drafts: Mapping[FamilyKey, _Draft], families: Sequence[Family], delta: float, *, withheld: bool
) -> tuple[Family, ...]:
    """Judge the comparisons of all families again, as one."""
    members = {name: one for draft in drafts.values() for name, (_, one) in draft.compared.items() if not one.unlike}
    concerned = [one for one in families if one.cells]
    held = withheld or any(one.withheld for one in concerned)
    said = as_one_family(members, (one.correlation for one in concerned), delta, withheld=held)
    return tuple(
        replace(
            family,
            cells=tuple(replace(one, verdict=said.get(one.cell.point_id, one.verdict)) for one in family.cells),
        )
        for family in families
    )


def _family(key: FamilyKey, draft: _Draft, found: FamilyMember[str]) -> Family:
    cells = tuple(
        CellVerdict(
            cell=cell,
            verdict=found.verdicts[name],
            more_is_better=cell.case.file.main_quantity.better == "high",
            lost=one.lost,
            pairs_disagree=_disagree(one, found.verdicts[name]),
        )
        for name, (cell, one) in draft.compared.items()
    )
    return Family(key=key, cells=cells, serial=found.serial, own=found.own)


def _disagree(compared: PairedRatios, found: PairedVerdict) -> bool:
    if compared.medians is None or found.log_ratio is None:
        return False
    return do_disagree(compared.medians, found.log_ratio, found.low, found.high)


@dataclass(frozen=True, slots=True)
class _VerdictInputs:
    """What is needed to compare the cells of a campaign by one measure.

    `values`: by point, round by round, of what has them; `without`: why others take no part.
    """

    measure: Measure
    numbers: Mapping[str, Numbers]
    values: Mapping[str, Rounds]
    without: Mapping[str, str]
    pairing: Pairing
    delta: float

    @classmethod
    def of(
        cls, comparison: Comparison, looks: LookPlan | None, measure: Measure, again: Sequence[Numbers] = ()
    ) -> _VerdictInputs:
        """Take in a campaign, and some of what was measured a second time."""
        data = comparison.data
        numbers = {one.cell.point_id: one for one in (*(row.numbers for row in comparison.rows), *again)}
        seen = {name: measure.of(one) for name, one in numbers.items() if measure.belongs(one.cell.case.file)}
        without = {name: why for name, why in seen.items() if isinstance(why, str)}
        if not measure.asks_all:
            without |= {cell.point_id: NO_NUMBER for cell in data.planned if cell.point_id not in numbers}
        percent = data.plan.same_within
        values = {name: found for name, found in seen.items() if not isinstance(found, str)}
        return cls(
            measure=measure,
            numbers=numbers,
            values=values,
            without=without,
            pairing=Pairing(data, looks, values),
            delta=percent / 100 if percent is not None else SAME_WITHIN,
        )

    def drafts(self, comparison: Comparison) -> dict[FamilyKey, _Draft]:
        """Pair the cells of all families."""
        plan = comparison.data.plan
        return {key: self.draft(cases, plan) for key, cases in _cases(comparison, self.measure).items()}

    def compared(self, ours: Cell, base: Cell) -> PairedRatios:
        """Pair two cells of a case."""
        return self.pairing.compared(ours, base, self.values.get(ours.point_id), self.values.get(base.point_id))

    def draft(self, cases: Mapping[Case, Sequence[Cell]], plan: Plan) -> _Draft:
        """Pair the cells of a family with the baseline of their case."""
        compared: dict[str, tuple[Cell, PairedRatios]] = {}
        without: dict[str, str] = {}
        for cells in cases.values():
            by_label = {cell.series.label: cell for cell in cells}
            for cell in cells:
                base = by_label.get(plan.baseline_of(cell.series.label) or "")
                if base is None or base is cell:
                    continue
                if cell.point_id in self.without:
                    without[cell.point_id] = self.without[cell.point_id]
                elif base.point_id in self.without:
                    without[cell.point_id] = f"{base.series.label}: {self.without[base.point_id]}"
                elif (found := self.compared(cell, base)).unlike:
                    without[cell.point_id] = found.unlike
                else:
                    compared[cell.point_id] = cell, found
        beside = () if compared else self._beside_some(cases.values())
        differences = [part for one in beside for part in one.stretches]
        return _Draft(cases, compared, differences, without)

    def pairs(self, cases: Mapping[Case, Sequence[Cell]], plan: Plan) -> list[PairedRatios]:
        """Return the pairs of a family."""
        compared = [one for _, one in self.draft(cases, plan).compared.values()]
        return compared or list(self._beside_some(cases.values()))

    def _beside_some(self, cases: Iterable[Sequence[Cell]]) -> Iterator[PairedRatios]:
        """Yield pairs where there is no baseline: with some layer of each case.

        That is the one with the most launches, of several the first by name: any that is in all rounds will do, since
        its own part in the differences is what is to be seen.
        """
        for cells in cases:
            measured = [cell for cell in cells if cell.point_id in self.values]
            if measured:
                some = max(measured, key=lambda cell: len(cell.samples))
                yield from (self.compared(cell, some) for cell in measured if cell is not some)

    def leading(self, case: Case, cells: Sequence[Cell], family: Family, *, withheld: bool) -> LeadingGroup:
        """Return which layers of a case lead: those that look best first."""
        measured = [cell for cell in cells if cell.point_id in self.numbers]
        enough = [cell for cell in measured if _is_ranked(cell)]
        ordered = sorted(enough, key=self._rank)
        better = self._better(ordered)
        apart = unlike(ordered) if len(ordered) > 1 else ""
        withheld = withheld or bool(apart)
        places = tuple(range(len(ordered)))
        leading = places if withheld else not_beaten(places, better, _pairs_most(ordered), error=family.error)
        return LeadingGroup(
            case=case,
            members=tuple(ordered[place].series for place in leading),
            ranked=len(ordered),
            launches=min((len(cell.samples) for cell in ordered), default=0),
            launches_most=max((len(cell.samples) for cell in ordered), default=0),
            unranked=tuple(sorted(cell.series for cell in measured if cell not in enough)),
            withheld=withheld,
            alike=not withheld and self._alike([ordered[place] for place in leading], len(ordered), family),
            unlike=apart,
        )

    def in_groups(self, cells: Sequence[Cell], family: Family) -> tuple[tuple[Series, ...], ...]:
        """Return the layers of a case in groups: those that lead, then those that lead without them, and so on.

        Each step is the test of leading groups among the layers that are left, at its own level. In a group those come
        first that look best by this measure. Layers with too few launches, or without such a number, are in none.
        """
        enough = [cell for cell in cells if cell.point_id in self.values and _is_ranked(cell)]
        if unlike(enough):
            return ()
        ordered = sorted(enough, key=self._by_median)
        better = self._better(ordered)
        groups, left = [], tuple(range(len(ordered)))
        while left:
            # where each is beaten by some other one, which pairs of different rounds allow, nobody leads
            leading = not_beaten(left, better, _pairs_most(ordered), error=family.error) or left
            groups.append(tuple(ordered[place].series for place in leading))
            left = tuple(place for place in left if place not in leading)
        return tuple(groups)

    def _better(self, ordered: Sequence[Cell]) -> Callable[[int, int], float]:
        """Return the one-sided p that one of several cells is better than another, by their places; each made once."""

        @cache
        def better(one: int, other: int) -> float:
            found = self.compared(ordered[one], ordered[other])
            look = found.looks.reached(len(found.pairs))
            if look is None or not found.looks.can_decide(look, ERROR):  # nor does any verdict come of so few
                return 1.0
            return found.looks.p_not_below(look, found.seen_at(look), levels=found.levels_at(look))

        return better

    def _by_median(self, cell: Cell) -> tuple[float, Series]:
        value = median(self.values[cell.point_id].values())
        return -value if cell.case.file.main_quantity.better == "high" else value, cell.series

    def _alike(self, members: Sequence[Cell], ranked: int, family: Family) -> bool:
        """Tell whether any two of several members are surely the same; the error is shared among all ranked pairs."""
        low, high = bounds(self.delta)

        def same(one: Cell, other: Cell) -> bool:
            found = self.compared(one, other)
            look = found.looks.reached(len(found.pairs))
            if look is None:
                return False
            level = family.error / comb(ranked, 2)
            ends = found.looks.interval(look, found.seen_at(look), level, levels=found.levels_at(look))
            return ends is not None and low < ends[0] and ends[1] < high

        return len(members) > 1 and all(same(one, other) for one, other in combinations(members, 2))

    def _rank(self, cell: Cell) -> tuple[float, Series]:
        """Return what sorts the best first."""
        numbers = self.numbers[cell.point_id]
        value = numbers.central.value
        return -value if numbers.more_is_better else value, cell.series


def _pairs_most(cells: Iterable[Cell]) -> int:
    return max((len(cell.samples) for cell in cells), default=0)


def _is_ranked(cell: Cell) -> bool:
    return len(cell.samples) >= RANKED_LEAST * cell.planned


def groups_in_order(
    comparison: Comparison,
    families: Iterable[Family],
    cases: Collection[Case],
    looks: LookPlan | None = None,
    measure: Measure = MAIN,
) -> dict[Case, tuple[tuple[Series, ...], ...]]:
    """Return, of some cases, the layers in groups that are not separated, the best first; see `_Judging.in_groups`.

    families: those of the measure, as they were judged. Those whose verdicts are withheld have no groups.
    """
    judging = _VerdictInputs.of(comparison, looks, measure)
    every = _cases(comparison, measure)
    return {
        case: judging.in_groups(cells, family)
        for family in families
        if not family.withheld
        for case, cells in every.get(family.key, {}).items()
        if case in cases
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinPair:
    """A second series of a layer paired with the first one in a case, exactly as another layer is with the baseline.

    `key`: the family that the case belongs to.
    """

    cell: Cell
    key: FamilyKey
    compared: PairedRatios


def pair_twins(comparison: Comparison, looks: LookPlan | None = None, measure: Measure = MAIN) -> tuple[TwinPair, ...]:
    """Return A against A in every case that ranks and that was measured twice. It is no part of the verdicts."""
    own = {(row.cell.series, row.cell.case): row.cell for row in comparison.rows}
    judging = _VerdictInputs.of(comparison, looks, measure, comparison.twin_numbers)
    made = []
    for cell in comparison.data.twins:
        first = own.get((cell.series, cell.case))
        if first is None or not cell.case.does_rank or not measure.belongs(cell.case.file):
            continue
        if not {cell.point_id, first.point_id} & judging.without.keys():
            found = judging.compared(cell, first)
            made.append(TwinPair(cell=cell, key=_key(cell.case, measure), compared=found))
    return tuple(made)
