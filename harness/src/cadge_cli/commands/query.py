# SPDX-License-Identifier: BSD-3-Clause
"""`cadge query`: a question in SQL over the tables of many campaigns."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import JsonValue

from cadge_cli.options import answers, out_option, results_option
from cadge_cli.output import Output, table
from cadge_cli.words import say
from cadge_harness.errors import EXIT_DAMAGED, EXIT_OK, EXIT_USAGE, UsageError, printable
from cadge_harness.paths import find_checkout
from cadge_results import Campaign, Store, write_output
from cadge_results.command import command
from cadge_results.errors import NotFoundError, ResultsError

if TYPE_CHECKING:
    from cadge_analysis.queries import QueryAnswer

FORMATS = ("text", "csv", "json", "jsonl")
EXAMPLES = (
    "\b\nExamples:\n"
    "  cadge query --tables\n"
    '  cadge query "SELECT place, arg_min(layer, latency_p50_ns) AS fastest\n'
    "      FROM cells WHERE request_bytes = 8 AND kind = 'layer' GROUP BY ALL\"\n"
    '  cadge query "SELECT status, count(*) FROM attempts GROUP BY ALL" last'
    "\n\n\b\nExit codes:\n"
    "  0  answered, even if no row was found\n"
    "  2  the SQL is wrong, is no query, or takes longer than --time-limit\n"
    "  3  DuckDB is not installed; or the output cannot be written\n"
    "  5  there is no such campaign, or none at all\n"
    "  7  a campaign is damaged; if you named none, the answer is from the others"
)


@click.command(epilog=EXAMPLES)
@click.argument("sql", required=False)
@click.argument("campaigns", nargs=-1, metavar="[CAMPAIGN]...")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--tables", is_flag=True, help="Show tables and columns, and what they hold.")
@click.option(
    "--time-limit",
    "limit_s",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long the database may work on it.",
)
@out_option(text="File instead of stdout.")
@results_option
@answers
def query(
    sql: str | None,
    campaigns: tuple[str, ...],
    kind: str,
    tables: bool,
    limit_s: float,
    out: Path | None,
    results: Path | None,
    output: Output,
) -> int:
    """Ask a question in SQL over the tables of campaigns: cells, attempts, samples, launches, hosts, campaigns.

    A question reads every campaign of the store, or those that you name. It changes nothing and cannot read files. It
    needs the extra `queries` (DuckDB). `analysis/QUERIES.md` has columns and examples.
    """
    if output.as_json and out is None and kind != "text":
        raise UsageError(say("general.json_needs_file", what="--format"))
    if (sql is None) != tables:
        raise UsageError(say("query.question_or_tables"))
    found = _campaigns(Store(results or find_checkout().campaigns), campaigns, may_be_none=tables)
    if sql is None:
        return _tables(output, found)
    from cadge_analysis.queries import ask

    damaged: list[Campaign] = []

    def leave_out(campaign: Campaign, error: ResultsError) -> None:
        damaged.append(campaign)
        output.problem(say("query.without", name=campaign.path.name, error=error))

    def stuck(error: Exception) -> None:
        """End the process: nothing else ends a database that heeds no interruption."""
        output.problem(str(error))
        output.finish(EXIT_USAGE, None)
        os._exit(EXIT_USAGE)

    answer = ask(sql, found, None if campaigns else leave_out, limit_s=limit_s, stuck=stuck)
    if output.as_json and out is None:
        rows: list[JsonValue] = [[_plain(value) for value in row] for row in answer.rows]
        data: JsonValue = {"columns": list(answer.columns), "rows": rows}
        return output.finish(EXIT_DAMAGED if damaged else EXIT_OK, data)
    code = EXIT_DAMAGED if damaged else EXIT_OK
    if out is None:
        return output.stream(_written(answer, kind), code)
    lines = output.wrote(write_output(out, "".join(_written(answer, kind)).encode()), out)
    return output.finish(code, {"file": str(out)}, lines)


def _campaigns(store: Store, named: tuple[str, ...], *, may_be_none: bool) -> list[Campaign]:
    found = [store.open(one) for one in dict.fromkeys(named)] if named else list(store.campaigns())
    if not found and not may_be_none:
        raise NotFoundError(say("query.no_campaign", root=store.root, command=command("run")))
    return list({one.path.resolve(): one for one in found}.values())


def _tables(output: Output, campaigns: list[Campaign]) -> int:
    """Show every table with its columns: those of any campaign, and those that the newest one adds by its patterns."""
    from cadge_analysis.cells.table import together
    from cadge_analysis.tables import TABLES

    newest = campaigns[-1:]
    every = {one.name: together([*(one.columns(c) for c in newest), one.fixed]) for one in TABLES.values()}
    data: JsonValue = {
        name: [{"name": one.name, "kind": one.kind, "about": one.about} for one in columns]
        for name, columns in every.items()
    }
    lines: list[str] = []
    for name, columns in every.items():
        lines += [f"{name}: {TABLES[name].about}", *_indented([(one.name, one.kind, one.about) for one in columns]), ""]
    return output.finish(EXIT_OK, data, lines[:-1])


def _indented(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    yield from (f"  {line}" for line in table(rows))


def _written(answer: QueryAnswer, kind: str) -> Iterator[str]:
    """Yield an answer's text. Raises UsageError where JSON would lose one of two columns of one name."""
    from cadge_analysis.flat import lines

    if kind == "text":
        rows = [[_shown(value) for value in row] for row in answer.rows]
        yield from (f"{line}\n" for line in table([[printable(name) for name in answer.columns], *rows]))
        return
    if twice := next((one for one in answer.columns if answer.columns.count(one) > 1), None):
        raise UsageError(say("query.twice", twice=twice))
    made = ({name: _plain(value) for name, value in zip(answer.columns, row, strict=True)} for row in answer.rows)
    if kind == "json":
        yield json.dumps(list(made), ensure_ascii=True, indent=1) + "\n"
    elif kind == "jsonl":
        yield from lines("jsonl", answer.columns, made)
    else:
        flat = ({name: _joined(value) for name, value in row.items()} for row in made)
        yield from lines("csv", answer.columns, flat)


def _shown(value: Any) -> str:  # noqa: ANN401 - anything that a question may find
    """Return a value for people: fractions with six significant digits, and nothing that a terminal obeys."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else printable(str(_joined(_plain(value))))


def _joined(value: JsonValue) -> JsonValue:
    return json.dumps(value, ensure_ascii=True) if isinstance(value, list | dict) else value


def _plain(value: Any) -> JsonValue:  # noqa: ANN401 - anything that a question may find
    """Return a value as JSON has it; a number that is none, or is infinite, is null."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes():
            return value.hex()
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case _:
            return str(value)
