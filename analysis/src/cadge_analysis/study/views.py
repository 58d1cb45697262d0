# SPDX-License-Identifier: BSD-3-Clause
"""A study's page as blocks, put together from the comparison, the published figures and the study's own prose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from cadge_analysis import messages, units, words
from cadge_analysis.blocks import html
from cadge_analysis.blocks.make import (
    line_of,
    listed,
    number_columns,
    plain,
    row_name,
    tables_of,
    words_cell,
    words_column,
)
from cadge_analysis.blocks.model import (
    PUBLISHED,
    Block,
    Command,
    Fact,
    Facts,
    Heading,
    PageDocument,
    Region,
    Remark,
    Span,
    StackedFigure,
    Table,
    TableCell,
    TableLine,
)
from cadge_analysis.cells.build import judged_cells
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.draw import palette, svg
from cadge_analysis.page.documents import document
from cadge_analysis.page.parts import provenance
from cadge_analysis.page.parts.ablation_table import note, same_block, unit_of
from cadge_analysis.page.parts.remarks import counted, remarks
from cadge_analysis.page.parts.warned import validity
from cadge_analysis.page.sheet import sheet
from cadge_analysis.report import stamp
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.ablation import Ablation, Variant, ablations, reason
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.launch_facts import LaunchFacts, launch_facts
from cadge_analysis.stats.load import Dataset
from cadge_analysis.stats.twin import twin_rate
from cadge_analysis.study import (
    contrast,
    engine,
    features,
    grid,
    hypotheses,
    ladder,
    matrix,
    models,
    plugin,
    prose,
    published,
    ranges,
    shares,
)
from cadge_analysis.study.bill import PARTS, VARIABLES, RoundTripBill, items, stacked_bill, summary
from cadge_analysis.study.distance import distances, shown
from cadge_analysis.study.engine import EngineBench
from cadge_analysis.study.plugin import StudyCode
from cadge_analysis.study.prose import Prose, Section
from cadge_analysis.study.published import TAGS, BillOf, PropertyOf, Publication, SemanticsOf, SettingOf
from cadge_analysis.versus.conditions import holds
from cadge_results import Campaign, WrittenOutput, write_output

say = partial(messages.say, "study")
in_section = partial(messages.say, "sections")

MINIMUM_PX = 620
NOTHING_OF_OURS = say("views.no_point_study_number")
NEVER_OURS = ("bill", "hypotheses")
"""Sections that tell nothing of whether a page has numbers of ours.

A bill has published rows as well, and how many cases speak for a claim is a number even where there are none."""
NUMBERED = ("contrast", "ladder")
"""Sections of which a page may have several."""
T = TypeVar("T")
S = TypeVar("S")


def has_ours(blocks: Iterable[Block]) -> bool:
    """Tell whether a page has any number of ours."""
    sections = [one for one in blocks if not (isinstance(one, Region) and one.id in NEVER_OURS)]
    return any(
        cell.raw
        for table in tables_of(sections)
        for line in table.lines
        if line.role != PUBLISHED
        for cell in line.cells
    )


def _time(estimate: Estimate | None, why: str) -> Value:
    if estimate is not None and estimate.low is None:
        return Value(text=units.us(estimate.value), raw=f"{estimate.value:.12g}")
    return estimate_value(estimate, scale=1 / units.NS_PER_US, reason=why)


def _bill_line(item: RoundTripBill, parts: Sequence[str]) -> TableLine:
    name = row_name(item.label, item.detail)
    if item.remark:
        name = replace(name, small=(*name.small, ("remark", item.remark)))
    return line_of(name, (_time(item.total, ""), *(_time(item.parts.get(one), "") for one in parts)))


def _bill(comparison: Comparison, published: Publication, bill: BillOf, bench: EngineBench | None) -> tuple[Block, ...]:
    found = items(comparison, published, bill, bench)
    parts = [name for name in PARTS if any(name in item.parts for item in found)]
    drawn = [item for item in found if item.drawn]
    title = bill.title
    told = "; ".join(f"{item.label}, {item.detail}: {summary(item)}" for item in drawn)
    picture = svg.render(stacked_bill(drawn), name="bill", title=title, description=f"{told}.", minimum_px=MINIMUM_PX)
    return (
        StackedFigure(
            name="bill",
            label=title,
            parts=tuple((VARIABLES[name], name) for name in parts),
            svg=picture,
            caption=say("bill.figure"),
        ),
        Table(
            label=say("bill.numbers"),
            role="plain bill",
            columns=(words_column("system"), *number_columns(("round trip", *parts))),
            lines=tuple(_bill_line(item, parts) for item in found),
            caption=(Span(say("bill.caption")),),
        ),
    )


def _base(one: Ablation) -> Value:
    _, scale = unit_of(one)
    if one.numbers is None:
        return Value(text=units.MISSING, reason=reason(one.cell))
    return estimate_value(one.numbers.central, scale=scale, reason="")


def _variant(variant: Variant | None) -> Value:
    if variant is None:
        return Value(text=units.MISSING, reason="not planned")
    if variant.ratio is None:
        why = reason(variant.cell) if variant.numbers is None else variant.unlike or "no partner"
        return Value(text=units.MISSING, reason=why)
    sign = f"{units.TIMES}\u202f*" if variant.differs else units.TIMES
    flag = variant.verdict.mark if variant.verdict else ""
    return estimate_value(variant.ratio, scale=1.0, reason="", sign=sign, flag=flag)


def _ablation_tables(found: Sequence[Ablation], setting: SettingOf) -> Iterator[Block]:
    for _, group in groupby(found, key=same_block):
        members = list(group)
        first = members[0]
        unit, _ = unit_of(first)
        where = f"{words.PLACES[first.case.place]}, {words.WAITS[first.case.wait]}"
        title = f"{first.base.label} {where}: {words.pattern(first.case)}, {unit}"
        yield Heading(3, title)
        if all(one.numbers is None and not any(v.numbers for v in one.variants) for one in members):
            yield plain(f"No result: {reason(first.cell)}.", "dim")
            continue
        values = dict.fromkeys(variant.value for one in members for variant in one.variants)
        lines = (
            line_of(
                row_name(value, setting.values.get(value, "")),
                (_variant(next((v for v in one.variants if v.value == value), None)) for one in members),
            )
            for value in values
        )
        yield Table(
            label=title,
            role="plain ablation",
            columns=(words_column("switched off"), *number_columns(words.workload(one.case) for one in members)),
            lines=(line_of(row_name("none", setting.default), map(_base, members), role="base"), *lines),
        )


def _ablation(found: Sequence[Ablation], of: Comparison, setting: SettingOf) -> Iterator[Block]:
    if not found:
        yield plain(say("no_ablation"))
        return
    yield from _ablation_tables(found, setting)
    yield plain(note(found, of.withheld), "dim")


def _figures(published: Publication) -> tuple[Block, ...]:
    """Return the paper, every figure of it, and what their tags mean."""
    tags = dict.fromkeys(figure.tag for figure in published.figures.values())
    table = Table(
        label=say("titles.published"),
        role="plain figures",
        columns=(
            words_column("figure"),
            *number_columns(("value",)),
            words_column("tag"),
            words_column("source"),
        ),
        lines=tuple(
            line_of(
                row_name(figure.name),
                (
                    words_cell(shown(figure)),
                    TableCell(spans=(Span(figure.tag, role="tag"),)),
                    words_cell(figure.source),
                ),
            )
            for figure in published.figures.values()
        ),
        caption=(Span(say("figures")),),
    )
    return (
        Facts(tuple(Fact(name=name, text=text) for name, text in published.facts.items())),
        table,
        plain(say("tags"), "dim"),
        Facts(tuple(Fact(name=tag, text=TAGS[tag]) for tag in tags)),
    )


def _provenance(comparisons: Sequence[Comparison], sections: Mapping[str, Comparison]) -> Iterator[Block]:
    """Yield the campaigns that a page is made of, each with the sections that are made of it."""
    for one in comparisons:
        if len(comparisons) > 1:
            yield Heading(3, one.data.meta.campaign_id)
            made = ", ".join(name for name, of in sections.items() if of is one)
            yield plain(f"{provenance.deck(one.data)}{f' Of it: {made}.' if made else ''}")
        yield plain(in_section("command"))
        yield Command(provenance.command(one.data))
        yield Facts(provenance.campaign_facts(one.data))


def _mine(comparison: Comparison, published: Publication) -> list[Ablation]:
    setting = published.ablation
    return [
        one
        for one in ablations(comparison)
        if setting and one.setting == setting.setting and fnmatchcase(one.base.layer, published.layers)
    ]


def _verdict(found: Sequence[Remark], serious: Sequence[Remark], comparisons: Sequence[Comparison]) -> str:
    if not found:
        return say("views.our_side_valid_without")
    own = say("views.campaigns_own_report") if len(comparisons) == 1 else say("views.campaigns_own_reports")
    rest = say("views.notes_stand", own=own) if len(serious) < len(found) else ""
    held = sum(bool(one.withheld) for one in comparisons)
    if held:
        of = "" if len(comparisons) == 1 else f" from {held} of {len(comparisons)} campaigns"
        return f"Conclusions{of} are withheld: {counted(found)}{rest}"
    return say("views.our_side_valid", found=counted(found), rest=rest)


def _first(comparisons: Sequence[Comparison], section: Callable[[Comparison], T]) -> tuple[T, Comparison]:
    """Return a section made of the first campaign that has something for it, and that campaign."""
    made = [section(comparison) for comparison in comparisons]
    return next(((one, of) for one, of in zip(made, comparisons, strict=True) if one), (made[0], comparisons[0]))


def page(
    comparisons: Sequence[Comparison],
    published: Publication,
    prose: Prose,
    bench: EngineBench | None,
    own: StudyCode | None = None,
    *,
    generated: str,
) -> PageDocument:
    """Return the page. `generated` is its own time stamp, which the caller decides.

    Each section is made of the first campaign that has something for it; the prices of features, of all of them.
    """
    cells = list(map(judged_cells, comparisons))
    comparisons = [one.comparison for one in cells]
    comparison = comparisons[0]
    remarked = [
        (one.comparison, remarks(one.comparison, one.loads, twin_rate(one.comparison, one.verdicts))) for one in cells
    ]
    found = tuple(remark for _, some in remarked for remark in some)
    serious = tuple(
        replace(remark, title=f"{remark.title} ({one.data.meta.campaign_id})") if len(comparisons) > 1 else remark
        for one, some in remarked
        for remark in some
        if remark.serious
    )
    made = _Sections(comparisons, published, prose, bench, own)
    blocks = made.all()
    more = f" And {units.count_of(len(comparisons) - 1, 'campaign')} more." if len(comparisons) > 1 else ""
    boots_held = holds([one.data for one in comparisons]) if has_ours(blocks) else ""
    verdict = _verdict(found, serious, comparisons) if has_ours(blocks) else f"Nothing of ours: {NOTHING_OF_OURS}"
    return document(
        blocks,
        kind="study",
        title=published.title,
        deck=f"Ours: {provenance.deck(comparison.data)}{more}",
        styles=("study.css",),
        above=(validity(verdict, serious, holds=boots_held),),
        sheet=sheet(comparison, looks=palette.identities(made.of_matrix.data.layers).values(), generated=generated),
    )


class _Sections:
    """The sections of a page in its order, and which campaign each is made of."""

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        published: Publication,
        prose: Prose,
        bench: EngineBench | None,
        own: StudyCode | None,
    ) -> None:
        self._comparisons, self._published, self._prose = comparisons, published, prose
        self._bench, self._own = bench, own
        spec = published.matrix
        self._tables, self.of_matrix = _first(comparisons, lambda one: tuple(matrix.tables(one, spec)) if spec else ())
        self._mine, self._of_ablation = _first(comparisons, lambda one: _mine(one, published))
        self._of: dict[str, Comparison] = {"Then and now": self.of_matrix, "Matrix": self.of_matrix}
        self._of |= {"Semantics": self.of_matrix, "Switched off": self._of_ablation}

    def all(self) -> tuple[Region, ...]:
        """Return all sections that have something."""
        published = self._published
        table = self._firsts("grid", [published.grid] if published.grid else [], grid.grid)
        kept = self._firsts("shares", [published.shares] if published.shares else [], shares.shares)
        contrasts = self._firsts("contrast", published.contrasts, contrast.contrast)
        ladders = self._firsts("ladder", published.ladders, ladder.ladder)
        fitted = self._models()
        own = self._own_sections()
        return (
            *self._answer(),
            *self._ours(),
            *fitted,
            *ladders,
            *own,
            *self._hypotheses(),
            *table,
            *kept,
            *contrasts,
            *self._semantics(),
            self._section("published", say("titles.published"), _figures(published)),
            self._section("provenance", say("titles.provenance"), _provenance(self._comparisons, self._of)),
        )

    def _section(self, name: Section, title: str, blocks: Iterable[Block], *, id: str = "", short: str = "") -> Region:  # noqa: A002
        """Return a section that its prose opens."""
        return Region(id=id or name, title=title, short=short, blocks=(*self._prose.of(name), *blocks))

    def _firsts(self, name: Section, specs: Sequence[S], make: Callable[..., Region | None]) -> list[Region]:
        """Return a section for each specification that a campaign has something for; prose opens the first."""
        made = []
        for number, spec in enumerate(specs, 1):
            section = partial(make, published=self._published, spec=spec)
            found, of = _first(self._comparisons, section)
            if found:
                self._of[found.title] = of
                made.append(replace(found, id=f"{found.id}-{number}") if name in NUMBERED else found)
        return self._opened(name, made)

    def _opened(self, name: Section, regions: Sequence[Region]) -> list[Region]:
        """Return sections of which prose opens the first."""
        return [
            replace(one, blocks=(*self._prose.of(name), *one.blocks)) if at == 0 else one
            for at, one in enumerate(regions)
        ]

    def _answer(self) -> Iterator[Region]:
        published = self._published
        told = tuple(matrix.answers(self.of_matrix, published.matrix)) if published.matrix else ()
        apart = ranges.ranges(self.of_matrix, published)
        if told or apart:
            yield self._section("answer", say("titles.answer"), (*([listed(told, "said")] if told else []), *apart))
        if self._tables:
            yield self._section("matrix", say("titles.matrix"), self._tables, short="Matrix")
        if found := distances(self._comparisons[0], published):
            anchor = "distance" if told or apart else "answer"
            yield self._section("distance", say("titles.distance"), found, id=anchor)

    def _ours(self) -> Iterator[Region]:
        published, prose = self._published, self._prose
        if published.bill:
            made = _bill(self._comparisons[0], published, published.bill, self._bench)
            yield self._section("bill", published.bill.title, made, short="Bill")
        if published.ablation:
            made = tuple(_ablation(self._mine, self._of_ablation, published.ablation))
            yield self._section(
                "ablation", prose.ablation_title or say("titles.ablation"), made, short=prose.ablation_short
            )
        if priced := features.features(self._comparisons, published):
            yield self._section("features", say("titles.features"), priced, short="Features")

    def _models(self) -> Iterator[Region]:
        of = next((one for one in self._comparisons if models.has_points(one.data)), self._comparisons[0])
        if found := models.models(of, self._published):
            self._of["LogGP"] = of
            yield self._section("models", say("titles.models"), found, short="LogGP")

    def _own_sections(self) -> list[Region]:
        own = self._own
        found, of = _first(self._comparisons, lambda one: own.sections(one) if own else ())
        self._of |= {one.title: of for one in found if one.id != hypotheses.ANCHOR}
        claims = [one for one in found if one.id == hypotheses.ANCHOR]
        rest = [one for one in found if one.id != hypotheses.ANCHOR]
        return [*self._opened("own", rest), *self._opened(hypotheses.ANCHOR, claims)]

    def _hypotheses(self) -> Iterator[Region]:
        if claims := tuple(hypotheses.hypotheses(self._comparisons, self._published)):
            yield from self._opened(hypotheses.ANCHOR, [hypotheses.section(claims)])

    def _semantics(self) -> Iterator[Region]:
        if self._published.semantics:
            found = _semantics_table(self.of_matrix.data, self._published.semantics)
            title = say("titles.semantics")
            yield self._section("semantics", title, (found,), short="Semantics")


NOT_SEEN = "not seen"
NOT_HERE = "not measured here"


def _property_text(facts: LaunchFacts, row: PropertyOf) -> str:
    if row.cap:
        return "yes" if row.cap in facts.caps else "no"
    value = facts.traits.get(row.trait)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOT_HERE if value is None else str(value).replace("_", " ")


def _ours(found: Iterable[tuple[str, LaunchFacts]], row: PropertyOf) -> str:
    """Return one word where all contexts say the same, else each word with those that say it."""
    by_word: dict[str, list[str]] = {}
    for where, facts in found:
        by_word.setdefault(_property_text(facts, row), []).append(where)
    if len(by_word) < 2:
        return next(iter(by_word), NOT_HERE)
    return "; ".join(f"{word} ({', '.join(dict.fromkeys(places))})" for word, places in by_word.items())


def _semantics_table(data: Dataset, spec: SemanticsOf) -> Table:
    """Return the matrix: systems across, properties down."""
    contexts: dict[str, list[tuple[str, LaunchFacts]]] = {style: [] for style in spec.systems}
    for (series, place, _), facts in sorted(launch_facts(data).items(), key=lambda item: item[0]):
        style, _, substrate = series.layer.partition("-")
        if style in contexts and not series.settings and not series.shims:
            contexts[style].extend((f"{substrate} {place}", one) for one in facts)

    def cell(row: PropertyOf, style: str) -> TableCell:
        then, now = row.published.get(style, NOT_SEEN), _ours(contexts[style], row)
        return TableCell(spans=(Span(then, role="then"), Span(now, role="now")))

    return Table(
        label="Semantics",
        role="plain semantics",
        columns=(words_column("property"), *map(words_column, spec.systems.values())),
        lines=tuple(
            line_of(row_name(row.name), (cell(row, style) for style in spec.systems)) for row in spec.properties
        ),
    )


@dataclass(frozen=True, slots=True)
class StudyPage:
    """A page that was written, and whether any number on it is of the campaigns."""

    written: WrittenOutput
    has_ours: bool


def page_of(campaigns: Sequence[Campaign], folder: Path, *, engine_bench: Path | None = None) -> PageDocument:
    """Return the page of the study in `folder` for one or more campaigns.

    Each section is made of the first campaign that has something for it.
    Raises AnalysisError, cadge_results.ResultsError.
    """
    figures = published.read(folder)
    own = plugin.load_own(folder, figures)
    bench = engine.read(engine_bench) if engine_bench is not None else None
    data = [load.read(campaign) for campaign in campaigns]
    said = prose.read(folder)
    return page([compare.compare(one) for one in data], figures, said, bench, own, generated=stamp(data[0]))


def build(
    campaigns: Sequence[Campaign], folder: Path, out_path: Path, *, engine_bench: Path | None = None
) -> StudyPage:
    """Write the page of the study in `folder`. Raises as `page_of` does."""
    made = page_of(campaigns, folder, engine_bench=engine_bench)
    return StudyPage(write_output(out_path, html.printed(made).encode()), has_ours(made.blocks))
