# SPDX-License-Identifier: BSD-3-Clause
"""An entry of the catalogue: a quantity of a cell with its companions, as programs and as people read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from cadge_analysis import units
from cadge_analysis.cells.build import CellRow
from cadge_analysis.cells.shown import Value
from cadge_analysis.cells.table import Column, Scalar
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_results import PatternFile
from cadge_results.catalogue import read_yaml

ENDS = ("_low", "_high")
"""What marks the ends of an interval, before the unit."""
RANGE = ("_lowest_launch", "_highest_launch")
"""What marks the lowest and the highest launch, which are no interval."""
Of = TypeVar("Of")
Heads = Callable[[PatternFile, str], tuple[str, str]]
"""A heading and a unit, of a pattern and of the layer that others are judged against."""
IsSeen = Callable[[PatternFile, Sequence[Row], str | None], bool]
"""Whether a pattern's tables have a column, by their rows and by what layers are judged against, where they are."""


@cache
def described() -> Mapping[str, Column]:
    """Return the columns that have a description of their own, by name: those of columns.yml."""
    found = read_yaml(Path(__file__).with_name("columns.yml").read_text(encoding="utf-8"))
    return {name: Column(name, one["kind"], one["about"]) for name, one in found.items()}


_ENDINGS = (
    ("_low_ns", "lower end of its interval, ns"),
    ("_high_ns", "upper end of its interval, ns"),
    ("_p50_ns", "median: the middle of the launches' medians, ns"),
    ("_p99_ns", "99th percentile, ns"),
    ("_p999_ns", "99.9th percentile, ns"),
    ("", "an estimate; see its end"),
)


@dataclass(frozen=True, slots=True)
class Field(Generic[Of]):
    """A column for programs: its name, which its unit ends, and its value in a row."""

    name: str
    of: Callable[[Of], Scalar]
    told: Column | None = None
    """What it is in a table, where its pattern says that."""

    @property
    def column(self) -> Column:
        """What it is in a table."""
        if self.told is not None:
            return self.told
        about = next(text for end, text in _ENDINGS if self.name.endswith(end))
        return described().get(self.name) or Column(self.name, "number", about)


@dataclass(frozen=True, slots=True)
class Entry:
    """One quantity of a cell with its companions. `name`: its key in a report, the same in every pattern."""

    name: str
    fields: tuple[Field[CellRow], ...] = ()
    heads: Heads = lambda _file, _against: ("", "")
    show: Callable[[CellRow], Value] = lambda _: Value(text=units.MISSING)
    is_number: bool = True
    is_seen: IsSeen = lambda _file, _rows, _against: True
    group: str = ""
    """Where it stands in a report, where its name alone does not say that."""


def bounded(
    name: str, unit: str, of: Callable[[Of], Estimate | Tail | None], marks: tuple[str, str] = ENDS
) -> tuple[Field[Of], ...]:
    """Return the fields of an estimate and its interval, or of a tail and the range of its launches."""
    end = f"_{unit}" if unit else ""

    def part(which: str) -> Callable[[Of], Scalar]:
        return lambda row: getattr(found, which) if (found := of(row)) is not None else None

    low, high = marks
    return (
        Field(f"{name}{end}", part("value")),
        Field(f"{name}{low}{end}", part("low")),
        Field(f"{name}{high}{end}", part("high")),
    )


def headed(head: str, unit: str = "") -> Heads:
    """Return a heading that all patterns share."""
    return lambda _file, _against: (head, unit)


def unseen(*fields: tuple[str, Callable[[CellRow], Scalar]]) -> Entry:
    """Return an entry that no table of a report has."""
    return Entry(fields[0][0], tuple(Field(name, of) for name, of in fields), is_seen=lambda *_: False)


def of_numbers(name: str) -> Callable[[CellRow], Scalar]:
    """Return what reads an attribute of a row's numbers."""
    return lambda row: getattr(row.numbers, name) if row.numbers is not None else None
