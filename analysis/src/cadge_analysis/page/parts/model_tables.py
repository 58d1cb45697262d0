# SPDX-License-Identifier: BSD-3-Clause
"""LogGP parameters as tables: what was fitted, and what the fits are worth. A fit that was refused says why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.blocks.make import plain_table
from cadge_analysis.blocks.model import Table
from cadge_analysis.models.fit import TOLERANCE
from cadge_analysis.models.loggp import LayerFit, MissingNumber, ModelLine, ModelNumber, Piece

say = partial(messages.say, "report")

MB_PER_S = 1000
"""A byte a nanosecond, in MB/s."""
_FIRST = ("layer", "waits by", "choices")
_FITTED = (
    *_FIRST,
    "sizes",
    "g, \u00b5s",
    "G, ns/B",
    "MB/s",
    "o_s, \u00b5s",
    "o_r, \u00b5s",
    "L, \u00b5s",
    say("model_tables.worst"),
    "launches",
)
_REFUSED = (*_FIRST, "sizes", "what was refused", "why")
_HELD_OUT = (*_FIRST, "predicted", "points", "error, median", "error, worst", "worst at", "the model")
_EVERY = "all"
_NOTHING = ""
"""In place of the reason where no size gave a value: such rows become one."""


def model_tables(fits: Sequence[LayerFit], why_not: Callable[[str, str, str], str]) -> tuple[Table, ...]:
    """Return the fits of one pattern at one place, what was refused, and what they predict of points held out.

    why_not: of pattern, place and wait mode, why nothing may be concluded of them; "" where it may.
    """
    tables = (
        (
            say("model_tables.fits_title"),
            _FITTED,
            _rows,
        ),
        (say("model_tables.refused_title"), _REFUSED, _refused),
        (
            say("model_tables.held_out_title", tolerance=TOLERANCE),
            _HELD_OUT,
            partial(_held_out, why_not=why_not),
        ),
    )
    made = (
        plain_table(
            title=title, columns=columns, rows=_folded((*_first(one), *row) for one in fits for row in rows(one))
        )
        for title, columns, rows in tables
    )
    return tuple(table for table in made if table.lines)


def _folded(rows: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return rows, those in one that say of something that it is known of no size, by how is waited and choices."""
    found: list[tuple[str, ...]] = []
    nothing: dict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)
    for row in rows:
        if row[-1] == _NOTHING:
            nothing[row[1], row[2]].append(row)
        else:
            found.append(row)
    for (wait, choices), members in nothing.items():
        labels, _, _, sizes, what, _ = (tuple(dict.fromkeys(column)) for column in zip(*members, strict=True))
        where = sizes[0] if len(sizes) == 1 else _EVERY
        found.append(
            (
                units.listing(labels),
                wait,
                choices,
                where,
                units.listing(what),
                say("model_tables.known_of_none"),
            )
        )
    return tuple(found)


def _first(one: LayerFit) -> tuple[str, ...]:
    return one.label, one.wait, ", ".join(f"{name} {value}" for name, value in one.choices.items())


def _sizes(piece: Piece) -> str:
    return f"{units.size(piece.from_bytes)} \u2026 {units.size(piece.to_bytes)}"


def _rows(one: LayerFit) -> Iterator[tuple[str, ...]]:
    if isinstance(one.model, MissingNumber):
        return
    for number, piece in enumerate(one.model.pieces):
        yield (*_piece(piece, one.model.latency_ns if number == 0 else None), units.grouped(one.launches))


def _piece(piece: Piece, latency: ModelNumber | MissingNumber | None) -> tuple[str, ...]:
    ends = (piece.from_bytes, piece.to_bytes)
    per_byte = piece.gap.per_byte_ns
    return (
        _sizes(piece),
        _number(piece.gap.start_ns, 1 / units.NS_PER_US),
        _number(per_byte, 1.0),
        units.sig3(MB_PER_S / per_byte.value) if per_byte.value else units.MISSING,
        _line(piece.send, ends),
        _line(piece.receive, ends),
        _latency(latency) if latency is not None else "",
        units.percent(max(piece.gap.off, piece.one_way.off), 0),
    )


def _refused(one: LayerFit) -> Iterator[tuple[str, ...]]:
    if isinstance(one.model, MissingNumber):
        yield _EVERY, "the fit", one.model.refused
        return
    if isinstance(one.model.latency_ns, MissingNumber):
        yield _sizes(one.model.pieces[0]), "L", one.model.latency_ns.refused
    for piece in one.model.pieces:
        for sign, found in (("o_s", piece.send), ("o_r", piece.receive)):
            if isinstance(found, MissingNumber):
                yield _sizes(piece), sign, _NOTHING if found.known == 0 else found.refused


def _latency(found: ModelNumber | MissingNumber) -> str:
    return units.MISSING if isinstance(found, MissingNumber) else _number(found, 1 / units.NS_PER_US)


def _number(found: ModelNumber, scale: float) -> str:
    return f"{units.sig3(found.value * scale)}{units.ends(found.low, found.high, scale)}"


def _line(found: ModelLine | MissingNumber, ends: tuple[int, int]) -> str:
    if isinstance(found, MissingNumber):
        return units.MISSING
    return " \u2026 ".join(units.us(found.at(size)) for size in ends)


def _held_out(one: LayerFit, why_not: Callable[[str, str, str], str]) -> Iterator[tuple[str, ...]]:
    held = why_not(one.pattern, one.place, one.wait)
    for found in one.held_out:
        worst = units.percent(found.worst_error, 0).replace("-", units.MINUS)
        verdict = "holds" if found.median_error <= TOLERANCE else "does not hold"
        verdict = "withheld" if held else verdict
        median = units.percent(found.median_error, 0)
        yield found.what, units.grouped(found.points), median, worst, found.worst_at, verdict
