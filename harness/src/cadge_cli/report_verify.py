# SPDX-License-Identifier: BSD-3-Clause
"""`cadge verify FILE`: the campaign of a report is found, the report made anew, and both are held side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from cadge_cli.sides import Campaigns
from cadge_harness.errors import EXIT_BAD_ANSWER, EXIT_OK, NothingSelectedError, UsageError, named, printable
from cadge_harness.paths import find_checkout

if TYPE_CHECKING:
    from pydantic import JsonValue

    from cadge_analysis.verify.check import Check, Printed
    from cadge_results import Campaign

SAID_MOST = 20
"""So many places are listed; --json has all of them."""


def verify(file: Path, campaign: str | None, results: Path | None) -> tuple[int, JsonValue, list[str]]:
    """Return exit code, answer and lines. `campaign`: a campaign, or a folder that holds it; None to look near by."""
    from cadge_analysis import report as reports
    from cadge_analysis.draw.kept import drawn_afresh
    from cadge_analysis.making import Making
    from cadge_analysis.publish.excerpt import is_elsewhere
    from cadge_analysis.stats.load import read
    from cadge_analysis.verify.check import check_all, words_of
    from cadge_analysis.versus.against import against as set_beside
    from cadge_analysis.versus.sides import Side

    name, texts, report = _files_of(file)
    elsewhere = {one for one, text in texts.items() if is_elsewhere(one, text)}
    texts = {one: text for one, text in texts.items() if one not in elsewhere}
    if report.data.get("opened_again"):
        raise UsageError(f"{file} was opened again without raw data: verify the report that it was made of")
    found = _campaign_of(report.campaign_id, file, campaign, results)
    for _ in found.readings(afresh=True):  # the raw files, not what a cache says of them
        pass
    data, making, beside = read(found), Making.of(report.making), None
    if making.against is not None:
        earlier = Campaigns(results).read(making.against)
        sides = Side(earlier.campaign_id, earlier), Side(data.campaign_id, data)
        beside = set_beside(*sides, making.margin or 0.05)
    with drawn_afresh():
        page = reports.made_as(data, making, beside)
    outcome = check_all(texts, reports.files(page, name, parted=bool(report.pages)), elsewhere)
    lines = list(_said(outcome, words_of(outcome)))
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


def _files_of(file: Path) -> tuple[str, dict[str, str], Printed]:
    """Return the name of a report's main file as its pages know it, the text of each file, and what the main one says.

    A page that is not there is left out, which the check then tells.
    """
    from cadge_analysis.verify.check import printed

    report = printed(_text(file), str(file))
    if report.part_of:
        if PurePath(report.part_of).name != report.part_of:
            raise UsageError(f"{file} says that it is a page of {named(report.part_of)}, which is no file's name")
        main = file.with_name(report.part_of)
        if not main.is_file():
            raise UsageError(f"{file} is one page of {named(main.name)}, which is not beside it: verify that file")
        file, report = main, printed(_text(main), str(main))
        if report.part_of:
            raise UsageError(f"{file} is no report, but a page of one")
    if not report.pages:
        return file.name, {file.name: report.text}, report
    name = str(report.data.get("report", ""))
    beside = {one: file.with_name(one) for one in report.pages if PurePath(one).name == one}
    return name, {name: report.text} | {one: _text(path) for one, path in beside.items() if path.is_file()}, report


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _said(outcome: Check, lines: Iterator[str]) -> Iterator[str]:
    yield printable(next(lines))
    places = [f"  {printable(line)}" for line in lines]
    listed = len(outcome.differences)
    yield from places[: min(SAID_MOST, listed)]
    if listed > SAID_MOST:
        yield f"  and {listed - SAID_MOST} further places; --json lists all of them"
    yield from places[listed:]


def _campaign_of(campaign_id: str, file: Path, given: str | None, results: Path | None) -> Campaign:
    """Return the campaign of a report. Raises UsageError where it is another one, NothingSelectedError for none."""
    from cadge_results import Campaign, Store

    if given is not None:
        within = _within(Path(given), campaign_id)
        found = Campaign(within) if within else Store(results or find_checkout().campaigns).open(given)
        if found.campaign_id != campaign_id:
            raise UsageError(f"{file} is of campaign {named(campaign_id)}, and {found.path} is {found.campaign_id}")
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
        f"campaign {named(campaign_id)} of {file} lies neither near it nor in {store.root}; "
        "name it, or the folder of the bundle that holds it, after the file"
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
