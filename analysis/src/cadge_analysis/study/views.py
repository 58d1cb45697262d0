# SPDX-License-Identifier: BSD-3-Clause
"""A study's page, put together from the comparison and the published figures: every string that the templates print."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import groupby
from typing import TypeVar

from cadge_analysis import units, words
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.draw import palette, svg
from cadge_analysis.judged import against_itself, gated
from cadge_analysis.page import provenance
from cadge_analysis.page.ablation_table import note, same_block, unit_of
from cadge_analysis.page.remarks import counted, remarks
from cadge_analysis.page.sheet import sheet
from cadge_analysis.page.viewmodel import Fact, Remark
from cadge_analysis.stats.ablation import Ablation, Variant, ablations, reason
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.study import (
    contrast,
    features,
    grid,
    hypotheses,
    ladder,
    matrix,
    models,
    ranges,
    semantics,
    shares,
    stack,
)
from cadge_analysis.study.bill import PARTS, Item, items, summary
from cadge_analysis.study.distance import distances, shown
from cadge_analysis.study.engine import EngineBench
from cadge_analysis.study.model import AblationTable, Bill, BillRow, FigureRow, HypothesisRow, Source, StudyPage
from cadge_analysis.study.plugin import Own
from cadge_analysis.study.published import TAGS, BillOf, Published, SettingOf

MINIMUM_PX = 620
NOTHING_OF_OURS = "no point of this study has a number here"
T = TypeVar("T")


def has_ours(part: object) -> bool:
    """Tell whether a page, or a part of it, has any number of ours."""
    if isinstance(part, Value):
        return bool(part.raw)
    if isinstance(part, tuple):
        return any(map(has_ours, part))
    # a bill has published rows as well, and how many cases speak for a claim is a number even where there are none
    if not is_dataclass(part) or isinstance(part, (Bill, HypothesisRow)) or getattr(part, "published", False) is True:
        return False
    return any(has_ours(getattr(part, one.name)) for one in fields(part))


def _time(estimate: Estimate | None, why: str) -> Value:
    if estimate is not None and estimate.low is None:
        return Value(text=units.us(estimate.value), raw=f"{estimate.value:.12g}")
    return estimate_value(estimate, scale=1 / units.NS_PER_US, reason=why)


def _bill_row(item: Item, parts: Sequence[str]) -> BillRow:
    cells = [_time(item.total, ""), *(_time(item.parts.get(name), "") for name in parts)]
    return BillRow(label=item.label, detail=item.detail, cells=tuple(cells), remark=item.remark)


def _bill(comparison: Comparison, published: Published, bill: BillOf, bench: EngineBench | None) -> Bill:
    found = items(comparison, published, bill, bench)
    parts = [name for name in PARTS if any(name in item.parts for item in found)]
    drawn = [item for item in found if item.drawn]
    title = bill.title
    told = "; ".join(f"{item.label}, {item.detail}: {summary(item)}" for item in drawn)
    picture = svg.render(stack.figure(drawn), name="bill", title=title, description=f"{told}.", minimum_px=MINIMUM_PX)
    return Bill(
        title=title,
        columns=("round trip", *parts),
        rows=tuple(_bill_row(item, parts) for item in found),
        svg=picture,
        keys=tuple((stack.VARIABLES[name], name) for name in parts),
        caption="Medians over launches, in \u00b5s; each bar is one round trip, whatever its length. Parts are "
        "differences of medians, so that they add up; their intervals join the ends of both, and are wider than "
        "those of the distances above, which are taken round by round.",
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


def _ablation_tables(found: Sequence[Ablation], setting: SettingOf) -> Iterator[AblationTable]:
    for _, group in groupby(found, key=same_block):
        members = list(group)
        first = members[0]
        unit, _ = unit_of(first)
        where = f"{words.PLACES[first.case.place]}, {words.WAITS[first.case.wait]}"
        title = f"{first.base.label} {where}: {words.pattern(first.case)}, {unit}"
        values = dict.fromkeys(variant.value for one in members for variant in one.variants)
        rows = [
            (
                value,
                setting.values.get(value, ""),
                tuple(_variant(next((v for v in one.variants if v.value == value), None)) for one in members),
            )
            for value in values
        ]
        bare = all(one.numbers is None and not any(v.numbers for v in one.variants) for one in members)
        yield AblationTable(
            title=title,
            sizes=tuple(words.workload(one.case) for one in members),
            base=tuple(_base(one) for one in members),
            rows=() if bare else tuple(rows),
            missing=reason(first.cell) if bare else "",
        )


def _figures(published: Published) -> tuple[FigureRow, ...]:
    return tuple(
        FigureRow(name=figure.name, text=shown(figure), tag=figure.tag, source=figure.source)
        for figure in published.figures.values()
    )


def _mine(comparison: Comparison, published: Published) -> list[Ablation]:
    setting = published.ablation
    return [
        one
        for one in ablations(comparison)
        if setting and one.setting == setting.setting and fnmatchcase(one.base.layer, published.layers)
    ]


def _verdict(found: Sequence[Remark], grave: Sequence[Remark], comparisons: Sequence[Comparison]) -> str:
    if not found:
        return "Our side is valid without warnings or notes"
    own = "the campaign\u2019s own report" if len(comparisons) == 1 else "the campaigns\u2019 own reports"
    rest = f"; the notes stand in {own}" if len(grave) < len(found) else ""
    held = sum(bool(one.withheld) for one in comparisons)
    if held:
        of = "" if len(comparisons) == 1 else f" from {held} of {len(comparisons)} campaigns"
        return f"Conclusions{of} are withheld: {counted(found)}{rest}"
    return f"Our side is valid with {counted(found)}{rest}"


def _first(comparisons: Sequence[Comparison], section: Callable[[Comparison], T]) -> tuple[T, Comparison]:
    """Return a section made of the first campaign that has something for it, and that campaign."""
    made = [section(comparison) for comparison in comparisons]
    return next(((one, of) for one, of in zip(made, comparisons, strict=True) if one), (made[0], comparisons[0]))


def page(
    comparisons: Sequence[Comparison],
    published: Published,
    bench: EngineBench | None,
    own: Own | None = None,
    *,
    generated: str,
) -> StudyPage:
    """Return the page. `generated` is its own time stamp, which the caller decides.

    Each section is made of the first campaign that has something for it; the prices of features, of all of them.
    """
    comparisons = [gated(one) for one in comparisons]
    comparison = comparisons[0]
    remarked = [(one, remarks(one, against_itself(one))) for one in comparisons]
    found = tuple(remark for _, some in remarked for remark in some)
    grave = tuple(
        replace(remark, title=f"{remark.title} ({one.data.meta.campaign_id})") if len(comparisons) > 1 else remark
        for one, some in remarked
        for remark in some
        if remark.grave
    )
    setting, spec, properties = published.ablation, published.matrix, published.semantics
    mine, of_ablation = _first(comparisons, lambda one: _mine(one, published))
    tables, of_matrix = _first(comparisons, lambda one: tuple(matrix.tables(one, spec)) if spec else ())
    contrasts = [
        _first(comparisons, partial(contrast.contrast, published=published, spec=one, number=number))
        for number, one in enumerate(published.contrasts, 1)
    ]
    ladders = [
        _first(comparisons, partial(ladder.ladder, published=published, spec=one, number=number))
        for number, one in enumerate(published.ladders, 1)
    ]
    of_models = next((one for one in comparisons if models.has_points(one.data)), comparison)
    the_grid, of_grid = _first(
        comparisons, lambda one: grid.grid(one, published, published.grid) if published.grid else None
    )
    kept, of_kept = _first(
        comparisons, lambda one: shares.shares(one, published, published.shares) if published.shares else None
    )
    sections = {"Then and now": of_matrix, "Matrix": of_matrix, "Semantics": of_matrix, "Switched off": of_ablation}
    sections |= {made.title: of for made, of in ((the_grid, of_grid), (kept, of_kept)) if made}
    sections |= {found.title: of for found, of in contrasts if found}
    sections |= {found.title: of for found, of in ladders if found}
    sections |= {"LogGP": of_models} if published.models else {}
    applied, of_applied = _first(comparisons, lambda one: own.sections(one) if own else None)
    sections |= {part.title: of_applied for part in applied.parts} if applied else {}
    tags = dict.fromkeys(figure.tag for figure in published.figures.values())
    made = StudyPage(
        title=published.title,
        deck=f"Ours: {provenance.deck(comparison.data)}"
        + (f" And {units.count_of(len(comparisons) - 1, 'campaign')} more." if len(comparisons) > 1 else ""),
        system=published.system,
        year=str(published.year),
        verdict=_verdict(found, grave, comparisons),
        remarks=grave,
        paper=tuple(Fact(name=name, text=text) for name, text in published.facts.items()),
        figures=_figures(published),
        tags=tuple(Fact(name=tag, text=TAGS[tag]) for tag in tags),
        distances=tuple(distances(comparison, published)),
        answers=tuple(matrix.answers(of_matrix, spec)) if spec else (),
        matrix=tables,
        ranges=ranges.ranges(of_matrix, published),
        semantics=semantics.matrix(of_matrix.data, properties) if properties else None,
        bill=_bill(comparison, published, published.bill, bench) if published.bill else None,
        has_ablation=setting is not None,
        base_name=setting.default if setting else "",
        ablations=tuple(_ablation_tables(mine, setting)) if setting else (),
        ablation_note=note(mine, of_ablation.withheld),
        features=features.features(comparisons, published),
        grid=the_grid,
        shares=kept,
        contrasts=tuple(found for found, _ in contrasts if found),
        hypotheses=(*hypotheses.hypotheses(comparisons, published), *(applied.hypotheses if applied else ())),
        ladders=tuple(found for found, _ in ladders if found),
        models=models.models(of_models, published),
        parts=applied.parts if applied else (),
        sources=tuple(
            Source(
                campaign_id=one.data.meta.campaign_id,
                deck=provenance.deck(one.data),
                sections=tuple(name for name, of in sections.items() if of is one),
                command=provenance.command(one.data),
                facts=provenance.campaign_facts(one.data),
            )
            for one in comparisons
        ),
        sheet=sheet(comparison, looks=palette.identities(of_matrix.data.layers).values(), generated=generated),
    )
    return made if has_ours(made) else replace(made, verdict=f"Nothing of ours: {NOTHING_OF_OURS}")
