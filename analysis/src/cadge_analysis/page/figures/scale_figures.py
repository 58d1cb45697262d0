# SPDX-License-Identifier: BSD-3-Clause
"""What more processes cost: time until all channels can be used, memory, and which patterns vary their number.

The time is the phase `connect` of launches: from when every process has opened its layer until all channels are up and
where they lead is read back. The memory is what the process with the most channels has then, less what it had before
its layer was loaded. Older records hold none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import lede, plain
from cadge_analysis.blocks.model import DataTable, Figure, Item, Items, Region, Span
from cadge_analysis.draw.chart import Chart, Line
from cadge_analysis.draw.palette import style_of
from cadge_analysis.groups import by_key
from cadge_analysis.page.figures.main_figure import (
    FigureSource,
    caption_of,
    chart_of,
    emphasised,
    estimate_text,
    figure_of,
    mark_of,
    marks_of,
)
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.launch_facts import LayerMemory, heaviest, taken
from cadge_analysis.stats.load import Dataset, Series, series_of
from cadge_results import LaunchRecord, PatternFile
from cadge_results.formats.point import Value

say = partial(messages.say, "figures")

PHASE = "connect"
BYTES_PER_KB = 1000
NO_MEMORY = say("scale_figures.no_memory")
ByChannels = Mapping[int, Sequence[float]]
"""Times in ns, one a launch, by how many channels it has."""
TakenByChannels = Mapping[int, Sequence[LayerMemory]]
"""One a launch, by how many channels its process with the most of them has."""
Asked = tuple[tuple[str, ...], int]
"""Launches whose layers were asked for the same: the patterns that they make, and the threads of that process."""


def counts(file: PatternFile) -> tuple[str, ...]:
    """Return the parameters that say how many processes play a role, or how many threads act in one."""
    every: set[object] = {role.count for role in file.roles.values()}
    for role in file.roles.values():
        every |= set(_named(role.threads))
    return tuple(name for name in file.parameters if name in every)


def _named(number: object) -> Collection[object]:
    """Return the numbers that threads are given by, whatever choices they depend on."""
    if isinstance(number, Mapping):
        return {found for inner in number.values() for found in _named(inner)}
    return {number}


def scale(source: FigureSource) -> Region | None:
    """Return the section; None where all was measured with one number of processes."""
    data = source.data
    figures = (*_connect_figures(source), *_memory_figures(source))
    varied = tuple(_varied(data))
    told = not data.records or any(taken(record) for record in data.records if record.launch.kind == "layer")
    without = "" if told else NO_MEMORY
    if not figures and not varied:
        return None
    said = partial(messages.say, "sections")
    text = lede(said("scale.lede"), without)
    listing = (plain(said("scale.varied")), Items(varied)) if varied else ()
    return Region(id="scale", title="Scale", blocks=(text, *listing, *figures))


def _varied(data: Dataset) -> Iterator[Item]:
    seen: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for cell in data.cells:
        if cell.series.kind == "layer" and cell.samples:
            for name in counts(cell.case.file):
                seen[cell.case.pattern, cell.case.place, name].add(cell.case.workload.integer(name))
    for pattern, file in data.patterns.items():
        for place in words.PLACE_ORDER:
            for name in counts(file):
                numbers = sorted(seen[pattern, place, name])
                if len(numbers) > 1:
                    said = units.listing([units.grouped(number) for number in numbers])
                    section = Span(f"{file.title} {words.PLACES[place]}", href=f"#{pattern}-{place}")
                    yield Item(spans=(section, Span(f", {file.parameters[name].title}: {said}")))


def channels(record: LaunchRecord) -> int:
    """Return how many channels a launch has; one of a process to itself is one."""
    ends = record.launch.endpoints
    own = sum(peer == number for number, one in enumerate(ends) for peer in one.peers)
    return own + (sum(len(one.peers) for one in ends) - own) // 2


def connect_times(data: Dataset, place: str, wait: str) -> dict[Series, dict[int, list[float]]]:
    """Return how long launches of layers took to connect, in ns, by series and number of channels."""
    found: dict[Series, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in data.records:
        launch = record.launch
        took = record.result.phases_ns.get(PHASE) if record.result is not None else None
        if (
            took
            and record.status == "done"
            and (launch.subject.kind, launch.place, launch.wait) == ("layer", place, wait)
        ):
            found[series_of(launch.subject)][channels(record)].append(float(took))
    return found


def _connect_figures(source: FigureSource) -> Iterator[Figure]:
    for place, wait in product(words.PLACE_ORDER, words.WAIT_ORDER):
        every = connect_times(source.data, place, wait)
        times = {one: found for one, found in every.items() if one in source.keys}
        if len({number for found in times.values() for number in found}) > 1:
            yield _connect_figure(times, source, place=place, wait=wait)


def _connect_figure(times: Mapping[Series, ByChannels], source: FigureSource, *, place: str, wait: str) -> Figure:
    values = {
        one: {number: [ns / units.NS_PER_US for ns in some] for number, some in found.items()}
        for one, found in times.items()
    }
    units_of = {"unit": "\u00b5s", "spoken": "microseconds", "title": "time to connect, \u00b5s"}
    launches = sum(len(found) for some in times.values() for found in some.values())
    return figure_of(
        _chart(values, source, along="channels of a launch", **units_of),
        source,
        name=f"connect-{place}-{wait}",
        title=say("scale_figures.connect_title", place=words.PLACES[place], wait=words.WAITS[wait]),
        caption=say("scale_figures.connect_caption", launches=launches),
    )


def _chart(
    values: Mapping[Series, ByChannels], source: FigureSource, *, unit: str, spoken: str, title: str, along: str
) -> Chart:
    lines = tuple(
        Line(
            label=one.label,
            look=source.looks[one],
            marks=tuple(
                mark_of(number, intervals.over_launches(list(found))) for number, found in sorted(values[one].items())
            ),
            style=style_of(one),
        )
        for one in sorted(values)
    )
    numbers = sorted({mark.size for line in lines for mark in line.marks})
    chart = Chart(
        unit=unit,
        spoken=spoken,
        title=title,
        along="channels",
        along_title=along,
        sizes={number: units.grouped(number) for number in numbers},
        lines=lines,
    )
    return emphasised(chart, source.data.plan.baseline)


def memory_taken(data: Dataset, place: str, wait: str) -> dict[Asked, dict[Series, dict[int, list[LayerMemory]]]]:
    """Return what launches of layers took, by what they asked of the layer, series and channels of the process."""
    found: dict[Asked, dict[Series, dict[int, list[LayerMemory]]]] = {}
    for record in data.records:
        launch, took = record.launch, taken(record)
        if took is None or (launch.kind, launch.place, launch.wait) != ("layer", place, wait):
            continue
        end = launch.endpoints[heaviest(record)]
        asked = (tuple(sorted(data.attempts[record.launch_id].patterns)), max(len(end.cpus), 1))
        series = found.setdefault(asked, {}).setdefault(series_of(launch.subject), {})
        series.setdefault(len(end.peers), []).append(took)
    return found


def _memory_figures(source: FigureSource) -> Iterator[Figure]:
    """Yield a figure a place and wait mode: of the launches with the most numbers of channels that asked alike."""
    for place, wait in product(words.PLACE_ORDER, words.WAIT_ORDER):
        every = {
            asked: {one: by for one, by in found.items() if one in source.keys}
            for asked, found in memory_taken(source.data, place, wait).items()
        }
        numbers = {asked: {n for by in found.values() for n in by} for asked, found in every.items()}
        several = [asked for asked in every if len(numbers[asked]) > 1 and _positive(every[asked])]
        if several:
            asked = min(several, key=lambda one: (-len(numbers[one]), one))
            yield _memory_figure(every[asked], asked, source, place=place, wait=wait)


def _positive(found: Mapping[Series, TakenByChannels]) -> bool:
    """Tell whether there is anything that a logarithmic axis has a place for."""
    return any(one.memory > 0 for by in found.values() for some in by.values() for one in some)


def _memory_figure(
    found: Mapping[Series, TakenByChannels], asked: Asked, source: FigureSource, *, place: str, wait: str
) -> Figure:
    values = {
        one: {number: [took.memory / BYTES_PER_KB for took in some] for number, some in by.items()}
        for one, by in found.items()
    }
    units_of = {"unit": "kB", "spoken": "kilobytes", "title": "resident memory, kB"}
    chart = _chart(values, source, along="channels of a process", **units_of)
    launches = sum(len(some) for by in found.values() for some in by.values())
    patterns, threads = asked
    of = units.listing([source.data.patterns[name].title for name in patterns])
    acting = "" if threads == 1 else f", with {units.count_of(threads, 'thread')}"
    figure = figure_of(
        chart,
        source,
        name=f"memory-{place}-{wait}",
        title=say("scale_figures.memory_title", place=words.PLACES[place], wait=words.WAITS[wait]),
        caption=say("scale_figures.memory_caption", launches=launches, of=of, acting=acting),
    )
    return replace(figure, table=_memory_table(found, [line.label for line in chart.lines]))


def _memory_table(found: Mapping[Series, TakenByChannels], labels: Sequence[str]) -> DataTable:
    """Return a row a number of channels, and one for each further channel; behind a value stands what is shared."""
    series = {one.label: {number: _both(some) for number, some in by.items()} for one, by in found.items()}
    rows = []
    for number in sorted({number for by in series.values() for number in by}):
        pairs = [series[label].get(number) for label in labels]
        cells = (_cell(estimate_text(both[0], 1.0), both[1].value) if both else units.MISSING for both in pairs)
        rows.append((units.grouped(number), *cells))
    further = (_further(series[label]) for label in labels)
    columns = (f"{words.isolated(label)}, kB" for label in labels)
    return DataTable(columns=("channels", *columns), rows=(*rows, (say("scale_figures.each_further"), *further)))


def _both(some: Sequence[LayerMemory]) -> tuple[Estimate, Estimate]:
    """Return the medians of all and of what is shared, in kB."""
    return (
        intervals.over_launches([one.memory / BYTES_PER_KB for one in some]),
        intervals.over_launches([one.shared / BYTES_PER_KB for one in some]),
    )


def _further(by: Mapping[int, tuple[Estimate, Estimate]]) -> str:
    """Return what a channel more takes, between the fewest and the most."""
    first, last = min(by), max(by)
    if first == last:
        return units.MISSING
    both = zip(by[first], by[last], strict=True)
    memory, shared = ((most.value - fewest.value) / (last - first) for fewest, most in both)
    return _cell(units.sig3(memory), shared)


def _cell(text: str, shared: float) -> str:
    return f"{text}; {units.sig3(shared)} shared" if shared else text


# ---- the value against a number of processes that is not the pattern's axis ----


def count_figures(rows: Sequence[Row], source: FigureSource, *, name: str) -> list[Figure]:
    """Return one for each such number of which rows that share pattern, place and wait mode have several values."""
    if not rows:
        return []
    file = rows[0].cell.case.file
    made = []
    for count in counts(file):
        members = _alike(rows, count) if count != file.axis else []
        if len({row.cell.case.workload[count] for row in members}) > 1:
            case = members[0].cell.case
            chart = chart_of(members, source, along=count)
            title = (
                f"{file.main_quantity.title.capitalize()} against {file.parameters[count].title}, {words.size(case)}"
            )
            made.append(
                figure_of(
                    chart,
                    source,
                    name=f"{name}-{count}",
                    title=f"{title}, {words.WAITS[case.wait]}",
                    caption=caption_of(chart, members),
                    marks=marks_of((chart,)),
                )
            )
    return made


def _alike(rows: Sequence[Row], count: str) -> list[Row]:
    """Return the rows that are alike but for a number: of several such groups the one with most values and rows.

    Of equal ones, that whose place on the axis is nearest to what the first screen answers for.
    """

    def others(row: Row) -> tuple[tuple[str, Value], ...]:
        return tuple((key, value) for key, value in row.cell.case.workload.parameters if key != count)

    at = rows[0].cell.case.file.first_screen.at if rows[0].cell.case.file.first_screen else 0

    def preferred(members: list[Row]) -> tuple[bool, int, int, int]:
        case = members[0].cell.case
        values = len({row.cell.case.workload[count] for row in members})
        return case.does_rank, values, len(members), -abs(case.size - at)

    return max(by_key(rows, others).values(), key=preferred)
