# SPDX-License-Identifier: BSD-3-Clause
"""How a campaign ends in a terminal: its picture, and what changed since the same sweep was measured last."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadge_cli.options import as_called
from cadge_cli.output import Output
from cadge_harness.plan.timemodel import report_ms
from cadge_harness.words import clock, count_of, ended_how
from cadge_results import Campaign, Store
from cadge_results.command import command

if TYPE_CHECKING:
    from cadge_analysis.stats.load import Dataset

WIDE_MOST = 100
"""Bars that are longer say no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeReport:
    """The report that a campaign ended with, and what the terminal shows of it."""

    path: Path
    closing: Mapping[str, Any]


def closing_of(campaign: Campaign, data: Dataset | None = None) -> dict[str, Any]:
    """Return what the end of a campaign shows, as plain data. data: the campaign, where it was read already."""
    from cadge_analysis.page.last_time import changed_since  # takes time to import, as do the others
    from cadge_analysis.page.picture import pictured
    from cadge_analysis.stats.compare import compare
    from cadge_analysis.stats.load import read

    found = read(campaign) if data is None else data
    return {
        "picture": pictured(compare(found)).stored(),
        "since": changed_since(Store(campaign.path.parent), campaign, found),
    }


def closing_lines(closing: Mapping[str, Any], output: Output, *, most: int) -> list[str]:
    """Return a picture of at most so many lines and what changed, for the terminal that the answer goes to."""
    from cadge_analysis.blocks.text import wrapped
    from cadge_analysis.page.picture import WIDE, Picture, ascii_text, lines, reads_unicode

    stream = output.stdout
    is_terminal = stream is not None and stream.isatty()
    columns = min(shutil.get_terminal_size((WIDE, 24)).columns, WIDE_MOST) if is_terminal else WIDE
    unicode = reads_unicode(getattr(stream, "encoding", None))
    since = [] if not closing["since"] else wrapped(closing["since"], columns, "  ")
    since = [line if unicode else ascii_text(line) for line in since]
    return [*lines(Picture.of(closing["picture"]), most=most, columns=columns, unicode=unicode), *since]


def report_of(campaign: Campaign, output: Output) -> MadeReport | None:
    """Make the report in a process of its own: a report that fails leaves the campaign as it is."""
    path = campaign.layout.report
    attempts = sum(len(launch.point_ids) for launch in campaign.plan.launches)
    output.say(f"report: {count_of(attempts, 'attempt')}, about {clock(report_ms(attempts) / 1000)}")
    argv = [sys.executable, "-m", "cadge_cli.cli", "report", str(campaign.path), "-o", str(path), "--closing", "--json"]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL, env=as_called()
        )
    except subprocess.TimeoutExpired:
        output.problem(f"the report was not ready after 10 minutes; try: {command('report', campaign.campaign_id)}")
        return None
    if done.returncode != 0:
        output.problem(f"no report was made: {_reason(done)}")
        return None
    data = json.loads(done.stdout)["data"]
    for one in data["findings"]:
        output.say(f"found: {one['text']}")
    return MadeReport(path=path, closing=data["closing"])


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last sentence that a command of ours wrote, with what it says to run; else how it ended."""
    lines = done.stderr.strip().splitlines()
    if not lines:
        return f"its process ended {ended_how(done.returncode)}"
    said = [number for number, line in enumerate(lines) if line.startswith("cadge: ")]
    message, *commands = lines[said[-1] :] if said else lines[-1:]
    return "; try: ".join([message, *(command.strip() for command in commands)])
