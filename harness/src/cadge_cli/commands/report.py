# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.closing import closing_of
from cadge_cli.options import (
    EXAMPLES,
    REPORTS,
    answers,
    opened,
    out_option,
    refuse_options,
    results_option,
)
from cadge_cli.output import Output, megabytes
from cadge_cli.sides import Campaigns, margin_of
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, UsageError
from cadge_results import write_output
from cadge_results.store.layout import check_no_link

if TYPE_CHECKING:
    from cadge_analysis.placing import ReportFiles

EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0  made\n"
    "  2  an option is wrong; FILE is no report, or of another campaign\n"
    "  3  the report cannot be written\n"
    "  5  there is no such campaign\n"
    "  7  the campaign's raw data is damaged"
)
EDITIONS = ("html", "markdown", "text")


@click.command(
    epilog=EXAMPLES
    + "  cadge report\n  cadge report 20261121T013042Z-1f3a9c2e -o report.html\n"
    + "  cadge report last --against 20261121T013042Z-1f3a9c2e\n"
    + "  cadge report last --baseline native-ucx\n"
    + "  cadge report --format text | less\n"
    + "  cadge report --format markdown -o report.md\n"
    + "  cadge report report.html --baseline am-ucx -o again.html"
    + EXIT_CODES
)
@click.argument("campaign", default="last", metavar="[CAMPAIGN|FILE]")
@click.option(
    "--against",
    metavar="CAMPAIGN",
    help="An earlier campaign: begin with what became slower or faster since then.",
)
@click.option(
    "--margin",
    default="5%",
    show_default=True,
    metavar="SHARE",
    help="With --against: smaller differences count as the same.",
)
@click.option(
    "--baseline", metavar="LAYER", help="Judge layers against this one, not against the one that the sweep declares."
)
@click.option(
    "--one-file",
    is_flag=True,
    help="Make one HTML file of any size. By default a report of more than 4 MB has one more page for each pattern.",
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
@answers
def report(
    campaign: str,
    against: str | None,
    margin: str,
    baseline: str | None,
    one_file: bool,
    kind: str,
    closing: bool,
    out: Path | None,
    results: Path | None,
    output: Output,
) -> int:
    """Make the report of a campaign: one HTML file that works offline, or several if it is large.

    The report and this command both name what went wrong: a slow host, an unexpected path, and, with --against,
    what became slower since an earlier campaign.

    FILE is a report. Cadge judges it again without its campaign, with --baseline against another layer, and writes the
    result to the file of -o. That page lacks what needs raw data, and says so.
    """
    from cadge_analysis import report as reports  # numbers and pictures take time to import
    from cadge_analysis.placing import ReportFiles
    from cadge_analysis.stats.load import read

    if (file := Path(campaign)).is_file() or file.suffix in REPORTS:
        refuse_options(("against", "margin", "one_file", "kind", "results"), say("report.for_campaigns"))
        return _open_again(file, baseline, out, output)
    if against is None:
        refuse_options(("margin",), "is for --against")
    if kind != "html":
        refuse_options(("one_file",), say("report.for_html"))
    if kind != "html" and output.as_json and out is None:
        raise UsageError(say("general.json_needs_file", what=f"the {kind} edition"))
    share = margin_of(margin)
    found = opened(results, campaign)
    if against is None:
        data_of = read(found)
        page = reports.page_of(data_of, baseline=baseline)
    else:
        from cadge_analysis.versus.against import against as set_beside
        from cadge_analysis.versus.sides import Side

        earlier = Campaigns(results).side(against, lean=True)  # before the other one is read: its bulk is gone by then
        data_of = read(found)
        side = Side(data_of.campaign_id, data_of)
        beside = set_beside(earlier, side, share)
        page = reports.page_of(data_of, beside=beside, baseline=baseline, numbers=side.by_point)
    if kind != "html" and out is None:
        return output.finish(EXIT_OK, None, [reports.edition(page, kind).removesuffix("\n")])
    path = out or check_no_link(found.layout.report)
    if kind != "html":
        placed = ReportFiles(main=write_output(path, reports.edition(page, kind).encode()), pages=())
    else:
        placed = reports.write_pages(page, path, one_file=one_file)
    data: dict[str, JsonValue] = {
        "campaign_id": found.campaign_id,
        "report": str(path),
        "bytes": placed.main.size_bytes,
        "pages": [str(one) for one in placed.pages],
        "findings": [{"kind": one.kind, "serious": one.is_serious, "text": one.text} for one in page.findings],
    }
    if closing:
        data["closing"] = closing_of(found, data_of)
    lines = output.wrote(placed.main, path, _about(placed, path) if kind == "html" else "")
    if not placed.main.streamed:
        lines += [f"found: {one.text}" for one in page.findings]
    return output.finish(EXIT_OK, data, lines)


def _about(placed: ReportFiles, path: Path) -> str:
    """Return what a report's files are, as one phrase."""
    if not placed.pages:
        return say("general.one_file")
    size = megabytes(sum(one.stat().st_size for one in placed.pages))
    return say("report.with_pages", n=len(placed.pages), stem=path.stem, suffix=path.suffix, size=size)


def _open_again(file: Path, baseline: str | None, out: Path | None, output: Output) -> int:
    from cadge_analysis.report import html, page_again

    if out is None:
        raise UsageError(say("report.another_file", name=file.name))
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    if out.exists() and out.samefile(file):
        raise UsageError(say("report.itself", out=out))
    written = write_output(out, html(page_again(text, file.name, baseline)).encode())
    lines = output.wrote(written, out, say("report.without_raw_data"))
    return output.finish(EXIT_OK, {"from": str(file), "report": str(out), "bytes": written.size_bytes}, lines)
