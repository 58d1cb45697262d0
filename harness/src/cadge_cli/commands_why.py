# SPDX-License-Identifier: BSD-3-Clause
"""`cadge why`: two cells side by side, what differs first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.options import json_option, output_of, results_option
from cadge_cli.sides import margin_of, two_cells
from cadge_harness.errors import EXIT_OK

if TYPE_CHECKING:
    from cadge_analysis.versus.why import Aspect, Reasons

WIDTH_MOST = 44
"""Of a column; what is longer stands in lines of its own."""


@click.command(
    epilog="\b\nExamples:\n"
    '  cadge why last:sockets-tcp last:native-ucx "within, poll, rpc, 8 B"\n'
    '  cadge why 20261121T013042Z-1f3a9c2e last "native-ucx, within, rpc, 8 B"\n'
    '  cadge why "last: am-ucx, within, rpc, 8B" "last: am-ucx, within, rpc, 4KiB"'
    "\n\n\b\nExit codes:\n"
    "  0  both cells are shown, whether they differ or not\n"
    "  2  a name that several cells have, or a wrong option\n"
    "  5  no such campaign or cell"
)
@click.argument("first", metavar="CAMPAIGN[:CELL]")
@click.argument("second", metavar="CAMPAIGN[:CELL]")
@click.argument("cell", default="", metavar="[CELL]")
@click.option(
    "--margin", default="5%", show_default=True, metavar="SHARE", help="Figures within this are alike, e.g. 2.5%."
)
@click.option("--format", "kind", type=click.Choice(["text", "markdown"]), default="text", show_default=True)
@results_option
@json_option
@click.pass_context
def why(
    ctx: click.Context,
    first: str,
    second: str,
    cell: str,
    margin: str,
    kind: str,
    results: Path | None,
    as_json: bool,
) -> int:
    """Show two cells side by side: path, protocol, copies, settings, versions, costs, machine; what differs first.

    CELL is called as `cadge compare` prints it: layer, place, wait mode, pattern, workload, with commas between them;
    in any order, and without what is not needed to tell it from others. A parameter may be given as NAME=VALUE. What
    stands behind both campaigns is true of both cells. Nothing here says which difference is the reason.
    """
    from cadge_analysis.versus.why import why as reasons

    output = output_of(ctx, as_json)
    share = margin_of(margin)
    (here, ours), (there, theirs) = two_cells(results, first, second, cell)
    found = reasons(here, ours, there, theirs, share)
    lines = list(_markdown(found) if kind == "markdown" else _text(found))
    return output.finish(EXIT_OK, _data(found), lines)


def _text(found: Reasons) -> Iterator[str]:
    yield f"first   {found.first}"
    yield f"second  {found.second}"
    yield from _summary(found)
    for title, aspects in _parts(found):
        yield ""
        yield title
        yield from _sections(aspects)


def _parts(found: Reasons) -> list[tuple[str, Sequence[Aspect]]]:
    differing = "what differs" if found.differing else "nothing that is known differs"
    return [(differing, found.differing), *([("alike on both sides", found.alike)] if found.alike else [])]


def _summary(found: Reasons) -> Iterator[str]:
    if found.forbidden:
        yield f"not to be compared as the same thing: {found.forbidden}"
    shift = found.shift
    if shift is None:
        yield "no ratio: a side has no number, or no round has both"
        return
    interval = ""
    if shift.low is not None and shift.high is not None:
        interval = f" [{exp(shift.low):.3f}, {exp(shift.high):.3f}], which covers {100 * shift.coverage:.0f} %"
    launches = " and ".join(str(n) for n in dict.fromkeys(shift.launches))
    how = f"paired by round, {launches} rounds" if found.paired else f"not paired, {launches} launches"
    yield f"second / first: {exp(shift.log_ratio):.3f}{interval}; {how}"
    if found.withheld:
        yield f"nothing may be concluded from that: {found.withheld}"
    else:
        yield "that is of this cell alone; cadge compare judges it among all"


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
    yield f"first: {_escaped(found.first)}  "
    yield f"second: {_escaped(found.second)}"
    yield ""
    for line in _summary(found):
        yield _escaped(line)
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
            yield f"| {' | '.join(map(_escaped, cells))} |"
        yield ""


def _escaped(text: str) -> str:
    return text.replace("|", "&#124;").replace("<", "&lt;")


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
