# SPDX-License-Identifier: BSD-3-Clause
"""`cadge compare --cell`: two cells side by side, what differs first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cadge_cli.output import escaped
from cadge_cli.sides import two_cells
from cadge_cli.words import say

if TYPE_CHECKING:
    from cadge_analysis.versus.why import Aspect, Reasons

WIDTH_MOST = 44
"""Of a column; what is longer stands in lines of its own."""


def beside(
    results: Path | None, first: str, second: str, cell: str, margin: float, kind: str
) -> tuple[dict[str, JsonValue], Iterator[str]]:
    """Return both cells for programs, and as text or Markdown. `cell` is what both are called."""
    from cadge_analysis.versus.why import why

    (here, ours), (there, theirs) = two_cells(results, first, second, cell)
    found = why(here, ours, there, theirs, margin)
    return _data(found), _markdown(found) if kind == "markdown" else _text(found)


def _text(found: Reasons) -> Iterator[str]:
    yield f"first   {found.first}"
    yield f"second  {found.second}"
    yield from _summary(found)
    for title, aspects in _parts(found):
        yield ""
        yield title
        yield from _sections(aspects)


def _parts(found: Reasons) -> list[tuple[str, Sequence[Aspect]]]:
    differing = "what differs" if found.differing else say("cells.alike_known")
    return [(differing, found.differing), *([(say("cells.alike"), found.alike)] if found.alike else [])]


def _summary(found: Reasons) -> Iterator[str]:
    if found.forbidden:
        yield say("cells.forbidden", forbidden=found.forbidden)
    shift = found.shift
    if shift is None:
        yield say("cells.no_ratio")
        return
    interval = ""
    if shift.low is not None and shift.high is not None:
        interval = f" [{exp(shift.low):.3f}, {exp(shift.high):.3f}], which covers {100 * shift.coverage:.0f} %"
    launches = " and ".join(str(n) for n in dict.fromkeys(shift.launches))
    how = say("cells.paired", launches=launches) if found.paired else f"not paired, {launches} launches"
    yield f"second / first: {exp(shift.log_ratio):.3f}{interval}; {how}"
    if found.withheld:
        yield say("cells.withheld", withheld=found.withheld)
    else:
        yield say("cells.this_cell_alone")


def _sections(aspects: Sequence[Aspect]) -> Iterator[str]:
    width = max((len(one.what) for one in aspects), default=0)
    column = max((len(one.first) for one in aspects if not _long(one)), default=0)
    group = ""
    for one in aspects:
        if one.group != group:
            group = one.group
            yield f"  {group}"
        if not one.differs:
            yield f"    {one.what.ljust(width)}  {one.first or one.second}"
        elif _long(one):
            yield f"    {one.what}"
            yield f"      first   {one.first or '-'}"
            yield f"      second  {one.second or '-'}"
        else:
            times = f"  ({one.ratio:.3g} times)" if one.ratio else ""
            yield f"    {one.what.ljust(width)}  {(one.first or '-').ljust(column)}  {one.second or '-'}{times}"


def _long(one: Aspect) -> bool:
    return one.differs and max(len(one.first), len(one.second)) > WIDTH_MOST


def _markdown(found: Reasons) -> Iterator[str]:
    yield f"first: {escaped(found.first)}  "
    yield f"second: {escaped(found.second)}"
    yield ""
    for line in _summary(found):
        yield escaped(line)
        yield ""
    for title, aspects in _parts(found):
        yield f"**{title}**"
        yield ""
        if not aspects:
            continue
        yield "| of | what | first | second |"
        yield "|---|---|---|---|"
        for one in aspects:
            cells = (one.group, one.what, one.first or "-", one.second or "-")
            yield f"| {' | '.join(map(escaped, cells))} |"
        yield ""


def _data(found: Reasons) -> dict[str, JsonValue]:
    shift = found.shift
    aspects: Sequence[JsonValue] = [
        {
            "group": one.group,
            "what": one.what,
            "first": one.first,
            "second": one.second,
            "differs": one.differs,
            "ratio": one.ratio,
        }
        for one in (*found.differing, *found.alike)
    ]
    return {
        "first": found.first,
        "second": found.second,
        "paired": found.paired,
        "forbidden": found.forbidden,
        "withheld": found.withheld,
        "ratio": None if shift is None else exp(shift.log_ratio),
        "ratio_low": None if shift is None or shift.low is None else exp(shift.low),
        "ratio_high": None if shift is None or shift.high is None else exp(shift.high),
        "coverage": None if shift is None else shift.coverage,
        "aspects": [*aspects],
    }
