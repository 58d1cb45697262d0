# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report` and `cadge export`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cadge_harness.analysis import analysis
from cadge_harness.errors import EXIT_OK, NothingSelectedError, UsageError
from cadge_harness.options import json_option, output_of, results_option
from cadge_harness.paths import find_checkout
from cadge_results import Store

EXAMPLES = "\b\nExamples:\n"


@click.command(epilog=EXAMPLES + "  cadge report\n  cadge report 20261121T013042Z-1f3a9c2e -o report.html")
@click.argument("campaign", default="last")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path, dir_okay=False), help="File to write.")
@results_option
@json_option
@click.pass_context
def report(ctx: click.Context, campaign: str, out: Path | None, results: Path | None, as_json: bool) -> int:
    """Make the report of a campaign: one HTML file that works offline."""
    output = output_of(ctx, as_json)
    found = Store(results or find_checkout().campaigns).open(campaign)
    if not found.launch_ids():
        raise NothingSelectedError(f"campaign {found.campaign_id} has no launches yet")
    path = out or found.layout.report
    if not path.parent.is_dir():
        raise UsageError(f"folder {path.parent} is not there")
    analysis("report", "build")(found.path, path)
    size = path.stat().st_size
    lines = [f"{path}  {size / 1e6:.1f} MB, one file, opens offline"]
    return output.finish(EXIT_OK, {"campaign_id": found.campaign_id, "report": str(path), "bytes": size}, lines)


@click.command(
    epilog=EXAMPLES + "  cadge export --format csv > results.csv\n  cadge export last --format json -o r.json"
)
@click.argument("campaign", default="last")
@click.option("--format", "kind", type=click.Choice(["csv", "json"]), default="csv", show_default=True)
@click.option("-o", "--output", "out", type=click.Path(path_type=Path, dir_okay=False), help="File instead of stdout.")
@results_option
@json_option
@click.pass_context
def export(ctx: click.Context, campaign: str, kind: str, out: Path | None, results: Path | None, as_json: bool) -> int:
    """Write a campaign's figures as CSV or JSON: to stdout, or with -o to a file."""
    output = output_of(ctx, as_json)
    found = Store(results or find_checkout().campaigns).open(campaign)
    if output.as_json and out is None:
        raise UsageError("--json answers on stdout, so the export needs a file: add -o FILE")
    write = analysis("export", "write")
    if out is None:
        write(found, kind, sys.stdout)
        return EXIT_OK
    try:
        with out.open("w", encoding="utf-8", newline="") as stream:
            write(found, kind, stream)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}") from error
    return output.finish(EXIT_OK, {"campaign_id": found.campaign_id, "file": str(out)}, [str(out)])
