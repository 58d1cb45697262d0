# SPDX-License-Identifier: BSD-3-Clause
"""`cadge verify`: every file of a campaign against its checksum, or every number of a report against the raw data."""

from __future__ import annotations

from pathlib import Path

import click
from pydantic import JsonValue

from cadge_cli.looks import looks_again
from cadge_cli.options import REPORTS, json_option, output_of, refuse_options, results_option
from cadge_cli.output import table
from cadge_harness.errors import EXIT_DAMAGED, EXIT_OK, UsageError, printable
from cadge_harness.paths import find_checkout
from cadge_harness.words import count_of
from cadge_results import Campaign, Damage, Store
from cadge_results.command import command
from cadge_results.verify import Repaired, Verdict, mendable, repair
from cadge_results.verify import verify as look

EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0  nothing is damaged; every number of the report agrees\n"
    "  1  numbers of the report differ, or could not be compared\n"
    "  2  an option is wrong; FILE is no report, or of another campaign\n"
    "  5  there is no such campaign\n"
    "  7  a campaign is damaged"
)


@click.command(
    epilog="\b\nExamples:\n  cadge verify\n  cadge verify 20261121T013042Z-1f3a9c2e --json\n"
    + "  cadge verify --repair && cadge resume\n  cadge verify report.html\n  cadge verify report.html bundle/"
    + EXIT_CODES
)
@click.argument("name", metavar="[CAMPAIGN|FILE]", default="last")
@click.argument("campaign", required=False)
@click.option("--repair", "mend", is_flag=True, help="Move damaged records into the campaign's folder `aside`.")
@results_option
@json_option
@click.pass_context
def verify(ctx: click.Context, name: str, campaign: str | None, mend: bool, results: Path | None, as_json: bool) -> int:
    """Check every file of a campaign against the checksum that it got when it was stored, or every number of a report.

    Exit code 7 where one is missing, truncated, changed, swapped with another, unknown or unreadable. With --repair
    such records are moved aside, nothing is removed, and `cadge resume` makes their launches again; the exit code is
    7 then where something is damaged that cannot be made again. What was decided at looks is decided again from the
    same launches, and has to come out the same.

    FILE is a report. Every number of it is recomputed from the raw data of its campaign, which lies near it or is named
    by CAMPAIGN: a campaign, or a folder that holds one.
    """
    output = output_of(ctx, as_json)
    file = Path(name)
    if file.is_file() or file.suffix in REPORTS:
        from cadge_cli.report_verify import verify as verify_report

        refuse_options(ctx, ("mend",), "is for campaigns: of a report nothing is changed")
        return output.finish(*verify_report(file, campaign, results))
    if campaign is not None:
        raise UsageError(f"{name} is no file: give one campaign, or a report and its campaign")
    found = Store(results or find_checkout().campaigns).open(name, measured=False)
    repaired = repair(found) if mend else None
    verdict = repaired.verdict if repaired else look(found)
    notes, wrong = looks_again(found) if not verdict.damages else ([], [])
    left = [damage for damage in verdict.damages if not (mend and mendable(found, damage))]
    verdict.damages += wrong
    output.problems.extend(printable(str(damage)) for damage in (*left, *wrong))
    lines = [
        *_seen(found, verdict),
        *(f"note: {note}" for note in notes),
        *_moved(found, repaired),
        *_advice(found, left),
    ]
    return output.finish(EXIT_DAMAGED if left or wrong else EXIT_OK, _data(found, verdict, repaired), lines)


def _seen(campaign: Campaign, verdict: Verdict) -> list[str]:
    """Return what is wrong, a line a file, and the sum of it."""
    rows = [(str(one.kind), _named(campaign, one.path), printable(one.detail)) for one in verdict.damages]
    lines = table(rows)
    lines += [f"note: {_named(campaign, path)} is not of cadge, which never reads it" for path in verdict.strangers]
    if verdict.unproven:
        lines.append(
            f"note: {count_of(verdict.unproven, 'file has', 'files have')} no checksum, as in campaigns that were "
            "begun before cadge stored any: only format, names and histograms were checked"
        )
    bad = f"{len(verdict.damages)} damaged or missing" if verdict.damages else "none damaged"
    return [*lines, f"campaign {campaign.path.name}: {count_of(verdict.files, 'file')} checked, {bad}"]


def _moved(campaign: Campaign, repaired: Repaired | None) -> list[str]:
    """Return what a repair did."""
    if repaired is None or repaired.folder is None:
        return []
    hosts = [path.stem for path in repaired.moved if path.parent == campaign.layout.nodes]
    facts = f"facts of {', '.join(hosts)} come with the next launch that is made there"
    return [f"what is damaged is in {repaired.folder} now; nothing was removed", *([facts] if hosts else [])]


def _advice(campaign: Campaign, left: list[Damage]) -> list[str]:
    """Return what to do now."""
    name = str(campaign.path)
    lines = []
    if lasting := [damage for damage in left if not mendable(campaign, damage)]:
        files = ", ".join(_named(campaign, damage.path) for damage in lasting)
        lines.append(f"cannot be made again, and has to come back from a copy: {files}")
    if len(left) > len(lasting):
        lines += ["move them aside, and make their launches again:", f"  {command('verify', '--repair', name)}"]
        lines.append(f"  {command('resume', name)}")
    if not left and (missing := campaign.missing_launch_ids()):
        some = count_of(len(missing), "launch is", "launches are")
        lines.append(f"{some} missing; continue with: {command('resume', name)}")
    return lines


def _named(campaign: Campaign, path: Path) -> str:
    return printable(campaign.layout.named(path))


def _data(campaign: Campaign, verdict: Verdict, repaired: Repaired | None) -> JsonValue:
    """Return the same for programs."""
    named = campaign.layout.named
    return {
        "campaign": campaign.path.name,
        "path": str(campaign.path),
        "files": verdict.files,
        "damaged": [{"file": named(one.path), "kind": str(one.kind), "detail": one.detail} for one in verdict.damages],
        "unproven": verdict.unproven,
        "not_of_cadge": [named(path) for path in verdict.strangers],
        "unmade_launches": verdict.unmade,
        "moved": [named(path) for path in repaired.moved] if repaired else [],
        "moved_into": str(repaired.folder) if repaired and repaired.folder else None,
    }
