# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report` and `cadge export`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from pydantic import JsonValue

from cadge_cli.closing import closing_of
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
from cadge_cli.output import Output, megabytes
from cadge_cli.report_verify import verify
from cadge_cli.sides import Campaigns, margin_of
from cadge_harness.errors import EXIT_OK, UsageError
from cadge_harness.paths import find_checkout
from cadge_results import Campaign, Store, write_output
from cadge_results.layout import check_no_link

if TYPE_CHECKING:
    from cadge_analysis.placing import Placed

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
EDITIONS = ("html", "markdown", "text")
FORMATS = ("csv", "json", "jsonl", "parquet", "loggp", "simgrid")
FLAT = ("csv", "jsonl", "parquet")
TABLES = ("cells", "attempts", "samples", "launches", "hosts", "campaigns")
OF_A_PLATFORM = ("layer", "place", "wait_mode", "choices", "size", "topology", "endpoints")


@click.command(
    epilog=EXAMPLES
    + "  cadge report\n  cadge report 20261121T013042Z-1f3a9c2e -o report.html\n"
    + "  cadge report last --against 20261121T013042Z-1f3a9c2e\n"
    + "  cadge report last --baseline native-ucx\n"
    + "  cadge report --format text | less\n"
    + "  cadge report --format markdown -o report.md\n"
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
@click.option(
    "--one-file",
    is_flag=True,
    help="One HTML file, however large: else a report of more than 4 MB has a page a pattern beside it.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(EDITIONS),
    default="html",
    show_default=True,
    help="markdown and text are editions without figures, to stdout or the file of -o; text has 100 columns at most.",
)
@click.option("--closing", is_flag=True, hidden=True)  # with --json, what `cadge run` shows when it ends
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
    one_file: bool,
    kind: str,
    closing: bool,
    out: Path | None,
    results: Path | None,
    as_json: bool,
) -> int:
    """Make the report of a campaign: one HTML file that works offline; of a large campaign, several beside each other.

    What is wrong stands on its first screen, and is said here as well: a host that is slow beside the others, a layer
    whose payload went another way than asked, and, with --against, what became slower since an earlier campaign.
    """
    from cadge_analysis import report as reports  # numbers and pictures take time to import
    from cadge_analysis.placing import Placed
    from cadge_analysis.stats.load import read

    output = output_of(ctx, as_json, out)
    if verified is not None:
        refuse_options(
            ctx,
            ("against", "margin", "baseline", "one_file", "kind", "out", "reopened"),
            "is not for --verify: the report says what it is",
        )
        given = ctx.get_parameter_source("campaign") is not ParameterSource.DEFAULT
        return output.finish(*verify(verified, campaign if given else None, results))
    if reopened is not None:
        refuse_options(ctx, ("campaign", "against", "margin", "one_file", "kind", "results"), "is not for --from-html")
        return _open_again(reopened, baseline, out, output)
    if against is None:
        refuse_options(ctx, ("margin",), "is for --against")
    if kind != "html":
        refuse_options(ctx, ("one_file",), "is for --format html: other editions always are one file")
    if kind != "html" and output.as_json and out is None:
        raise UsageError(f"--json answers on stdout, so the {kind} edition needs a file: add -o FILE")
    share = margin_of(margin)
    found = Store(results or find_checkout().campaigns).open(campaign)
    if against is None:
        data_of = read(found)
        page = reports.page_of(data_of, baseline=baseline)
    else:
        from cadge_analysis.versus.against import against as set_beside
        from cadge_analysis.versus.sides import Side

        both = Campaigns(results)
        earlier, data_of = both.read(against), both.read(str(found.path))
        sides = Side(earlier.campaign_id, earlier), Side(data_of.campaign_id, data_of)
        page = reports.page_of(data_of, beside=set_beside(*sides, share), baseline=baseline)
    if kind != "html" and out is None:
        return output.finish(EXIT_OK, None, [reports.edition(page, kind).removesuffix("\n")])
    path = out or check_no_link(found.layout.report)
    if kind != "html":
        placed = Placed(main=write_output(path, reports.edition(page, kind).encode()), pages=())
    else:
        placed = reports.write_pages(page, path, one_file=one_file)
    data: dict[str, JsonValue] = {
        "campaign_id": found.campaign_id,
        "report": str(path),
        "bytes": placed.main.size_bytes,
        "pages": [str(one) for one in placed.pages],
        "findings": [{"kind": one.kind, "grave": one.grave, "text": one.text} for one in page.told],
    }
    if closing:
        data["closing"] = closing_of(found, data_of)
    lines = output.wrote(placed.main, path, _about(placed, path) if kind == "html" else "")
    if not placed.main.streamed:
        lines += [f"found: {one.text}" for one in page.told]
    return output.finish(EXIT_OK, data, lines)


def _about(placed: Placed, path: Path) -> str:
    """Return what a report's files are, as one phrase."""
    if not placed.pages:
        return "one file, opens offline"
    size = megabytes(sum(one.stat().st_size for one in placed.pages))
    return (
        f"opens offline, with {len(placed.pages)} pages beside it, a pattern each ({path.stem}-PATTERN{path.suffix}, "
        f"together {size}): in one file it would be larger than 4 MB, which --one-file makes all the same"
    )


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
    + "  cadge export --format jsonl --table attempts | head\n  cadge export --format parquet -o cells.parquet\n"
    + "  cadge export --format simgrid --layer native-ucx -o platform.xml"
)
@click.argument("campaign", default="last")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True)
@click.option(
    "--table", "table_name", type=click.Choice(TABLES), default="cells", show_default=True,
    help="Table to write as csv, jsonl or parquet.",
)  # fmt: skip
@out_option(text="File instead of stdout.")
@fit_options
@click.option(
    "--topology",
    default="star",
    show_default=True,
    metavar="NAME",
    help="Network of a simgrid platform: star, fat-tree, dragonfly.",
)
@click.option(
    "--endpoints",
    default="16",
    show_default=True,
    metavar="NUMBER",
    help="Least number of hosts of a simgrid platform.",
)
@results_option
@json_option
@click.pass_context
def export(
    ctx: click.Context,
    campaign: str,
    kind: str,
    table_name: str,
    out: Path | None,
    fit: FitChoice,
    topology: str,
    endpoints: str,
    results: Path | None,
    as_json: bool,
) -> int:
    """Write a campaign's figures, or the LogGP parameters fitted to them (JSON): to stdout, or with -o to a file.

    `csv`, `jsonl` (a record a line) and `parquet` hold one table: `cells` has a row for every planned point, the others
    what was stored before any estimate; `analysis/QUERIES.md` says what their columns hold. Parquet needs the extra
    `queries` (DuckDB), and -o.

    As `simgrid` a platform file for simulations of your own: a network whose links have the rate, and half of the
    latency, that LogGP found for messages of --bytes. The other options are for this format alone.
    """
    output = output_of(ctx, as_json, out)
    if kind != "simgrid":
        refuse_options(
            ctx, ("layer", "place", "wait_mode", "choices", "size", "topology", "endpoints"), "is for --format simgrid"
        )
    if kind not in FLAT:
        refuse_options(ctx, ("table_name",), "is for --format csv, jsonl and parquet")
    found = Store(results or find_checkout().campaigns).open(campaign)
    if output.as_json and out is None:
        raise UsageError("--json answers on stdout, so the export needs a file: add -o FILE")
    if kind == "parquet" and out is None:
        raise UsageError("Parquet is no text, so it needs a file: add -o FILE")
    if out is None and kind in FLAT:
        return output.stream(_table(found, kind, table_name))
    content = _content(found, kind, table_name, fit, topology, endpoints)
    if out is None:
        return output.finish(EXIT_OK, None, [content.decode().removesuffix("\n")])
    written = write_output(out, content)
    lines = output.wrote(written, out)
    return output.finish(EXIT_OK, {"campaign_id": found.campaign_id, "file": str(out)}, lines)


def _content(
    campaign: Campaign, kind: str, table_name: str, fit: FitChoice, topology: str, endpoints: str
) -> bytes:  # fmt: skip
    if kind == "simgrid":
        return _platform(campaign, fit, topology, endpoints).encode()
    if kind == "parquet":
        from cadge_analysis.queries import parquet
        from cadge_analysis.tables import TABLES as OF

        return parquet(OF[table_name], campaign)
    if kind in FLAT:
        return "".join(_table(campaign, kind, table_name)).encode()
    from cadge_analysis.export import write

    stream = io.StringIO(newline="")
    write(campaign, kind, stream)
    return stream.getvalue().encode()


def _table(campaign: Campaign, kind: str, table_name: str) -> Iterator[str]:
    """Yield a table's lines. All but `cells`, which is estimated over all launches, are read while they are written."""
    from cadge_analysis.flat import lines
    from cadge_analysis.tables import TABLES as OF

    chosen = OF[table_name]
    names = [one.name for one in chosen.columns(campaign)]
    yield from lines("csv" if kind == "csv" else "jsonl", names, chosen.rows(campaign))


def _platform(campaign: Campaign, fit: FitChoice, topology: str, endpoints: str) -> str:
    from cadge_analysis.models.scale import ENDPOINTS_MOST
    from cadge_analysis.models.topology import Kind, Topology, platform

    chosen = fit.of_campaign(campaign)
    message = fit.message(chosen)
    kind = Kind(name_of(topology, tuple(Kind), "topology"))
    network = Topology(kind, count_of_endpoints(endpoints, ENDPOINTS_MOST))
    return platform(network, message, f"{chosen.about}, messages of {message.size} B")
