# SPDX-License-Identifier: BSD-3-Clause
"""`cadge patterns`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
from pydantic import JsonValue

from cadge_cli.options import EXAMPLES, answers, name_of, testbed_options
from cadge_cli.output import Output, table, wrapped
from cadge_cli.words import say
from cadge_harness.paths import Checkout, find_checkout
from cadge_harness.plan.here import CellCount, LayerSupport, count_cells, where_it_runs
from cadge_harness.plan.patterns import check_driver, read_patterns
from cadge_harness.words import count_of
from cadge_results import PatternFile, Reason, Workloads
from cadge_results.command import command
from cadge_results.plugins.parameter import Parameter, Role, plain
from cadge_results.units import format_bytes

WHY = {
    Reason.PLACE: "layer or pattern does not run at this place",
    Reason.NO_WAIT: "layer cannot sleep while it waits",
    Reason.NO_POLL: "layer cannot poll",
    Reason.NO_CAP: "layer lacks what the pattern needs",
    Reason.NODE_LACKS: "testbed lacks hosts, or processors for threads that poll",
    Reason.BUILD_ABSENT: "layer is not in this build",
    Reason.TRANSPORT: "transport or device is not there",
    Reason.PERMISSION: "kernel forbids it",
}


@click.command(
    epilog=EXAMPLES
    + "  cadge patterns\n  cadge patterns NAME\n  cadge patterns --here\n"
    + "  cadge patterns --json | jq '.data.patterns'"
)
@click.argument("name", required=False)
@click.option("--check", is_flag=True, help="Print nothing; exit with 3 if the built driver has other patterns.")
@click.option("--here", is_flag=True, help="Show where each layer runs them on this testbed, and why not elsewhere.")
@testbed_options
@answers
def patterns(
    name: str | None,
    check: bool,
    here: bool,
    testbed_name: str,
    inventory: Path | None,
    output: Output,
) -> int:
    """List the patterns, or show what one of them measures: clock, side, synchronisation, reduction.

    --here measures nothing. It shows what a sweep would refuse on this testbed.
    """
    checkout = find_checkout()
    workloads = read_patterns(checkout)
    if check:
        check_driver(checkout)
        return output.finish(0, {}, [])
    if name is not None:
        name = name_of(name, workloads.patterns, "pattern", before="cadge patterns ")
    if here:
        names = (name,) if name is not None else workloads.ordered
        cells = _cells(names, checkout, workloads, testbed_name, inventory)
        data_here: dict[str, JsonValue] = {
            "cells": [_cell_data(one) for one in cells],
            "counts": {name: _count_data(count_cells(_of(name, cells))) for name in names},
            "count": _count_data(count_cells(cells)),
        }
        return output.finish(0, data_here, [*_here(names, cells), *_counts(names, cells)])
    if name is not None:
        file = workloads.patterns[name]
        return output.finish(0, {"name": name, "pattern": file.to_object()}, list(page(name, file)))
    data: dict[str, JsonValue] = {key: workloads.patterns[key].to_object() for key in workloads.ordered}
    lines = [*_list(workloads), "", say("patterns.one_of_them", command=command("patterns", "NAME"))]
    return output.finish(0, {"patterns": data}, lines)


def _list(workloads: Workloads) -> Iterator[str]:
    width = max(map(len, workloads.ordered))
    for name in workloads.ordered:
        file = workloads.patterns[name]
        yield from wrapped(f"{file.title}: {file.summary}", f"{name.ljust(width)}  ")


def _cells(
    names: Sequence[str], checkout: Checkout, workloads: Workloads, testbed_name: str, inventory: Path | None
) -> list[LayerSupport]:
    from cadge_harness.plan.catalogue import read_catalogue
    from cadge_harness.plan.describe import describe_layers
    from cadge_harness.plan.site import site_of
    from cadge_harness.testbed import testbeds

    testbed = testbeds.resolve(testbed_name, inventory, start=False)
    catalogue = read_catalogue(checkout)
    catalogue = describe_layers(catalogue, checkout, set(catalogue.names()), testbed.hosts[0].stated_variables)
    site = site_of(testbed)
    return [cell for name in names for cell in where_it_runs(name, catalogue, workloads, site)]


def _cell_data(cell: LayerSupport) -> dict[str, JsonValue]:
    return asdict(cell) | {"why": [*cell.why], "codes": [str(code) for code in cell.why.values()]}


def _count_data(counted: CellCount) -> dict[str, JsonValue]:
    by_reason = {str(code): number for code, number in counted.refused.items()}
    return asdict(counted) | {"refused": counted.cells - counted.run, "by_reason": by_reason}


def _of(name: str, cells: Sequence[LayerSupport]) -> list[LayerSupport]:
    return [cell for cell in cells if cell.pattern == name]


def _here(names: Sequence[str], cells: Sequence[LayerSupport]) -> Iterator[str]:
    """Yield a table a pattern: what runs, and a number for each reason, which stand below."""
    for name in names:
        mine = _of(name, cells)
        columns = list(dict.fromkeys((cell.place, cell.wait) for cell in mine))
        reasons: dict[str, int] = {}
        rows: dict[str, list[str]] = {}
        for cell in mine:
            # so that layers share a reason
            why = [text.replace(cell.layer, "it") for text in cell.why]
            notes = [f"[{reasons.setdefault(text, len(reasons) + 1)}]" for text in why]
            said = "runs" if cell.runs and not notes else ", ".join(cell.runs)
            rows.setdefault(cell.layer, []).append(" ".join([*([said] if said else []), *notes]))
        yield f"{name}: runs in {count_cells(mine).run} of {count_of(len(mine), 'cell')}"
        yield from table(
            [("layer", *(f"{place} {wait}" for place, wait in columns)), *((k, *v) for k, v in rows.items())]
        )
        for text, number in reasons.items():
            yield from wrapped(text, f"[{number}] ", "    ")
        yield ""
    yield say("patterns.small")


def _counts(names: Sequence[str], cells: Sequence[LayerSupport]) -> Iterator[str]:
    """Yield how many layers run each pattern at each place and in each wait mode, and why all others do not."""
    columns = list(dict.fromkeys((cell.place, cell.wait) for cell in cells))
    rows = [("pattern", *(f"{place} {wait}" for place, wait in columns), "runs in", "in part")]
    for name in names:
        mine = _of(name, cells)
        parts = [count_cells(one for one in mine if (one.place, one.wait) == column) for column in columns]
        own = count_cells(mine)
        counted = (str(one.run) if one.cells else "-" for one in parts)
        rows.append((name, *counted, f"{own.run} of {own.cells}", str(own.in_part)))
    every = count_cells(cells)
    layers = count_of(len({cell.layer for cell in cells}), "layer")
    yield ""
    yield say("patterns.counted", layers=layers)
    yield from table(rows)
    yield ""
    yield say("patterns.cells", n=every.cells, run=every.run, in_part=every.in_part)
    for code, number in every.refused.items():
        yield f"{number:6} refused: {WHY.get(code, str(code))}"


def page(name: str, file: PatternFile) -> Iterator[str]:
    """Yield the page of a pattern."""
    yield f"{name}: {file.title}"
    yield from wrapped(file.summary)
    for head, text in (
        ("Clock", file.measures.clock),
        ("Side", file.measures.side),
        ("Synchronised", file.measures.synchronised),
        ("Reduced", file.measures.reduced),
    ):
        yield ""
        yield head
        yield from wrapped(text, "  ")
    yield ""
    given = [(key, one.title, _values(one), _default(one)) for key, one in file.parameters.items()]
    yield from table([("parameter", "", "values", "unless given"), *given])
    if file.replays is not None:
        [(choice, word)] = file.replays.when.items()
        yield ""
        yield from wrapped(
            say("patterns.replays", choice=choice, word=word, decides=" and ".join(file.replays.decides)),
        )
    yield ""
    parts = [
        (key, _endpoints(one), ", ".join(one.peers) or "-", str(one.hosts), _does(one))
        for key, one in file.roles.items()
    ]
    yield from table([("role", "endpoints", "channels to", "hosts", ""), *parts])
    yield ""
    found = [(key, one.title, one.unit, str(one.better), str(one.kind)) for key, one in file.quantities.items()]
    yield from table([("quantity", "", "unit", "better", "kind"), *found])
    yield ""
    rule = file.floor
    yield f"Floor: {rule.none}" if rule.none else say("patterns.floor", form=rule.form)
    yield from (f"  not where {alike.otherwise}" for alike in rule.alike.values())


def _endpoints(role: Role) -> str:
    where = ", ".join(f"{name} {value}" for name, value in role.when.items())
    return f"{role.count}, with {where}" if where else str(role.count)


def _does(role: Role) -> str:
    if isinstance(role.acts, dict):
        return say("patterns.measures_where", acts=(f"{name} is {value}" for name, value in role.acts.items()))
    return "measures" if role.acts else "serves"


def _values(one: Parameter) -> str:
    if one.min is None or one.max is None:
        return ", ".join(one.values)
    if one.unit == "trace":
        return say("patterns.of_trace")
    if one.unit == "bytes":
        return f"{format_bytes(one.min)} to {format_bytes(one.max)}"
    return f"{one.min} to {one.max}" + ("" if one.unit == "count" else f" {one.unit}")


def _default(one: Parameter) -> str:
    if one.follows is not None:
        return f"as {one.follows}"
    return "-" if one.default is None else plain(one, one.default)
