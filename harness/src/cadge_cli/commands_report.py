# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report` and `cadge export`."""

from __future__ import annotations

import io
from pathlib import Path

import click
from pydantic import JsonValue

from cadge_cli.fit_choice import FitChoice, fit_options
from cadge_cli.options import (
    count_of_endpoints,
    json_option,
    name_of,
    out_option,
    output_of,
    refuse_options,
    results_option,
)
from cadge_harness.errors import EXIT_OK, NothingSelectedError, UsageError
from cadge_harness.paths import find_checkout
from cadge_results import Campaign, Store, write_output

EXAMPLES = "\b\nExamples:\n"
# cadge: another loggp, the model
FORMATS = ("csv", "json", "loggp", "simgrid")
OF_A_PLATFORM = ("layer", "place", "wait_mode", "choices", "size", "topology", "endpoints")


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
    epilog=EXAMPLES
    + "  cadge export --format csv > results.csv\n  cadge export last --format json -o r.json\n"
    + "  cadge export --format simgrid --layer native-ucx --topology fat-tree --endpoints 1024 -o platform.xml"
)
@click.argument("campaign", default="last")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True)
@out_option(text="File instead of stdout.")
@fit_options
@click.option("--topology", default="star", show_default=True, metavar="NAME", help="Or fat-tree, or dragonfly.")
@click.option("--endpoints", default="16", show_default=True, metavar="NUMBER", help="Room for so many, or a few more.")
@results_option
@json_option
@click.pass_context
def export(
    ctx: click.Context,
    campaign: str,
    kind: str,
    out: Path | None,
    fit: FitChoice,
    topology: str,
    endpoints: str,
    results: Path | None,
    as_json: bool,
) -> int:
    """Write a campaign's figures, or the LogGP parameters fitted to them (JSON): to stdout, or with -o to a file.

    As `simgrid` a platform file for simulations of your own: a network whose links have the rate, and half of the
    latency, that LogGP found for messages of --bytes. The other options are for this format alone.
    """
    output = output_of(ctx, as_json, out)
    if kind != "simgrid":
        refuse_options(
            ctx, ("layer", "place", "wait_mode", "choices", "size", "topology", "endpoints"), "is for --format simgrid"
        )
    found = Store(results or find_checkout().campaigns).open(campaign)
    if output.as_json and out is None:
        raise UsageError("--json answers on stdout, so the export needs a file: add -o FILE")
    text = _platform(found, fit, topology, endpoints) if kind == "simgrid" else _figures(found, kind)
    if out is None:
        return output.finish(EXIT_OK, None, [text.removesuffix("\n")])
    written = write_output(out, text.encode())
    lines = output.wrote(written, out)
    return output.finish(EXIT_OK, {"campaign_id": found.campaign_id, "file": str(out)}, lines)


def _figures(campaign: Campaign, kind: str) -> str:
    from cadge_analysis.export import write

    stream = io.StringIO(newline="")
    write(campaign, kind, stream)
    return stream.getvalue()


def _platform(campaign: Campaign, fit: FitChoice, topology: str, endpoints: str) -> str:
    from cadge_analysis.models.scale import ENDPOINTS_MOST
    from cadge_analysis.models.topology import Kind, Topology, platform

    chosen = fit.of_campaign(campaign)
    message = fit.message(chosen)
    kind = Kind(name_of(topology, tuple(Kind), "topology"))
    network = Topology(kind, count_of_endpoints(endpoints, ENDPOINTS_MOST))
    return platform(network, message, f"{chosen.about}, messages of {message.size} B")
