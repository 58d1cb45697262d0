# SPDX-License-Identifier: BSD-3-Clause
"""The report's page, put together from the comparison: the list of blocks that its printers print."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import lede
from cadge_analysis.blocks.model import (
    WHOLE,
    Block,
    Figure,
    Heading,
    Key,
    PageDocument,
    Part,
    Region,
    Remark,
    Sheet,
    Span,
    Table,
)
from cadge_analysis.cells.build import CellRow, judged_cells
from cadge_analysis.models.campaign import fits_of
from cadge_analysis.models.loggp import LayerFit
from cadge_analysis.page import verdict_words
from cadge_analysis.page.documents import STYLES, document, navigation
from cadge_analysis.page.embed import ReportHead
from cadge_analysis.page.families import beside, in_family, main_family
from cadge_analysis.page.figures.bill_figure import bill_figure
from cadge_analysis.page.figures.contrast_figure import contrast_figure
from cadge_analysis.page.figures.cpu_figure import cpu_figure
from cadge_analysis.page.figures.field_figures import FieldSource, field_figures
from cadge_analysis.page.figures.main_figure import FigureSource, figure, figure_source
from cadge_analysis.page.figures.residual_figure import residual_figure
from cadge_analysis.page.figures.scale_figures import count_figures, scale
from cadge_analysis.page.figures.strips import strips_figure
from cadge_analysis.page.figures.tail_figures import far_tail_figure, percentile_figure, tail_figure
from cadge_analysis.page.parts import coverage, provenance, tables
from cadge_analysis.page.parts import sections as parts
from cadge_analysis.page.parts.compared import attempts, compared
from cadge_analysis.page.parts.findings import NOTHING, findings, no_pictures, told
from cadge_analysis.page.parts.imported import imported
from cadge_analysis.page.parts.itself import itself
from cadge_analysis.page.parts.knee_table import knee_tables
from cadge_analysis.page.parts.method import glossary, method
from cadge_analysis.page.parts.model_tables import model_tables
from cadge_analysis.page.parts.natives import natives_section
from cadge_analysis.page.parts.opening import bracket, opening, usual
from cadge_analysis.page.parts.questions import questions
from cadge_analysis.page.parts.remarks import opened_again, remarks
from cadge_analysis.page.parts.since import findings_of, since
from cadge_analysis.page.parts.versions import versions
from cadge_analysis.page.parts.warned import caution, headline, validity, warned
from cadge_analysis.page.ranked import (
    PanelSource,
    first_picture,
    first_questions,
    first_screen,
    further_picture,
    leading_group,
    nothing_decided,
)
from cadge_analysis.page.sheet import dressed, sheet
from cadge_analysis.pairs.matrix import PairMatrix
from cadge_analysis.pairs.section import is_well
from cadge_analysis.pairs.section import section as pairs_section
from cadge_analysis.prediction import by_size
from cadge_analysis.reopen import ReportNumbers
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.knee import Knee, Loads
from cadge_analysis.stats.launch_facts import launch_facts
from cadge_analysis.stats.load import Cell, Dataset, Series
from cadge_analysis.stats.measures import MAIN, TAIL
from cadge_analysis.stats.twin import twin_rate
from cadge_analysis.versus.against import SideComparison
from cadge_results.formats.point import Value

say = partial(messages.say, "report")
in_nav = partial(messages.say, "sections")

NEEDS_RAW = tuple(say(f"reopened.lacks_{what}") for what in ("costs", "tails", "charts", "reasons", "proof"))
"""What a page that was made of a report's embedded cells does not show."""


def _figures(
    rows: list[Row],
    source: FigureSource,
    knees: Sequence[Knee],
    fits: Sequence[LayerFit],
    *,
    anchor: str,
    above: Collection[str],
) -> Iterator[Figure | None]:
    """Yield one figure a wait mode, and one of the p99 where layers have knees; None for what is not drawn.

    Points off the main family are in the tables alone. above: names of figures that stand above.
    """
    for wait in words.WAIT_ORDER:
        name = f"{anchor}-{wait}"
        here = [row for row in rows if row.cell.case.wait == wait]
        family = main_family(here)
        if family is None:
            continue
        members = [row for row in here if in_family(row.cell.case, family)]
        if len({row.cell.case.size for row in members}) > 1:
            if name not in above:
                yield figure(members, source, name=name)
            yield percentile_figure(members, source, name=f"{name}-tails")
            yield bill_figure(members, source, name=f"{name}-bill")
            yield residual_figure(members, fits, source, name=f"{name}-residuals")
            ids = {row.cell.point_id for row in members}
            here_knees = [knee for knee in knees if knee.point_id in ids]
            if here_knees:
                yield tail_figure(members, here_knees, source, name=f"{name}-p99")
                yield far_tail_figure(members, here_knees, source, name=f"{name}-p999")
        yield from count_figures(here, source, name=name)
        yield contrast_figure(here, source, name=f"{name}-contrast")
    yield cpu_figure(rows, source, name=f"{anchor}-processors")


def _charts(source: FieldSource) -> tuple[tuple[Figure, ...], tuple[Span, ...]]:
    """Return the charts of what the first screen asks, along their axes, and how they are to be read."""
    comparison = source.comparison
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    waits = {row.cell.case.wait for row in comparison.rows}
    wait = next((one for one in words.WAIT_ORDER if one in waits), "")
    for row in comparison.rows:
        if row.cell.case.wait == wait:
            groups[row.cell.case.pattern, row.cell.case.place].append(row)
    measured = {pattern for pattern, _ in groups}
    patterns = {name: file for name, file in comparison.data.patterns.items() if name in measured}
    found = {}
    for pattern in first_screen(patterns):
        for place in words.PLACE_ORDER:
            here = groups.get((pattern, place), [])
            family = main_family(here)
            members = [row for row in here if family is not None and in_family(row.cell.case, family)]
            if len({row.cell.case.size for row in members}) > 1:
                found[f"{pattern}-{place}-{wait}"] = members
    return field_figures(found, source)


def _summaries(cells: list[Cell], rows: list[Row], keys: Mapping[Series, Key]) -> tuple[Table, ...]:
    made = []
    several_waits = len({cell.case.wait for cell in cells}) > 1
    for wait in words.WAIT_ORDER:
        here = [row for row in rows if row.cell.case.wait == wait]
        for family in (main_family(here), beside(here)):
            if family is None:
                continue
            members = [cell for cell in cells if in_family(cell.case, family)]
            one = tables.summary(rows, members, keys, wait=wait, several_waits=several_waits)
            if one is not None:
                made.append(one)
    return tuple(made)


def _of_what_it_can(cells: Sequence[Cell]) -> str:
    """Return which of a pattern's choices the campaign has, where it has not all of them: its summary tells of all."""
    file = cells[0].case.file
    said = []
    for name, one in file.parameters.items():
        planned = {cell.case.workload[name] for cell in cells}
        if (
            one.values
            and any(value not in planned for value in one.values)
            and one.ranks is None
            and planned != {one.default}
        ):
            values = [words.value(one, value) for value in one.values if value in planned]
            said.append(f"{one.title} {units.listing(values)}")
    return f"Here with {', '.join(said)}. " if said else ""


def _note(cells: list[Cell], rows: list[Row]) -> str:
    """Return how many planned points of the section lack a number, so that none can go missing unseen."""
    points = len(cells)
    file = cells[0].case.file
    text = _of_what_it_can(cells)
    if points > len(rows):
        text += say("views.others", n=points - len(rows), points=points)
    if file.baseline is not None and rows:
        chosen = {row.cell.case.workload[file.baseline.parameter] for row in rows}
        if file.baseline.value not in chosen:
            text += " " * bool(text) + say("views.no_such_point", baseline=words.baseline(file))
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCampaign:
    """A campaign with its verdicts, and how its series look: what the sections of its page are made of.

    `shown`: the row of each point.
    """

    comparison: Comparison
    verdicts: CampaignVerdicts
    figures: FigureSource
    fits: Sequence[LayerFit]
    loads: Loads
    shown: Mapping[str, CellRow]
    charts: tuple[Figure, ...] = ()
    charts_caption: tuple[Span, ...] = ()

    @property
    def keys(self) -> Mapping[Series, Key]:
        """The key of each series."""
        return self.figures.keys


def judged_campaign(comparison: Comparison) -> JudgedCampaign:
    """Return a campaign as its page takes it."""
    cells = judged_cells(comparison)
    comparison, data = cells.comparison, comparison.data
    source = figure_source(data)
    field = FieldSource(comparison=comparison, verdicts=cells.verdicts, figures=source)
    charts, caption = _charts(field) if not data.is_reported else ((), ())
    return JudgedCampaign(
        comparison=comparison,
        verdicts=cells.verdicts,
        figures=source,
        charts=charts,
        charts_caption=caption,
        fits=fits_of(data, comparison.numbers).fits,
        loads=cells.loads,
        shown={row.cell.point_id: row for row in cells.first()},
    )


def pattern_sections(made: JudgedCampaign) -> tuple[Region, ...]:
    """Return a section a pattern and place. Of a report's embedded cells it has tables alone."""
    cells: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for cell in made.comparison.data.cells:
        if cell.series.kind == "layer":
            cells[cell.case.pattern, cell.case.place].append(cell)
    for row in made.comparison.rows:
        case = row.cell.case
        rows[case.pattern, case.place].append(row)
    every = (
        _section(made, name, place, cells[name, place], rows[name, place])
        for name in made.comparison.data.patterns
        for place in words.PLACE_ORDER
    )
    return tuple(one for one in every if one is not None)


def _section(made: JudgedCampaign, pattern: str, place: str, cells: list[Cell], rows: list[Row]) -> Region | None:
    """Return the section of a pattern's layers at one place, whose cells and rows these are."""
    comparison, keys, reported = made.comparison, made.keys, made.comparison.data.is_reported
    file = comparison.data.patterns[pattern]
    anchor, heading = f"{pattern}-{place}", f"{file.title} {words.PLACES[place]}"
    every = tables.columns_of(file, rows, tables.baseline_of(rows, made.verdicts), reported=reported)
    columns = tables.parted(file, every)
    in_tables = [made.shown[row.cell.point_id] for row in rows]
    folds = tuple(tables.case_folds(in_tables, keys, made.verdicts, columns, anchor=anchor))
    if not cells or (reported and not folds):
        return None
    blocks: tuple[Block, ...] = ()
    if not reported:
        here_fits = [one for one in made.fits if (one.pattern, one.place) == (pattern, place)]
        knees = [knee for knee in made.loads.knees if (knee.case.pattern, knee.case.place) == (pattern, place)]
        fitted: tuple[Block, ...] = ()
        above = {one.name for one in made.charts}
        models = model_tables(here_fits, comparison.why_not)
        if models:
            fitted = (Heading(3, say("tables.model")), *models)
        blocks = (
            *_summaries(cells, rows, keys),
            *knee_tables(knees, keys),
            *filter(None, _figures(rows, made.figures, knees, here_fits, anchor=anchor, above=above)),
            *fitted,
        )
    if folds:
        blocks = (*blocks, Region(role=WHOLE, blocks=(Heading(3, say("tables.every")), *folds)))
    said = f"{file.summary} Timed: {file.words.timed}." if file.words.timed else file.summary
    opening = lede(said, "" if reported else _note(cells, rows))
    return Region(
        id=anchor,
        title=heading,
        short=f"{file.title}, {words.PLACES_SHORT[place]}",
        blocks=(opening, *blocks),
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


def cannot(made: JudgedCampaign) -> tuple[str, ...]:
    """Return what the campaign does not show, in sentences."""
    comparison, data = made.comparison, made.comparison.data
    said = []
    if words.virtualisation(data) or words.on_veth(data):
        said.append(say("views.real_hosts"))
    if all(file.loop == "closed" for file in data.patterns.values()):
        said.append(say("views.under_load"))
    waits = {cell.case.wait for cell in data.cells}
    if waits == {"poll"}:
        said.append(say("views.sleeping"))
    said += verdict_words.cannot(made.verdicts)
    if not data.is_reported:
        said += tables.uncounted(comparison.rows)
    without = sum(cell.state != "valid" for cell in data.cells if cell.series.kind == "layer")
    if without:
        total = sum(cell.series.kind == "layer" for cell in data.cells)
        have = "has" if without == 1 else "have"
        points = units.count_of(total, "planned point")
        said.append(say("views.without_result", without=without, points=points, have=have))
    return tuple(said)


def method_section(made: JudgedCampaign) -> Region:
    """Return how raw data became numbers and verdicts."""
    comparison, data = made.comparison, made.comparison.data
    titles = {name: file.title for name, file in data.patterns.items()}
    facts = method(
        data.patterns,
        verdict_words.facts(made.verdicts, titles),
        several_ends=any(row.numbers.apart for row in comparison.rows),
        launches=usual(comparison.rows),
        epochs=data.plan.epochs,
        has_floors=bool(comparison.floors),
        own=provenance.own(data, launch_facts(data)),
        chosen=_chosen(data),
    )
    return parts.method(facts, verdict_words.table(made.verdicts, titles))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """What a page takes of where its numbers come from: of a campaign, or of a report that carries them.

    `wrong`: findings; `nothing_wrong` and `is_undecided`: what is said of their absence, and whether anything is
    decided. `first`: sentences before the answers; `lacks`: what cannot be shown. `regions`: those that need raw data,
    by their names. `kind` and `made`: what Cadge calls such a page, and what it is made of.
    """

    said: ReportHead
    sheet: Sheet
    wrong: tuple[Remark, ...] = ()
    nothing_wrong: str = ""
    is_undecided: bool = False
    first: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    regions: Mapping[str, Region | None] = field(default_factory=dict)
    kind: str = "report"
    made: str = ""


def of_report(report: ReportNumbers, *, generated: str) -> Callable[[JudgedCampaign], PageSource]:
    """Return the source of a page that is made of a report's embedded cells: what needs raw data is left out."""

    def source(made: JudgedCampaign) -> PageSource:
        limits = warned((opened_again(made.comparison.data, report.file), *report.said.remarks), ())
        whole = {**report.whole, "opened_again": True}
        return PageSource(
            said=replace(report.said, remarks=limits),
            sheet=dressed(report.facts, "", whole, generated=generated, looks=made.figures.looks.values()),
            lacks=NEEDS_RAW,
            kind=f"report{in_nav('nav.opened', file=report.file)}",
            made=in_nav("nav.made_again", file=report.file),
        )

    return source


def of_campaign(
    *,
    generated: str,
    title: str | None = None,
    making: Mapping[str, object] | None = None,
    pairs: Sequence[PairMatrix] = (),
) -> Callable[[JudgedCampaign], PageSource]:
    """Return the source of a campaign's page. `generated`: its time stamp; `making`: see `Making`."""

    def source(made: JudgedCampaign) -> PageSource:
        comparison, data, verdicts = made.comparison, made.comparison.data, made.verdicts
        strips = strips_figure(made.figures, made.comparison.numbers)
        wrong = (*findings(data), *no_pictures())
        rate, of_tails = (twin_rate(comparison, verdicts, measure=measure) for measure in (MAIN, TAIL))
        limits = warned(remarks(comparison, made.loads, rate, of_tails), wrong)
        said = ReportHead(
            title or provenance.title(data), provenance.deck(data, len({one.series for one in pairs})), limits
        )
        looks = made.figures.looks.values()
        return PageSource(
            said=said,
            sheet=sheet(comparison, looks=looks, generated=generated, making=making, said=said),
            wrong=wrong,
            nothing_wrong="" if wrong or not is_well(pairs) else NOTHING,
            is_undecided=nothing_decided(comparison, verdicts) and not verdicts.decided,
            first=opening(
                data,
                comparison.rows,
                answered=any(leading_group(rows, verdicts) for rows in first_questions(comparison)),
            ),
            regions={
                "questions": questions(comparison, verdicts, made.keys),
                "natives": natives_section(data.natives),
                "pairs": pairs_section(pairs),
                "layers": parts.layers(provenance.layer_lines(data, made.keys, launch_facts(data)), compared(data)),
                "itself": parts.itself(itself(data, rate, of_tails, predicted=by_size(data.plan, verdicts)), strips),
                "without": coverage.without(data, measured=bool(attempts(data))),
            },
        )

    return source


def page(
    comparison: Comparison,
    source_of: Callable[[JudgedCampaign], PageSource],
    *,
    beside: SideComparison | None = None,
) -> PageDocument:
    """Return the page of a campaign's numbers, wherever they come from: `of_campaign` or `of_report`.

    beside: the campaign as the second side against an earlier one.
    """
    made = judged_campaign(comparison)
    comparison, data, verdicts = made.comparison, made.comparison.data, made.verdicts
    every_fact = launch_facts(data)
    sections = pattern_sections(made)
    spread = scale(made.figures)
    source = source_of(made)
    limits, has = source.said.remarks, source.regions
    panels = PanelSource.of(comparison, verdicts, made.keys)
    first = first_picture(panels)
    changed = findings_of(beside) if beside else ()
    regions = (
        parts.changed(changed),
        parts.answer(source.first, first) if data.layers or not has.get("pairs") else has.get("pairs"),
        parts.further(further_picture(panels, first)),
        parts.field(made.charts, made.charts_caption),
        has.get("questions"),
        has.get("natives"),
        parts.limits(
            validity(headline(limits, undecided=source.is_undecided), limits, source.nothing_wrong, level=3),
            bracket(comparison.rows, data.plan.epochs) if comparison.rows else "",
            (*cannot(made), *source.lacks),
        ),
        *sections,
        has.get("pairs") if data.layers else None,
        has.get("layers") if data.layers else None,
        versions(data, every_fact, verdicts.delta),
        spread,
        since(beside, data) if beside else None,
        has.get("itself"),
        coverage.coverage(data, made.keys) if data.layers else None,
        has.get("without") if data.layers else None,
        parts.floors(provenance.floor_table(comparison)),
        imported(data),
        parts.glossary(glossary(comparison.rows, data.patterns)),
        method_section(made),
        parts.provenance(source.sheet, provenance.fact_tables(data, every_fact), provenance.host_table(data)),
    )
    found = tuple(one for one in regions if one is not None)
    whole = document(
        found,
        kind=source.kind,
        title=source.said.title,
        deck=source.said.deck,
        styles=STYLES,
        sheet=source.sheet,
        above=caution(limits),
        sections=navigation(found, has_command=bool(source.sheet.command)),
        made=source.made,
    )
    return replace(whole, findings=told(source.wrong, changed), scripted=True)
