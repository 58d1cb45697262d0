# SPDX-License-Identifier: BSD-3-Clause
"""The figure of a case along its axis: its lines, its words, its small companions, and the numbers behind it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import CHOSEN, DataTable, Figure, Key, SmallPicture
from cadge_analysis.cells.shown import short_most
from cadge_analysis.draw import palette, plots, svg
from cadge_analysis.draw.chart import THE_FLOOR, Chart, FloorMark, Foreign, Line, Mark
from cadge_analysis.draw.palette import Identity, style_of
from cadge_analysis.groups import by_key
from cadge_analysis.page import verdict_words
from cadge_analysis.page.parts.imported import imported_lines
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST, by_epoch
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_analysis.stats.launch_facts import LaunchFacts, launch_facts
from cadge_analysis.stats.load import Case, Dataset, Series
from cadge_analysis.stats.offered import unlike

say = partial(messages.say, "figures")

MANY = 6  # from seven series on, each style also gets a picture of its own,
FEW_SIZES = 2  # unless it would show no more than two markers
EMPHASISED = 8  # lines of one picture that stand out: of more, nobody tells one from another
MAIN_PX = 720


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSource:
    """What figures take of a campaign: its data, and each series' key, look and first facts."""

    data: Dataset
    keys: Mapping[Series, Key]
    looks: Mapping[Series, Identity]
    facts: Mapping[tuple[Series, str, str], LaunchFacts]


def figure_source(data: Dataset) -> FigureSource:
    """Return what figures take of a campaign."""
    looks = palette.identities(data.layers)
    return FigureSource(
        data=data,
        keys={one: Key(label=one.label, number=look.number, dashed=bool(look.dash)) for one, look in looks.items()},
        looks=looks,
        facts={key: found[0] for key, found in launch_facts(data).items()},
    )


def mark_of(
    size: int, found: Estimate | Tail, scale: float = 1.0, ratio: Estimate | None = None, *, ringed: bool = False
) -> Mark:
    """Return the mark of a number with its interval, and of its ratio to the chart's base."""
    low, high = (None if end is None else end * scale for end in (found.low, found.high))
    mark = Mark(size=size, value=(found.value or 0.0) * scale, low=low, high=high, ringed=ringed)
    return replace(mark, ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high) if ratio else mark


def drawn(
    spec: svg.Spec,
    *,
    name: str,
    title: str,
    description: str,
    caption: str,
    table: DataTable,
    marks: str = "",
    keys: tuple[Key, ...] = (),
    minimum_px: int = MAIN_PX,
) -> Figure:
    """Return the figure of a specification. description: for those who cannot see it; marks: what is drawn how."""
    picture = svg.render(spec, name=name, title=title, description=description, minimum_px=minimum_px)
    return Figure(name=name, title=title, svg=picture, caption=caption, drawn=marks, keys=keys, table=table)


def chart_of(rows: Sequence[Row], source: FigureSource, *, along: str | None = None) -> Chart:
    """Return the chart of rows that share pattern, place, wait mode and family.

    along: the parameter on its axis, where that is not the pattern's own; rows are then alike but for that one.
    """
    first = rows[0].cell.case
    name = along or first.file.axis
    quantity, axis = rows[0].numbers.quantity, first.file.parameters[name]
    shown = words.shown(quantity)
    is_size = axis.unit == "bytes"
    by_series = by_key(rows, lambda row: row.cell.series)
    data = source.data
    base, ratios = _ratios(rows, data, name)
    lines = []
    for series, members in sorted(by_series.items()):
        known = source.facts.get((series, first.place, first.wait))
        turns = known if is_size and known and known.long_path != known.short_path else None
        marks = (
            mark_of(_at(row, name), row.numbers.central, shown.scale, ratios[row.cell.point_id]) for row in members
        )
        lines.append(
            Line(
                label=series.label,
                look=source.looks[series],
                marks=tuple(sorted(marks, key=lambda mark: mark.size)),
                style=style_of(series),
                short_bytes=short_most(turns, first.file) if turns else 0,
                long_path=turns.long_path if turns else "",
            )
        )
    floor = {}
    for row in rows if along is None or base == THE_FLOOR else ():  # else it is of one number of processes alone
        if row.floor is not None:
            size, said = _at(row, name), words.floor_name(row.floor, data)
            floor[size] = FloorMark(size=size, value=row.floor.central.value * shown.scale, name=said)
    measured = {mark.size for line in lines for mark in line.marks}
    sizes = sorted(measured | set(floor))
    chart = Chart(
        more_is_better=quantity.better == "high",
        linear=quantity.kind != "histogram",
        unit=shown.unit,
        spoken=shown.spoken,
        title=first.file.words.axis or f"{quantity.title}, {shown.unit}",
        along="size" if is_size else axis.title,
        along_title=_along(first) if is_size else axis.title,
        proportional=axis.unit == "percent",
        sizes={size: words.value(axis, size) for size in sizes},
        lines=tuple(lines),
        floor=tuple(floor[size] for size in sorted(floor)),
        base=base,
        foreign=_foreign(data, first, measured, shown.scale) if along is None else (),
    )
    return emphasised(chart, data.plan.baseline)


def _at(row: Row, name: str) -> int:
    """Return where a row stands on an axis."""
    return row.cell.case.workload.integer(name)


def _ratios(rows: Sequence[Row], data: Dataset, name: str) -> tuple[str, dict[str, Estimate | None]]:
    """Return what the ratios of a figure divide by, and the ratio of each point.

    That is the floor; where none was measured, the layer that the others are judged against.
    """
    wanted = any if name == rows[0].cell.case.file.axis else all  # floors are of one number of processes
    if wanted(row.ratio is not None for row in rows):
        return THE_FLOOR, {row.cell.point_id: row.ratio for row in rows}
    at_label = {(_at(row, name), row.cell.series.label): row for row in rows}
    several = len({row.cell.series for row in rows}) > 1
    found: dict[str, Estimate | None] = dict.fromkeys(row.cell.point_id for row in rows)
    for row in rows if several else ():
        at = at_label.get((_at(row, name), data.plan.baseline_of(row.cell.series.label) or ""))
        if at is not None and at.numbers.central.value > 0 and not unlike((row.cell, at.cell)):
            found[row.cell.point_id] = intervals.ratio(row.numbers.by_round, at.numbers.by_round)
    return data.plan.baseline or THE_FLOOR, found


def _foreign(data: Dataset, case: Case, sizes: Collection[int], scale: float) -> tuple[Foreign, ...]:
    """Return what was imported for a figure, at the sizes that were measured here."""
    found = []
    for line in imported_lines(data, case):
        marks = tuple((size, value * scale) for size, value in line.marks if size in sizes)
        if marks:
            found.append(Foreign(label=line.label, marks=marks))
    return tuple(found)


def _along(case: Case) -> str:
    """Return what an axis of sizes is of: the message, or the one of several that a pattern moves."""
    file = case.file
    together = {file.axis, *(name for name, one in file.parameters.items() if one.follows == file.axis)}
    others = [name for name in file.moves if name not in together and case.workload[name] != 0]
    return f"size: {file.parameters[file.axis].title}" if others else "message size"


def _marked(mark: Mark | None, line: Line) -> str:
    if mark is None:
        return units.MISSING
    said = [f"{units.sig3(mark.value)}{units.ends(mark.low, mark.high)}"]
    if mark.ratio is not None:
        said.append(units.times(mark.ratio))
    if mark.rank:
        said.append(say("figures.rank", rank=mark.rank))
    if line.turn and line.turn[1] is mark:
        said.append(say("figures.from_here", path=line.long_path))
    return "; ".join(said)


def data_table(chart: Chart) -> DataTable:
    """Return every plotted value as text: a row a size, a pair of columns a series."""
    by_size: dict[int, dict[str, Mark]] = defaultdict(dict)
    for line in chart.lines:
        for mark in line.marks:
            by_size[mark.size][line.label] = mark
    floor = {mark.size: mark for mark in chart.floor}
    foreign = [dict(one.marks) for one in chart.foreign]
    rows = []
    for size in sorted(by_size):
        cells = [chart.sizes[size]]
        if floor:
            at = floor.get(size)
            cells.append(f"{units.sig3(at.value)} ({at.name})" if at else units.MISSING)
        cells.extend(_marked(by_size[size].get(line.label), line) for line in chart.lines)
        cells.extend(units.sig3(one[size]) if size in one else units.MISSING for one in foreign)
        rows.append(tuple(cells))
    head = (f"floor, {chart.unit}",) if floor else ()
    tail = tuple(f"{one.label}, {chart.unit}" for one in chart.foreign)
    return DataTable(
        columns=(chart.along, *head, *(f"{words.isolated(x.label)}, {chart.unit}" for x in chart.lines), *tail),
        rows=tuple(rows),
    )


def between(values: Mapping[str, float], *, at: str, spoken: str) -> str:
    """Return a sentence for those who cannot see a chart: the lowest and the highest of its values at one place."""
    low, high = (words.isolated(end(values, key=lambda name: values[name])) for end in (min, max))
    least, most = min(values.values()), max(values.values())
    return say("figures.between", n=len(values), at=at, low=low, least=least, high=high, most=most, spoken=spoken)


def described(chart: Chart) -> str:
    """Return a sentence for those who cannot see a chart: its ends at the first size."""
    first = min(line.marks[0].size for line in chart.lines)
    values = {line.label: line.marks[0].value for line in chart.lines if line.marks[0].size == first}
    return between(values, at=chart.sizes[first], spoken=chart.spoken)


def bars_note(rows: Sequence[Row]) -> str:
    """Return how sure the intervals are: the usual coverage, and how many cells have another."""
    tally = Counter((row.numbers.central.launches, row.numbers.central.coverage) for row in rows)
    (launches, coverage), often = max(tally.items(), key=lambda item: (item[1], item[0]))
    if launches == 1:
        return say("figures.one_launch")
    epochs = max(len(by_epoch(row.numbers.by_round)) for row in rows)
    if epochs >= EPOCHS_LEAST:
        return say("figures.bars_over", epochs=epochs)
    text = say("figures.bars", launches=launches, coverage=coverage)
    others = sum(tally.values()) - often
    return f"{text} {say('figures.bars_fewer', others=others)}" if others else text


def caption_of(chart: Chart, rows: Sequence[Row]) -> str:
    """Return what the numbers of a chart of rows are."""
    what = rows[0].cell.case.file.words.marker
    what = say("figures.markers", marker=what) + " " if what else ""
    if plots.has_ratio(chart) and chart.base != THE_FLOOR:
        side = "above" if chart.more_is_better else "below"
        floor = " " + say("figures.baseline_panel", base=chart.base, side=side)
    elif plots.has_ratio(chart):
        better = say("figures.higher_is_better") if chart.more_is_better else say("figures.lower_is_better")
        floor = " " + say("figures.floor_panel", better=better)
    else:
        floor = " " + say("figures.no_ratio_panel")
    return f"{what}{bars_note(rows)}{floor}{verdict_words.load_note(rows)}"


def marks_of(charts: Collection[Chart]) -> str:
    """Return what the lines and panels of charts of rows mean."""
    with_ratios = [chart for chart in charts if plots.has_ratio(chart)]
    said = [say("figures.floor_line")] * any(chart.base == THE_FLOOR for chart in with_ratios)
    said += [say("figures.ratio_panel")] * bool(with_ratios)
    said += [say("figures.gap")] * any(line.turn for chart in charts for line in chart.lines)
    said += [say("figures.foreign")] * any(chart.foreign for chart in charts)
    return " ".join(said)


def figure(rows: Sequence[Row], source: FigureSource, *, name: str) -> Figure:
    """Draw the figure of rows that share pattern, place, wait mode and family."""
    chart = chart_of(rows, source)
    title = title_of(rows[0].cell.case)
    marks = marks_of((chart,))
    return figure_of(chart, source, name=name, title=title, caption=caption_of(chart, rows), marks=marks)


def title_of(case: Case) -> str:
    """Return what a figure of a case is called."""
    return f"{words.figure(case)}, {words.WAITS[case.wait]}"


def _small(chart: Chart, by_label: Mapping[str, Key], *, name: str) -> tuple[SmallPicture, ...]:
    """Return small pictures, one a style, with no more lines in one than stand out; none where they would show little.

    What they have in common is drawn once, behind them.
    """
    if len(chart.lines) <= MANY or len(chart.sizes) <= FEW_SIZES:
        return ()
    by_style = by_key(chart.lines, lambda line: line.style)
    parts = [
        (style, lines[at : at + EMPHASISED])
        for style, lines in by_style.items()
        for at in range(0, len(lines), EMPHASISED)
    ]
    return tuple(
        SmallPicture(
            heading=style,
            keys=tuple(by_label[line.label] for line in lines),
            svg=svg.render(
                plots.small_figure(chart, lines),
                name=f"{name}-{number}",
                title=style,
                behind=f"{name}-back",
            ),
        )
        for number, (style, lines) in enumerate(parts)
    )


def figure_of(
    chart: Chart,
    source: FigureSource,
    *,
    name: str,
    title: str,
    caption: str,
    marks: str = "",
    grey: str | None = None,
) -> Figure:
    """Return the figure of a chart of a campaign's series.

    marks: what is drawn how; grey: what is said of lines that stand back, where they were not chosen by `emphasised`.
    """
    by_label = {one.label: key for one, key in source.keys.items()}
    small = _small(chart, by_label, name=name)
    small_title = say("figures.style_ratio", base=chart.base) if plots.has_ratio(chart) else say("figures.style")
    found = drawn(
        plots.main_figure(chart),
        name=name,
        title=title,
        description=described(chart),
        caption=caption,
        marks=" ".join(filter(None, (marks, faint_note(chart) if grey is None else grey))),
        table=data_table(chart),
        keys=tuple(by_label[line.label] for line in chart.lines),
    )
    if not small:
        return found
    back = svg.backdrop(plots.small_backdrop(chart), name=f"{name}-back")
    return replace(found, small=small, small_title=small_title, back=back)


def faint_note(chart: Chart) -> str:
    """Return which lines stand back, as a sentence for the caption; nothing where none does."""
    often = sum(line.faint for line in chart.lines)
    if not often:
        return ""
    return say("figures.grey_lines", grey=often, n=len(chart.lines), chosen=CHOSEN)


def emphasised(chart: Chart, baseline: str | None = None) -> Chart:
    """Return a chart with no more than `EMPHASISED` lines that stand out: others are `faint`.

    Kept are the baseline, what is best at some size, and what comes next at the first size that it has.
    """
    if len(chart.lines) <= EMPHASISED:
        return chart
    sign = -1.0 if chart.more_is_better else 1.0
    at = {
        size: [(sign * m.value, x.label) for x in chart.lines for m in x.marks if m.size == size]
        for size in chart.sizes
    }
    best = Counter(min(found)[1] for found in at.values() if found)
    first = {x.label: (x.marks[0].size, sign * x.marks[0].value) for x in chart.lines}
    order = sorted(first, key=lambda name: (name != baseline, -best[name], first[name], name))
    kept = set(order[:EMPHASISED])
    return replace(chart, lines=tuple(replace(line, faint=line.label not in kept) for line in chart.lines))


def estimate_text(estimate: Estimate, scale: float) -> str:
    """Return an estimate for a sentence: value and interval, without unit."""
    return f"{units.sig3(estimate.value * scale)}{units.ends(estimate.low, estimate.high, scale)}"
