# SPDX-License-Identifier: BSD-3-Clause
"""What a table is: named columns of one kind each, which depend on a campaign's plan alone, and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from cadge_results import Campaign, PatternFile
from cadge_results.formats.plan import Plan
from cadge_results.plugins.catalogue import in_order

Kind = Literal["text", "integer", "number", "boolean"]
Scalar = str | int | float | None
Row = dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class FlatColumn:
    """One column. `about` says in a sentence what it holds; its unit ends its name."""

    name: str
    kind: Kind
    about: str


@dataclass(frozen=True, slots=True)
class ExportTable:
    """One table. `rows` yields rows that have all `columns` of their campaign, in their order."""

    name: str
    about: str
    fixed: tuple[FlatColumn, ...]
    """Columns that it has in every campaign."""
    columns: Callable[[Campaign], tuple[FlatColumn, ...]]
    rows: Callable[[Campaign], Iterator[Row]]


def parameters_of(files: Iterable[PatternFile]) -> tuple[FlatColumn, ...]:
    """Return a column for each parameter of some patterns, in their order; text where one is a word somewhere."""
    return together(
        [FlatColumn(name, "integer" if one.type == "integer" else "text", one.title)]
        for file in files
        for name, one in file.parameters.items()
    )


def parameters(plan: Plan) -> tuple[FlatColumn, ...]:
    """Return the columns of the parameters of a plan's patterns."""
    return parameters_of(plan.patterns[key] for key in in_order(plan.patterns))


def beside(fixed: Iterable[FlatColumn], own: Iterable[FlatColumn]) -> dict[str, FlatColumn]:
    """Return the columns of parameters by the parameter's name.

    One that is called as a fixed column is called `parameter_NAME`.
    """
    taken = {one.name for one in fixed}
    return {one.name: replace(one, name=f"parameter_{one.name}") if one.name in taken else one for one in own}


def together(several: Iterable[Iterable[FlatColumn]]) -> tuple[FlatColumn, ...]:
    """Return the columns of many campaigns, each once; where their kinds differ, the wider one."""
    found: dict[str, FlatColumn] = {}
    for columns in several:
        for one in columns:
            known = found.get(one.name)
            if known is None:
                found[one.name] = one
            elif known.kind != one.kind:
                wide: Kind = "number" if {known.kind, one.kind} == {"integer", "number"} else "text"
                found[one.name] = FlatColumn(one.name, wide, known.about)
    return tuple(found.values())
