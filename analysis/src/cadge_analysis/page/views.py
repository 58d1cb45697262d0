# SPDX-License-Identifier: BSD-3-Clause
"""The report's page, put together from the comparison: every string that its printers will print."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import plain
from cadge_analysis.blocks.model import ONSCREEN, WHOLE, Block, Figure, Heading, Key, Part, Region, Span, Table, Text
from cadge_analysis.cells.build import CellRow, first_rows
from cadge_analysis.draw import palette
from cadge_analysis.draw.palette import Identity
from cadge_analysis.judged import gated, judged
from cadge_analysis.models.campaign import fits_of
from cadge_analysis.models.loggp import Fitted
from cadge_analysis.page import coverage, provenance, tables, verdict_words
from cadge_analysis.page import sections as parts
from cadge_analysis.page.answers import answers
from cadge_analysis.page.bill_figure import bill_figure
from cadge_analysis.page.compared import attempts, compared
from cadge_analysis.page.contrast_figure import contrast_figure
from cadge_analysis.page.count_figure import count_figures
from cadge_analysis.page.cpu_figure import cpu_figure
from cadge_analysis.page.embed import ReportHead
from cadge_analysis.page.figures import beside, far_tail_figure, figure, in_family, main_family, tail_figure
from cadge_analysis.page.findings import NOTHING, findings, no_pictures
from cadge_analysis.page.glossary import glossary
from cadge_analysis.page.imported import imported
from cadge_analysis.page.itself import itself
from cadge_analysis.page.knee_table import knee_tables
from cadge_analysis.page.method import method
from cadge_analysis.page.model_tables import model_tables
from cadge_analysis.page.opening import bracket, opening, usual
from cadge_analysis.page.questions import questions
from cadge_analysis.page.remarks import remarks
from cadge_analysis.page.residual_figure import residual_figure
from cadge_analysis.page.scale_figures import scale
from cadge_analysis.page.sheet import sheet
from cadge_analysis.page.strips import strips_figure
from cadge_analysis.page.tail_figures import percentile_figure
from cadge_analysis.page.versions import versions
from cadge_analysis.page.viewmodel import Page, Since
from cadge_analysis.page.warned import warned
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.knee import Knee
from cadge_analysis.stats.knee import loads as loads_of
from cadge_analysis.stats.launch_facts import LaunchFacts, launch_facts
from cadge_analysis.stats.load import Cell, Dataset, Series
from cadge_analysis.stats.measures import MAIN, TAIL
from cadge_analysis.stats.twin import twin_rate
from cadge_results.formats.point import Value

say = partial(messages.say, "report")

FirstFacts = Mapping[tuple[Series, str, str], LaunchFacts]


def keys_of(looks: Mapping[Series, Identity]) -> dict[Series, Key]:
    """Return the key of each series, from its look."""
    return {
        series: Key(label=series.label, number=look.number, dashed=bool(look.dash)) for series, look in looks.items()
    }


def _figures(
    rows: list[Row],
    keys: dict[Series, Key],
    looks: dict[Series, Identity],
    facts: FirstFacts,
    data: Dataset,
    knees: Sequence[Knee],
    fits: Sequence[Fitted],
    *,
    anchor: str,
) -> tuple[Figure, ...]:
    """Return one figure a wait mode, and one of the p99 where layers have knees.

    Points off the main family are in the tables alone.
    """
    made = []
    for wait in words.WAIT_ORDER:
        here = [row for row in rows if row.cell.case.wait == wait]
        family = main_family(here)
        if family is None:
            continue
        members = [row for row in here if in_family(row.cell.case, family)]
        if len({row.cell.case.size for row in members}) > 1:
            made.append(figure(members, keys, looks, facts, data=data, name=f"{anchor}-{wait}"))
            tails = percentile_figure(members, keys, looks, facts, data=data, name=f"{anchor}-{wait}-tails")
            bills = bill_figure(members, looks, data=data, name=f"{anchor}-{wait}-bill")
            left = residual_figure(members, fits, keys, looks, name=f"{anchor}-{wait}-residuals")
            made += [one for one in (tails, bills, left) if one is not None]
            ids = {row.cell.point_id for row in members}
            here_knees = [knee for knee in knees if knee.point_id in ids]
            if here_knees:
                name = f"{anchor}-{wait}-p99"
                made.append(tail_figure(members, here_knees, keys, looks, facts, data=data, name=name))
                far = far_tail_figure(members, here_knees, keys, looks, facts, data=data, name=f"{name}9")
                made += [far] if far is not None else []
        made += count_figures(here, keys, looks, facts, data=data, name=f"{anchor}-{wait}")
        contrast = contrast_figure(here, looks, name=f"{anchor}-{wait}-contrast")
        made += [contrast] if contrast is not None else []
    costs = cpu_figure(rows, keys, looks, name=f"{anchor}-processors")
    return (*made, costs) if costs is not None else tuple(made)


def _summaries(
    comparison: Comparison, cells: list[Cell], rows: list[Row], keys: dict[Series, Key]
) -> tuple[Table, ...]:
    made = []
    for wait in words.WAIT_ORDER:
        here = [row for row in rows if row.cell.case.wait == wait]
        for family in (main_family(here), beside(here)):
            if family is None:
                continue
            members = [cell for cell in cells if in_family(cell.case, family)]
            one = tables.summary(comparison, members, keys, wait=wait)
            if one is not None:
                made.append(one)
    return tuple(made)


def _of_what_it_can(cells: Sequence[Cell]) -> str:
    """Return which of a pattern's choices the campaign has, where it has not all of them: its summary tells of all."""
    file = cells[0].case.file
    said = []
    for name, one in file.parameters.items():
        planned = {cell.case.workload[name] for cell in cells}
        if one.values and any(value not in planned for value in one.values) and one.ranks is None:
            values = [words.value(one, value) for value in one.values if value in planned]
            said.append(f"{one.title} {units.listing(values)}")
    return f"Here with {', '.join(said)}. " if said else ""


def _note(cells: list[Cell], rows: list[Row]) -> str:
    """Return how many planned points of the section have numbers, so that none can go missing unseen."""
    points = len(cells)
    file = cells[0].case.file
    text = _of_what_it_can(cells)
    text += f"{units.grouped(len(rows))} of {units.count_of(points, 'planned point')} have a result."
    if points > len(rows):
        text += " " + say("views.others")
    if file.baseline is not None and rows:
        chosen = {row.cell.case.workload[file.baseline.parameter] for row in rows}
        if file.baseline.value not in chosen:
            text += " " + say("views.no_such_point", baseline=words.baseline(file))
    return text


def _section(
    comparison: Comparison,
    pattern: str,
    place: str,
    keys: dict[Series, Key],
    looks: dict[Series, Identity],
    facts: FirstFacts,
    fits: Sequence[Fitted],
    knees: Sequence[Knee],
    verdicts: CampaignVerdicts,
    shown: Mapping[str, CellRow],
    only: Container[str] | None,
) -> Region | None:
    """Return one pattern at one place. only: the columns that there are numbers for; with it tables alone."""
    file = comparison.data.patterns[pattern]
    cells = [
        cell
        for cell in comparison.data.cells
        if cell.series.kind == "layer" and (cell.case.pattern, cell.case.place) == (pattern, place)
    ]
    rows = [row for row in comparison.rows if (row.cell.case.pattern, row.cell.case.place) == (pattern, place)]
    anchor, heading = f"{pattern}-{place}", f"{file.title} {words.PLACES[place]}"
    every = tables.columns_of(file, rows, tables.baseline_of(rows, verdicts))
    columns = tables.parted(file, [one for one in every if only is None or one.key in only])
    in_tables = [shown[row.cell.point_id] for row in rows]
    folds = tuple(tables.case_folds(in_tables, keys, verdicts, columns, heading=heading, anchor=anchor))
    if not cells or not (folds or only is None):
        return None
    blocks: tuple[Block, ...] = ()
    if only is None:
        here_fits = [one for one in fits if (one.pattern, one.place) == (pattern, place)]
        knees = [knee for knee in knees if (knee.case.pattern, knee.case.place) == (pattern, place)]
        fitted: tuple[Block, ...] = ()
        models = model_tables(here_fits, comparison.why_not)
        if models:
            fitted = (Heading(3, say("tables.model")), *models)
        blocks = (
            *_summaries(comparison, cells, rows, keys),
            *knee_tables(knees, keys),
            *_figures(rows, keys, looks, facts, comparison.data, knees, here_fits, anchor=anchor),
            *fitted,
        )
    if folds:
        opened = (Heading(3, say("tables.every")), plain(say("tables.open"), f"dim {ONSCREEN}"))
        blocks = (*blocks, Region(role=WHOLE, blocks=(*opened, *folds)))
    lede = f"{file.summary} Timed: {file.words.timed}." if file.words.timed else file.summary
    note = (Span(" "), Span(_note(cells, rows), role="dim")) if only is None else ()
    return Region(
        id=anchor,
        title=heading,
        short=f"{file.title}, {words.PLACES_SHORT[place]}",
        blocks=(Text((Span(lede), *note), "lede"), *blocks),
        part=Part(name=pattern, title=file.title),
    )


def _chosen(data: Dataset) -> Mapping[tuple[str, str], set[Value]]:
    """Return which values of each parameter were planned for layers, by pattern and parameter."""
    found: dict[tuple[str, str], set[Value]] = defaultdict(set)
    for cell in data.cells:
        if cell.series.kind == "layer":
            for name in cell.case.file.parameters:
                found[cell.case.pattern, name].add(cell.case.workload[name])
    return found


def _cannot(comparison: Comparison, verdicts: CampaignVerdicts) -> tuple[str, ...]:
    """Return what the campaign does not show, in sentences."""
    data = comparison.data
    said = []
    if words.virtualisation(data) or words.on_veth(data):
        said.append(say("views.real_hosts"))
    if all(file.loop == "closed" for file in data.patterns.values()):
        said.append(say("views.under_load"))
    waits = {cell.case.wait for cell in data.cells}
    if waits == {"poll"}:
        said.append(say("views.sleeping"))
    said += verdict_words.cannot(verdicts)
    said += tables.uncounted(comparison.rows)
    without = sum(cell.state != "valid" for cell in data.cells if cell.series.kind == "layer")
    if without:
        total = sum(cell.series.kind == "layer" for cell in data.cells)
        have = "has" if without == 1 else "have"
        points = units.count_of(total, "planned point")
        said.append(say("views.without_result", without=without, points=points, have=have))
    return tuple(said)


def page(
    comparison: Comparison,
    *,
    title: str | None,
    generated: str,
    since: Since | None = None,
    making: Mapping[str, object] | None = None,
    withhold: str | None = None,
    only: Container[str] | None = None,
) -> Page:
    """Return the page. `generated` is the report's own time stamp, which the caller decides; `making`: see there.

    withhold: why verdicts are withheld, where that is known (see `judged`); only: see `_section`.
    """
    data = comparison.data
    series = data.layers
    looks = palette.identities(series)
    keys = keys_of(looks)
    every_fact = launch_facts(data)
    first = {key: found[0] for key, found in every_fact.items()}
    fits = fits_of(data).fits
    verdicts = judged(comparison, withhold)
    comparison = gated(comparison, verdicts)
    loads = loads_of(comparison)
    shown = {row.cell.point_id: row for row in first_rows(comparison, verdicts, loads)}
    titles = {name: file.title for name, file in data.patterns.items()}
    sections: list[Region] = []
    for pattern in data.patterns:
        for place in words.PLACE_ORDER:
            made = _section(comparison, pattern, place, keys, looks, first, fits, loads.knees, verdicts, shown, only)
            if made is not None:
                sections.append(made)
    rate, of_tails = (twin_rate(comparison, verdicts, measure=measure) for measure in (MAIN, TAIL))
    found = remarks(comparison, rate, of_tails)
    strips, spread = strips_figure(data, keys, looks), scale(data, keys, looks)
    wrong = (*findings(data), *no_pictures())  # after the last picture
    several = versions(data, every_fact, verdicts.delta)
    nobody, answered = answers(comparison, verdicts)
    told = warned(found, wrong, nothing_found=NOTHING, undecided=bool(nobody) and not verdicts.decided)
    said = ReportHead(title or provenance.title(data), provenance.deck(data), (*told.warnings, *told.notes))
    the_sheet = sheet(comparison, looks=looks.values(), generated=generated, making=making, said=said)
    return Page(
        title=said.title,
        deck=said.deck,
        compared=compared(data),
        warned=told,
        findings=wrong,
        since=since.findings if since else (),
        opening=(*opening(data, comparison.rows, answered=bool(answered)), *([nobody] if nobody else [])),
        answers=answered,
        bracket=bracket(comparison.rows),
        questions=questions(comparison, verdicts, keys),
        cannot=_cannot(comparison, verdicts),
        layers=parts.layers(provenance.layer_lines(data, keys, every_fact)),
        sections=tuple(sections),
        since_then=parts.since(since) if since else None,
        versions=parts.versions(several) if several else None,
        itself=parts.itself(itself(data, rate, of_tails), strips),
        coverage=coverage.coverage(data, keys),
        without=coverage.without(data, measured=bool(attempts(data))),
        floors=parts.floors(provenance.floor_table(comparison)),
        method=parts.method(
            method(
                data.patterns,
                verdict_words.facts(verdicts, titles),
                several_ends=any(row.numbers.apart for row in comparison.rows),
                launches=usual(comparison.rows),
                floors=comparison.floors.items(),
                own=provenance.own(data, every_fact),
                chosen=_chosen(data),
            ),
            verdict_words.table(verdicts, titles),
        ),
        provenance=parts.provenance(the_sheet, provenance.fact_tables(data, every_fact), provenance.host_facts(data)),
        sheet=the_sheet,
        imported=imported(data),
        scale=spread,
        glossary=glossary(comparison.rows, data.patterns),
    )
