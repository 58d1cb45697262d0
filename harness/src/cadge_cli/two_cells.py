# SPDX-License-Identifier: BSD-3-Clause
"""`cadge compare --point`: two points side by side, what differs first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cadge_cli.sides import two_cells
from cadge_cli.words import say

if TYPE_CHECKING:
    from cadge_analysis.blocks.model import Block
    from cadge_analysis.versus.why import Aspect, Reasons


def beside(
    results: Path | None, first: str, second: str, cell: str, margin: float
) -> tuple[dict[str, JsonValue], Iterator[Block]]:
    """Return both cells for programs, and for people. `cell` is what both are called."""
    from cadge_analysis.versus.why import why

    (here, ours), (there, theirs) = two_cells(results, first, second, cell)
    found = why(here, ours, there, theirs, margin)
    return _data(found), _blocks(found)


def _blocks(found: Reasons) -> Iterator[Block]:
    from cadge_analysis.blocks.make import listed, plain, plain_table

    yield listed((f"first: {found.first}", f"second: {found.second}"))
    yield from map(plain, _summary(found))
    if not found.differing:
        yield plain(say("cells.alike_known"))
    rows = ((one.group, one.what, one.first or "-", f"{one.second or '-'}{_times(one)}") for one in found.differing)
    yield plain_table("what differs", ("of", "what", "first", "second"), rows)
    alike = ((one.group, one.what, one.first or one.second) for one in found.alike)
    yield plain_table(say("cells.alike"), ("of", "what", "both"), alike)


def _times(one: Aspect) -> str:
    return f" ({one.ratio:.3g} times)" if one.ratio else ""


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


def _data(found: Reasons) -> dict[str, JsonValue]:
    shift = found.shift
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
        "aspects": [asdict(one) for one in (*found.differing, *found.alike)],
    }
