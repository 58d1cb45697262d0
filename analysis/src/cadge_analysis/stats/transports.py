# SPDX-License-Identifier: BSD-3-Clause
"""Layers that did not go the way that one would think: by a check that failed, a path that changed, or their own kind.

What a check forbids has no number; what is told here of the rest has one, and is what a setting asked for, or what a
library chose by itself.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cadge_analysis.stats.launch_facts import changed, distinct_paths, without_numbers
from cadge_analysis.stats.load import Dataset, Series, series_of
from cadge_results import LaunchRecord
from cadge_results.formats.reason import Reason
from cadge_results.formats.result import PathFacts

Kind = Literal["strayed", "elsewhere", "unsound", "refused", "changed", "apart"]
OF_PATHS = re.compile(r"\b(path|path_as_asked)(: | of the launch )")
"""Checks of what a library says of its path, as reasons name them."""
OF_BYTES = re.compile(r"\bcounters: ")
"""And of what interfaces carried."""
OF_TRANSPORTS = frozenset({Reason.TRANSPORT, Reason.PERMISSION, Reason.LIBRARY})
PEERS_LEAST = 2
"""Series of one substrate that go one way, before another that does not is called apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathDeviation:
    """Something about where a layer's payload went at a place.

    strayed: a check says it went elsewhere, in `often` of `of` attempts, for `said`: where the path itself is not as
    asked, that is what was used, with its `medium`, and `other` what was asked; elsewhere: interfaces that were not
    asked for carried more than they may; unsound: another check says no;
    refused: the layer could not have a transport; changed: launches went different ways, which `said` lists; apart: it
    has another medium than `peers` of its substrate, which have `other`.
    """

    kind: Kind
    series: Series
    place: str
    said: str = ""
    medium: str = ""
    often: int = 0
    of: int = 0
    other: str = ""
    peers: tuple[str, ...] = ()


def strayed(data: Dataset) -> tuple[PathDeviation, ...]:
    """Return what strayed, by kind: what is most serious first."""
    checked = tuple(_by_checks(data))
    gone = {(one.series, one.place) for one in checked if one.kind == "strayed" and one.often == one.of}
    return (*checked, *_changed(data), *(one for one in _apart(data) if (one.series, one.place) not in gone))


def _by_checks(data: Dataset) -> Iterator[PathDeviation]:
    often: Counter[tuple[int, Series, str, str]] = Counter()
    first: dict[tuple[int, Series, str, str], str] = {}
    planned: Counter[tuple[Series, str]] = Counter()
    kinds: tuple[Kind, ...] = ("strayed", "elsewhere", "unsound", "refused")
    for cell in data.cells:
        planned[cell.series, cell.case.place] += cell.planned
        for trouble in cell.troubles:
            if trouble.state == "unsound":
                kind = 0 if OF_PATHS.search(trouble.reason) else 1 if OF_BYTES.search(trouble.reason) else 2
            elif trouble.code in OF_TRANSPORTS and cell.planned:
                kind = 3
            else:
                continue
            key = kind, cell.series, cell.case.place, without_numbers(trouble.reason)
            often[key] += trouble.attempts
            first.setdefault(key, trouble.reason)
    for key in sorted(often, key=lambda one: (one[0], -often[one], one[1:])):
        kind, series, place, _ = key
        path = _wrong_path(data, series, place) if kind == 0 else None
        yield PathDeviation(
            kind=kinds[kind],
            series=series,
            place=place,
            said=path.used if path else first[key],
            medium=path.medium if path else "",
            often=often[key],
            of=planned[series, place],
            other=path.asked if path else "",
        )


def _wrong_path(data: Dataset, series: Series, place: str) -> PathFacts | None:
    """Return the first path of a series that its library did not take as it was asked."""
    for record in data.records:
        if record.result is not None and (series_of(record.launch.subject), record.launch.place) == (series, place):
            paths = record.result.path
            wrong = next((path for path in paths if not path.as_asked and path.used and path.read_back), None)
            if wrong is not None:
                return wrong
    return None


def _changed(data: Dataset) -> Iterator[PathDeviation]:
    for series, place, wait in changed(data):
        launches: Counter[str] = Counter()
        for record in _done(data):
            if (series_of(record.launch.subject), record.launch.place, record.launch.wait) == (series, place, wait):
                launches[_stated(record)] += 1
        # where nothing of the path differs, it is the library's file, which remarks tell
        if len({without_numbers(path) for path in launches}) > 1:
            said = "; ".join(f"{path} in {often}" for path, often in sorted(launches.items(), key=lambda i: (-i[1], i)))
            yield PathDeviation(kind="changed", series=series, place=place, said=said, of=launches.total())


def _stated(record: LaunchRecord) -> str:
    paths = record.result.path if record.result is not None else ()
    return distinct_paths(path.used for path in paths if path.used)


def _apart(data: Dataset) -> Iterator[PathDeviation]:
    """Yield layers with another medium than most others of their substrate at the same place."""
    media: dict[tuple[str, str], dict[Series, set[str]]] = defaultdict(lambda: defaultdict(set))
    for record in _done(data):
        result = record.result
        if result is None or result.adapter is None or record.launch.kind != "layer":
            continue
        of_place = media[record.launch.place, result.adapter.substrate]
        of_place[series_of(record.launch.subject)].update(path.medium for path in result.path if path.read_back)
    for (place, _), by_series in sorted(media.items()):
        groups: dict[str, list[Series]] = defaultdict(list)
        for series, found in sorted(by_series.items()):
            if len(found) == 1:
                groups[next(iter(found))].append(series)
        for medium, members in sorted(groups.items()):
            usual, peers = max(groups.items(), key=lambda one: (len(one[1]), one[0] == "memory", one[0]))
            if usual != medium and len(peers) >= PEERS_LEAST and len(peers) > len(members):
                names = tuple(series.label for series in peers)
                for series in members:
                    yield PathDeviation(
                        kind="apart", series=series, place=place, medium=medium, other=usual, peers=names
                    )


def _done(data: Dataset) -> Iterator[LaunchRecord]:
    for record in data.records:
        if record.result is not None and record.result.status == "done":
            yield record
