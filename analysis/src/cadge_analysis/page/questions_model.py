# SPDX-License-Identifier: BSD-3-Clause
"""What the summary matrix shows: layers against questions, as finished strings."""

from __future__ import annotations

from dataclasses import dataclass

from cadge_analysis.blocks.model import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A column: what is asked, of which number, and what its floor is or why it has none."""

    head: str
    of: str
    floor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A layer's number for a question: value with unit, interval, rank, and how far from its floor it is.

    rank: "1", or "1=" where it is shared; `spoken` says so in words; `leads`: it is of the leading group. bar: length
    in percent. Without a value there is a `reason` in a word, and what was said of it in `why`.
    """

    question: str
    text: str
    detail: str = ""
    rank: str = ""
    spoken: str = ""
    leads: bool = False
    floor: str = ""
    bar: str = ""
    below: bool = False
    raw: str = ""
    reason: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """A row: one layer. `begins`: here a group begins that is told apart from the one above, by the first question."""

    key: Key
    begins: bool
    cells: tuple[Reply, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTable:
    """Layers against questions at one place and in one wait mode, sorted by the first question.

    opened: it is looked at first; others fold. `sorted_by` says how its rows are sorted.
    """

    title: str
    opened: bool
    sorted_by: str
    questions: tuple[Question, ...]
    rows: tuple[Replies, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The summary matrix. `reading`: how to read it; `bars`: and its bars, where it has any.

    `without`: places and wait modes at which nothing has a number.
    """

    reading: str
    bars: str
    tables: tuple[QuestionTable, ...]
    without: tuple[str, ...]
