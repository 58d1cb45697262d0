# SPDX-License-Identifier: BSD-3-Clause
"""What other tools printed and the user set beside the campaign: a table a test, and lines for figures.

Nothing of it has an interval, a verdict or a rank, and no figure of the campaign is computed from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.blocks.make import caption, lede, line_of, row_name, words_column
from cadge_analysis.blocks.model import (
    Block,
    Column,
    Fact,
    Facts,
    Heading,
    Region,
    Span,
    Table,
    TableCell,
)
from cadge_analysis.groups import by_key
from cadge_analysis.stats.load import Case, Dataset
from cadge_results.formats.imported import ImportedFile, ImportedSeries

say = partial(messages.say, "report")
in_section = partial(messages.say, "sections")

MB = 1_000_000
SHOWN_DIGITS = 3
"""What `units.sig3` shows of a number."""
_OF = {
    "half round trip": "whole round trip",
    "operation": "operation",
    "both at once": say("imported.both"),
    "one way": "one way",
    "both ways": "both ways together",
}
_STATISTICS = {"min": "least", "max": "greatest", "overall": "overall"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """A series that a figure may show in grey: (bytes, value) in the stored unit of the figure's quantity."""

    label: str
    marks: tuple[tuple[int, float], ...]


def imported(data: Dataset) -> Region | None:
    """Return a table a test, by files in the order in which they were imported; None where nothing was."""
    if not data.imported:
        return None
    opened = lede(in_section("imported.lede"), in_section("imported.more"))
    blocks = (block for file in data.imported for block in _file(file))
    return Region(id="imported", title="Imported", blocks=(opened, *blocks))


def imported_lines(data: Dataset, case: Case) -> tuple[ImportedLine, ...]:
    """Return the lines that belong into the figure of a case: of its pattern and place, of tools that poll.

    Of several columns of a test the median stands for it, else the mean, or the overall rate. Marks are in ns, or MB/s,
    as the quantity is stored and shown; zeros, which a tool prints where its digits end, have no place on a
    logarithmic axis.
    """
    axis = case.file.parameters[case.file.axis]
    if axis.unit != "bytes" or case.wait != "poll":
        return ()
    found = []
    for file in data.imported:
        here = (one for one in file.series if file.place == case.place and case.pattern in one.patterns)
        for (test, _), several in by_key(here, lambda one: (one.test, one.about)).items():
            one = min(several, key=lambda each: _PREFERRED.get(each.statistic, len(_PREFERRED)))
            if one.statistic in _PREFERRED:
                scale = 1 / MB if one.kind == "bandwidth" else 1.0
                marks = tuple((value.bytes, value.value * scale) for value in one.values if value.value > 0)
                label = f"imported: {file.label}, {test}, {_statistic(one)}"
                found.append(ImportedLine(label=label, marks=tuple(sorted(marks))))
    return tuple(line for line in found if line.marks)


_PREFERRED = {"p50": 0, "mean": 1, "overall": 2}


def _file(file: ImportedFile) -> Iterator[Block]:
    facts = (
        Fact(name="File", text=f"{file.file}, {units.count_of(file.size_bytes, 'byte')}"),
        Fact(name="SHA-256", text=file.sha256, code=True),
        Fact(name="Tool, as printed", text=file.version or say("imported.no_version")),
        Fact(name="Measured on", text=file.host or "not said"),
        Fact(name="Place", text=_PLACES.get(file.place or "", "not said")),
        Fact(name="Imported", text=f"{file.imported_utc}, as {file.imported_id}"),
        *([Fact(name="Note", text=file.note)] if file.note else []),
    )
    yield Heading(3, file.label)
    yield Facts(facts)
    for (name, about), several in by_key(file.series, lambda one: (one.test, one.about)).items():
        yield _test(file.label, name, about, several)


_PLACES = {one: say(f"imported.places.{one}") for one in ("within", "between", "self")}


def _test(label: str, name: str, about: str, several: Sequence[ImportedSeries]) -> Table:
    """Return a row a size, of each column the value and what was printed."""
    by_size: dict[int, list[TableCell]] = {}
    for index, one in enumerate(several):
        for value in one.values:
            row = by_size.setdefault(value.bytes, [TableCell(role="num")] * len(several))
            text = _as_sure(_shown(one, value.value), value.printed)
            row[index] = TableCell(spans=(Span(text),), role="num", small=(("", f"({value.printed})"),))
    lines = (line_of(row_name(units.size(size)), cells) for size, cells in sorted(by_size.items()))
    return Table(
        label=f"{label}: {name}",
        role="plain imported",
        columns=(words_column("message size"), *map(_column, several)),
        lines=tuple(lines),
        caption=caption(name, about),
    )


def _column(one: ImportedSeries) -> Column:
    unit = {"time": "\u00b5s", "bandwidth": "MB/s", "rate": "messages/s"}[one.kind]
    printed = f"{one.column}, half" if one.moves == "half round trip" else one.column
    return Column(head=f"{_statistic(one)}, {_OF[one.moves]}", unit=unit, below=(f"printed: {printed}",))


def _statistic(one: ImportedSeries) -> str:
    return _STATISTICS.get(one.statistic, one.statistic)


def _shown(one: ImportedSeries, value: float) -> str:
    if one.kind == "time":
        return units.us(value)
    return units.sig3(value / MB if one.kind == "bandwidth" else value)


def _as_sure(text: str, printed: str) -> str:
    """Return a number with no more significant digits than the tool printed: twice 0.38 is 0.76, not 0.760."""
    known = len(printed.strip().lstrip("+-").replace(".", "").lstrip("0"))
    whole, point, decimals = text.partition(".")
    kept = decimals[: max(0, len(decimals) - max(0, SHOWN_DIGITS - known))]
    return f"{whole}{point}{kept}" if kept else whole
