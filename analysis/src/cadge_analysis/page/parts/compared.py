# SPDX-License-Identifier: BSD-3-Clause
"""What was compared, for the head of the report: layers by library and version, the path that ran, sizes, attempts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import ONSCREEN, Fact, Facts, Span, TableCell
from cadge_analysis.page.parts.findings import MEDIA
from cadge_analysis.stats.load import Dataset, Series, series_of
from cadge_results.formats.result import PathFacts

say = partial(messages.say, "report")

NEVER = "not run"
_LOCAL = re.compile(r"\b(?:unix|ipc)\b", re.IGNORECASE)
"""Of a path that goes through sockets with a name in the file system, and through no network."""
WORKLOADS_MOST = 4
"""So many groups of patterns are told with their values; of more, how many there are."""


def compared(data: Dataset) -> Facts:
    """Return what the campaign compared: where there are records, also how, and that a section has all of it."""
    said, whole = attempts(data), not data.is_reported
    spans = [Span(_workloads(data)), Span(". ")]
    spans += [Span(said, role="dim"), Span(". ")] if said else []
    spans += [Span(say("compared.in_full"), role=ONSCREEN, href="#layers")] if whole else []
    measured = Fact(name="Measured", cells=(TableCell(spans=tuple(spans)),))
    return Facts((*(_libraries(data) if whole else ()), measured), "compared")


def _libraries(data: Dataset) -> Iterator[Fact]:
    """Yield libraries by how many layers stand on them, one a path together; those that no layer opened last."""
    stated: dict[Series, dict[str, None]] = defaultdict(dict)
    media: dict[Series, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for record in data.records:
        result = record.result
        if result is None or result.status != "done" or result.library is None or record.launch.kind != "layer":
            continue
        series = series_of(record.launch.subject)
        stated[series][f"{result.library.name} {result.library.stated_version}".strip()] = None
        for path in result.path:
            media[series][record.launch.place][_carried(path)] = None
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for series in data.layers:
        name = " | ".join(stated[series]) if series in stated else NEVER
        groups[name, _paths(media[series])].append(words.isolated(series.label))
    standing = Counter(name for (name, _), layers in groups.items() for _ in layers)
    cells: dict[str, list[TableCell]] = defaultdict(list)
    for (name, paths), layers in sorted(
        groups.items(), key=lambda one: (one[0][0] == NEVER, -standing[one[0][0]], one[0][0], -len(one[1]), one[0])
    ):
        by = (Span(" "), Span(f"({paths})", role="dim")) if paths else ()
        cells[name].append(TableCell(spans=(Span(", ".join(layers)), *by)))
    for name, found in cells.items():
        yield Fact(name=name, cells=tuple(found))


def _carried(path: PathFacts) -> str:
    """Return what carried the bytes. The kernel's sockets within a host are of two kinds, which the path tells."""
    if not path.read_back:
        return say("compared.unknown_path")
    if path.medium == "loopback" and _LOCAL.search(path.used):
        return "a local socket"
    said = MEDIA.get(path.medium, path.medium)
    return f"{said} ({path.device})" if path.device and path.medium == "network" else said


def _paths(by_place: dict[str, dict[str, None]]) -> str:
    """Return "within: shared memory; between: a network (data0)"."""
    return "; ".join(
        f"{words.PLACES_SHORT[place]}: {units.listing(list(by_place[place]))}"
        for place in words.PLACE_ORDER
        if place in by_place
    )


def _workloads(data: Dataset) -> str:
    """Return what was measured: patterns of the same values together, and how was waited."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, file in data.patterns.items():
        axis = file.parameters[file.axis]
        values = sorted({cell.case.size for cell in data.cells if cell.case.pattern == name})
        said = [words.value(axis, value) for value in values]
        what = "sizes" if axis.unit == "bytes" else "values"
        along = "" if axis.unit == "bytes" else f"{axis.title} "
        span = said[0] if len(said) == 1 else f"{said[0]} to {said[-1]} ({len(said)} {what})"
        groups[f"{along}{span}"].append(file.title)
    parts = [f"{units.listing(titles)}: {span}" for span, titles in groups.items()]
    rest = len(parts) - WORKLOADS_MOST
    if rest > 1:
        more = sum(len(titles) for titles in list(groups.values())[WORKLOADS_MOST:])
        parts = [*parts[:WORKLOADS_MOST], units.count_of(more, "more pattern")]
    waits = [words.WAITS[wait] for wait in words.WAIT_ORDER if any(cell.case.wait == wait for cell in data.cells)]
    return f"{'; '.join(parts)}; {units.listing(waits)}"


def attempts(data: Dataset) -> str:
    """Return how many attempts of layers were planned, and how many have numbers; empty where none was planned."""
    cells = [cell for cell in data.planned if cell.series.kind == "layer"]
    planned, valid = sum(cell.planned for cell in cells), sum(len(cell.samples) for cell in cells)
    if not planned:
        return ""
    text = f"{units.grouped(valid)} of {units.count_of(planned, 'planned attempt')} gave a number"
    again = sum(len(cell.samples) for cell in data.twins if cell.series.kind == "layer")
    if again:  # every count below is without them
        text += say("compared.twins", again=again)
    return text
