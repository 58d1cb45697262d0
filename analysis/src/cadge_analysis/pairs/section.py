# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of hosts as blocks: what is slow, in sentences, and a matrix for each layer and case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import exp, log
from operator import itemgetter
from statistics import median

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import caption, lede, listed, number_columns, row_name, words_column
from cadge_analysis.blocks.model import Block, Region, Span, StackedFigure, Table, TableCell, TableLine
from cadge_analysis.draw import heat, svg
from cadge_analysis.draw.palette import GHOST, GRID, LIGHT
from cadge_analysis.pairs.fit import HOSTS_LEAST, LEAST, Pair
from cadge_analysis.pairs.matrix import PairMatrix, SlowFound, dead_of, slow_of, stalled_of

say = partial(messages.say, "pairs")

FASTER, EVEN, SLOWER, SLOWEST, NONE = "faster", "even", "slower", "slowest", "none"
SLOWEST_TIMES = 1.5
GRADES = {
    FASTER: (0.3, LIGHT[0], "s0"),
    EVEN: (0.45, GHOST, "ghost"),
    SLOWER: (0.7, LIGHT[8], "s8"),
    SLOWEST: (0.96, LIGHT[1], "s1"),
    NONE: (0.96, GRID, "grid"),
}
"""Of a pair: how much of its cell it fills, its colour, and the page's name of that."""
BAND_MOST = 0.5
"""Pairs of which nine of ten are not within this share of the middle are not called alike."""
_SHARE = 0.9
"""Of pairs: what the answer says of how alike they are."""


def sentences(found: Sequence[PairMatrix]) -> list[str]:
    """Return what is slow, stalls or is dead, a sentence each; one sentence where nothing is."""
    said = [*_dead(found), *(_slow("slow", one) for one in slow_of(found))]
    said += [_slow("stalls", one) for one in stalled_of(found)]
    hosts = len({host for one in found for host in one.hosts})
    if hosts < HOSTS_LEAST:
        said.append(say("few", n=hosts, least=HOSTS_LEAST))
    elif not said:
        within = band(found)
        said.append(say("alike" if within <= BAND_MOST else "wide", spread=say("spread", band=within)))
    return said


def is_well(found: Sequence[PairMatrix]) -> bool:
    """Tell whether no pair is dead, and no host and no link is slow or stalls."""
    return not dead_of(found) and not slow_of(found) and not stalled_of(found)


def band(found: Sequence[PairMatrix]) -> float:
    """Return within which share of the middle nine of ten pairs are, in the matrix where that is most."""
    return max((_band(one) for one in found if one.values), default=0.0)


def _band(one: PairMatrix) -> float:
    middle = log(median(one.times.values()))
    off = sorted(abs(log(value) - middle) for value in one.times.values())
    return exp(off[min(len(off) - 1, int(_SHARE * len(off)))]) - 1


def _slow(how: str, one: SlowFound) -> str:
    part, what = one.part, f"{words.pattern(one.case)} {words.workload(one.case)}"
    first, *second = part.hosts
    named = {"first": first, "second": second[0]} if second else {"host": first}
    return say(f"{how}.{part.part}", **named, times=part.times, what=what, slower=part.slower, pairs=part.pairs)


def _dead(found: Sequence[PairMatrix]) -> Iterator[str]:
    """Say which hosts gave nothing in most of their pairs; of the others' pairs, each that is dead."""
    dead = dead_of(found)
    pairs = {pair for one in found for pair in (*one.values, *one.missing)}
    while dead:
        often = Counter(host for pair in dead for host in pair)
        host, silent = max(often.items(), key=itemgetter(1))
        own = [pair for pair in pairs if host in pair]
        if silent == 1 or silent <= len(own) / 2:
            break
        why = Counter(why for pair, why in dead.items() if host in pair).most_common(1)[0][0]
        if silent == len(own):
            yield say("dead_host", host=host, why=why)
        else:
            yield say("dead_most", host=host, silent=silent, pairs=len(own), why=why)
        dead = {pair: why for pair, why in dead.items() if host not in pair}
    for pair, why in dead.items():
        yield say("dead", first=pair[0], second=pair[1], why=why)


def means_that_stall(found: Sequence[PairMatrix]) -> list[PairMatrix]:
    """Return mean times of a call as matrices, of the cases in which something stalls."""
    stalled = {one.case for one in stalled_of(found)}
    mean = {"title": say("mean")}
    return [
        replace(one, values=one.means, spreads={}, quantity=one.quantity.model_copy(update=mean))
        for one in found
        if one.case in stalled
    ]


def section(found: Sequence[PairMatrix]) -> Region | None:
    """Return the section of a report; None where no pairs were measured."""
    if not found:
        return None
    opening = lede(say("lede", launches=max(one.launches for one in found)))
    blocks: list[Block] = [listed(sentences(found)), opening]
    for number, one in enumerate(found):
        blocks += [*_picture(one, f"pairs-{number}"), matrix_table(one)]
    blocks += map(matrix_table, means_that_stall(found))
    return Region(id="pairs", title=say("title"), blocks=tuple(blocks))


def _picture(one: PairMatrix, name: str) -> Iterator[StackedFigure]:
    """Yield the picture of a matrix, where it has hosts enough that one of them can stand out."""
    if len(one.hosts) < HOSTS_LEAST or not one.values:
        return
    middle = median(one.times.values())
    grades = {pair: _grade(value / middle) for pair, value in one.times.items()} | dict.fromkeys(one.missing, NONE)
    at = {host: number for number, host in enumerate(one.hosts)}
    cells = {(at[first], at[second]): (GRADES[grade][0], GRADES[grade][1]) for (first, second), grade in grades.items()}
    title = _title(one)
    slower = [f"{first} to {second}" for (first, second), grade in grades.items() if grade in (SLOWER, SLOWEST)]
    described = say("picture_slower", pairs=", ".join(slower)) if slower else say("picture_even")
    yield StackedFigure(
        name=name,
        label=title,
        parts=tuple((GRADES[grade][2], say(f"grade.{grade}")) for grade in GRADES if grade in grades.values()),
        svg=svg.render(
            heat.figure(one.hosts, cells),
            name=name,
            title=title,
            description=described,
            minimum_px=heat.width_px(one.hosts),
            maximum_px=heat.width_px(one.hosts),
        ),
        caption=say("of_picture", title=title),
    )


def _grade(times: float) -> str:
    """Return the grade of a pair that takes so many times as long as the middle of all."""
    if abs(log(times)) <= LEAST:
        return EVEN
    return FASTER if times < 1 else SLOWER if times <= SLOWEST_TIMES else SLOWEST


def matrix_table(one: PairMatrix) -> Table:
    """Return a matrix: a row for each first host, a column for each second."""
    middle = median(one.values.values()) if one.values else None
    title = _title(one)
    unit = "\u00b5s" if one.quantity.unit == "ns" else one.quantity.unit
    better = "lower is better" if one.quantity.better == "low" else "higher is better"
    shown = "none" if middle is None else _number(middle, one)
    note = say("of_matrix", quantity=one.quantity.title, unit=unit, better=better, middle=shown)
    if one.spreads:
        note = say("of_matrix_launches", note=note, usual=median(one.spreads.values()), most=max(one.spreads.values()))
    return Table(
        label=title,
        role="pairs",
        columns=(words_column("from \\ to"), *number_columns(one.hosts)),
        lines=tuple(
            TableLine(cells=(row_name(first), *(_cell(one, (first, second), middle) for second in one.hosts)))
            for first in one.hosts
        ),
        caption=caption(title, note),
    )


def _title(one: PairMatrix) -> str:
    return say("matrix", layer=one.series.label, workload=f"{words.pattern(one.case)} {words.workload(one.case)}")


def _number(value: float, one: PairMatrix) -> str:
    return units.us(value) if one.quantity.unit == "ns" else units.sig3(value)


def _cell(one: PairMatrix, pair: Pair, middle: float | None) -> TableCell:
    value = one.values.get(pair)
    if value is None or middle is None:
        return TableCell(spans=(Span("" if pair[0] == pair[1] else "\u2013"),))
    is_off = abs(log(value / middle)) > LEAST
    return TableCell(spans=(Span(_number(value, one), strong=is_off),), raw=units.raw(value))
