# SPDX-License-Identifier: BSD-3-Clause
"""`cadge export`: a campaign as a table, its figures for a paper, its LogGP parameters, and what those predict."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import click

from cadge_cli.ablation import ablation_answer
from cadge_cli.exported_figures import KINDS as FIGURES
from cadge_cli.exported_figures import write_figures
from cadge_cli.exported_scale import PredictionOptions, predict, scale_options
from cadge_cli.fit_choice import FitChoice, fit_options
from cadge_cli.options import (
    EXAMPLES,
    answers,
    count_of_endpoints,
    listed,
    name_of,
    opened,
    refuse_options,
    results_option,
    with_launches,
    writable,
)
from cadge_cli.output import Output
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, UsageError
from cadge_results import Campaign, write_output

EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0  written, or shown\n"
    "  2  an option is wrong; no such figure; the folder holds other files\n"
    "  3  the output cannot be written\n"
    "  5  there is no such campaign, or it has nothing for this format\n"
    "  7  the campaign's raw data is damaged"
)
# cadge: another loggp, the model
FLAT = ("csv", "jsonl", "parquet")
FITTED = ("simgrid", "scale")
FORMATS = ("csv", "json", "jsonl", "parquet", *FIGURES, "ablation", "loggp", *FITTED)
TABLES = (
    "cells",
    "values",
    "families",
    "leaders",
    "knees",
    "fits",
    "attempts",
    "samples",
    "launches",
    "hosts",
    "campaigns",
)
TAKES = {
    "table_name": FLAT,
    **dict.fromkeys(("only", "baseline"), FIGURES),
    **dict.fromkeys(("layer", "place", "wait_mode", "choices", "size", "topologies", "endpoints"), FITTED),
    **dict.fromkeys(("traffics", "file", "simulation", "deadline", "memory"), ("scale",)),
}
"""Options that only some formats take."""


@click.command(
    epilog=EXAMPLES
    + "  cadge export --format csv > results.csv\n  cadge export last --format json -o r.json\n"
    + "  cadge export --format jsonl --table attempts | head\n  cadge export --format parquet -o cells.parquet\n"
    + "  cadge export --format svg\n"
    + '  cadge export --format pdf --only "rpc-between-poll*" -o figures\n'
    + "  cadge export last --format svg --baseline native-ucx -o figures\n"
    + "  cadge export --format ablation\n"
    + "  cadge export --format simgrid --layer native-ucx -o platform.xml\n"
    + "  cadge export last --format scale --layer sockets-tcp --place between\n"
    + '  cadge export --format scale --traffic alltoall --endpoints "16 128"\n'
    + "  cadge export --format scale --parameters loggp.json --no-simulation"
    + EXIT_CODES
)
@click.argument("campaign", default="last")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True)
@click.option(
    "--table", "table_name", type=click.Choice(TABLES), default="cells", show_default=True,
    metavar="TABLE", help=f"Table to write as csv, jsonl or parquet: {', '.join(TABLES)}.",
)  # fmt: skip
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, readable=False),
    help="File instead of stdout; for figures a folder, made if it is new.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Only these figures; `*` matches anything.")
@click.option("--baseline", metavar="LAYER", help="Figures: judge layers against this one, as `cadge report` does.")
@fit_options
@scale_options
@results_option
@answers
def export(
    campaign: str,
    kind: str,
    table_name: str,
    out: Path | None,
    only: tuple[str, ...],
    baseline: str | None,
    fit: FitChoice,
    predicting: PredictionOptions,
    results: Path | None,
    output: Output,
) -> int:
    """Write a campaign's numbers, figures or fitted models, to stdout or with -o to a file.

    `csv`, `jsonl` (a record a line) and `parquet` hold one table. `cells` has a row for every planned point, the others
    hold what was stored; `cadge query --tables` explains their columns. Parquet needs -o and the extra `queries`
    (DuckDB).

    `svg`, `pdf` and `png` write each figure of the report to a file, in its light colours on white; without -o they
    list the figures. NAME.csv has the numbers of NAME.svg, and FIGURES.md explains each figure. The same records give
    the same SVG. PDF and PNG use a font of this machine.

    `ablation` is the table of a sweep ablate-NAME: the effect of each optimisation of a layer.

    `loggp` has the LogGP parameters (JSON). `simgrid` is a platform file for SimGrid: links have the rate, and half of
    the latency, that LogGP found for messages of --bytes. `scale` predicts traffic among more endpoints: in closed form
    from the endpoints alone, and by SimGrid with the network between them. Nothing is measured.
    """
    if kind not in FIGURES:
        out = writable(out)
    for name, formats in TAKES.items():
        if kind not in formats:
            refuse_options((name,), f"is for --format {' and '.join(formats)}")
    if out is not None and kind in ("ablation", "scale"):
        raise UsageError(say("export.printed", kind=kind, out=out))
    if kind == "scale":
        return predict(output, lambda: fit.of_campaign(opened(results, campaign)), fit, predicting)
    found = opened(results, campaign)
    if kind in FIGURES:
        return write_figures(output, found, kind, only, baseline, out)
    if kind == "ablation":
        data, lines = ablation_answer(with_launches(found))
        return output.finish(EXIT_OK, data, lines)
    if output.as_json and out is None:
        raise UsageError(say("general.json_needs_file", what="the export"))
    if kind == "parquet" and out is None:
        raise UsageError(say("export.parquet_needs_file"))
    if out is None and kind in FLAT:
        return output.stream(_table(found, kind, table_name))
    content = _content(found, kind, table_name, fit)
    if out is None:
        return output.finish(EXIT_OK, None, [content.decode().removesuffix("\n")])
    written = write_output(out, content)
    lines = output.wrote(written, out)
    return output.finish(EXIT_OK, {"campaign_id": found.campaign_id, "file": str(out)}, lines)


def _content(campaign: Campaign, kind: str, table_name: str, fit: FitChoice) -> bytes:
    if kind == "simgrid":
        return _platform(campaign, fit).encode()
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


def _platform(campaign: Campaign, fit: FitChoice) -> str:
    from cadge_analysis.models.scale import ENDPOINTS_MOST
    from cadge_analysis.models.topology import Kind, Topology, platform

    chosen = fit.of_campaign(campaign)
    message = fit.message(chosen)
    topology = _one(fit.topologies, "star", "--topology")
    count = _one(fit.endpoints, "16", "--endpoints")
    network = Topology(Kind(name_of(topology, tuple(Kind), "topology")), count_of_endpoints(count, ENDPOINTS_MOST))
    return platform(network, message, f"{chosen.about}, messages of {message.size} B")


def _one(given: tuple[str, ...], default: str, option: str) -> str:
    """Return the one word of an option. Raises UsageError for several."""
    words = listed(option, given, default) or (default,)
    if len(words) > 1:
        raise UsageError(say("export.one_only", option=option, words=words, n=len(words)))
    return words[0]
