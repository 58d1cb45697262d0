# SPDX-License-Identifier: BSD-3-Clause
"""`cadge patterns`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click
from pydantic import JsonValue

from cadge_cli.options import json_option, output_of
from cadge_cli.output import table
from cadge_harness.errors import UsageError
from cadge_harness.paths import find_checkout
from cadge_harness.plan.patterns import check_driver, read_patterns
from cadge_harness.yamlfile import nearest
from cadge_results import PatternFile
from cadge_results.pattern import Parameter, Role, plain
from cadge_results.units import format_bytes

EXAMPLES = "\b\nExamples:\n"
WIDTH = 100


@click.command(
    epilog=EXAMPLES + "  cadge patterns\n  cadge patterns NAME\n  cadge patterns --json | jq '.data.patterns'"
)
@click.argument("name", required=False)
@click.option("--check", is_flag=True, help="Print nothing; exit code 3 where the built driver has others.")
@json_option
@click.pass_context
def patterns(ctx: click.Context, name: str | None, check: bool, as_json: bool) -> int:
    """List the patterns, or show what one of them measures: clock, side, synchronisation, reduction."""
    output = output_of(ctx, as_json)
    checkout = find_checkout()
    workloads = read_patterns(checkout)
    if check:
        check_driver(checkout)
        return output.finish(0, {}, [])
    if name is not None:
        if name not in workloads.patterns:
            raise UsageError(f"there is no pattern {name}{nearest(name, workloads.patterns)}")
        file = workloads.patterns[name]
        return output.finish(0, {"name": name, "pattern": file.to_object()}, list(page(name, file)))
    rows = [("pattern", "title", "roles", "parameters")]
    rows += [
        (key, file.title, ", ".join(_role(role, one) for role, one in file.roles.items()), ", ".join(file.parameters))
        for key, file in ((key, workloads.patterns[key]) for key in workloads.ordered)
    ]
    data: dict[str, JsonValue] = {key: workloads.patterns[key].to_object() for key in workloads.ordered}
    lines = [*table(rows), "What one of them measures:  cadge patterns NAME"]
    return output.finish(0, {"patterns": data}, lines)


def _role(name: str, role: Role) -> str:
    return name if role.count == 1 else f"{name} \u00d7 {role.count}"


def page(name: str, file: PatternFile) -> Iterator[str]:
    """Yield the page of a pattern."""
    yield f"{name}: {file.title}"
    yield from textwrap.wrap(file.summary, WIDTH)
    for head, text in (
        ("Clock", file.measures.clock),
        ("Side", file.measures.side),
        ("Synchronised", file.measures.synchronised),
        ("Reduced", file.measures.reduced),
    ):
        yield ""
        yield head
        yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""
    given = [(key, one.title, _values(one), _default(one)) for key, one in file.parameters.items()]
    yield from table([("parameter", "", "values", "unless given"), *given])
    yield ""
    parts = [
        (key, str(one.count), ", ".join(one.peers) or "-", str(one.hosts), "measures" if one.acts else "serves")
        for key, one in file.roles.items()
    ]
    yield from table([("role", "endpoints", "channels to", "hosts", ""), *parts])
    yield ""
    found = [(key, one.title, one.unit, str(one.better), str(one.kind)) for key, one in file.quantities.items()]
    yield from table([("quantity", "", "unit", "better", "kind"), *found])
    yield ""
    rule = file.floor
    yield f"Floor: {rule.none}" if rule.none else f"Floor: the fastest {rule.form} of as many bytes or more"
    yield from (f"  not where {alike.otherwise}" for alike in rule.alike.values())


def _values(one: Parameter) -> str:
    if one.min is None or one.max is None:
        return ", ".join(one.values)
    if one.unit == "bytes":
        return f"{format_bytes(one.min)} to {format_bytes(one.max)}"
    return f"{one.min} to {one.max}" + ("" if one.unit == "count" else f" {one.unit}")


def _default(one: Parameter) -> str:
    if one.follows is not None:
        return f"as {one.follows}"
    return "-" if one.default is None else plain(one, one.default)
