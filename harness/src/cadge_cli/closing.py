# SPDX-License-Identifier: BSD-3-Clause
"""How a campaign ends: its outcome, its picture, and what changed since the same sweep was measured last."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from cadge_cli import again
from cadge_cli.looks import state_data, state_words
from cadge_cli.options import as_called
from cadge_cli.output import Output, table
from cadge_cli.words import say
from cadge_harness.plan.timemodel import report_ms
from cadge_harness.words import clock, count_of, ended_how
from cadge_results import Campaign, Store
from cadge_results.command import command
from cadge_results.store.looks import looks_state, next_step

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
    from cadge_analysis.page.ranked import pictured
    from cadge_analysis.stats.compare import compare
    from cadge_analysis.stats.load import read

    found = read(campaign) if data is None else data
    return {
        "picture": pictured(compare(found)).stored(),
        "since": changed_since(Store(campaign.path.parent), campaign, found),
    }


def closing_lines(closing: Mapping[str, Any], output: Output, *, most: int) -> list[str]:
    """Return a picture of at most so many lines and what changed, for the terminal that the answer goes to."""
    from cadge_analysis.blocks.bars import WIDE, ascii_text, lines, reads_unicode
    from cadge_analysis.blocks.plain import wrapped
    from cadge_analysis.blocks.ranked import Picture

    stream = output.stdout
    is_terminal = stream is not None and stream.isatty()
    columns = min(shutil.get_terminal_size((WIDE, 24)).columns, WIDE_MOST) if is_terminal else WIDE
    unicode = reads_unicode(getattr(stream, "encoding", None))
    since = [] if not closing["since"] else wrapped(closing["since"], columns, "  ")
    since = [line if unicode else ascii_text(line) for line in since]
    return [*lines(Picture.of(closing["picture"]), most=most, columns=columns, unicode=unicode), *since]


def report_of(campaign: Campaign, output: Output, *, within_s: float | None = None) -> MadeReport | None:
    """Make the report in a process of its own: a report that fails leaves the campaign as it is.

    within_s: after so long this process is ended; a report that takes longer is not begun.
    """
    path = campaign.layout.report
    attempts = sum(len(launch.point_ids) for launch in campaign.plan.launches)
    needed_s = report_ms(attempts) / 1000
    if within_s is not None and needed_s > within_s:
        later = command("report", campaign.campaign_id)
        output.problem(say("closing.no_time", needed=clock(needed_s), left=clock(max(0, within_s)), command=later))
        return None
    output.say(f"report: {count_of(attempts, 'attempt')}, about {clock(needed_s)}")
    argv = [sys.executable, "-m", "cadge_cli.cli", "report", str(campaign.path), "-o", str(path), "--closing", "--json"]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL, env=as_called()
        )
    except subprocess.TimeoutExpired:
        output.problem(say("closing.not_ready", command=command("report", campaign.campaign_id)))
        return None
    if done.returncode != 0:
        output.problem(say("closing.no_report", reason=_reason(done)))
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


def _ended(campaign: Campaign, *, stopped: bool) -> str:
    """Say how a campaign ended: interrupted only where somebody did that."""
    status = campaign.meta.status
    return "not complete" if status == "interrupted" and not stopped else status


def troubles_of(campaign: Campaign) -> str:
    """Return why a complete campaign's exit code is not 0: "1 attempt is unsound and 2 attempts failed"."""
    counts = Counter(item.status for item in campaign.outcomes())
    unsound, failed = counts["unsound"], counts["failed"]
    parts = [f"{count_of(unsound, 'attempt is', 'attempts are')} unsound"] if unsound else []
    parts += [f"{count_of(failed, 'attempt')} failed"] if failed else []
    some = count_of(len(campaign.troubled_launch_ids()), "launch has a check that failed", "launches have one")
    return " and ".join(parts) or some


def answer_of(
    campaign: Campaign, made: MadeReport | None, shown: list[str], wall_s: float, *, stopped: bool
) -> tuple[dict[str, JsonValue], list[str]]:
    """Return what a command says of a campaign that it carried out, for programs and for people."""
    outcomes = campaign.outcomes()
    counts = Counter(item.status for item in outcomes)
    reasons = Counter(
        (item.status, item.point.subject.layer, item.point.subject.place, item.point.subject.wait, item.reason or "")
        for item in outcomes
        if item.status in {"failed", "unsound"}
    )
    poor = again.launch_ids(campaign, again.REASONS)
    looks = looks_state(campaign)
    data: dict[str, JsonValue] = {
        "campaign_id": campaign.campaign_id,
        "path": str(campaign.path),
        "status": campaign.meta.status,
        "outcomes": dict(sorted(counts.items())),
        "missing_launches": len(campaign.missing_launch_ids()),
        "disturbed_launches": len(poor.get("disturbed", ())),
        "wall_s": round(wall_s, 1),
        "planned_wall_s": campaign.plan.estimate.wall_s,
        **state_data(campaign),
        "report": str(made.path) if made else None,
        **(dict(made.closing) if made else {}),
    }
    lines = [
        f"{_ended(campaign, stopped=stopped)} after {clock(wall_s)} (planned {clock(campaign.plan.estimate.wall_s)}): "
        + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())),
    ]
    if reasons:
        rows = [("", "layer", "place", "wait", "attempts", "reason")]
        rows += [(*key[:4], str(count), key[4]) for key, count in reasons.most_common(20)]
        lines += ["", *table(rows), ""]
    if missing := campaign.missing_launch_ids():
        some = count_of(len(missing), "launch is", "launches are")
        lines.append(f"{some} missing; continue with: {command('resume', campaign.campaign_id)}")
    elif lonely := again.alone(campaign):
        lines.append(f"{again.said(lonely)}; continue with: {command('resume', campaign.campaign_id)}")
    elif next_step(campaign) != "done":
        what = f"{looks.said()}, undecided" if looks else say("closing.rounds_may_follow")
        lines.append(f"{what}; continue with: {command('resume', campaign.campaign_id)}")
    else:
        lines += filter(None, [state_words(campaign)])
        lines += again.advice(campaign, poor)
    lines += ["", *shown, ""] if shown else []
    lines.append(f"campaign  {campaign.path}")
    if made:
        lines.append(f"report    {made.path}")
    if campaign.native() is not None:
        lines.append(f"table     {command('crosscheck', campaign.campaign_id)}")
    return data, lines
