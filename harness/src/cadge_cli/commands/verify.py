# SPDX-License-Identifier: BSD-3-Clause
"""`cadge verify`: every file of a campaign against its checksum, or every number of a report against the raw data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.looks import looks_again
from cadge_cli.options import REPORTS, answers, opened, refuse_options, results_option
from cadge_cli.output import Output, table
from cadge_cli.sides import Campaigns
from cadge_cli.words import say
from cadge_harness.errors import (
    EXIT_BAD_ANSWER,
    EXIT_DAMAGED,
    EXIT_OK,
    NothingSelectedError,
    UsageError,
    named,
    printable,
)
from cadge_harness.paths import find_checkout
from cadge_harness.words import count_of
from cadge_results import Campaign, Damage, Store
from cadge_results.command import command
from cadge_results.store.verify import CampaignCheck, Repair, mendable, repair
from cadge_results.store.verify import verify as look

if TYPE_CHECKING:
    from cadge_analysis.verify import PrintedReport, ReportCheck

SAID_MOST = 20
"""So many places of a report are listed; --json has all of them."""

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
@answers
def verify(name: str, campaign: str | None, mend: bool, results: Path | None, output: Output) -> int:
    """Check every file of a campaign against its stored checksum, or every number of a report.

    Exit code 7 means that a file is missing, truncated, changed, swapped, unknown or unreadable. With --repair Cadge
    moves such records aside and removes nothing; `cadge resume` repeats their launches. The exit code is then 7 only if
    something cannot be repeated. Cadge also repeats decisions at looks from the same launches; they must agree.

    FILE is a report. Cadge recomputes every number of it from the raw data of its campaign. Cadge looks for it near
    FILE, or you name it: CAMPAIGN is a campaign or a folder that holds one.
    """
    file = Path(name)
    if file.is_file() or file.suffix in REPORTS:
        refuse_options(("mend",), say("verify.for_campaigns"))
        return output.finish(*_of_report(file, campaign, results))
    if campaign is not None:
        raise UsageError(say("verify.one_campaign", name=name))
    found = opened(results, name, measured=False)
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


def _seen(campaign: Campaign, verdict: CampaignCheck) -> list[str]:
    """Return what is wrong, a line a file, and the sum of it."""
    rows = [(str(one.kind), _named(campaign, one.path), printable(one.detail)) for one in verdict.damages]
    lines = table(rows)
    lines += [say("verify.stranger", file=_named(campaign, path)) for path in verdict.strangers]
    if verdict.unproven:
        lines.append(say("verify.no_checksum", n=verdict.unproven))
    bad = f"{len(verdict.damages)} damaged or missing" if verdict.damages else "none damaged"
    return [*lines, f"campaign {campaign.path.name}: {count_of(verdict.files, 'file')} checked, {bad}"]


def _moved(campaign: Campaign, repaired: Repair | None) -> list[str]:
    """Return what a repair did."""
    if repaired is None or repaired.folder is None:
        return []
    hosts = [path.stem for path in repaired.moved if path.parent == campaign.layout.nodes]
    facts = say("verify.facts_follow", hosts=hosts)
    return [say("verify.moved", folder=repaired.folder), *([facts] if hosts else [])]


def _advice(campaign: Campaign, left: list[Damage]) -> list[str]:
    """Return what to do now."""
    name = str(campaign.path)
    lines = []
    if lasting := [damage for damage in left if not mendable(campaign, damage)]:
        files = ", ".join(_named(campaign, damage.path) for damage in lasting)
        lines.append(say("verify.lasting", files=files))
    if len(left) > len(lasting):
        lines += [say("verify.move_aside"), f"  {command('verify', '--repair', name)}"]
        lines.append(f"  {command('resume', name)}")
    if not left and (missing := campaign.missing_launch_ids()):
        some = count_of(len(missing), "launch is", "launches are")
        lines.append(f"{some} missing; continue with: {command('resume', name)}")
    return lines


def _named(campaign: Campaign, path: Path) -> str:
    return printable(campaign.layout.named(path))


def _data(campaign: Campaign, verdict: CampaignCheck, repaired: Repair | None) -> JsonValue:
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


# ---- a report ----


def _of_report(file: Path, campaign: str | None, results: Path | None) -> tuple[int, JsonValue, list[str]]:
    """Return exit code, answer and lines. `campaign`: a campaign, or a folder that holds it; None to look near by."""
    from cadge_analysis import report as reports
    from cadge_analysis.draw.kept import drawn_afresh
    from cadge_analysis.making import ReportChoices
    from cadge_analysis.publish.excerpt import is_elsewhere
    from cadge_analysis.stats.load import read
    from cadge_analysis.verify import check_all, words_of
    from cadge_analysis.versus.against import against as set_beside
    from cadge_analysis.versus.sides import Side

    name, texts, report = _files_of(file)
    elsewhere = {one for one, text in texts.items() if is_elsewhere(one, text)}
    texts = {one: text for one, text in texts.items() if one not in elsewhere}
    if report.data.get("opened_again"):
        raise UsageError(say("verify.opened_again", file=file))
    found = _campaign_of(report.campaign_id, file, campaign, results)
    data = read(found, afresh=True)  # the raw files, not what a cache says of them
    making, beside = ReportChoices.of(report.making), None
    if making.against is not None:
        earlier = Campaigns(results).side(making.against, lean=True)
        beside = set_beside(earlier, Side(data.campaign_id, data), making.margin or 0.05)
    with drawn_afresh():
        page = reports.made_as(data, making, beside)
    outcome = check_all(texts, dict(reports.files(page, name, parted=bool(report.pages))), elsewhere)
    lines = list(_said_of(outcome, words_of(outcome)))
    answer: JsonValue = {
        "campaign_id": found.campaign_id,
        "campaign": str(found.path),
        "agrees": outcome.agrees,
        "numbers": outcome.numbers,
        "by_place": {str(sort): count for sort, count in outcome.recomputed.items()},
        "differences": [
            {"place": one.place, "printed": one.printed, "recomputed": one.recomputed} for one in outcome.differences
        ],
        "not_recomputed": list(outcome.unchecked),
        "left_out": list(outcome.left_out),
    }
    return EXIT_OK if outcome.agrees else EXIT_BAD_ANSWER, answer, lines


def _files_of(file: Path) -> tuple[str, dict[str, str], PrintedReport]:
    """Return the name of a report's main file as its pages know it, the text of each file, and what the main one says.

    A page that is not there is left out, which the check then tells.
    """
    from cadge_analysis.verify import printed

    report = printed(_text(file), str(file))
    if report.part_of:
        if PurePath(report.part_of).name != report.part_of:
            raise UsageError(say("verify.page_of_nothing", file=file, part_of=named(report.part_of)))
        main = file.with_name(report.part_of)
        if not main.is_file():
            raise UsageError(say("verify.page_alone", file=file, name=named(main.name)))
        file, report = main, printed(_text(main), str(main))
        if report.part_of:
            raise UsageError(say("verify.only_a_page", file=file))
    if not report.pages:
        return file.name, {file.name: report.text}, report
    name = str(report.data.get("report", ""))
    beside = {one: file.with_name(one) for one in report.pages if PurePath(one).name == one}
    return name, {name: report.text} | {one: _text(path) for one, path in beside.items() if path.is_file()}, report


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(say("verify.no_text", file=file)) from error


def _said_of(outcome: ReportCheck, lines: Iterator[str]) -> Iterator[str]:
    yield printable(next(lines))
    places = [f"  {printable(line)}" for line in lines]
    listed = len(outcome.differences)
    yield from places[: min(SAID_MOST, listed)]
    if listed > SAID_MOST:
        yield "  " + say("verify.more", n=listed - SAID_MOST)
    yield from places[listed:]


def _campaign_of(campaign_id: str, file: Path, given: str | None, results: Path | None) -> Campaign:
    """Return the campaign of a report. Raises UsageError where it is another one, NothingSelectedError for none."""
    from cadge_results import Campaign

    if given is not None:
        within = _within(Path(given), campaign_id)
        found = Campaign(within) if within else opened(results, given)
        if found.campaign_id != campaign_id:
            raise UsageError(
                say(
                    "verify.other_campaign",
                    file=file,
                    expected=named(campaign_id),
                    path=found.path,
                    campaign_id=found.campaign_id,
                )
            )
        return found
    folder = file.absolute().parent
    for near in (folder, folder.parent):
        if (within := _within(near, campaign_id)) is not None:
            return Campaign(within)
    store = Store(results or find_checkout().campaigns)
    found_here = next((one for one in store.campaigns() if one.campaign_id == campaign_id), None)
    if found_here is not None:
        return found_here
    raise NothingSelectedError(
        say("verify.campaign_not_found", campaign_id=named(campaign_id), file=file, root=store.root)
    )


def _within(folder: Path, campaign_id: str) -> Path | None:
    """Return where a campaign lies: the folder itself, or one up to two levels below; None where it does not."""
    from cadge_results import Campaign, ResultsError

    for pattern in ("campaign.json", "*/campaign.json", "*/*/campaign.json"):
        for path in sorted(folder.glob(pattern)) if folder.is_dir() else ():
            try:
                if Campaign(path.parent).meta.campaign_id == campaign_id:
                    return path.parent
            except ResultsError:
                continue  # somebody else's, or damaged
    return None
