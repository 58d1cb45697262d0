# SPDX-License-Identifier: BSD-3-Clause
"""Blocks and their HTML: every value is escaped, a table's cells say what they are, prose of a study is checked."""

from __future__ import annotations

from pathlib import Path

import pagereader
import pytest

from cadge_analysis.blocks import html
from cadge_analysis.blocks.model import (
    Block,
    Column,
    Command,
    Fact,
    Facts,
    Fold,
    Heading,
    Item,
    Items,
    Region,
    Span,
    Table,
    TableCell,
    Text,
    line_of,
    number_columns,
    row_name,
    tables_of,
    words_column,
)
from cadge_analysis.cells.shown import Value
from cadge_analysis.errors import BadInputError
from cadge_analysis.study import prose
from cadge_analysis.study.views import has_ours

NASTY = "<b>\"&'</b>"
COLUMNS = (words_column("layer"), *number_columns(("8 B", "64 B")))


def printed(*blocks: Block) -> pagereader.Node:
    module = html.environment().get_template("blocks.html.j2").module
    return pagereader.read(str(module.blocks(blocks)))  # type: ignore[attr-defined]


def table(*lines: tuple[Value | TableCell, ...], role: str = "", columns: tuple[Column, ...] = COLUMNS) -> Table:
    made = tuple(line_of(row_name("am-ucx"), cells, role=role) for cells in lines)
    return Table(label="Sizes", role="plain", columns=columns, lines=made)


@pytest.mark.parametrize(
    "block",
    [
        Heading(3, NASTY),
        Text((Span(NASTY),)),
        Text((Span(NASTY, strong=True),)),
        Text((Span(NASTY, role="b"),)),
        Text((Span(NASTY, role=NASTY),)),
        Text((Span("x", href=NASTY), Span(NASTY))),
        Items((Item(spans=(Span(NASTY),), kind=NASTY),), NASTY),
        Facts((Fact(name="n", text=NASTY),)),
        Command(NASTY),
        Fold(summary=(Span(NASTY),), blocks=()),
        Region(blocks=(), title=NASTY, id=NASTY),
        Region(blocks=(), label=NASTY, role=NASTY, title=NASTY),
        table((Value(text=NASTY, raw=NASTY, detail=NASTY, reason=NASTY, flag=NASTY),)),
        table((TableCell(spans=(Span(NASTY),), small=((NASTY, NASTY),), role=NASTY, raw=NASTY, bar=NASTY),)),
    ],
)
def test_whatever_a_block_holds_is_text(block: Block) -> None:
    root = printed(block)
    assert NASTY in root.text
    assert not [one for one in root.all("b") if one.children == ["\"&'"]]
    assert len(root.children) == len(printed(block).children)


def test_a_line_has_its_cells_or_one_reason() -> None:
    whole = table((Value(text="1.2", raw="1200", detail="[1, 2]", flag="differs"), Value(text="-", reason="refused")))
    first, second = printed(whole).one("tbody").all("td")
    assert (first.attrs["class"], first.attrs["data-v"], first.own, first.smalls) == (
        "num differs",
        "1200",
        "1.2",
        ["[1, 2]"],
    )
    assert (second.attrs["class"], second.smalls) == ("num none", ["refused"])
    assert second.one("small").attrs["class"] == "why"
    bare = Table(label="", role="", columns=COLUMNS, lines=(line_of(row_name("mpi", "x"), (), "not built"),))
    (cell,) = printed(bare).one("tbody").all("td")
    assert (cell.attrs, cell.text) == ({"class": "reason", "colspan": "2"}, "not built")


def test_no_class_and_no_value_where_there_is_none() -> None:
    words = table((TableCell(spans=(Span("x"),)),), columns=(*COLUMNS[:1], words_column("h")))
    root = printed(Text((Span("so"),)), words)
    assert root.one("p").attrs == {}
    assert root.one("tbody").one("td").attrs == {}
    assert root.one("tbody").one("tr").attrs == {}


def test_numbers_of_a_paper_are_not_ours() -> None:
    ours = table((Value(text="1", raw="1"),))
    theirs = table((Value(text="1", raw="1"),), role="published")
    assert list(tables_of((Region(blocks=(Fold(summary=(), blocks=(ours,)), theirs)),))) == [ours, theirs]
    assert has_ours((Region(blocks=(theirs, ours), id="answer", title="t"),))
    assert not has_ours((Region(blocks=(theirs,), id="answer", title="t"),))
    assert not has_ours((Region(blocks=(ours,), id="bill", title="t"),))
    assert not has_ours(())


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("sections: {nowhere: [so]}", "nowhere"),
        ("sections: {answer: [{led: so}]}", "led"),
        ("sections: {answer: so}", "answer"),
        ("sections: [so", "page.yml"),
        ("", "page.yml"),
    ],
)
def test_prose_that_no_page_would_show_is_refused(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / prose.FILE).write_text(text)
    with pytest.raises(BadInputError, match=wrong):
        prose.read(tmp_path)


def test_a_study_without_prose_says_which_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"page\.yml cannot be read"):
        prose.read(tmp_path)


def test_prose_has_strong_words_and_tags(tmp_path: Path) -> None:
    (tmp_path / prose.FILE).write_text("sections: {answer: [{lede: '**All** is `found`, 2 * 3'}, 'plain <b>']}")
    first, second = prose.read(tmp_path).of("answer")
    assert first == Text((Span("All", strong=True), Span(" is "), Span("found", role="tag"), Span(", 2 * 3")), "lede")
    assert second == Text((Span("plain <b>"),))
    assert prose.read(tmp_path).of("bill") == ()
