# SPDX-License-Identifier: BSD-3-Clause
"""The Markdown and the text edition: the page's own strings, no wider than said, and nothing that a name can steer."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import synthetic
from pageparts import limits, listed, texts

from cadge_analysis import report
from cadge_analysis.blocks.make import every, panels_of, tables_of
from cadge_analysis.blocks.markdown import escaped
from cadge_analysis.blocks.model import Block, Facts, Figure, Matrix, PageDocument
from cadge_analysis.blocks.plain import cells_wide, harmless, wrapped
from cadge_analysis.blocks.text import WIDE, _command
from cadge_analysis.cells.shown import Value
from cadge_analysis.stats.load import read

HOSTILE = "a|b`c`<script>alert(1)</script>[x](http://e.x)**@you\x1b[31m\u202egnp\nwww.e.x # 1. é界"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> PageDocument:
    """Two layers of two patterns; a host that is called as badly as can be."""
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8, 4096),
        places=("within",),
        waits=("poll",),
        samples=300,
        launches=3,
        node={"kernel": HOSTILE},
    )
    return report.page_of(read(synthetic.make(tmp_path_factory.mktemp("editions"), options)), title=HOSTILE)


def every_text(page: PageDocument) -> list[str]:
    """Return what both editions have to say, among much else."""
    blocks = tuple(every(page.blocks))
    figures = [one for one in blocks if isinstance(one, Figure)]
    replies = [cell for one in blocks if isinstance(one, Matrix) for row in one.rows for cell in row.cells]
    return [
        page.deck,
        *texts(page, "opening"),
        *(one.headline for one in panels_of(page.blocks)),
        *(bar.name for one in panels_of(page.blocks) for bar in one.bars),
        *(one.title for one in limits(page)),
        *listed(page, "cannot"),
        *cells_of(page.blocks),
        *(cell.text for cell in replies),
        *(fact.text for one in blocks if isinstance(one, Facts) for fact in one.facts),
        *(fact.text for fact in page.sheet.facts),
        *(figure.title for figure in figures),
        *(figure.caption for figure in figures),
        *(cell for figure in figures for row in figure.table.rows for cell in row),
    ]


def cells_of(blocks: tuple[Block, ...]) -> Iterator[str]:
    for table in tables_of(blocks):
        for line in (*table.lines, *table.foot):
            for cell in line.cells:
                yield from (cell.text,) if isinstance(cell, Value) else (span.text for span in cell.spans)


def letters(text: str) -> str:
    return re.sub(r"[\s\u202f\u00a0]+", "", text)


def test_the_text_edition_has_all_that_the_page_says_and_fits_a_terminal(page: PageDocument) -> None:
    made = report.edition(page, "text")
    lines = made.splitlines()
    assert max(map(cells_wide, lines)) <= WIDE
    assert not [line for line in lines if line != line.rstrip()]
    said = letters(made)
    texts = [letters(harmless(one)) for one in every_text(page)]
    assert len(texts) > 100
    missing = [one for one in texts if one not in said and len(one) < 30]
    assert not missing, "short ones stand in table cells, which may be wrapped beside others"
    assert not [one for one in listed(page, "cannot") if letters(one) not in said]
    assert report.edition(page, "text") == made, "equal pages, equal bytes"


def test_the_markdown_edition_has_all_that_the_page_says(page: PageDocument) -> None:
    made = report.edition(page, "markdown")
    lines = made.splitlines()
    assert not [one for one in every_text(page) if escaped(one) not in made]
    for line in (line for line in lines if line.startswith("|")):
        assert line.endswith(" |") or set(line) <= {"|", "-"}
    heads = [number for number, line in enumerate(lines) if line.startswith("|--")]
    assert len(heads) > 8
    for number in heads:
        columns = lines[number].count("|")
        row = number - 1
        while row < len(lines) and lines[row].startswith("|"):
            assert lines[row].count("|") == columns, "no cell ends in its middle"
            row += 1


@pytest.mark.parametrize("kind", ["markdown", "text"])
def test_no_name_steers_a_terminal_or_a_reader(page: PageDocument, kind: str) -> None:
    made = report.edition(page, kind)
    assert "\x1b" not in made
    assert "\u202e" not in made
    assert "\\u001b" in made.replace("\\\\u", "\\u"), "it is shown by its code point"
    assert "alert(1)" in made
    if kind == "markdown":
        assert "<script" not in made
        assert not re.search(r"(?<!\\)`", made)
        assert not re.search(r"(?<!\\)\]\(", made)
        assert "://" not in made
        assert "@you" not in made


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a|b", "a&#124;b"),
        ("`x` <b> *y* _z_", "\\`x\\` &lt;b&gt; \\*y\\* \\_z\\_"),
        ("1. one", "1\\. one"),
        ("- item", "\\- item"),
        ("# head", "\\# head"),
        ("x\n\n# head", "x  \\# head"),
        ("AT&T &amp;", "AT&amp;T &amp;amp;"),
        ("http://a.b www.c.d", "http&#58;//a.b www&#46;c.d"),
        ("0.742 [0.726, 0.747]", "0.742 \\[0.726, 0.747\\]"),
    ],
)
def test_markdown_shows_what_was_given(given: str, expected: str) -> None:
    assert escaped(given) == expected
    read_back = html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", expected))
    assert read_back.split() == given.split()


def test_lines_are_wrapped_by_what_a_terminal_shows() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("- one two", 5, "  ") == ["- one", "  two"]
    assert wrapped("界界界", 4) == ["界界", "界"]
    assert wrapped("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrapped("", 5) == [""]


def test_a_command_can_be_copied() -> None:
    command = shlex.join(["cadge", "run", *(f"--option-{n}=a value's" for n in range(12))])
    lines = list(_command(command))
    assert len(lines) > 3
    assert max(map(len, lines)) <= WIDE
    assert shlex.split("\n".join(lines).replace("\\\n", " ")) == shlex.split(command)


def test_a_folder_of_nothing_has_editions_too(tmp_path: Path) -> None:
    options = synthetic.Options(layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), samples=200)
    made = synthetic.make(tmp_path, synthetic.Options(**{**vars(options), "lost": lambda _: True}))
    empty = report.page_of(read(made))
    for kind in ("markdown", "text"):
        assert "Nothing was measured" in report.edition(empty, kind)
