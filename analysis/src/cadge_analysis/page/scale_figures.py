# SPDX-License-Identifier: BSD-3-Clause
"""What more processes cost: the time until all channels of a launch can be used, and which patterns vary their number.

The time is the phase `connect` of launches: from when every process has opened its layer until all channels are up and
where they lead is read back. The records hold no memory of processes, so none is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cadge_analysis import units, words
from cadge_analysis.draw.chart import THE_FLOOR, Chart, Line, Mark
from cadge_analysis.draw.palette import Identity, style_of
from cadge_analysis.page.figures import emphasised, figure_of
from cadge_analysis.page.viewmodel import Figure, Key
from cadge_analysis.stats import intervals
from cadge_analysis.stats.load import Dataset, Series, series_of
from cadge_results import LaunchRecord, PatternFile

PHASE = "connect"
ByChannels = Mapping[int, Sequence[float]]
"""Times in ns, one a launch, by how many channels it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """A pattern that was measured with several numbers of processes, by the id of its section."""

    anchor: str
    title: str
    numbers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleView:
    """The section: figures of the time to connect, and the patterns whose own sections show values."""

    figures: tuple[Figure, ...]
    varied: tuple[Varied, ...]


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


def scale(data: Dataset, keys: Mapping[Series, Key], looks: Mapping[Series, Identity]) -> ScaleView | None:
    """Return the section; None where all was measured with one number of processes."""
    figures = tuple(_connect_figures(data, keys, looks))
    varied = tuple(_varied(data))
    return ScaleView(figures=figures, varied=varied) if figures or varied else None


def _varied(data: Dataset) -> list[Varied]:
    seen: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for cell in data.cells:
        if cell.series.kind == "layer" and cell.samples:
            for name in counts(cell.case.file):
                seen[cell.case.pattern, cell.case.place, name].add(cell.case.workload.integer(name))
    found = []
    for pattern, file in data.patterns.items():
        for place in words.PLACE_ORDER:
            for name in counts(file):
                numbers = sorted(seen[pattern, place, name])
                if len(numbers) > 1:
                    said = words.listing([units.grouped(number) for number in numbers])
                    found.append(
                        Varied(
                            anchor=f"{pattern}-{place}",
                            title=f"{file.title} {words.PLACES[place]}",
                            numbers=f"{file.parameters[name].title}: {said}",
                        )
                    )
    return found


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


def _connect_figures(data: Dataset, keys: Mapping[Series, Key], looks: Mapping[Series, Identity]) -> list[Figure]:
    made = []
    for place in words.PLACE_ORDER:
        for wait in words.WAIT_ORDER:
            times = {one: found for one, found in connect_times(data, place, wait).items() if one in keys}
            if len({number for found in times.values() for number in found}) > 1:
                made.append(_connect_figure(times, keys, looks, data, place=place, wait=wait))
    return made


def _connect_figure(
    times: Mapping[Series, ByChannels],
    keys: Mapping[Series, Key],
    looks: Mapping[Series, Identity],
    data: Dataset,
    *,
    place: str,
    wait: str,
) -> Figure:
    lines = tuple(
        Line(label=one.label, look=looks[one], marks=_marks(times[one]), short_bytes=0, style=style_of(one))
        for one in sorted(times)
    )
    numbers = sorted({mark.size for line in lines for mark in line.marks})
    chart = Chart(
        more_is_better=False,
        linear=False,
        unit="\u00b5s",
        spoken="microseconds",
        title="time to connect, \u00b5s",
        along="channels",
        along_title="channels of a launch",
        proportional=False,
        sizes={number: units.grouped(number) for number in numbers},
        lines=lines,
        floor=(),
        base=THE_FLOOR,
    )
    launches = sum(len(found) for some in times.values() for found in some.values())
    return figure_of(
        emphasised(chart, {label for label in (data.plan.baseline,) if label}),
        {one: keys[one] for one in keys if one in times},
        name=f"connect-{place}-{wait}",
        title=f"Time to connect against channels, {words.PLACES[place]}, {words.WAITS[wait]}",
        caption="Each marker is the median over all launches with so many channels, of whatever pattern "
        f"({units.count_of(launches, 'launch', 'launches')} here): from when every process has opened its layer until "
        "all channels can be used. All processes tell each other out of band that they can, which is in the time; the "
        "way of the addresses is as well. Bars span the interval over launches.",
    )


def _marks(found: ByChannels) -> tuple[Mark, ...]:
    marks = []
    for number in sorted(found):
        took = intervals.over_launches([ns / units.NS_PER_US for ns in found[number]])
        marks.append(
            Mark(
                size=number,
                value=took.value,
                low=took.low,
                high=took.high,
                ratio=None,
                ratio_low=None,
                ratio_high=None,
            )
        )
    return tuple(marks)
