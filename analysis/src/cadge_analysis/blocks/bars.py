# SPDX-License-Identifier: BSD-3-Clause
"""Ranked layers as lines of text: each question with a bar a layer, best first, in the room that there is."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.plain import cells_wide, harmless, wrapped
from cadge_analysis.blocks.ranked import Bar, Picture, PicturedQuestion

say = partial(messages.say, "figures")

WIDE = 80
NARROW = 60
"""Below so many columns intervals are left out, as bars are the picture."""
NAME_MOST = 24
BAR_LEAST = 4
_EIGHTHS = " ▏▎▍▌▋▊▉"
DOUBT = "?"
"""Stands behind a ratio that the numbers beside it contradict."""
DOUBTS = say("picture.doubts", doubt=DOUBT, pairs_disagree=units.PAIRS_DISAGREE)
_PLAIN = str.maketrans(
    {
        "µ": "u",
        units.TIMES: "x",
        units.MINUS: "-",
        units.MISSING: "-",
        units.THIN: " ",
        "\u00a0": " ",
        "…": "~",
        "→": ">",
        "█": "#",
    }
)
Locale = Mapping[str, str]


def reads_unicode(encoding: str | None, environment: Locale | None = None) -> bool:
    """Tell whether a terminal shows more than ASCII: by its encoding, and by what the user's locale says.

    In the C locale Python writes UTF-8 all the same and sets LC_CTYPE to say so (PEP 538, PEP 540).
    """
    given = os.environ if environment is None else environment
    if (encoding or "").lower().replace("-", "").replace("_", "") != "utf8":
        return False
    chosen = [given[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if given.get(name)]
    coerced = not given.get("LC_ALL") and given.get("LC_CTYPE") == "C.UTF-8" and given.get("LANG", "") in _C_LOCALES
    return bool(chosen) and not coerced and chosen[0].lower().replace("-", "").endswith("utf8")


_C_LOCALES = ("", "C", "POSIX")


def lines(picture: Picture, *, most: int, columns: int = WIDE, unicode: bool = True) -> list[str]:
    """Return a picture of at most `most` lines and so many columns. unicode: whether more than ASCII may be used."""
    doubts = any(bar.pairs_disagree for one in picture.questions for bar in one.bars)
    said = (DOUBTS if doubts else "", picture.conclusion or leaders(picture))
    end = [line for text in said if text for line in wrapped(harmless(text), columns)]
    room = most - len(end)
    shown = picture.questions[: max(1, room // 3)]  # each with a heading and two bars at least
    drawing = _Drawing.of(shown, columns, eighths=unicode)
    each = room // len(shown) - 1 if shown else 0
    found = [line for one in shown for line in drawing.question(one, each)]
    if doubts and not any(line.endswith(DOUBT) for line in found):
        end = end[len(wrapped(DOUBTS, columns)) :]  # the bar in question had no line
    return [line if unicode else ascii_text(line) for line in (*found, *end)]


def leaders(picture: Picture) -> str:
    """Return what the mark of layers that lead means; empty where there is none."""
    bars = [bar for one in picture.questions for bar in one.bars]
    if not any(bar.leads for bar in bars):
        return ""
    return say("picture.leaders", of_each=units.count_of(max(bar.launches for bar in bars), "launch", "launches"))


def panels(picture: Picture, *, columns: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each question whole: what is asked; a line a layer with its marks, and the layers without a number."""
    drawing = _Drawing.of(picture.questions, columns, eighths=True, marked=True)
    for one in picture.questions:
        _, *lines = drawing.question(one, len(one.bars) + 1)
        floor = "" if one.floor is None else f"; floor {units.sig3(one.floor)} {one.unit}"
        asked = f"{one.topic}, {one.unit}, {one.sense}{floor}."
        yield " ".join(filter(None, (asked, one.caution, one.absent))), tuple(lines)


def ascii_text(line: str) -> str:
    """Return a line as a terminal shows it that has ASCII alone; what has no counterpart is shown as ?."""
    return line.translate(_PLAIN).encode("ascii", "replace").decode()


@dataclass(frozen=True, slots=True)
class _Drawing:
    """How wide things are in a picture: the same in all of its questions.

    `doubts`: ratios have a column more, for DOUBT. `eighths`: bars end within a column.
    """

    columns: int
    name: int
    value: int
    interval: int
    ratio: int
    marks: int
    doubts: bool
    eighths: bool

    @classmethod
    def of(
        cls, questions: Sequence[PicturedQuestion], columns: int, *, eighths: bool, marked: bool = False
    ) -> _Drawing:
        bars = [(bar, one) for one in questions for bar in one.bars if bar.value is not None]
        rows = [_cells(bar, one) for bar, one in bars]
        name, value, interval, ratio = (max((cells_wide(row[at]) for row in rows), default=0) for at in range(4))
        doubts = any(bar.pairs_disagree for bar, _ in bars)
        interval = interval if columns >= NARROW else 0
        marks = max((cells_wide(bar.beside) for bar, _ in bars), default=0) if marked else 0
        return cls(
            columns,
            min(name, _told_apart({row[0] for row in rows}, columns)),
            value,
            interval,
            ratio + doubts,
            marks,
            doubts,
            eighths,
        )

    def question(self, question: PicturedQuestion, most: int) -> Iterator[str]:
        """Yield a heading and at most so many lines below it; layers for which there is no line are counted."""
        yield self._cut(_heading(question, self.columns))
        measured = [bar for bar in question.bars if bar.value is not None]
        without = [f"{harmless(bar.name)} ({bar.why})" for bar in question.bars if bar.value is None]
        room = max(1, most - bool(without))
        scale = max((bar.value or 0 for bar in measured), default=0)
        shown = measured if len(measured) <= room else measured[: room - 1]
        yield from (self._row(bar, question, scale) for bar in shown)
        if left := len(measured) - len(shown):
            name, value, *_ = _cells(measured[-1], question)
            yield self._cut(f"  … {left} more, the last: {name} {value}" if left > 1 else f"  … {name} {value}")
        if without:
            yield self._cut(f"  no number: {', '.join(without)}")

    def _row(self, bar: Bar, question: PicturedQuestion, scale: float) -> str:
        name, value, ends, ratio = _cells(bar, question)
        begin = f"{'*' if bar.leads else ' '} {_left(_shortened(name, self.name), self.name)}"
        tail = _right(value, self.value)
        tail += f" {_left(ends, self.interval)}" if self.interval else ""
        tail += (
            f" {_right(ratio + (DOUBT if bar.pairs_disagree else ' ' * self.doubts), self.ratio)}" if self.ratio else ""
        )
        tail += f" {_left(bar.beside, self.marks)}" if self.marks else ""
        room = self.columns - cells_wide(f"{begin}  {tail}")
        if room < BAR_LEAST:
            return self._cut(f"{begin} {tail}".rstrip())
        return f"{begin} {self._bar((bar.value or 0) / scale if scale > 0 else 0, room)} {tail}".rstrip()

    def _bar(self, share: float, room: int) -> str:
        """Return a bar of a share of so many columns, and never nothing."""
        if not self.eighths:
            return _left("█" * max(1, round(share * room)), room)
        eighths = max(1, round(share * room * 8))
        return _left("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip(), room)

    def _cut(self, text: str, columns: int | None = None) -> str:
        most = self.columns if columns is None else columns
        if cells_wide(text) <= most:
            return text
        while cells_wide(text) >= most:
            text = text[:-1]
        return f"{text}…"


def _heading(question: PicturedQuestion, columns: int) -> str:
    """Return what a question is and what the machine itself can do, as far as there is room."""
    apart = ", " if "," in question.workload else " "
    where = f"{question.workload}{apart}{words.PLACES[question.place]}"
    where += "" if question.wait == "poll" else f", {words.WAITS[question.wait]}"
    better = question.sense
    floor = "" if question.floor is None else f"; floor {units.sig3(question.floor)} {question.unit}"
    named = f"{where}: {question.quantity}"
    tried = (f"{named}, {better}{floor}", f"{named}, {better}", named, f"{where}: {better}", where)
    return next((one for one in map(harmless, tried) if cells_wide(one) <= columns), harmless(where))


def _cells(bar: Bar, question: PicturedQuestion) -> tuple[str, str, str, str]:
    """Return name, value, interval and ratio as they are shown."""
    ends = units.ends(bar.low, bar.high).lstrip()
    ratio = "" if bar.floor_times is None else f"{units.times(bar.floor_times)} floor"
    return harmless(bar.name), f"{units.sig3(bar.value or 0)} {question.unit}", ends, ratio


def _told_apart(names: Collection[str], columns: int) -> int:
    """Return how many columns of a picture names take at most: more than usual where some would else look the same."""
    widths = range(NAME_MOST, max(columns // 2, NAME_MOST) + 1)
    return next((one for one in widths if len({_shortened(name, one) for name in names}) == len(names)), NAME_MOST)


def _shortened(name: str, columns: int) -> str:
    """Return a name in so many columns, with its end: a layer's builds and settings begin alike."""
    if cells_wide(name) <= columns:
        return name
    first, last = name[: columns // 2 - 1], name
    while cells_wide(f"{first}…{last}") > columns:
        last = last[1:]
    return f"{first}…{last}"


def _left(text: str, width: int) -> str:
    return text + " " * (width - cells_wide(text))


def _right(text: str, width: int) -> str:
    return " " * (width - cells_wide(text)) + text
