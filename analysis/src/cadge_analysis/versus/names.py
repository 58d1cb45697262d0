# SPDX-License-Identifier: BSD-3-Clause
"""What a cell is called, and which cells a user means: the same words for both, in any order and spelling.

A cell's name is its series, place, wait mode, pattern, workload and main quantity, with commas between them. A user may
leave out whatever is not needed to tell it from others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from cadge_analysis import words
from cadge_analysis.stats.load import Cell

ARROW = "\u2192"
_COMMA = re.compile(r",(?![^(]*\))")  # none between brackets: the settings of a series stand there
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_PLAIN = str.maketrans({ARROW: "->", "\u00b5": "u", "\u2212": "-"})


def split(text: str) -> tuple[str, ...]:
    """Return the words of a name: what stands between its commas."""
    return tuple(word.strip() for word in _COMMA.split(text) if word.strip())


def bare(word: str) -> str:
    """Return a word without what a keyboard may lack, and without spaces and capital letters: 8B, 20us, a->b.

    '_' is '-', as in names of layers.
    """
    return re.sub(r"\s", "", word.translate(_PLAIN)).casefold().replace("_", "-")


def name_of(cell: Cell, workload: str, series: str = "") -> str:
    """Return a cell's name. `workload`: see `workloads`; `series` where it is not called by its own alone."""
    case = cell.case
    title = case.file.main_quantity.title
    return ", ".join((series or cell.series.label, case.place, case.wait, case.pattern, workload, title))


def workloads(cells: Iterable[Cell], *, of_series: bool = True) -> Mapping[str, str]:
    """Return each point's workload in words; where several would be called the same, with what they differ in.

    of_series: cells of several series stand in a table of their own each; else all are rows of one.
    """
    alike: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        case = cell.case
        alike[cell.series if of_series else None, case.place, case.wait, case.pattern, words.workload(case)].append(
            cell
        )
    found = {}
    for group in alike.values():
        names = dict.fromkeys(name for cell in group for name in cell.case.file.parameters)
        apart = [name for name in names if len({cell.case.workload.values.get(name) for cell in group}) > 1]
        for cell in group:
            values = cell.case.workload.values
            beside = [f"{name}={values[name]}" for name in apart if name in values]
            found[cell.point_id] = ", ".join((words.workload(cell.case), *beside))
    return found


def chosen(cells: Sequence[Cell], wanted: Sequence[str]) -> list[Cell]:
    """Return the cells of which every wanted word is true; a word that none has is a part of one.

    Words leave out what is usual, so that those of one workload may all be true of another: where the whole workload of
    a cell was named, the cells of which more could be said are not meant.
    """
    meant = _meant(cells, wanted)
    asked = {bare(word) for word in wanted}
    found = [cell for cell in cells if all(words_of & _words(cell) for words_of in meant)]
    whole = [cell for cell in found if {bare(word) for word in split(words.workload(cell.case))} <= asked]
    return whole or found


def unknown(cells: Sequence[Cell], wanted: Sequence[str]) -> list[str]:
    """Return the wanted words that are true of no cell at all, nor a part of what is."""
    return [word for word, meant in zip(wanted, _meant(cells, wanted), strict=True) if not meant]


def nearest(cells: Sequence[Cell], wanted: Sequence[str]) -> list[Cell]:
    """Return the cells in the order of how many wanted words are true of them, the most first."""
    meant = _meant(cells, wanted)
    return sorted(cells, key=lambda cell: -sum(bool(words_of & _words(cell)) for words_of in meant))


def _meant(cells: Sequence[Cell], wanted: Sequence[str]) -> list[set[str]]:
    """Return what each wanted word stands for: itself, else words of which it is a whole part, the beginning, or in."""
    known: set[str] = set().union(*map(_words, cells)) if cells else set()
    found = []
    for word in map(bare, wanted):
        tiers = (
            {word} & known,
            {one for one in known if word in _SEPARATORS.split(one)},
            {one for one in known if one.startswith(word)},
            {one for one in known if word in one},
        )
        found.append(next(filter(None, tiers), set()))
    return found


def _words(cell: Cell) -> set[str]:
    case = cell.case
    workload = words.workload(case)
    said = [cell.series.label, case.place, case.wait, case.pattern, case.file.title, case.file.main_quantity.title]
    said += [workload, *split(workload), *(f"{name}={case.workload[name]}" for name in case.file.parameters)]
    return set(map(bare, said))
