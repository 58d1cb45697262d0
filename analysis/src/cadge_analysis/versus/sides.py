# SPDX-License-Identifier: BSD-3-Clause
"""The two sides of a comparison: a campaign whole, one of its series, or those of one build or one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from cadge_analysis import messages
from cadge_analysis.judged import withheld_of
from cadge_analysis.stats.load import Cell, Dataset, Series
from cadge_analysis.stats.numbers import CellNumbers, Numbers, read_lean
from cadge_results import Campaign
from cadge_results.plugins.build import NO_SETTINGS, on_variant, without_variant

say = partial(messages.say, "versus")

Key = tuple[str, str, str, str]
"""Series (empty where each side is one series), place, wait mode, workload: what makes two cells the same one."""


def variant_title(variant: str) -> str:
    """Return what people call a variant: `()` says nothing to them."""
    return say("sides.default") if variant == NO_SETTINGS else variant


def side_title(name: str) -> str:
    """Return what people call a side, CAMPAIGN[:LAYER|:VARIANT]."""
    campaign, _, part = name.partition(":")
    more = part.removeprefix(NO_SETTINGS)
    return f"{campaign}, {variant_title(NO_SETTINGS)}{more}" if part != more else name


@dataclass(frozen=True)
class Side:
    """A campaign, one series of it, or the series in one variant.

    variant: a build, as `@cadge-1a2b3c4d5e`, or settings, as `(off=gather)`; the names without it are what both sides
    have in common. again: the second series of what was measured twice, in place of the first.
    """

    name: str
    data: Dataset
    series: Series | None = None
    measured: Mapping[str, Numbers] | None = None
    """What the whole campaign measured, by point, where that is at hand."""
    variant: str = ""
    again: bool = False

    @classmethod
    def lean(cls, campaign: Campaign) -> Side:
        """Return a campaign that keeps what comparing asks of it; `--point` and the page of a comparison ask more."""
        data, measured = read_lean(campaign)
        return cls(data.campaign_id, data, measured=measured)

    @cached_property
    def cells(self) -> Mapping[Key, Cell]:
        """The cells of layers, by what they have in common with those of another side."""
        return {
            self.key(cell): cell
            for cell in (self.data.twins if self.again else self.data.cells)
            if cell.series.kind == "layer" and self.has(cell.series)
        }

    @property
    def is_whole(self) -> bool:
        """Tell whether it is a campaign, and no part of one."""
        return self.series is None and not self.variant

    def has(self, series: Series) -> bool:
        """Tell whether a series is one of this side."""
        if self.variant and series.label != on_variant(series.label, self.variant):
            return False
        return self.series in (None, series)

    def shared_name(self, series: Series) -> str:
        """Return what a series of this side is called on both; "" where a side is one series."""
        if self.series is not None:
            return ""
        return without_variant(series.label, self.variant) if self.variant else series.label

    @cached_property
    def _hosts_of_points(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        found = {}
        for launch in self.data.plan.launches:
            seats = tuple((endpoint.role, endpoint.host) for endpoint in launch.endpoints)
            found.update(dict.fromkeys(launch.point_ids, seats))
        return found

    def hosts(self, cell: Cell) -> tuple[tuple[str, str], ...]:
        """Return the role and the host of each endpoint of a cell; nothing where it was refused when planned."""
        return self._hosts_of_points.get(cell.point_id, ())

    @cached_property
    def by_point(self) -> Mapping[str, Numbers]:
        """What the whole campaign measured, by point."""
        return CellNumbers(self.data) if self.measured is None else self.measured

    @cached_property
    def numbers(self) -> Mapping[Key, Numbers]:
        """What was measured, of cells that have a number."""
        return {key: self.by_point[cell.point_id] for key, cell in self.cells.items() if cell.samples}

    @cached_property
    def everything(self) -> Mapping[tuple[str, str, str, str, str], Numbers]:
        """What the whole campaign measured, floors and all: kind and series, place, wait mode and workload."""
        return {
            (cell.series.kind, cell.series.label, cell.case.place, cell.case.wait, _workload(cell)): self.by_point[
                cell.point_id
            ]
            for cell in self.data.cells
            if cell.samples
        }

    @cached_property
    def withheld(self) -> str:
        """Why the campaign's own report withholds its verdicts; "" where it gives them."""
        return withheld_of(self.data, self.by_point)

    def key(self, cell: Cell) -> Key:
        """Return what makes a cell of the other side the same one."""
        case = cell.case
        return self.shared_name(cell.series), case.place, case.wait, _workload(cell)


def _workload(cell: Cell) -> str:
    case = cell.case
    values = ", ".join(f"{name}={case.workload[name]}" for name in case.file.parameters)
    return f"{case.pattern} {values}"
