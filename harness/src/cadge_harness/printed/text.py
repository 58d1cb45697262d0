# SPDX-License-Identifier: BSD-3-Clause
"""Lines of a tool's output, numbers in them, and the columns that they make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cadge_results.formats.imported import ImportedSeries, ImportedValue, Kind, Moves

MIB = 1 << 20
_LAUNCHER = re.compile(r"^(\[\d+,\d+\]<std(?:out|err|diag)>: ?|\s{0,4}\d{1,6}: )")
"""What launchers write before each line: mpirun --tag-output, srun --label."""
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_NUMBER = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?")
_DIGITS_MAX = 15
_ABOUT_MAX = 300


class PrintedError(Exception):
    """A text is not what a tool prints. `line` counts from 1; 0: it is about the whole text."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.line = line


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One line, without what a launcher wrote before it."""

    number: int
    text: str

    @property
    def words(self) -> list[str]:
        """What stands between spaces."""
        return self.text.split()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """What a user has to say of a text that does not say it: which test, and messages of how many bytes."""

    test: str = ""
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What was read. version: the tool and its version as printed; skipped: tests that are none of ours."""

    series: tuple[ImportedSeries, ...]
    version: str = ""
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolColumn:
    """What a column holds. factor: what turns a printed number into nanoseconds, or bytes or messages a second."""

    heading: str
    unit: str
    kind: Kind
    moves: Moves
    statistic: str
    factor: int


@dataclass(slots=True, kw_only=True)
class ToolNumbers:
    """The columns of one test and their numbers. A column that is not read is None."""

    test: str
    columns: Sequence[ToolColumn | None]
    about: list[str] = field(default_factory=list)
    values: list[list[ImportedValue]] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no rows."""
        self.values = [[] for _ in self.columns]

    def add(self, size: int, words: Sequence[str], line: int) -> None:
        """Take a row: a word a column. Raises PrintedError for what is no number."""
        if len(words) != len(self.columns):
            raise PrintedError(f"{len(words)} columns after the size, where the heading has {len(self.columns)}", line)
        for column, values, word in zip(self.columns, self.values, words, strict=True):
            if column is not None:
                value = float(number(word, line) * column.factor)
                values.append(ImportedValue(bytes=size, value=value, printed=word, line=line))

    def series(self) -> list[ImportedSeries]:
        """Return its columns that have numbers."""
        return [
            ImportedSeries(
                test=self.test,
                column=column.heading,
                unit=column.unit,
                kind=column.kind,
                moves=column.moves,
                statistic=column.statistic,
                about="; ".join(self.about)[:_ABOUT_MAX],
                values=tuple(values),
            )
            for column, values in zip(self.columns, self.values, strict=True)
            if column is not None and values
        ]


def lines_of(text: str) -> list[ToolLine]:
    """Return a text's lines. Only the ends of lines that tools write end one."""
    found = text.split("\n")
    plain = (_LAUNCHER.sub("", _ESCAPE.sub("", line)).rstrip("\r") for line in found)
    return [ToolLine(index, line) for index, line in enumerate(plain, 1)]


def is_cut(text: str) -> bool:
    """Tell whether the last line, of which a part may be missing, is a row of numbers."""
    last = lines_of(text)[-1]
    return bool(last.words) and any(word[0].isdigit() for word in last.words)


def like_row(words: Sequence[str], others: Sequence[str] = ()) -> bool:
    """Tell a row of numbers, also one that is damaged, from what else a launcher or library prints between rows."""
    good = (word[0].isdigit() or word[0] in "-+." or word.lower() in {"nan", "inf"} or word in others for word in words)
    return bool(words) and words[0].isascii() and words[0].isdecimal() and all(good)


def number(word: str, line: int = 0) -> Decimal:
    """Return a number, zero as well, just as it is printed. Raises PrintedError: also for infinity and NaN."""
    if not word.isascii() or not _NUMBER.fullmatch(word):
        raise PrintedError(f"{shown(word)} is no number that a tool prints", line)
    return Decimal(word)


def size(word: str, line: int = 0) -> int:
    """Return a number of bytes. Raises PrintedError."""
    if not (word.isascii() and word.isdecimal()) or len(word) > _DIGITS_MAX:
        raise PrintedError(f"{shown(word)} is no number of bytes", line)
    return int(word)


def shown(text: str) -> str:
    """Return a piece of a foreign text as a message may hold it."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def nothing(what: str, skipped: Sequence[str]) -> PrintedError:
    """Return the error for a text in which no known table was found."""
    if skipped:
        return PrintedError(f"{what}; it has {', '.join(shown(one) for one in skipped[:4])}")
    return PrintedError(what)
