# SPDX-License-Identifier: BSD-3-Clause
"""`cadge export --format svg`: the figures of a report as files, for a paper or for slides."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cadge_cli.output import Output, megabytes, table
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, UsageError, printable
from cadge_results import Campaign, OutputError, write_together
from cadge_results.command import command

if TYPE_CHECKING:
    from cadge_analysis.page.paper import PaperFigure

KINDS = ("svg", "pdf", "png")


def write_figures(
    output: Output, campaign: Campaign, kind: str, only: tuple[str, ...], baseline: str | None, target: Path | None
) -> int:
    """Write each figure of a report as a file of its own into the folder `target`, or list them where there is none.

    Beside NAME.svg, .pdf or .png lies NAME.csv with the numbers that it shows, and FIGURES.md says what each is.
    """
    from cadge_analysis.page import paper
    from cadge_analysis.report import page_of
    from cadge_analysis.stats.load import read

    page = page_of(read(campaign), baseline=baseline)
    chosen = _chosen(tuple(paper.shown(page)), only)
    named: list[JsonValue] = [{"name": one.figure.name, "title": one.title} for one in chosen]
    data: dict[str, JsonValue] = {"campaign_id": campaign.campaign_id, "figures": named}
    if target is None:
        return output.finish(
            EXIT_OK, data, table([("NAME", "TITLE"), *((o.figure.name, printable(o.title)) for o in chosen)])
        )
    files = {target / name: content for name, content in paper.files(page, paper.kind_of(kind), chosen)}
    _room_for(list(files), target)
    write_together(files.items())
    size = megabytes(sum(map(len, files.values())))
    return output.finish(EXIT_OK, {**data, "folder": str(target)}, [f"{target}  {len(files)} files, {size}"])


def _chosen(shown: tuple[PaperFigure, ...], only: tuple[str, ...]) -> tuple[PaperFigure, ...]:
    """Return the figures that were asked for. Raises UsageError for a name that none has."""
    for wanted in only:
        if not any(fnmatchcase(one.figure.name, wanted) for one in shown):
            raise UsageError(
                say("figures.none", wanted=printable(wanted), command=command("export", "--format", "svg"))
            )
    return tuple(one for one in shown if not only or any(fnmatchcase(one.figure.name, name) for name in only))


def _room_for(files: list[Path], target: Path) -> None:
    """Make the folder, where it is new. Raises UsageError where a file in it that is not ours would be replaced."""
    from cadge_analysis.page.paper import is_list

    if os.path.lexists(target) and not target.is_dir():
        raise OutputError(say("figures.no_folder", target=target))
    try:
        target.mkdir(exist_ok=True)
        others = [path for path in files if os.path.lexists(path)]
        if others and not is_list(files[-1]):
            raise UsageError(say("figures.others", target=target, name=others[0].name))
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from error
