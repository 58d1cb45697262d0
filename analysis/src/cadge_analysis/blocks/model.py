# SPDX-License-Identifier: BSD-3-Clause
"""What a page is made of: finished strings in frozen shapes, each printed by one macro of templates/blocks.html.j2.

`role` says how a block looks: a class of the style sheets. `id` is where links lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from cadge_analysis import messages
from cadge_analysis.blocks.ranked import Picture
from cadge_analysis.cells.shown import Value

say = partial(messages.say, "figures")


Data = tuple[tuple[str, str], ...]
"""For programs: attributes data-NAME of what is printed, and their values."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a sentence; strong for names and numbers that carry the answer. `href`: where it leads."""

    text: str
    strong: bool = False
    role: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A series' name, and the number of its look: marker, colour and dashes, which `dashed` says it has."""

    label: str
    number: int
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a level from 1, the title, to 4."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences."""

    spans: tuple[Span, ...]
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One of several: sentences, and for programs what kind of thing it says. Those of the role `SERIOUS` stand out.

    `topic`: what it is about; `more`: small print behind it.
    """

    spans: tuple[Span, ...]
    topic: str = ""
    more: str = ""
    role: str = ""
    kind: str = ""

    @property
    def text(self) -> str:
        """The sentences without what stands out."""
        return "".join(span.text for span in self.spans)

    @property
    def is_serious(self) -> bool:
        """True where it stands out."""
        return self.role == SERIOUS


SERIOUS = "serious"


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Item, ...]
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A name and what is known under it: a text, or several `cells`."""

    name: str
    text: str = ""
    code: bool = False
    cells: tuple[TableCell, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what is known under each."""

    facts: tuple[Fact, ...]
    role: str = "facts"


@dataclass(frozen=True, slots=True)
class Command:
    """Something to type, of one line."""

    text: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table's column: `key` names its field for programs, `head` and `unit` are for people.

    `below`: what more its head says. `role`: how its cells look. `joined`: it belongs to the column before; an edition
    puts its cells into that one's, in brackets before this word.
    """

    head: str
    key: str = ""
    unit: str = ""
    below: tuple[str, ...] = ()
    number: bool = True
    role: str = ""
    joined: str = ""
    data: Data = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What stands below the head."""
        return tuple(filter(None, (self.unit, *self.below)))

    @property
    def spoken(self) -> str:
        """The head as it stands before a cell where a table gives way."""
        head = "" if self.joined else self.head
        return " ".join((f"{head}, {self.unit}" if self.unit else head, *self.below))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A cell that is no number alone: words, a row's name (`is_name`), or a value with more below it.

    `named`: values by name, a line each. `small`: small print below it, each with how it looks. `bar`: the length of a
    bar in percent. `is_rest`: it takes the place of all cells that would follow.
    """

    spans: tuple[Span, ...] = ()
    named: tuple[tuple[str, str], ...] = ()
    small: tuple[tuple[str, str], ...] = ()
    role: str = ""
    raw: str = ""
    bar: str = ""
    key: Key | None = None
    is_name: bool = False
    is_rest: bool = False
    data: Data = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """A line of a table, a cell a column. `published` ones are not of our campaigns."""

    cells: tuple[Value | TableCell, ...]
    role: str = ""
    data: Data = ()


PUBLISHED = "published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Lines below heads. `label` names it where it can be scrolled; with `fits` it gives way on a narrow page.

    `heads`: the name of a rule with its heads, which all tables of the same columns share.
    """

    label: str
    role: str
    columns: tuple[Column, ...]
    lines: tuple[TableLine, ...]
    caption: tuple[Span, ...] = ()
    caption_role: str = ""
    fits: bool = False
    foot: tuple[TableLine, ...] = ()
    heads: str = ""
    data: Data = ()


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
    """A row: one layer. `begins`: a group begins here, separated from the one above by the first question."""

    key: Key
    begins: bool
    cells: tuple[Reply, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Layers against questions, sorted as `sorted_by` says. opened: it is looked at first; others fold."""

    title: str
    opened: bool
    sorted_by: str
    questions: tuple[Question, ...]
    rows: tuple[Replies, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """The numbers behind a figure, as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPicture:
    """A small chart of a few series."""

    heading: str
    keys: tuple[Key, ...]
    svg: Markup


NOTHING = Markup()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, how to read it, small charts with what lies behind them all, and its data.

    drawn: what lines, marks and colours mean, which editions without pictures leave out.
    """

    name: str
    title: str
    svg: Markup
    caption: str
    keys: tuple[Key, ...]
    table: DataTable
    drawn: str = ""
    small_title: str = ""
    back: Markup = NOTHING
    small: tuple[SmallPicture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedFigure:
    """A chart of parts, what their colours mean, and how to read it; its numbers stand in a table beside it."""

    name: str
    label: str
    parts: tuple[tuple[str, str], ...]
    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelFigure:
    """A small chart beside others, whose series they are (`key` in its title, `keys` below), and its numbers."""

    name: str
    title: str
    svg: Markup
    note: str
    table: DataTable
    key: Key | None = None
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """Series of which a reader may pick one out, in all figures of the region that this stands in."""

    name: str
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks below a line that says what they are; closed on a screen, if it does not say otherwise.

    In an edition that line is a heading.
    """

    summary: tuple[Span, ...]
    blocks: tuple[Block, ...]
    role: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something that limits what the numbers mean; `serious` ones are warnings, all others notes.

    `size` says how much it touches, `share` which share of the campaign that is, for the order. `stops`: answers are
    not to be read without it, so that it is shown above them. `items`: several of a kind, shown as one. `kind`: that of
    findings, for programs. `key`: the sentence's in the catalogue, for tests.
    """

    serious: bool
    title: str
    text: str
    size: str = ""
    share: float = 0.0
    stops: bool = False
    items: tuple[str, ...] = ()
    anchor: str = ""
    kind: str = ""
    key: str = ""

    @property
    def told(self) -> str:
        """The text and its items in one line: whole sentences follow each other, all else stands between semicolons."""
        line = self.text
        for item in self.items:
            line += f"{'' if line[-1:] in '.:;?!' else ';'} {item}"
        return line.strip()


@dataclass(frozen=True, slots=True)
class Remarks:
    """Remarks, each folded below its title and size; in an edition a list."""

    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What has a page of its own where a report has several files: its name for programs, and for people."""

    name: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Blocks that belong together. With a `title` they are a section of the page; lists of sections call it `short`.

    `part`: whose page has it whole. What stands in a region of the role `WHOLE` within it, that page alone has then.
    """

    blocks: tuple[Block, ...]
    title: str = ""
    short: str = ""
    id: str = ""
    role: str = ""
    label: str = ""
    part: Part | None = None


WHOLE = "whole"
GIST = "dim"
"""Of a fold's line: in short what is below it."""
ONSCREEN = "onscreen"
"""A word of the role of what a reader of the page on a screen alone needs: neither paper nor editions have it."""
DRAWN = "drawn"
"""A word of the role of what lines, marks and colours mean: editions without pictures do not have it."""
CHOSEN = f" {say('figures.chosen')}"
"""Of a caption: what is true in the page alone, and not of a figure that stands by itself."""


Block = (
    Heading
    | Text
    | Items
    | Facts
    | Command
    | Remarks
    | Table
    | Matrix
    | Figure
    | StackedFigure
    | PanelFigure
    | Chooser
    | Picture
    | Fold
    | Region
)


@dataclass(frozen=True, slots=True)
class NavLink:
    """An entry of the list of sections, or several below one text; without an address it leads nowhere itself."""

    text: str
    href: str = ""
    below: tuple[NavLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What every page has: colours, where its numbers come from, and the numbers themselves.

    `looks` are number and colour of what its figures' readers may pick out.
    """

    facts: tuple[Fact, ...]
    command: str
    looks: tuple[tuple[int, int], ...]
    palette_light: tuple[tuple[str, str], ...]
    palette_dark: tuple[tuple[str, str], ...]
    data_json: Markup
    generated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDocument:
    """A whole page: what it is, its list of sections, and its blocks.

    `kicker` says what kind of page it is; `styles` are the style sheets that it needs beside those of every page.
    `head` stands below its title; `made` says what it is made of, `carried` where its numbers are for programs, which
    an edition does not have. `findings`: for programs, one by one what was found wrong, or changed. `scripted`: it has
    the report's script; `part_of`: the report whose page it is.
    """

    title: str
    kicker: tuple[Span, ...]
    deck: str
    styles: tuple[str, ...]
    sections: tuple[NavLink, ...]
    blocks: tuple[Block, ...]
    sheet: Sheet
    made: str
    carried: tuple[Span, ...]
    head: tuple[Block, ...] = ()
    findings: tuple[Item, ...] = ()
    scripted: bool = False
    part_of: str = ""
