# SPDX-License-Identifier: BSD-3-Clause
"""All that a campaign decides: each layer against the declared baseline, and which layers lead, case by case.

A family is a pattern at a place, in a wait mode, with its main quantity. It holds each series against the sweep's
baseline in each case that ranks, whatever became of it: what failed is a comparison that cannot tell. Each is paired,
round by round (paired_verdicts.py), so that what the machine does for longer than a round cancels, and all of a family
stand up to BY's correction (families.py).

The correlation of neighbouring rounds is estimated over the campaign, as serial.py was proved: a family's few rounds
alone would be taken for correlated by chance in one of six, and then decide nothing. A family whose own is clearly
there, by serial.CLEARLY standard errors, is judged by its own.

A launch that gave no number takes its round from both sides. The looks of that comparison then have fewer pairs, and
the same error; which rounds are lost says nothing of how the others went. Rounds that were not run yet are waited for.

Leading groups need no baseline: any two are compared in the rounds that both have, at the level of their case.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from cadge_analysis.stats.compare import Comparison, Numbers, numbers_of
from cadge_analysis.stats.families import better_p, not_beaten
from cadge_analysis.stats.load import Case, Cell, Dataset, RoundKey, Series
from cadge_analysis.stats.paired_verdicts import PairedVerdict, verdicts
from cadge_analysis.stats.sequential import LookPlan, fixed
from cadge_analysis.stats.serial import Serial, serial_correlation
from cadge_analysis.stats.verdict import Verdict

SAME_WITHIN = 0.05
"""Two layers are the same where they surely differ by less, unless the sweep says otherwise."""
RANKED_LEAST = 0.5
"""A layer with a smaller share of its launches is not ranked: too few to be told apart from anything."""


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
    """What is said of a series in a case beside the baseline. `lost`: rounds in which one of both gave no number."""

    cell: Cell
    verdict: PairedVerdict
    more_is_better: bool
    lost: int

    @property
    def says(self) -> Verdict:
        """The verdict in a word."""
        return self.verdict.says

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
    def decided(self) -> int:
        """How many comparisons are faster, slower or the same."""
        return sum(one.says != Verdict.UNKNOWN for one in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadingGroup:
    """The layers of a case of which one is the best, by what they measured; one alone is the best.

    `launches` and `launches_most`: the fewest and most valid ones that a ranked layer has. `unranked` have too few.
    """

    case: Case
    members: tuple[Series, ...]
    ranked: int
    launches: int
    launches_most: int
    unranked: tuple[Series, ...]
    withheld: bool

    @property
    def best(self) -> Series | None:
        """The one that leads alone, of several."""
        return self.members[0] if len(self.members) == 1 and self.ranked > 1 and not self.withheld else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignVerdicts:
    """What a campaign says. `withheld`: why it may not say anything, for a reason that lies outside its numbers.

    `looks` is None where each comparison is looked at once, when all launches that were planned are there.
    """

    baseline: str | None
    delta: float
    looks: LookPlan | None
    families: tuple[Family, ...]
    serial: Serial | None
    """Over all families."""
    groups: Mapping[Case, LeadingGroup]
    by_point: Mapping[str, CellVerdict]
    withheld: str

    @property
    def comparisons(self) -> int:
        """How many there are in all families."""
        return len(self.by_point)

    @property
    def decided(self) -> int:
        """How many of them are faster, slower or the same."""
        return sum(family.decided for family in self.families)

    @property
    def share(self) -> float | None:
        """Which share of them that is; None where nothing is compared."""
        return self.decided / self.comparisons if self.comparisons else None

    @property
    def undecided(self) -> tuple[CellVerdict, ...]:
        """Those that cannot be told."""
        return tuple(one for family in self.families for one in family.cells if one.says == Verdict.UNKNOWN)

    def count(self, verdict: Verdict) -> int:
        """How many comparisons have this verdict."""
        return sum(one.says == verdict for one in self.by_point.values())


@dataclass(frozen=True, slots=True)
class _Turns:
    """The rounds of a point in their order, and which of them were run."""

    planned: Mapping[str, Counter[int]]
    run: Mapping[str, frozenset[int]]
    finished: bool


@dataclass(frozen=True, slots=True)
class _Compared:
    """Paired log-ratios up to the last look that was reached, that comparison's looks, and how many rounds it lost."""

    pairs: Mapping[RoundKey, float]
    looks: LookPlan
    lost: int


def _turns(data: Dataset) -> _Turns:
    planned: dict[str, Counter[int]] = defaultdict(Counter)
    run: dict[str, set[int]] = defaultdict(set)
    recorded = {record.launch_id for record in data.records}
    for launch in data.plan.launches:
        for name in launch.point_ids:
            planned[name][launch.round] += 1
            if launch.launch_id in recorded:
                run[name].add(launch.round)
    return _Turns(planned, {name: frozenset(found) for name, found in run.items()}, data.meta.status == "finished")


def _shortened(looks: LookPlan, pairs_at: Sequence[int]) -> LookPlan:
    """Return the looks by how many pairs there are at each; of those that have as many, the last."""
    found = dict(zip(pairs_at, looks.levels, strict=True))
    found.pop(0, None)
    return LookPlan(tuple(found), tuple(found.values())) if found else looks


def _compared(
    ours: Cell, base: Cell, numbers: Mapping[str, Numbers], turns: _Turns, looks: LookPlan | None
) -> _Compared:
    """Pair two cells; without a logarithm, or without a number on either side, there are no pairs."""
    order = sorted((turns.planned[ours.point_id] & turns.planned[base.point_id]).elements())
    both = turns.run.get(ours.point_id, frozenset()) & turns.run.get(base.point_id, frozenset())
    made = max((place + 1 for place, number in enumerate(order) if number in both), default=0)
    if looks is None:
        looks = fixed(max(1, len(order)))
        made = len(order) if turns.finished else made
    pairs = _pairs(numbers.get(ours.point_id), numbers.get(base.point_id))
    have = Counter(number for number, _ in pairs)

    def pairs_until(look: int) -> int:
        # of launches that are still to come none is lost yet
        return sum(have[number] for number in set(order[: min(look, made)])) + max(0, look - made)

    last = max((look for look in looks.looks if look <= made), default=made)
    seen = set(order[:last])
    return _Compared(
        pairs={key: value for key, value in pairs.items() if key[0] in seen},
        looks=_shortened(looks, [pairs_until(look) for look in looks.looks]),
        lost=last - sum(have[number] for number in seen),
    )


def _pairs(ours: Numbers | None, base: Numbers | None) -> dict[RoundKey, float]:
    if ours is None or base is None or min(*ours.by_round.values(), *base.by_round.values()) <= 0:
        return {}
    sign = -1 if ours.more_is_better else 1
    common = sorted(ours.by_round.keys() & base.by_round.keys())
    return {key: sign * (log(ours.by_round[key]) - log(base.by_round[key])) for key in common}


def _cases(data: Dataset) -> dict[FamilyKey, dict[Case, list[Cell]]]:
    """Return what is compared: every cell of a layer that ranks and that can be measured here."""
    found: dict[FamilyKey, dict[Case, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in data.cells:
        case = cell.case
        if cell.series.kind == "layer" and case.does_rank and cell.planned and cell.state != "refused":
            found[FamilyKey(case.pattern, case.place, case.wait, case.file.main)][case].append(cell)
    return found


def judge_campaign(comparison: Comparison, looks: LookPlan | None = None, *, withhold: str = "") -> CampaignVerdicts:
    """Return what a campaign says of its layers.

    looks: those that it was planned with; None for one look, at all launches that were planned. withhold: why nothing
    may be said, where the instrument itself is in doubt.
    """
    data = comparison.data
    numbers = {row.cell.point_id: row.numbers for row in comparison.rows}
    percent = data.plan.same_within
    delta = percent / 100 if percent is not None else SAME_WITHIN
    judging = _Judging(numbers, _turns(data), looks)
    drafts = {key: judging.draft(cases, data.plan.baseline) for key, cases in _cases(data).items()}
    whole = serial_correlation(
        (one for draft in drafts.values() for one in draft.differences),
        baselines=sum(bool(draft.differences) for draft in drafts.values()),
    )
    families: list[Family] = []
    groups: dict[Case, LeadingGroup] = {}
    for key, draft in drafts.items():
        own = serial_correlation(draft.differences)
        family = _family(key, draft, delta, own if own and own.is_clear else whole, own, withheld=bool(withhold))
        families.append(family)
        for case, cells in draft.cases.items():
            is_withheld = bool(withhold) or family.withheld
            groups[case] = judging.leading(case, cells, family.correlation, withheld=is_withheld)
    return CampaignVerdicts(
        baseline=data.plan.baseline,
        delta=delta,
        looks=looks,
        families=tuple(families),
        serial=whole,
        groups=groups,
        by_point={one.cell.point_id: one for family in families for one in family.cells},
        withheld=withhold,
    )


@dataclass(frozen=True, slots=True)
class _Draft:
    """A family before anything is judged: its cases, what is compared by point, and differences that tell of rounds."""

    cases: Mapping[Case, Sequence[Cell]]
    compared: Mapping[str, tuple[Cell, _Compared]]
    differences: Sequence[Sequence[float]]


def _family(
    key: FamilyKey, draft: _Draft, delta: float, serial: Serial | None, own: Serial | None, *, withheld: bool
) -> Family:
    found = verdicts(
        {name: one.pairs for name, (_, one) in draft.compared.items()},
        delta,
        {name: one.looks for name, (_, one) in draft.compared.items()},
        correlation=serial.used if serial else 0.0,
        withheld=withheld or (serial is not None and serial.withheld),
    )
    cells = tuple(
        CellVerdict(
            cell=cell,
            verdict=found[name],
            more_is_better=cell.case.file.main_quantity.better == "high",
            lost=one.lost,
        )
        for name, (cell, one) in draft.compared.items()
    )
    return Family(key=key, cells=cells, serial=serial, own=own)


@dataclass(frozen=True, slots=True)
class _Judging:
    """What is needed to compare the cells of a campaign."""

    numbers: Mapping[str, Numbers]
    turns: _Turns
    looks: LookPlan | None

    def compared(self, ours: Cell, base: Cell) -> _Compared:
        """Pair two cells of a case."""
        return _compared(ours, base, self.numbers, self.turns, self.looks)

    def draft(self, cases: Mapping[Case, Sequence[Cell]], baseline: str | None) -> _Draft:
        """Pair the cells of a family with the baseline of their case."""
        compared: dict[str, tuple[Cell, _Compared]] = {}
        for cells in cases.values():
            base = next((cell for cell in cells if cell.series.label == baseline), None)
            if base is not None:
                compared |= {cell.point_id: (cell, self.compared(cell, base)) for cell in cells if cell is not base}
        differences = [_in_order(one) for _, one in compared.values()] or list(self._differences(cases.values()))
        return _Draft(cases, compared, differences)

    def _differences(self, cases: Iterable[Sequence[Cell]]) -> Iterator[list[float]]:
        """Yield paired differences in the order of rounds where there is no baseline: from some layer of each case.

        That is the one with the most launches, of several the first by name: any that is in all rounds will do, since
        its own part in the differences is what is to be seen.
        """
        for cells in cases:
            measured = [cell for cell in cells if cell.point_id in self.numbers]
            if measured:
                some = max(measured, key=lambda cell: len(cell.samples))
                yield from (_in_order(self.compared(cell, some)) for cell in measured if cell is not some)

    def leading(self, case: Case, cells: Sequence[Cell], correlation: float, *, withheld: bool) -> LeadingGroup:
        """Return which layers of a case lead: those that look best first."""
        measured = [cell for cell in cells if cell.point_id in self.numbers]
        enough = [cell for cell in measured if len(cell.samples) >= RANKED_LEAST * cell.planned]
        ordered = sorted(enough, key=self._rank)
        against: dict[tuple[int, int], _Compared] = {}

        def better(one: int, other: int) -> float:
            if (one, other) not in against:
                against[one, other] = self.compared(ordered[one], ordered[other])
            found = against[one, other]
            look = found.looks.reached(len(found.pairs))
            if look is None:
                return 1.0
            return better_p(found.looks, look, list(found.pairs.values()), correlation=correlation)

        places = tuple(range(len(ordered)))
        leading = places if withheld else not_beaten(places, better)
        return LeadingGroup(
            case=case,
            members=tuple(ordered[place].series for place in leading),
            ranked=len(ordered),
            launches=min((len(cell.samples) for cell in ordered), default=0),
            launches_most=max((len(cell.samples) for cell in ordered), default=0),
            unranked=tuple(sorted(cell.series for cell in measured if cell not in enough)),
            withheld=withheld,
        )

    def _rank(self, cell: Cell) -> tuple[float, Series]:
        """Return what sorts the best first."""
        numbers = self.numbers[cell.point_id]
        value = numbers.central.value
        return -value if numbers.more_is_better else value, cell.series


def _in_order(compared: _Compared) -> list[float]:
    return [value for _, value in sorted(compared.pairs.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinPair:
    """A second series of a layer paired with the first one in a case, exactly as another layer is with the baseline."""

    cell: Cell
    pairs: Mapping[RoundKey, float]
    looks: LookPlan

    @property
    def key(self) -> FamilyKey:
        """The family that the case belongs to."""
        case = self.cell.case
        return FamilyKey(case.pattern, case.place, case.wait, case.file.main)


def pair_twins(comparison: Comparison, looks: LookPlan | None = None) -> tuple[TwinPair, ...]:
    """Return A against A in every case that ranks and that was measured twice. It is no part of the verdicts."""
    data = comparison.data
    own = {(row.cell.series, row.cell.case): row.cell for row in comparison.rows}
    numbers = {row.cell.point_id: row.numbers for row in comparison.rows}
    numbers |= {cell.point_id: found for cell in data.twins if (found := numbers_of(cell)) is not None}
    judging = _Judging(numbers, _turns(data), looks)
    made = []
    for cell in data.twins:
        first = own.get((cell.series, cell.case))
        if first is not None and cell.case.does_rank:
            compared = judging.compared(cell, first)
            made.append(TwinPair(cell=cell, pairs=compared.pairs, looks=compared.looks))
    return tuple(made)
