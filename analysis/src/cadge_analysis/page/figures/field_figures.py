# SPDX-License-Identifier: BSD-3-Clause
"""Charts of the layers against size, side by side: who is best at which sizes, steps in lines, and who is absent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import median

from cadge_analysis import messages, words
from cadge_analysis.blocks.model import DRAWN, Figure, Span
from cadge_analysis.draw import plots
from cadge_analysis.draw.chart import Chart, Line
from cadge_analysis.groups import by_key
from cadge_analysis.page import verdict_words
from cadge_analysis.page.figures.main_figure import (
    EMPHASISED,
    FigureSource,
    bars_note,
    chart_of,
    data_table,
    described,
    drawn,
    marks_of,
    title_of,
)
from cadge_analysis.page.parts.questions import Groups, rank_text, ranks
from cadge_analysis.page.ranked import REFUSED, TRIED_IN_VAIN, absent, is_undecided
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, groups_in_order
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.load import Case

say = partial(messages.say, "figures")

BESIDE_PX = 340
TIED_MOST = 4
"""So many layers of a tie are named."""
STEP_LEAST = 1.5
"""A step: where a layer's path changes, it loses so many times more than layers whose path does not."""
STEPS_MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSource:
    """What these charts take of a campaign that was judged."""

    comparison: Comparison
    verdicts: CampaignVerdicts
    figures: FigureSource


def field_figures(
    groups: Mapping[str, Sequence[Row]], source: FieldSource
) -> tuple[tuple[Figure, ...], tuple[Span, ...]]:
    """Draw narrow figures of groups of rows, by name, for charts side by side; without small pictures.

    Return them, and how all of them are to be read.
    """
    ranked = _ranked(groups.values(), source)
    charts = {name: _with_ranks(chart_of(rows, source.figures), rows, ranked) for name, rows in groups.items()}
    by_label = {one.label: key for one, key in source.figures.keys.items()}
    made = tuple(
        drawn(
            plots.beside_figure(chart),
            name=name,
            title=f"{title_of(groups[name][0].cell.case)}, {words.PLACES[groups[name][0].cell.case.place]}",
            description=described(chart),
            caption="\n".join(
                filter(
                    None,
                    (
                        best_by_size(groups[name], source.verdicts),
                        steps(chart),
                        absent(
                            source.comparison.data,
                            {row.cell.case for row in groups[name]},
                            (REFUSED, *TRIED_IN_VAIN),
                        ),
                    ),
                )
            ),
            table=data_table(chart),
            keys=tuple(by_label[line.label] for line in chart.lines),
            minimum_px=BESIDE_PX,
        )
        for name, chart in charts.items()
    )
    return made, _caption(groups, charts, source.verdicts) if groups else ()


def _caption(
    groups: Mapping[str, Sequence[Row]], charts: Mapping[str, Chart], verdicts: CampaignVerdicts
) -> tuple[Span, ...]:
    lines = [line for chart in charts.values() for line in chart.lines]
    rows = [row for some in groups.values() for row in some]
    said = [say("figures.best_holds", probability=1 - ERROR)] * any(_speaks(verdicts, row.cell.case) for row in rows)
    said += [bars_note(rows)]
    said += [say("figures.field_floor")] * any(map(plots.has_ratio, charts.values()))
    marks = [marks_of(charts.values())]
    marks += [say("figures.field_grey", most=EMPHASISED)] * any(line.faint for line in lines)
    read = " ".join(said) + "".join(dict.fromkeys(map(verdict_words.load_note, groups.values())))
    return Span(read), Span("".join(f" {one}" for one in filter(None, marks)), role=DRAWN)


# ---- ranks: those of the matrix ----


def _ranked(groups: Collection[Sequence[Row]], source: FieldSource) -> Mapping[Case, Groups]:
    verdicts = source.verdicts
    cases = {row.cell.case for rows in groups for row in rows}
    if verdicts.withheld:
        return {}
    return groups_in_order(source.comparison, verdicts.families, cases, verdicts.looks)


def _with_ranks(chart: Chart, rows: Sequence[Row], ranked: Mapping[Case, Groups]) -> Chart:
    """Return a chart whose marks have ranks; those of one group, which say nothing, have none."""
    found: dict[tuple[str, int], str] = {}
    for case in dict.fromkeys(row.cell.case for row in rows):
        some = ranked.get(case, ())
        if len(some) > 1:
            found |= {(series.label, case.size): rank_text(*place) for series, place in ranks(some).items()}

    def marked(line: Line) -> Line:
        marks = (replace(mark, rank=found.get((line.label, mark.size), "")) for mark in line.marks)
        return replace(line, marks=tuple(marks))

    return replace(chart, lines=tuple(map(marked, chart.lines)))


# ---- which layer is best ----


def best_by_size(rows: Sequence[Row], verdicts: CampaignVerdicts) -> str:
    """Return which layer is best, or which ones tie, over which sizes, so that crossings can be read.

    Where nothing is concluded it is the best median. "" of one size, or of one layer, alone.
    """
    by_size = by_key(rows, lambda row: row.cell.case.size)
    if len(by_size) < 2 or len({row.cell.series for row in rows}) < 2:
        return ""
    speaks = all(_speaks(verdicts, some[0].cell.case) for some in by_size.values())
    runs: list[tuple[tuple[str, ...], list[Case]]] = []
    for _, here in sorted(by_size.items()):
        case = here[0].cell.case
        best = _best(here, verdicts) if speaks else (_best_median(here),)
        if not runs or set(runs[-1][0]) != set(best):
            runs.append((best, []))
        runs[-1][1].append(case)
    said = [say("figures.best_run", layers=_named(layers), sizes=_span(cases)) for layers, cases in runs]
    if speaks:
        return say("figures.best", runs=said)
    return say("figures.best_median", end="Highest" if rows[0].numbers.more_is_better else "Lowest", runs=said)


def _speaks(verdicts: CampaignVerdicts, case: Case) -> bool:
    group = verdicts.groups.get(case)
    return group is not None and bool(group.members) and not group.withheld


def _best_median(rows: Sequence[Row]) -> str:
    sign = -1.0 if rows[0].numbers.more_is_better else 1.0
    return min(rows, key=lambda row: sign * row.numbers.central.value).cell.series.label


def _best(rows: Sequence[Row], verdicts: CampaignVerdicts) -> tuple[str, ...]:
    """Return who leads in a case, the best median first; nobody where all do."""
    group = verdicts.groups[rows[0].cell.case]
    return () if is_undecided(group) else tuple(one.label for one in group.members)


def _named(layers: Sequence[str]) -> str:
    if not layers:
        return say("figures.none_separated")
    named = [words.isolated(one) for one in layers]
    if len(named) == 1:
        return named[0]
    if len(named) <= TIED_MOST:
        return say("figures.best_tie", layers=named)
    few = named[: TIED_MOST - 1]
    return say("figures.best_tie_more", layers=few, n=len(named) - len(few))


def _span(cases: Sequence[Case]) -> str:
    ends = [words.size(case) for case in (cases[0], cases[-1])]
    return ends[0] if len(cases) == 1 else say("figures.best_span", first=ends[0], last=ends[1])


# ---- steps in lines ----


def steps(chart: Chart) -> str:
    """Return where a line has a step because the layer's path changes: the largest ones; "" without any.

    A step is measured against layers whose path does not change between the same sizes.
    """
    found = sorted(((step, line) for line in chart.lines if (step := _step(chart, line)) >= STEP_LEAST), key=_largest)
    said = [
        say(
            "figures.step",
            layer=words.isolated(line.label),
            size=chart.sizes[line.turn[1].size],
            path=line.long_path,
        )
        for _, line in found[:STEPS_MOST]
        if line.turn
    ]
    return say("figures.steps", steps=said) if said else ""


def _largest(found: tuple[float, Line]) -> tuple[float, str]:
    return -found[0], found[1].label


def _step(chart: Chart, line: Line) -> float:
    """Return by how many times more a layer gets worse at its turn than the median layer that has none there."""
    if line.turn is None:
        return 0.0
    sizes = tuple(mark.size for mark in line.turn)
    own = _worse(chart, line, sizes)
    others = [
        worse
        for other in chart.lines
        if other.turn is None or tuple(mark.size for mark in other.turn) != sizes
        if (worse := _worse(chart, other, sizes))
    ]
    return own / median(others) if others and own else 0.0


def _worse(chart: Chart, line: Line, sizes: tuple[int, ...]) -> float:
    """Return how many times worse a line is at the second of two sizes; 0 where it has not both as neighbours."""
    for first, then in pairwise(line.marks):
        if (first.size, then.size) == sizes and first.value > 0 and then.value > 0:
            return first.value / then.value if chart.more_is_better else then.value / first.value
    return 0.0
