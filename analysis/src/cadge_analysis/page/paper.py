# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a report as files, for a paper or for slides: each as a picture, with the numbers that it shows.

Small pictures of one style are the page's alone: their names stand beside them, not in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast, get_args

from cadge_analysis import messages
from cadge_analysis.blocks.markdown import escaped
from cadge_analysis.blocks.model import CHOSEN, Block, Figure, Fold, PageDocument, Region
from cadge_analysis.draw.renderer import RENDERER
from cadge_analysis.draw.svg import Kind, alone, picture
from cadge_analysis.errors import BadInputError, NoRendererError
from cadge_analysis.flat import lines

say = partial(messages.say, "figures")

LIST = "FIGURES.md"
"""The file that says what each figure is; it is written last."""
MARK = "<!-- figures of cadge -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """A figure, and the heading below which it stands; empty where its own title says all."""

    heading: str
    figure: Figure

    @property
    def title(self) -> str:
        """What the figure is, for who does not see the page."""
        return f"{self.heading}: {self.figure.title}" if self.heading else self.figure.title


def shown(page: PageDocument) -> Iterator[PaperFigure]:
    """Yield every figure of a report, in the page's order."""
    yield from _within(page.blocks, "")


def _within(blocks: Iterable[Block], heading: str) -> Iterator[PaperFigure]:
    for block in blocks:
        if isinstance(block, Figure):
            yield PaperFigure(heading=heading, figure=block)
        elif isinstance(block, Region | Fold):
            yield from _within(block.blocks, block.title if isinstance(block, Region) and block.part else heading)


def files(page: PageDocument, kind: Kind, figures: tuple[PaperFigure, ...]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file of some figures of a page, the list of them last. Raises PictureError."""
    if RENDERER.trouble:  # a page says in its frames that it has no pictures; a file would be one
        raise NoRendererError(RENDERER.trouble)
    listed = [MARK, "", f"# Figures: {escaped(page.title)}", "", escaped(page.deck)]
    for one in figures:
        figure = one.figure
        yield f"{figure.name}.{kind}", picture(alone(figure.svg), kind)
        yield f"{figure.name}.csv", _numbers(figure)
        read = f"{figure.caption} {figure.drawn}".replace(CHOSEN, "").strip()
        caption = f"{read} Numbers: {figure.name}.csv."
        listed += ["", f"## {figure.name}.{kind}", "", f"**{escaped(one.title)}**", "", escaped(caption)]
    yield LIST, ("\n".join(listed) + "\n").encode()


def is_list(path: Path) -> bool:
    """Say whether a file is the list that `files` wrote: its first line says so."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(MARK)) == MARK.encode()
    except FileNotFoundError:
        return False


def kind_of(text: str) -> Kind:
    """Return a kind of picture by its name. Raises BadInputError for another."""
    for kind in get_args(Kind):
        if kind == text:
            return cast("Kind", kind)
    raise BadInputError(say("paper.no_format", text=text))


def _numbers(figure: Figure) -> bytes:
    columns = figure.table.columns
    rows = (dict(zip(columns, row, strict=True)) for row in figure.table.rows)
    return "".join(lines("csv", columns, rows)).encode()
