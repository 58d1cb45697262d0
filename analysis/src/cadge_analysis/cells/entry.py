# SPDX-License-Identifier: BSD-3-Clause
"""An entry of the catalogue: a quantity of a cell with its companions, as programs and as people read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from cadge_analysis import units
from cadge_analysis.cells.build import CellRow
from cadge_analysis.cells.shown import Value
from cadge_analysis.cells.table import ExportTable, FlatColumn, Scalar
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.load import Case, Cell, Series
from cadge_results import Campaign, PatternFile, Plan, Subject, Workload
from cadge_results.plugins.catalogue import read_yaml

ENDS = ("_low", "_high")
"""What marks the ends of an interval, before the unit."""
RANGE = ("_lowest_launch", "_highest_launch")
"""What marks the lowest and the highest launch, which are no interval."""
Of = TypeVar("Of")


class BoundedValue(Protocol):
    """A value with its interval, or with its lowest and highest launch, whatever it is an estimate of."""

    @property
    def value(self) -> float | None:
        """The value itself."""

    @property
    def low(self) -> float | None:
        """The lower end."""

    @property
    def high(self) -> float | None:
        """The upper end."""


Heads = Callable[[PatternFile, str], tuple[str, str]]
"""A heading and a unit, of a pattern and of the layer that others are judged against."""
IsSeen = Callable[[PatternFile, Sequence[Row], str | None], bool]
"""Whether a pattern's tables have a column, by their rows and by what layers are judged against, where they are."""


@cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(Path(__file__).with_name("columns.yml").read_text(encoding="utf-8"))
    return found


@cache
def _tables() -> Mapping[str, tuple[str, Mapping[str, FlatColumn]]]:
    """Return what columns.yml says: of each table what a row is of, and its columns."""
    return {
        table: (
            one["about"],
            {name: FlatColumn(name, of["kind"], of["about"]) for name, of in one["columns"].items()},
        )
        for table, one in _file()["tables"].items()
    }


def described(table: str = "cells") -> Mapping[str, FlatColumn]:
    """Return the columns of a table that have a description of their own, by name."""
    return _tables()[table][1]


@dataclass(frozen=True, slots=True)
class Field(Generic[Of]):
    """A column for programs: its name, which its unit ends, and its value in a row."""

    name: str
    of: Callable[[Of], Scalar | list[str]]
    told: FlatColumn | None = None
    """What it is in a table, where its pattern says that."""

    def column(self, table: str = "cells") -> FlatColumn:
        """Return what it is in a table."""
        if self.told is not None:
            return self.told
        name = self.name.replace(" ", "_")
        about = next(text for end, text in _file()["endings"].items() if name.endswith(end))
        return described(table).get(name) or FlatColumn(name, "number", about)


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
    name: str, unit: str, of: Callable[[Of], BoundedValue | None], marks: tuple[str, str] = ENDS
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


def subject_fields(
    opened: Callable[[Of], Series | Subject], whole: Callable[[Of], Cell | Subject], at: Callable[[Of], Case | Subject]
) -> tuple[Field[Of], ...]:
    """Return what says which layer or floor a row is of, where it ran and how it waited."""
    return (
        Field("kind", lambda item: opened(item).kind),
        Field("layer", lambda item: opened(item).layer),
        Field("shims", lambda item: "+".join(opened(item).shims)),
        Field("settings", lambda item: assignments(opened(item).settings)),
        Field("twin", lambda item: whole(item).twin),
        Field("place", lambda item: at(item).place),
        Field("wait", lambda item: at(item).wait),
    )


def assignments(values: Iterable[tuple[str, object]]) -> str:
    """Return names with their values as one text."""
    return " ".join(f"{name}={value}" for name, value in values)


def parameter_fields(columns: Mapping[str, FlatColumn], of: Callable[[Of], Workload]) -> tuple[Field[Of], ...]:
    """Return the parameters of workloads; `columns` by a parameter's name."""

    def value(name: str) -> Callable[[Of], Scalar]:
        return lambda item: of(item).values.get(name)

    return tuple(Field(column.name, value(name), column) for name, column in columns.items())


def headed(head: str, unit: str = "") -> Heads:
    """Return a heading that all patterns share."""
    return lambda _file, _against: (head, unit)


def unseen(*fields: tuple[str, Callable[[CellRow], Scalar]]) -> Entry:
    """Return an entry that no table of a report has."""
    return Entry(fields[0][0], tuple(Field(name, of) for name, of in fields), is_seen=lambda *_: False)


def of_numbers(name: str) -> Callable[[CellRow], Scalar]:
    """Return what reads an attribute of a row's numbers."""
    return lambda row: getattr(row.numbers, name) if row.numbers is not None else None


def record(known: Iterable[Field[Of]], item: Of) -> dict[str, Any]:
    """Return the fields of a row by name, as JSON has them."""
    return {field.name: field.of(item) for field in known}


CAMPAIGN_ID = FlatColumn("campaign_id", "text", "the campaign")


def table_of(
    name: str,
    fields: Callable[[Plan], Sequence[Field[Of]]],
    items: Callable[[Campaign], Iterable[Of]],
) -> ExportTable:
    """Return a table whose rows have a campaign's id and these fields."""

    def columns(campaign: Campaign) -> tuple[FlatColumn, ...]:
        return (CAMPAIGN_ID, *(field.column(name) for field in fields(campaign.plan)))

    def rows(campaign: Campaign) -> Iterator[dict[str, Scalar]]:
        known, names = fields(campaign.plan), [one.name for one in columns(campaign)]
        for item in items(campaign):
            values = (_flat(field.of(item)) for field in known)
            yield dict(zip(names, (campaign.campaign_id, *values), strict=True))

    return ExportTable(name, _tables()[name][0], fixed_columns(name), columns, rows)


def fixed_columns(name: str) -> tuple[FlatColumn, ...]:
    """Return the columns that a table has in every campaign."""
    return CAMPAIGN_ID, *described(name).values()


def _flat(value: Scalar | list[str]) -> Scalar:
    return "; ".join(value) if isinstance(value, list) else value
