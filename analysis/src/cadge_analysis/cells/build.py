# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the table of cells: every planned point, with all that its columns ask of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp

from cadge_analysis.cells.table import Scalar
from cadge_analysis.judged import gated, judged
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, CellVerdict
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.knee import Loads, loads
from cadge_analysis.stats.launch_facts import LaunchFacts, launch_facts
from cadge_analysis.stats.load import Cell, Dataset, Series
from cadge_analysis.stats.measures import MAIN, TAIL
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.twin import twin_cells
from cadge_results.plugins.layerfile import BesideNative


@dataclass(frozen=True, slots=True)
class CellRow:
    """A planned point. What a column shows of it is computed when it is asked for."""

    cell: Cell
    data: Dataset
    verdicts: CampaignVerdicts
    numbers: Numbers | None = None
    row: Row | None = None
    """With what it is held against; None of floors, of second series, and of points without a number."""
    share: float | None = None
    """Of the generator's limit."""
    facts: LaunchFacts | None = None
    hosts: str | None = None
    itself: Mapping[str, Scalar] = field(default_factory=dict)
    """How a second series compares with the first."""

    @property
    def measured(self) -> Numbers:
        """The numbers of a point that has some."""
        assert self.numbers is not None  # noqa: S101 - a report's tables have no other rows
        return self.numbers

    @property
    def compared(self) -> Row:
        """A layer's point that has numbers, with what it is held against."""
        assert self.row is not None  # noqa: S101 - as above
        return self.row

    @property
    def verdict(self) -> CellVerdict | None:
        """The verdict against the baseline."""
        return self.verdicts.by_point.get(self.cell.point_id)

    @property
    def tail_verdict(self) -> CellVerdict | None:
        """The same by the p99."""
        return self.verdicts.tails.by_point.get(self.cell.point_id) if self.verdicts.tails else None

    @property
    def without(self) -> str | None:
        """Why it is not compared with the baseline, though it was measured beside it."""
        return None if self.cell.twin else self.verdicts.without.get(self.cell.point_id)

    @property
    def tail_without(self) -> str | None:
        """The same by the p99."""
        tails = self.verdicts.tails
        return None if self.cell.twin or not tails else tails.without.get(self.cell.point_id)

    @property
    def tax(self) -> BesideNative | None:
        """What is known of it beside a plain program over the same library."""
        return None if self.cell.twin else self.verdicts.taxes.get(self.cell.point_id)

    @property
    def leads(self) -> bool | None:
        """Whether it leads its case, alone or in a group; None where nothing ranks it."""
        group = self.verdicts.groups.get(self.cell.case)
        if group is None or group.withheld or self.cell.twin:
            return None
        is_ranked = self.cell.series.kind == "layer" and bool(self.cell.samples)
        return self.cell.series in group.members if is_ranked else None


@dataclass(frozen=True)
class CampaignCells:
    """The cells of a campaign with its verdicts: exports, questions in SQL and pages read these rows."""

    comparison: Comparison
    verdicts: CampaignVerdicts

    @cached_property
    def loads(self) -> Loads:
        """What they say of loads."""
        return loads(self.comparison)

    def __iter__(self) -> Iterator[CellRow]:
        """Yield a row for every planned point in the report's order, then for what was measured a second time."""
        yield from self.first()
        yield from self.second()

    def first(self) -> Iterator[CellRow]:
        """Yield a row for every planned point, floors and refused ones included."""
        rows = {row.cell.point_id: row for row in self.comparison.rows}
        for cell, row in self._rows(self.comparison.data.cells):
            against = rows.get(cell.point_id)
            yield replace(row, row=against, share=self.loads.shares.get(cell.point_id) if against else None)

    def second(self) -> Iterator[CellRow]:
        """Yield a row for every point of a second series, which is no competitor: only itself is said of it."""
        itself = _itself(self.comparison, self.verdicts) if self.comparison.data.twins else {}
        for cell, row in self._rows(self.comparison.data.twins):
            yield replace(row, itself=itself.get(cell.point_id, {}))

    def _rows(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, CellRow]]:
        data, numbers = self.comparison.data, self.comparison.numbers
        hosts, facts = _hosts(data), _facts(data)
        for cell in cells:
            name = cell.point_id
            yield (
                cell,
                CellRow(
                    cell, data, self.verdicts, numbers.get(name), hosts=hosts.get(name), facts=facts.get(_where(cell))
                ),
            )


def judged_cells(comparison: Comparison) -> CampaignCells:
    """Return a campaign's cells with its verdicts; their comparison knows where these are withheld."""
    verdicts = judged(comparison)
    return CampaignCells(gated(comparison, verdicts), verdicts)


def _facts(data: Dataset) -> dict[tuple[Series, str, str], LaunchFacts]:
    """Return what each series is, at one place and in one wait mode; of several such facts the first."""
    return {key: found[0] for key, found in launch_facts(data).items()}


def _where(cell: Cell) -> tuple[Series, str, str]:
    return cell.series, cell.case.place, cell.case.wait


def _hosts(data: Dataset) -> dict[str, str]:
    """Return, by point, the hosts on which its launches have endpoints, in the testbed's order."""
    used: dict[str, set[str]] = defaultdict(set)
    for launch in data.plan.launches:
        here = {end.host for end in launch.endpoints}
        for name in launch.point_ids:
            used[name] |= here
    order = {name: place for place, name in enumerate(data.meta.testbed.hosts)}
    return {name: " ".join(sorted(here, key=lambda one: (order.get(one, 0), one))) for name, here in used.items()}


def _itself(comparison: Comparison, verdicts: CampaignVerdicts) -> dict[str, dict[str, Scalar]]:
    """Return, by point of a second series, how it compares with the first: ratio by round, and p without correction."""
    found: dict[str, dict[str, Scalar]] = defaultdict(dict)
    for name, measure in (("itself", MAIN), ("itself_p99", TAIL)):
        for one in twin_cells(comparison, verdicts, measure=measure):
            sign = -1 if one.cell.case.file.main_quantity.better == "high" else 1
            found[one.cell.point_id] |= {
                f"{name}_ratio": exp(sign * one.log_ratio),
                f"{name}_p": one.p,
                f"{name}_launches": one.launches,
            }
    return found
