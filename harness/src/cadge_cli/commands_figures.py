# SPDX-License-Identifier: BSD-3-Clause
"""`cadge figures`: the figures of a report as files, for a paper or for slides."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.options import json_option, output_of, refuse_options, results_option
from cadge_cli.output import megabytes, table
from cadge_harness.errors import EXIT_OK, UsageError, printable
from cadge_harness.paths import find_checkout
from cadge_results import OutputError, Store, write_together

if TYPE_CHECKING:
    from cadge_analysis.page.paper import Shown

KINDS = ("svg", "pdf", "png")
EXAMPLES = (
    "\b\nExamples:\n"
    "  cadge figures\n"
    '  cadge figures --only "rpc-between-poll*" --format pdf -o figures\n'
    "  cadge figures last --baseline native-ucx -o figures"
    "\n\n\b\nExit codes:\n"
    "  0  listed, or written\n"
    "  2  no figure has such a name; DIR cannot be made, or holds other files\n"
    "  3  no room is left for the files\n"
    "  5  there is no such campaign\n"
    "  7  the campaign's raw data is damaged"
)


@click.command(epilog=EXAMPLES)
@click.argument("campaign", default="last")
@click.option("--only", multiple=True, metavar="NAME", help="These alone; `*` stands for anything.")
@click.option("--format", "kind", type=click.Choice(KINDS), default="svg", show_default=True)
@click.option("--baseline", metavar="LAYER", help="Judge layers against this one, as `cadge report` does.")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the files; made if it is new.",
)
@results_option
@json_option
@click.pass_context
def figures(
    ctx: click.Context,
    campaign: str,
    only: tuple[str, ...],
    kind: str,
    baseline: str | None,
    target: Path | None,
    results: Path | None,
    as_json: bool,
) -> int:
    """Write each figure of a report as a file of its own, for a paper or for slides; without -o, list them.

    Beside NAME.svg, .pdf or .png lies NAME.csv with the numbers that it shows, and FIGURES.md says what each is, in the
    report's words. Colours are the light theme's, on white. The same records give the same SVG; a PDF and a PNG have
    their text in a font of this machine.
    """
    from cadge_analysis.page import paper
    from cadge_analysis.report import page_of
    from cadge_analysis.stats.load import read

    output = output_of(ctx, as_json, None)
    if target is None:
        refuse_options(ctx, ("kind",), "is for -o DIR, which writes the figures")
    found = Store(results or find_checkout().campaigns).open(campaign)
    page = page_of(read(found), baseline=baseline)
    chosen = _chosen(tuple(paper.shown(page)), only)
    named: list[JsonValue] = [{"name": one.figure.name, "title": one.title} for one in chosen]
    data: dict[str, JsonValue] = {"campaign_id": found.campaign_id, "figures": named}
    if target is None:
        return output.finish(
            EXIT_OK, data, table([("NAME", "TITLE"), *((o.figure.name, printable(o.title)) for o in chosen)])
        )
    files = {target / name: content for name, content in paper.files(page, paper.kind_of(kind), chosen)}
    _room_for(list(files), target)
    write_together(files)
    size = megabytes(sum(map(len, files.values())))
    return output.finish(EXIT_OK, {**data, "folder": str(target)}, [f"{target}  {len(files)} files, {size}"])


def _chosen(shown: tuple[Shown, ...], only: tuple[str, ...]) -> tuple[Shown, ...]:
    """Return the figures that were asked for. Raises UsageError for a name that none has."""
    for wanted in only:
        if not any(fnmatchcase(one.figure.name, wanted) for one in shown):
            raise UsageError(f"no figure is called {printable(wanted)}; `cadge figures` lists them")
    return tuple(one for one in shown if not only or any(fnmatchcase(one.figure.name, name) for name in only))


def _room_for(files: list[Path], target: Path) -> None:
    """Make the folder, where it is new. Raises UsageError where a file in it that is not ours would be replaced."""
    from cadge_analysis.page.paper import is_list

    if os.path.lexists(target) and not target.is_dir():
        raise OutputError(f"cannot write {target}: it is no folder; name another with -o")
    try:
        target.mkdir(exist_ok=True)
        others = [path for path in files if os.path.lexists(path)]
        if others and not is_list(files[-1]):
            raise UsageError(
                f"{target} holds {others[0].name}, and no list of ours: nothing was written; name another with -o"
            )
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from error
