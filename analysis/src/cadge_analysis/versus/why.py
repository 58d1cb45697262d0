# SPDX-License-Identifier: BSD-3-Clause
"""Why two cells differ: everything that is known of both beside their numbers, side by side, what differs first.

It explains nothing by itself. Each line is a fact that the launches stated of themselves; which of those that differ is
the reason, a reader decides, or an experiment that changes one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log, log1p

from cadge_analysis import words
from cadge_analysis.stats.inference.shift import Shift
from cadge_analysis.stats.load import Cell
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.versus.against import shift_of
from cadge_analysis.versus.aspects import figures, texts
from cadge_analysis.versus.forbidden import forbids
from cadge_analysis.versus.names import name_of, workloads
from cadge_analysis.versus.sides import Side

NEGLIGIBLE = 0.01
"""Of what is counted an operation, less is the same as nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """One fact on both sides; `group` says of what. `ratio`: second / first, of figures that are not 0."""

    group: str
    what: str
    first: str
    second: str
    differs: bool
    ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Two cells side by side. `shift` is of the main quantity, of these two alone; None where a side has no number.

    `forbidden`: why they are not to be compared as the same thing; empty where they can be. `withheld`: why nothing may
    be concluded from the campaign of either.
    """

    first: str
    second: str
    paired: bool
    shift: Shift | None
    forbidden: str
    withheld: str
    aspects: tuple[Aspect, ...]

    @property
    def differing(self) -> tuple[Aspect, ...]:
        """What differs, in the order of groups."""
        return tuple(one for one in self.aspects if one.differs)

    @property
    def alike(self) -> tuple[Aspect, ...]:
        """What does not."""
        return tuple(one for one in self.aspects if not one.differs)


def why(first: Side, ours: Cell, second: Side, theirs: Cell, margin: float) -> Reasons:
    """Set two cells side by side. Figures that are not further apart than `margin` count as alike."""
    pairs = first.data.campaign_id == second.data.campaign_id
    here, there = first.by_point.get(ours.point_id), second.by_point.get(theirs.point_id)
    shift = shift_of(here, there, pairs=pairs) if here and there else None
    aspects = [*_results(ours, here, theirs, there)]
    aspects += _texts(texts(first, ours), texts(second, theirs))
    aspects += _figures(figures(first, ours, here), figures(second, theirs, there), log1p(margin))
    groups = list(dict.fromkeys(one.group for one in aspects))
    return Reasons(
        first=_name(first, ours),
        second=_name(second, theirs),
        paired=pairs,
        shift=shift,
        forbidden=forbids(first, second, ours, theirs),
        withheld="; ".join(dict.fromkeys(one.withheld for one in (first, second) if one.withheld)),
        aspects=tuple(sorted(aspects, key=lambda one: groups.index(one.group))),
    )


def _name(side: Side, cell: Cell) -> str:
    said = workloads(side.data.cells)[cell.point_id]
    return f"{side.data.campaign_id}: {name_of(cell, said)}"


def _results(ours: Cell, here: Numbers | None, theirs: Cell, there: Numbers | None) -> Iterator[Aspect]:
    for what, one, other in (
        ("cell", _state_counts(ours), _state_counts(theirs)),
        ("why no number", _troubles(ours), _troubles(theirs)),
        (ours.case.file.main_quantity.title, _value(here), _value(there)),
    ):
        if one or other:
            yield Aspect(group="result", what=what, first=one, second=other, differs=one != other)


def _state_counts(cell: Cell) -> str:
    return ", ".join(f"{often} {state}" for state, often in sorted(cell.states.items()) if often)


def _troubles(cell: Cell) -> str:
    return "; ".join(f"{one.state}: {one.reason}" for one in cell.troubles)


def _value(numbers: Numbers | None) -> str:
    return words.shown(numbers.quantity).text(numbers.central.value) if numbers else "no number"


def _texts(ours: Mapping[tuple[str, str], str], theirs: Mapping[tuple[str, str], str]) -> Iterator[Aspect]:
    for group, what in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get((group, what), ""), theirs.get((group, what), "")
        if one or other:
            yield Aspect(group=group, what=what, first=one, second=other, differs=one != other)


def _figures(
    ours: Mapping[tuple[str, str], tuple[float, str]],
    theirs: Mapping[tuple[str, str], tuple[float, str]],
    margin: float,
) -> Iterator[Aspect]:
    for group, what in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get((group, what)), theirs.get((group, what))
        ratio = other[0] / one[0] if one and other and one[0] > 0 and other[0] > 0 else None
        yield Aspect(
            group=group,
            what=what,
            first=one[1] if one else "",
            second=other[1] if other else "",
            differs=_apart(one[0] if one else None, other[0] if other else None, margin),
            ratio=ratio,
        )


def _apart(one: float | None, other: float | None, margin: float) -> bool:
    """Tell whether two figures differ; what one side does not know differs from what the other does."""
    if one is None or other is None:
        return True
    if max(one, other) < NEGLIGIBLE:
        return False
    return min(one, other) <= 0 or abs(log(other) - log(one)) > margin
