# SPDX-License-Identifier: BSD-3-Clause
"""What one setting of a layer is worth: the layer as it is, beside itself with that setting.

Two series belong together where they differ in one setting alone, which one of them has and the other leaves at its
default. Each ratio is variant \u00f7 default, paired by round, as everywhere; so it says what the setting did, and not
what the machine did meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from cadge_analysis import words
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Comparison, Numbers, decided
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate
from cadge_analysis.stats.load import Case, Cell, Dataset, Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The layer with the setting at one value. `ratio` is None where one of the two has no number."""

    value: str
    cell: Cell
    numbers: Numbers | None
    ratio: Estimate | None

    @property
    def differs(self) -> bool:
        """True where the ratio's interval covers 95 % and leaves 1 out."""
        return self.ratio is not None and decided(self.ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """One layer in one case: without the setting, and with each of its values, in the order of the sweep."""

    base: Series
    setting: str
    case: Case
    cell: Cell
    numbers: Numbers | None
    variants: tuple[Variant, ...]


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
            ratio = intervals.ratio(own.by_round, at_default.by_round) if own and at_default else None
            variants.append(Variant(value=value, cell=cell, numbers=own, ratio=ratio))
        found.append(
            Ablation(base=base, setting=setting, case=case, cell=ours, numbers=at_default, variants=tuple(variants))
        )
    return tuple(sorted(found, key=_sort_key))


def by_chance(found: Iterable[Ablation]) -> tuple[int, float]:
    """Return how many ratios could be told apart from 1, and how many would be though nothing differed."""
    sure = [
        variant.ratio.coverage
        for one in found
        for variant in one.variants
        if variant.ratio is not None and variant.ratio.coverage >= TARGET_COVERAGE
    ]
    return len(sure), sum(1 - coverage for coverage in sure)
