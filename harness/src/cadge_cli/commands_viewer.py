# SPDX-License-Identifier: BSD-3-Clause
"""`cadge viewer`: a page that shows exported records which its reader drops on it."""

from __future__ import annotations

from pathlib import Path

import click

from cadge_cli.options import json_option, out_option, output_of
from cadge_cli.output import megabytes
from cadge_harness import __version__
from cadge_harness.errors import EXIT_OK

EXAMPLES = "\b\nExamples:\n  cadge viewer\n  cadge viewer -o /tmp/viewer.html"


@click.command(epilog=EXAMPLES)
@out_option(text="The page; viewer.html where none is named.")
@json_option
@click.pass_context
def viewer(ctx: click.Context, out: Path | None, as_json: bool) -> int:
    """Write a page that shows exported records: open it in a browser, and drop a file on it.

    It reads what `cadge export` writes as csv, json and jsonl, the summaries and records of a published site, and
    records and imports of a campaign; gzip too, Parquet not. It has a table to sort and filter, and a chart of a
    measure with its intervals. One file, which works offline; what is dropped on it goes nowhere.
    """
    from cadge_analysis.page.viewer import html
    from cadge_results import write_output

    path = out or Path("viewer.html")
    output = output_of(ctx, as_json, out)
    written = write_output(path, html(__version__).encode())
    size = megabytes(written.size_bytes)
    return output.finish(EXIT_OK, {"file": str(path)}, [] if written.streamed else [f"{path}  {size}"])
