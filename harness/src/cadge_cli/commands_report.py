# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report` and `cadge export`."""

from __future__ import annotations

import io
from pathlib import Path

import click
from click.core import ParameterSource
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
from cadge_cli.output import Output
from cadge_cli.report_verify import verify
from cadge_cli.sides import Campaigns, margin_of
from cadge_harness.errors import EXIT_OK, UsageError
from cadge_harness.paths import find_checkout
from cadge_results import Campaign, Store, write_output

EXAMPLES = "\b\nExamples:\n"
EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0  made; with --verify: every number was recomputed, and agrees\n"
    "  1  with --verify: some differ, or could not be recomputed\n"
    "  2  an option is wrong; FILE is no report, or of another campaign\n"
    "  3  the report cannot be written\n"
    "  5  there is no such campaign\n"
    "  7  the campaign's raw data is damaged"
)
# cadge: another loggp, the model
FORMATS = ("csv", "json", "loggp", "simgrid")
OF_A_PLATFORM = ("layer", "place", "wait_mode", "choices", "size", "topology", "endpoints")


@click.command(
    epilog=EXAMPLES
    + "  cadge report\n  cadge report 20261121T013042Z-1f3a9c2e -o report.html\n"
    + "  cadge report last --against 20261121T013042Z-1f3a9c2e\n"
    + "  cadge report last --baseline native-ucx\n"
    + "  cadge report --from-html report.html --baseline am-ucx -o again.html\n"
    + "  cadge report --verify report.html\n"
    + "  cadge report --verify report.html bundle/"
    + EXIT_CODES
)
@click.argument("campaign", default="last")
@click.option(
    "--against",
    metavar="CAMPAIGN",
    help="An earlier campaign: say first what became slower or faster since, and why not.",
)
@click.option(
    "--margin", default="5%", show_default=True, metavar="SHARE", help="With --against: within this it is the same."
)
@click.option(
    "--baseline", metavar="LAYER", help="Judge layers against this one, not against the one that the sweep declares."
)
@click.option(
    "--verify",
    "verified",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Make none: recompute every number of this report from its campaign's raw data, which lies near it or is "
    "named by CAMPAIGN (a campaign, or a folder that holds one), and say what differs.",
)
@click.option(
    "--from-html",
    "reopened",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Open this report again, without its campaign: judge the numbers that it carries, with --baseline against "
    "another layer, into the file of -o. What needs raw data is left out, and the page says so.",
)
@out_option()
@results_option
@json_option
@click.pass_context
def report(
    ctx: click.Context,
    campaign: str,
    against: str | None,
    margin: str,
    baseline: str | None,
    verified: Path | None,
    reopened: Path | None,
    out: Path | None,
    results: Path | None,
    as_json: bool,
) -> int:
    """Make the report of a campaign: one HTML file that works offline.

    What is wrong stands on its first screen, and is said here as well: a host that is slow beside the others, a layer
    whose payload went another way than asked, and, with --against, what became slower since an earlier campaign.
    """
    from cadge_analysis import report as reports  # numbers and pictures take time to import
    from cadge_analysis.stats.load import read

    output = output_of(ctx, as_json, out)
    if verified is not None:
        refuse_options(
            ctx, ("against", "margin", "baseline", "out", "reopened"), "is not for --verify: the report says what it is"
        )
        given = ctx.get_parameter_source("campaign") is not ParameterSource.DEFAULT
        return output.finish(*verify(verified, campaign if given else None, results))
    if reopened is not None:
        refuse_options(ctx, ("campaign", "against", "margin", "results"), "is not for --from-html")
        return _open_again(reopened, baseline, out, output)
    if against is None:
        refuse_options(ctx, ("margin",), "is for --against")
    share = margin_of(margin)
    found = Store(results or find_checkout().campaigns).open(campaign)
    path = out or found.layout.report
    if against is None:
        page = reports.page_of(read(found), baseline=baseline)
    else:
        from cadge_analysis.versus.against import against as set_beside
        from cadge_analysis.versus.sides import Side

        both = Campaigns(results)
        earlier, data_of = both.read(against), both.read(str(found.path))
        sides = Side(earlier.campaign_id, earlier), Side(data_of.campaign_id, data_of)
        page = reports.page_of(data_of, beside=set_beside(*sides, share), baseline=baseline)
    written = reports.write(page, path)
    data: dict[str, JsonValue] = {
        "campaign_id": found.campaign_id,
        "report": str(path),
        "bytes": written.size_bytes,
        "findings": [{"kind": one.kind, "grave": one.grave, "text": one.text} for one in page.told],
    }
    lines = output.wrote(written, path, "one file, opens offline")
    if not written.streamed:
        lines += [f"found: {one.text}" for one in page.told]
    return output.finish(EXIT_OK, data, lines)


def _open_again(file: Path, baseline: str | None, out: Path | None, output: Output) -> int:
    from cadge_analysis.report import opened_again

    if out is None:
        raise UsageError(f"--from-html needs another file to write: add -o FILE, which is not {file.name} itself")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    if out.exists() and out.samefile(file):
        raise UsageError(f"-o {out} is the report itself, which has more in it: name another file")
    written = write_output(out, opened_again(text, file.name, baseline).encode())
    lines = output.wrote(written, out, "made without raw data, which the page says")
    return output.finish(EXIT_OK, {"from": str(file), "report": str(out), "bytes": written.size_bytes}, lines)


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
