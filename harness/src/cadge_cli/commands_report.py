# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report` and `cadge export`."""

from __future__ import annotations

import io
from pathlib import Path

import click
from pydantic import JsonValue

from cadge_cli.options import json_option, out_option, output_of, results_option
from cadge_harness.errors import EXIT_OK, NothingSelectedError, UsageError
from cadge_harness.paths import find_checkout
from cadge_results import Store, write_output

EXAMPLES = "\b\nExamples:\n"


@click.command(epilog=EXAMPLES + "  cadge report\n  cadge report 20261121T013042Z-1f3a9c2e -o report.html")
@click.argument("campaign", default="last")
@out_option()
@results_option
@json_option
@click.pass_context
def report(ctx: click.Context, campaign: str, out: Path | None, results: Path | None, as_json: bool) -> int:
    """Make the report of a campaign: one HTML file that works offline."""
    from cadge_analysis.report import build  # numbers and pictures take time to import

    output = output_of(ctx, as_json, out)
    found = Store(results or find_checkout().campaigns).open(campaign)
    if not found.launch_ids():
        raise NothingSelectedError(f"campaign {found.campaign_id} has no launches yet")
    path = out or found.layout.report
    written = build(found.path, path)
    data: dict[str, JsonValue] = {"campaign_id": found.campaign_id, "report": str(path), "bytes": written.size_bytes}
    return output.finish(EXIT_OK, data, output.wrote(written, path, "one file, opens offline"))


@click.command(
    epilog=EXAMPLES + "  cadge export --format csv > results.csv\n  cadge export last --format json -o r.json"
)
@click.argument("campaign", default="last")
# cadge: another loggp, the model
@click.option("--format", "kind", type=click.Choice(["csv", "json", "loggp"]), default="csv", show_default=True)
@out_option(text="File instead of stdout.")
@results_option
@json_option
@click.pass_context
def export(ctx: click.Context, campaign: str, kind: str, out: Path | None, results: Path | None, as_json: bool) -> int:
    """Write a campaign's figures, or the LogGP parameters fitted to them (JSON): to stdout, or with -o to a file."""
    from cadge_analysis.export import write

    output = output_of(ctx, as_json, out)
    found = Store(results or find_checkout().campaigns).open(campaign)
    if output.as_json and out is None:
        raise UsageError("--json answers on stdout, so the export needs a file: add -o FILE")
    stream = io.StringIO(newline="")
    write(found, kind, stream)
    if out is None:
        return output.finish(EXIT_OK, None, [stream.getvalue().removesuffix("\n")])
    written = write_output(out, stream.getvalue().encode())
    lines = output.wrote(written, out)
    return output.finish(EXIT_OK, {"campaign_id": found.campaign_id, "file": str(out)}, lines)
