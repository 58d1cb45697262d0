# SPDX-License-Identifier: BSD-3-Clause
"""Two cells of a campaign paired round by round, at the looks that the campaign was planned with.

Launches of one round ran close together, so that what the machine does for longer than a round cancels. A launch that
gave no number takes its round from both sides. The looks of that comparison then have fewer pairs, and the same error;
which rounds are lost says nothing of how the others went. Rounds that were not run yet are waited for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from cadge_analysis.stats.inference.epochs import OverEpochs, of_epochs
from cadge_analysis.stats.inference.levels import Levels, levels_of
from cadge_analysis.stats.inference.modes import scatter_within
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.inference.scatter import Scatter
from cadge_analysis.stats.inference.sequential import LookPlan, fixed
from cadge_analysis.stats.intervals import median
from cadge_analysis.stats.load import Case, Cell, Dataset, PlannedRounds
from cadge_analysis.stats.offered import unlike

Rounds = Mapping[RoundKey, float]
"""What a series gave, by round."""
_NEVER: PlannedRounds = ((), frozenset())


@dataclass(frozen=True, slots=True)
class PairedRatios:
    """Paired log-ratios up to the last look that was reached, that comparison's looks, and how many rounds it lost.

    Above zero is worse than the other side, whatever is better. `levels`: both sides, where the launches of either may
    fall into two groups, or their differences do. `unlike`: why they cannot be compared; then there are no pairs.
    """

    pairs: Rounds
    looks: LookPlan
    lost: int = 0
    levels: Levels | None = None
    unlike: str = ""
    medians: float | None = None
    """The logarithm of what the medians of all launches of both sides say, above zero where it is worse."""

    @property
    def two_levels(self) -> bool:
        """True where launches may be on two levels."""
        return self.levels is not None

    @property
    def in_order(self) -> list[float]:
        """The log-ratios in the order of rounds."""
        return [value for _, value in sorted(self.pairs.items())]

    @property
    def stretches(self) -> list[Sequence[float]]:
        """The log-ratios in order, in pieces within which one may resemble the next."""
        return self.looks.stretches(self.in_order)

    def seen_at(self, look: int) -> list[float]:
        """Return the log-ratios that a look is of."""
        return self.in_order[: self.looks.looks[look]]

    def levels_at(self, look: int) -> Levels | None:
        """Return the levels of the launches that a look is of."""
        return self.levels.first(self.looks.looks[look]) if self.levels else None


def paired(ours: Rounds, base: Rounds, scatter: Scatter = Scatter()) -> PairedRatios:  # noqa: B008 - frozen
    """Pair what stands in the same rounds, to be looked at once; times, or anything else of which less is better.

    scatter: of the launches of many such series (`modes.scatter_within`).
    """
    pairs = _pairs(ours, base, more_is_better=False)
    levels = _levels(pairs, ours, base, scatter, more_is_better=False)
    return PairedRatios(pairs, fixed(max(1, len(pairs))), levels=levels)


class Pairing:
    """Pairs the cells of one campaign."""

    def __init__(self, data: Dataset, looks: LookPlan | None, values: Mapping[str, Rounds]) -> None:
        """Take in the rounds of a campaign. looks: None for one look, at all launches that were planned.

        values: what is compared, by point: all of a family show how its launches scatter.
        """
        self._rounds = data.rounds_of_points
        # most points share both, and there are fewer pairs of these than of cells by far
        self._known: dict[tuple[PlannedRounds, PlannedRounds], tuple[tuple[int, ...], int]] = {}
        self._finished = data.meta.status == "finished"
        self._looks = looks
        sides: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
        for cell in data.cells:
            found = values.get(cell.point_id)
            if found and cell.series.kind == "layer" and cell.case.does_rank and min(found.values()) > 0:
                sides[_family(cell.case)].append([log(value) for value in found.values()])
        self._scatters = {family: scatter_within(every) for family, every in sides.items()}

    def _scatter(self, case: Case) -> Scatter:
        return self._scatters.get(_family(case), Scatter())

    def compared(self, ours: Cell, base: Cell, our_values: Rounds | None, base_values: Rounds | None) -> PairedRatios:
        """Pair two cells; at unlike loads, without a logarithm, or a number on either side, there are no pairs."""
        if why := unlike((ours, base)):
            return PairedRatios({}, self._looks or fixed(1), unlike=why)
        order, made = self._in_common(ours.point_id, base.point_id)
        looks = self._looks
        if looks is None:
            looks = fixed(max(1, len(order)))
            made = len(order) if self._finished else made
        better = ours.case.file.main_quantity.better
        pairs = _pairs(our_values, base_values, more_is_better=better == "high")
        have = Counter(key.round for key in pairs)

        def pairs_until(look: int) -> int:
            # of launches that are still to come none is lost yet
            return sum(have[number] for number in set(order[: min(look, made)])) + max(0, look - made)

        last = max((look for look in looks.looks if look <= made), default=made)
        seen = set(order[:last])
        at_look = {key: value for key, value in pairs.items() if key.round in seen}
        sizes = Counter(key.epoch for key in at_look)
        found = of_epochs(_shortened(looks, [pairs_until(look) for look in looks.looks]), list(sizes.values()))
        return PairedRatios(
            pairs=at_look,
            looks=found,
            lost=last - sum(have[number] for number in seen),
            levels=None
            if isinstance(found, OverEpochs)
            else _levels(at_look, our_values, base_values, self._scatter(ours.case), more_is_better=better == "high"),
            medians=_medians(our_values, base_values, more_is_better=better == "high") if pairs else None,
        )

    def _in_common(self, ours: str, base: str) -> tuple[tuple[int, ...], int]:
        """Return the rounds that two points were planned in, in order, and how many up to the last that was run."""
        sides = self._rounds.get(ours, _NEVER), self._rounds.get(base, _NEVER)
        if sides not in self._known:
            (planned, run), (other, run_other) = sides
            order = tuple(sorted((Counter(planned) & Counter(other)).elements()))
            made = max((place for place, number in enumerate(order, 1) if number in run & run_other), default=0)
            self._known[sides] = order, made
        return self._known[sides]


def _family(case: Case) -> tuple[str, str, str]:
    return case.pattern, case.place, case.wait


def _pairs(ours: Rounds | None, base: Rounds | None, *, more_is_better: bool) -> dict[RoundKey, float]:
    if not ours or not base or min(*ours.values(), *base.values()) <= 0:
        return {}
    sign = -1 if more_is_better else 1
    return {key: sign * (log(ours[key]) - log(base[key])) for key in sorted(ours.keys() & base.keys())}


def _medians(ours: Rounds | None, base: Rounds | None, *, more_is_better: bool) -> float | None:
    if not ours or not base:
        return None
    found = log(median(list(ours.values())) / median(list(base.values())))
    return -found if more_is_better else found


def _levels(
    pairs: Rounds, ours: Rounds | None, base: Rounds | None, scatter: Scatter, *, more_is_better: bool
) -> Levels | None:
    """Return both sides in the rounds of their pairs where either may be on two levels, or differences are."""
    if not ours or not base or not pairs:
        return None
    sign = -1 if more_is_better else 1
    mine, theirs = ([sign * log(side[key]) for key in sorted(pairs)] for side in (ours, base))
    return levels_of(mine, theirs, scatter)


def _shortened(looks: LookPlan, pairs_at: Sequence[int]) -> LookPlan:
    """Return the looks by how many pairs there are at each; of those that have as many, the last."""
    found = dict(zip(pairs_at, looks.parts, strict=True))
    found.pop(0, None)
    return LookPlan(tuple(found), tuple(found.values())) if found else looks
