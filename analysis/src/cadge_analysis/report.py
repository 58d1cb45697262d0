# SPDX-License-Identifier: BSD-3-Clause
"""The report of a campaign: an HTML file, with a page a pattern beside a large one. Equal records give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from cadge_analysis import messages, reopen
from cadge_analysis.blocks.html import PrintedSections, printed_parts
from cadge_analysis.blocks.html import printed as printed_html
from cadge_analysis.blocks.lines import lines_of_page
from cadge_analysis.blocks.markdown import markdown
from cadge_analysis.blocks.model import PageDocument
from cadge_analysis.blocks.text import text
from cadge_analysis.errors import BadInputError
from cadge_analysis.making import ReportChoices, epoch
from cadge_analysis.page import pages, views
from cadge_analysis.page.parts import provenance
from cadge_analysis.pairs.matrix import matrices, without_pairs
from cadge_analysis.placing import ReportFiles, placed
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.verify import printed
from cadge_analysis.versus.against import SideComparison
from cadge_results import Campaign, WrittenOutput, is_stream
from cadge_results.uncollected import uncollected

say = partial(messages.say, "general")


def stamp(data: load.Dataset) -> str:
    """Return when the report was made, as far as it may matter: the campaign's end, or SOURCE_DATE_EPOCH if set.

    The clock is not asked, so that the same records give the same bytes.
    """
    return _stamp(data, epoch())


def _stamp(data: load.Dataset, at: int | None) -> str:
    if at is not None:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    made = provenance.moment(data.meta.finished_utc or data.meta.created_utc)
    return f"records of {made:%Y-%m-%d %H:%M:%S} UTC"


def page_of(
    data: load.Dataset,
    *,
    title: str | None = None,
    beside: SideComparison | None = None,
    baseline: str | None = None,
    numbers: Mapping[str, Numbers] | None = None,
) -> PageDocument:
    """Return the page of a campaign. `beside`: it as the second side against an earlier one. numbers: see `compare`.

    baseline: what layers are judged against, by its label, where that is not what the sweep declares. Raises
    BadInputError for one that the campaign does not have.
    """
    making = ReportChoices(title=title, baseline=baseline, epoch=epoch())
    return made_as(data, making, beside, numbers)


@uncollected()
def made_as(
    data: load.Dataset,
    making: ReportChoices,
    beside: SideComparison | None = None,
    numbers: Mapping[str, Numbers] | None = None,
) -> PageDocument:
    """Return the page of a campaign as somebody chose it to be. Raises BadInputError."""
    if beside is not None:
        making = replace(making, against=beside.first, margin=beside.margin)
    pairs = matrices(data)
    source = views.of_campaign(
        title=making.title, generated=_stamp(data, making.epoch), making=making.stored(), pairs=pairs
    )
    others = without_pairs(data) if pairs else data
    return views.page(compare.compare(judged_against(others, making.baseline), numbers), source, beside=beside)


def judged_against(data: load.Dataset, baseline: str | None) -> load.Dataset:
    """Return a campaign whose layers are to be judged against another one than its sweep declares; None: as it is."""
    if baseline is None or baseline == data.plan.baseline:
        return data
    known = [series.label for series in data.layers]
    if baseline not in known:
        raise BadInputError(say("report.no_baseline", baseline=baseline, known=known))
    sweep = {**data.plan.sweep, "baseline": baseline}
    return replace(data, plan=data.plan.model_copy(update={"sweep": sweep}), baseline_chosen=True)


def build(campaign_path: Path, out_path: Path, title: str | None = None) -> WrittenOutput:
    """Write the report of the campaign in a folder. Raises AnalysisError, cadge_results.ResultsError."""
    return write(page_of(load.read(Campaign(campaign_path)), title=title), out_path)


def page_again(text: str, file: str, baseline: str | None) -> PageDocument:
    """Return the page that can be made of a report alone, without its campaign; `file` is the report's name.

    baseline: what layers are judged against, in place of what the file says. Raises BadInputError.
    """
    found = printed(text, file)
    if found.part_of:
        raise BadInputError(say("report.one_page", file=file, part_of=found.part_of))
    carried = reopen.carried(found.data, file)
    data = judged_against(carried.data, baseline or ReportChoices.of(found.making).baseline)
    return views.page(compare.compare(data), views.of_report(carried, generated=f"as {file} carries them"))


def html(page: PageDocument) -> str:
    """Return a page as one HTML document."""
    return printed_html(page)


def files(page: PageDocument, name: str, *, parted: bool | None = None) -> Iterator[tuple[str, str]]:
    """Yield the HTML documents of a report with their file names, the main one, which is called `name`, last.

    parted: whether it has a page a pattern beside it; None to let its size decide (see page.pages). One is printed at
    a time: a large report has as many bytes as its campaign's numbers.
    """
    is_one = parted is False or not pages.parts_of(page)
    whole: list[str] = []
    size = 0
    sections = PrintedSections()
    for part in printed_parts(page, sections):
        size += len(part.encode())
        if is_one or (parted is None and size <= pages.ONE_FILE_MOST):
            whole.append(part)
        else:
            whole.clear()
    if whole:
        yield name, "".join(whole)
        return
    main, others = pages.split(page, name, size)
    yield from ((other, printed_html(one, sections)) for other, one in others.items())
    del sections
    text = html(main)
    for one in pages.lighter(main):
        if len(text.encode()) <= pages.ONE_FILE_MOST:
            break
        text = html(one)
    yield name, text


def edition(page: PageDocument, kind: str) -> str:
    """Return a page in an edition without figures: "markdown", or "text" of at most 100 columns."""
    return {"markdown": markdown, "text": text}[kind](lines_of_page(page))


def write(page: PageDocument, out_path: Path, *, one_file: bool = False) -> WrittenOutput:
    """Write a report into a file, and where it is parted its other pages beside it. See `placing`."""
    return write_pages(page, out_path, one_file=one_file).main


def write_pages(page: PageDocument, out_path: Path, *, one_file: bool = False) -> ReportFiles:
    """Write a report as `write` does, and say which files it has."""
    parted = False if one_file or is_stream(out_path) else None
    return placed(files(page, out_path.name, parted=parted), out_path)
