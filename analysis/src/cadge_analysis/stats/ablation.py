# SPDX-License-Identifier: BSD-3-Clause
"""What one setting of a layer is worth: the layer as it is, beside itself with that setting.

Two series belong together where they differ in one setting alone, which one of them has and the other leaves at its
default. Each ratio is variant \u00f7 default, paired by round, as everywhere; so it says what the setting did, and not
what the machine did meanwhile. A family is a setting with a pattern at a place, in a wait mode: every layer that has
it, every value and every case (family_verdicts.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cadge_analysis import words
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.family_verdicts import told_apart
from cadge_analysis.stats.inference.paired_verdicts import PairedVerdict
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.signed_rank import launches_needed
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Case, Cell, Dataset, Series
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.offered import unlike

Family = tuple[str, str, str, str]
"""Setting, pattern, place and wait mode."""
LAUNCHES_LEAST = launches_needed(ERROR)
"""Fewer tell nothing apart, even where all rounds agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The layer with the setting at one value. `ratio` and `verdict` are None where one of the two has no number.

    `unlike`: why the two cannot be compared; then there is no ratio either.
    """

    value: str
    cell: Cell
    numbers: Numbers | None
    ratio: Estimate | None
    verdict: PairedVerdict | None = None
    unlike: str = ""

    @property
    def differs(self) -> bool:
        """True where the ratio is separated from 1, beside all others of its family."""
        return self.verdict is not None and self.verdict.differs

    @property
    def withheld(self) -> bool:
        """True where nothing may be said of that."""
        return self.verdict is not None and self.verdict.withheld


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """One layer in one case: without the setting, and with each of its values, in the order of the sweep."""

    base: Series
    setting: str
    case: Case
    cell: Cell
    numbers: Numbers | None
    variants: tuple[Variant, ...]

    @property
    def family(self) -> Family:
        """What its ratios are corrected within."""
        return self.setting, self.case.pattern, self.case.place, self.case.wait


def without(series: Series, setting: str) -> Series:
    """Return a series as it is without one of its settings."""
    kept = tuple((key, value) for key, value in series.settings if key != setting)
    return Series(series.kind, series.layer, series.shims, kept)


def reason(cell: Cell) -> str:
    """Return why a cell has no number, in one sentence."""
    if cell.troubles:
        return cell.troubles[0].reason
    return words.STATES[cell.state]


def _order(data: Dataset) -> dict[str, int]:
    """Return the place of each point in the plan, which follows the sweep."""
    return {point.point_id: place for place, point in enumerate(data.plan.points)}


def _sort_key(found: Ablation) -> tuple[object, ...]:
    case = found.case
    return (
        found.base,
        found.setting,
        words.PLACE_ORDER.index(case.place),
        words.WAIT_ORDER.index(case.wait),
        case.file.order,
        case.sort_key,
    )


def ablations(comparison: Comparison) -> tuple[Ablation, ...]:
    """Return every layer that was planned with and without a setting, case by case; cells without numbers too."""
    cells = {(c.series, c.case): c for c in comparison.data.cells if c.series.kind == "layer"}
    numbers = {row.cell.point_id: row.numbers for row in comparison.rows}
    place = _order(comparison.data)
    pairs: dict[tuple[Series, str, Case], list[tuple[str, Cell]]] = defaultdict(list)
    for (series, case), cell in cells.items():
        for setting, value in series.settings:
            base = without(series, setting)
            if (base, case) in cells:
                pairs[base, setting, case].append((value, cell))
    found = []
    for (base, setting, case), members in pairs.items():
        ours = cells[base, case]
        at_default = numbers.get(ours.point_id)
        variants = []
        for value, cell in sorted(members, key=lambda member: place[member[1].point_id]):
            own = numbers.get(cell.point_id)
            apart = unlike((cell, ours)) if own and at_default else ""
            ratio = intervals.ratio(own.by_round, at_default.by_round) if own and at_default and not apart else None
            variants.append(Variant(value=value, cell=cell, numbers=own, ratio=ratio, unlike=apart))
        found.append(
            Ablation(base=base, setting=setting, case=case, cell=ours, numbers=at_default, variants=tuple(variants))
        )
    return _judged(comparison, sorted(found, key=_sort_key))


def _judged(comparison: Comparison, found: Iterable[Ablation]) -> tuple[Ablation, ...]:
    """Return them with the verdict on each variant that has a number, as its default has."""
    listed = list(found)
    families: dict[Family, list[tuple[Numbers, Numbers]]] = defaultdict(list)
    for one in listed:
        for variant in one.variants:
            if one.numbers and variant.numbers and not variant.unlike:
                families[one.family].append((variant.numbers, one.numbers))
    told = told_apart(comparison.data, families, withheld=bool(comparison.withheld))

    def judged(variant: Variant, family: Family) -> Variant:
        return replace(variant, verdict=told.get(family, {}).get(variant.cell.point_id))

    return tuple(
        replace(one, variants=tuple(judged(variant, one.family) for variant in one.variants)) for one in listed
    )


def sizes(found: Iterable[Ablation]) -> dict[Family, int]:
    """Return how many ratios each family has, where it has some with launches enough to be separated from 1."""
    launches: dict[Family, list[int]] = defaultdict(list)
    for one in found:
        launches[one.family] += [variant.verdict.launches for variant in one.variants if variant.verdict is not None]
    return {family: len(each) for family, each in launches.items() if max(each, default=0) >= LAUNCHES_LEAST}
