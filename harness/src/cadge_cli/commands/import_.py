# SPDX-License-Identifier: BSD-3-Clause
"""`cadge import`: a user's own output of another tool beside a campaign; what is imported, and taking it back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from cadge_cli.options import answers, opened, refuse_options, results_option
from cadge_cli.output import Output, table
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, UsageError, printable
from cadge_harness.paths import find_checkout
from cadge_harness.words import count_of
from cadge_results import Campaign
from cadge_results.command import command
from cadge_results.formats.imported import FORMATS, ImportedFile, ImportedSeries

if TYPE_CHECKING:
    from pydantic import JsonValue

    from cadge_results.formats.base import Place
    from cadge_results.formats.imported import Format

EPILOG = (
    "\b\nExamples:\n"
    "  cadge import osu osu_latency.txt --place between --host 'n1, n2'\n"
    "  cadge import imb IMB.log --into last --label 'Intel MPI 2021.11'\n"
    "  cadge import ucx_perftest tag_lat.txt --test tag_lat --bytes 8\n"
    '  cadge import fabtests rma.txt --test "fi_rma_bw -W 1"\n'
    "  cadge import --list\n"
    "  cadge import --remove 3f9a"
)
_OF_A_FILE = ("label", "host", "place", "note", "test", "size_bytes")


@click.command(name="import", epilog=EPILOG)
@click.argument("format_", metavar="[FORMAT", type=click.Choice(FORMATS), required=False)
@click.argument("file", metavar="FILE]", type=click.Path(path_type=Path), required=False)
@click.option("--into", "campaign", default="last", show_default=True, metavar="CAMPAIGN", help="Campaign to add to.")
@click.option("--label", default="", help="What reports call it; default: the tool's own title, and the file's name.")
@click.option("--host", default="", help="Where it was measured.")
@click.option(
    "--place",
    type=click.Choice(("within", "between")),
    help="Within one host, or between two.",
)
@click.option("--note", default="", help="A note for readers.")
@click.option(
    "--test", default="", metavar="NAME", help="Name of the test, if a file of ucx_perftest or fabtests lacks it."
)
@click.option(
    "--bytes",
    "size_bytes",
    type=click.IntRange(0, 1 << 40),
    help="Message size, if a file of ucx_perftest lacks it.",
)
@click.option("--list", "listed", is_flag=True, help="List what is imported.")
@click.option("--remove", metavar="ID", help="Remove an import, by its ID or the beginning of its ID.")
@results_option
@answers
def import_(
    format_: str | None,
    file: Path | None,
    campaign: str,
    label: str,
    host: str,
    place: str | None,
    note: str,
    test: str,
    size_bytes: int | None,
    listed: bool,
    remove: str | None,
    results: Path | None,
    output: Output,
) -> int:
    """Add results of other tools to a report: FORMAT is osu, ucx_perftest, fabtests or imb.

    A report marks them as imported. They get no interval, verdict or rank, because the number of runs and the machine's
    other load are unknown. Half round trips are stored as such, and doubled for comparison. The campaign's own files
    are not touched. A file can be imported once; --remove removes it.
    """
    found = opened(results, campaign)
    if remove is not None or listed:
        if format_ is not None or (remove is not None and listed):
            raise UsageError("use --list or --remove alone")
        refuse_options(_OF_A_FILE, say("import.file_only"))
        return _remove(output, found, remove) if remove is not None else _list(output, found)
    if format_ is None or file is None:
        raise UsageError(say("import.what", formats=FORMATS))
    from cadge_harness.imports import ImportNotes, read_import
    from cadge_harness.plan.catalogue import read_catalogue
    from cadge_harness.printed.text import ToolHints

    new, skipped = read_import(
        file,
        cast("Format", format_),
        told=ToolHints(test=test, bytes=size_bytes),
        said=ImportNotes(label=label, host=host, place=cast("Place | None", place), note=note),
        layers=[info.file for info in read_catalogue(find_checkout()).layers],
        patterns=found.plan.patterns,
        at=datetime.now(UTC),
    )
    return _add(output, found, new, skipped)


def _add(output: Output, campaign: Campaign, new: ImportedFile, skipped: tuple[str, ...]) -> int:
    from cadge_results.store.writer import add_import

    added = add_import(campaign, new)
    stored = campaign.imported_file(new.imported_id)
    if added:
        lines = [f"imported {stored.imported_id} into {campaign.campaign_id}: {stored.label}"]
        lines += [f"  {_series_line(one)}" for one in stored.series]
        lines += [f"  not read: {printable(one)}" for one in skipped]
        remove = command("import", "--into", campaign.path.name, "--remove", stored.imported_id)
        lines.append(say("import.take_back", command=remove))
    else:
        when = stored.imported_utc
        lines = [
            say(
                "import.is_there",
                imported_id=stored.imported_id,
                campaign_id=campaign.campaign_id,
                when=when,
                label=stored.label,
            )
        ]
    data = _data(stored) | {"campaign_id": campaign.campaign_id, "added": added, "not_read": list(skipped)}
    return output.finish(EXIT_OK, data, lines)


def _list(output: Output, campaign: Campaign) -> int:
    every = campaign.imported()
    rows = [("id", "format", "measured", "label")]
    rows += [(one.imported_id, one.format, _tests(one), printable(one.label)) for one in every]
    lines = table(rows) if every else [say("import.none", campaign_id=campaign.campaign_id)]
    data: dict[str, JsonValue] = {"campaign_id": campaign.campaign_id, "imports": [_data(one) for one in every]}
    return output.finish(EXIT_OK, data, lines)


def _remove(output: Output, campaign: Campaign, name: str) -> int:
    from cadge_results.store.writer import remove_import

    removed = remove_import(campaign, name)
    lines = [say("import.removed", removed=removed, campaign_id=campaign.campaign_id)]
    return output.finish(EXIT_OK, {"campaign_id": campaign.campaign_id, "removed": removed}, lines)


def _series_line(series: ImportedSeries) -> str:
    """Return what was read of a column, in one line."""
    about = f" ({printable(series.about)})" if series.about else ""
    what = f"{series.test}: {series.statistic} {series.kind}, {series.moves}, in {series.unit} as printed"
    return f"{what}, {count_of(len(series.values), 'size')}{about}"


def _tests(file: ImportedFile) -> str:
    return ", ".join(dict.fromkeys(one.test for one in file.series))


def _data(file: ImportedFile) -> dict[str, JsonValue]:
    told = file.model_dump(mode="json", include={"format", "file", "sha256", "version", "label", "imported_utc"})
    of_series = {"test", "kind", "moves", "statistic", "patterns"}
    series = [one.model_dump(mode="json", include=of_series) | {"sizes": len(one.values)} for one in file.series]
    return {"id": file.imported_id, **told, "series": [*series]}
