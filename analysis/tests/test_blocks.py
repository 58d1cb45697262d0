# SPDX-License-Identifier: BSD-3-Clause
"""Blocks and their HTML: every value is escaped, a table's cells say what they are, prose of a study is checked."""

from __future__ import annotations

from pathlib import Path

import pagereader
import pytest
from markupsafe import Markup

from cadge_analysis.blocks import html, script
from cadge_analysis.blocks.lines import DEEPEST, FlatTable, ItemList, Paragraph, lines_of
from cadge_analysis.blocks.make import (
    line_of,
    number_columns,
    plain,
    reason_cell,
    row_name,
    tables_of,
    titled_spans,
    words_cell,
    words_column,
)
from cadge_analysis.blocks.markdown import markdown
from cadge_analysis.blocks.model import (
    CHOSEN,
    DRAWN,
    ONSCREEN,
    Block,
    Column,
    Command,
    DataTable,
    Fact,
    Facts,
    Figure,
    Fold,
    Heading,
    Item,
    Items,
    Key,
    Matrix,
    PanelFigure,
    Question,
    Region,
    Remark,
    Remarks,
    Replies,
    Reply,
    Span,
    StackedFigure,
    Table,
    TableCell,
    TableLine,
    Text,
)
from cadge_analysis.blocks.text import text
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
        Remarks((Remark(serious=True, title=NASTY, text=NASTY, size=NASTY, items=(NASTY,), anchor=NASTY, kind=NASTY),)),
        Items((Item(topic=NASTY, spans=(), more=NASTY),)),
        Fold(summary=(Span(NASTY),), blocks=()),
        Region(blocks=(), title=NASTY, id=NASTY),
        Region(blocks=(), label=NASTY, role=NASTY, title=NASTY),
        table((Value(text=NASTY, raw=NASTY, detail=NASTY, reason=NASTY, flag=NASTY),)),
        table((TableCell(named=((NASTY, NASTY),)),)),
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


def test_an_edition_says_all_that_a_page_says() -> None:
    """Every text of each kind of block, but how it looks and what is for programs."""
    numbers = DataTable(columns=("c1", "c2"), rows=(("d1", "d2"),))
    panel = PanelFigure(name="-", title="f1", svg=Markup("<svg></svg>"), note="f2", table=numbers)
    cells = (Value(text="v1", detail="v2", raw="-", reason="v3", flag="-"), words_cell("v4"))
    named = TableCell(
        key=Key(label="k1", number=1), spans=(Span("k2"),), named=(("k4", "k5"),), small=(("-", "k3"),), is_name=True
    )
    columns = (words_column("h1"), Column(head="h2", unit="h3", below=("h4", "h5")), words_column("h6"))
    whole = Table(
        label="-",
        role="-",
        columns=columns,
        lines=(line_of(named, cells),),
        foot=(line_of(row_name("o1"), cells),),
        caption=(Span("p1"), Span("p2", role="dim")),
    )
    silent = Table(label="-", role="-", columns=columns, lines=whole.lines)
    replies = (
        Reply(question="-", text="y1", detail="y2", rank="y3", spoken="-", floor="y4", bar="-", raw="-"),
        Reply(question="-", text="-", reason="y5", why="y6"),
    )
    matrix = Matrix(
        title="m1",
        opened=False,
        sorted_by="m2",
        questions=(Question(head="m3", of="m4", floor="m5"), Question(head="m6", of="m7", floor="")),
        rows=(Replies(key=Key(label="m8", number=1), begins=False, cells=replies),),
    )
    remark = Remark(serious=True, title="w1", text="w2", size="w3", items=("w4", "w5"), anchor="-", kind="-")
    page = Region(
        title="r1",
        id="-",
        short="-",
        blocks=(
            Heading(3, "g1"),
            Text((Span("t1", strong=True), Span("t2", role="-", href="-")), "-"),
            Items((Item(spans=(Span("i1"),), kind="-"), Item(spans=(Span("i2"),), topic="i3", more="i4"))),
            Remarks((remark,)),
            matrix,
            Facts((Fact(name="n1", text="n2"),)),
            Command("cadge x1", label="-"),
            whole,
            Fold(summary=(Span("q1"),), blocks=(silent, panel), role="-"),
        ),
    )
    for edition in (markdown(lines_of((page,))), text(lines_of((page,)))):
        bare = edition.replace("\\", "")
        wanted = "r1 g1 t1 t2 i1 i2 i3 i4 w1 w2 w3 w4 w5 m1 m2 m3 m4 m5 m6 m7 m8 y1 y2 y3 y4 y5 y6"
        wanted += " n1 n2 x1 h1 h2 h3 h4 h5 h6 k1 k2 k3 k4 k5 v1 v2 v3 v4 o1 p1 p2 q1 f1 f2 c1 c2 d1 d2"
        assert [one for one in wanted.split() if one not in bare] == []
    assert "#### q1" in markdown(lines_of((page,))), "a fold's line is a heading below the one before it"


def test_what_says_nothing_is_left_out_of_editions() -> None:
    empty = Table(label="", role="", columns=COLUMNS, lines=())
    assert markdown(lines_of((Text(()), Items(()), Facts(()), empty))) == ""


def test_lines_of_each_kind_of_block() -> None:
    """What stands where, word by word: names in brackets, joined columns, what spans a table, levels of folds."""
    shown = Span("screen", role=ONSCREEN)
    columns = (words_column("layer"), Column(head="p50", unit="ns", below=("rpc",)), Column(head="-", joined="of TCP"))
    lines = (
        line_of(row_name("am-ucx", "asleep"), (Value(text="3", detail="[2, 4]"), Value(text="1.5"))),
        line_of(TableCell(key=Key(label="mpi", number=1)), (), "refused"),
        line_of(row_name("null"), (TableCell(named=(("a", "1"), ("b", "2"))), TableCell())),
    )
    foot = (TableLine(cells=(reason_cell("Times of one launch."),)), line_of(row_name("floor"), (Value(text="2"),)))
    table = Table(label="", role="", columns=columns, lines=lines, foot=foot, caption=(Span("Times"), shown))
    replies = (
        Reply(question="q", text="3 ns", detail="[2, 4]", rank="1=", floor="2x"),
        Reply(question="q", text="-", reason="refused", why="no device"),
        Reply(question="q", text="-", reason="failed"),
        Reply(question="q", text="5 ns"),
    )
    heads = (Question(head="How fast?", of="p50", floor="2 ns"), Question(head="Lost?", of="share", floor=""))
    row = Replies(key=Key(label="am-ucx", number=1), begins=False, cells=replies)
    numbers = DataTable(columns=("x", "y"), rows=(("1", "2"),))
    deep = Fold(summary=(Span("five"),), blocks=(Fold(summary=(Span("six"),), blocks=(plain("end"),)),))
    blocks = (
        Region(title="Speed", blocks=(Fold(summary=titled_spans("Why", "in short"), blocks=(plain("so"),)),)),
        Heading(4, "four"),
        deep,
        Text((Span("paper"), shown, Span(" Dotted: the floor.", role=DRAWN))),
        Text((Span("no paper"),), f"dim {ONSCREEN}"),
        Items((Item(spans=(Span("it is"),), topic="Path", more="since"), Item(spans=(Span("bare"),)))),
        Remarks((Remark(serious=True, title="Few", size="2 of 3", text="Twice", items=("a", "b.", "c")),)),
        Facts((Fact(name="CPU", text="fast"), Fact(name="NICs", cells=(words_cell("a"), words_cell("b"))))),
        table,
        Matrix(title="Answers", opened=True, sorted_by="by p50", questions=heads, rows=(row,)),
        Figure(
            name="f", title="Curve", svg=Markup(""), caption=f"Read it.{CHOSEN}", drawn="Dots.", keys=(), table=numbers
        ),
        Figure(name="g", title="Bare", svg=Markup(""), caption="Look.", keys=(), table=DataTable(columns=(), rows=())),
        PanelFigure(name="p", title="Panel", svg=Markup(""), note="small", table=numbers),
        StackedFigure(name="s", label="", parts=(), svg=Markup(""), caption="Bars."),
    )
    assert list(lines_of(blocks)) == [
        Heading(2, "Speed"),
        Heading(3, "Why"),
        Paragraph("in short"),
        Paragraph("so"),
        Heading(4, "four"),
        Heading(5, "five"),
        Paragraph(""),
        Heading(6, "six"),
        Paragraph(""),
        Paragraph("end"),
        Paragraph("paper"),
        ItemList(("Path: it is since", "bare")),
        ItemList(("Few, 2 of 3. Twice; a; b. c",)),
        ItemList(("CPU: fast", "NICs: a; b")),
        FlatTable(
            "Times Times of one launch.",
            ("layer", "p50, ns, rpc"),
            (
                ("am-ucx asleep", "3 [2, 4] (1.5 of TCP)"),
                ("mpi", "refused"),
                ("null", "a: 1; b: 2"),
                ("floor", "2"),
            ),
        ),
        FlatTable(
            "Answers, by p50",
            ("layer", "How fast? (p50; 2 ns)", "Lost? (share)"),
            (("am-ucx", "1=: 3 ns [2, 4] (2x)", "refused (no device)", "failed", "5 ns"),),
        ),
        Heading(3, "Curve"),
        Paragraph("Read it."),
        FlatTable("", ("x", "y"), (("1", "2"),)),
        Heading(3, "Panel"),
        Paragraph("small"),
        FlatTable("", ("x", "y"), (("1", "2"),)),
    ]
    below_six = list(lines_of((Fold(summary=(Span("deep"),), blocks=()),), DEEPEST))
    assert below_six[0] == Heading(DEEPEST, "deep")


SHEET = [
    Heading(1, "界 title"),
    Heading(2, "part"),
    Heading(3, "none"),
    Paragraph("1) so"),
    Paragraph(""),
    ItemList(("- a", "b")),
    Command("run --all"),
    FlatTable("", ("a",), ()),
    FlatTable("a|b", ("name", "first", "second"), (("am-ucx", "a word of some length", "1"), ("mpi", "", "界"))),
]


def test_an_edition_in_markdown() -> None:
    assert markdown(SHEET).splitlines() == [
        "# 界 title",
        "",
        "## part",
        "",
        "### none",
        "",
        "1\\) so",
        "",
        "- \\- a",
        "- b",
        "",
        "    run --all",
        "",
        "**a&#124;b**",
        "",
        "| name | first | second |",
        "|---|---|---|",
        "| am-ucx | a word of some length | 1 |",
        "| mpi |  | 界 |",
    ]
    assert markdown([FlatTable("", ("a",), (("b",),))]) == "| a |\n|---|\n| b |\n"


def test_an_edition_in_text() -> None:
    """A table in parts, each with the rows' names; a cell that is too long goes on below itself."""
    assert text(SHEET, 30).splitlines() == [
        "界 title",
        "========",
        "",
        "part",
        "----",
        "",
        "none",
        "",
        "1) so",
        "",
        "- - a",
        "- b",
        "",
        "  run --all",
        "",
        "[a|b]",
        "name    first      second",
        "------  ---------  ------",
        "am-ucx  a word of  1",
        "        some",
        "        length",
        "mpi                界",
    ]
    assert "name    first    second" in text(SHEET, 23).splitlines()
    parts = [line for line in text(SHEET, 22).splitlines() if "  " in line]
    assert parts[-10:] == [
        "  run --all",
        "name    first",
        "------  -------",
        "am-ucx  a word",
        "        of some",
        "        length",
        "name    second",
        "------  ------",
        "am-ucx  1",
        "mpi     界",
    ]
    assert text([Command(f"{'x' * 120} y")]) == f"  {'x' * 120} \\\n    y\n"
    assert text([Command(f"{'x' * 60} {'y' * 34} z")]) == f"  {'x' * 60} {'y' * 34} \\\n    z\n"
    assert text([Command(f"{'x' * 60} {'y' * 33} z")]) == f"  {'x' * 60} {'y' * 33} z\n"


def test_a_page_is_tidied_in_parts_as_it_would_be_at_once() -> None:
    lines = [f"{' ' * (number % 5)}{'x' * (number % 90)}" for number in range(4000)]
    assert script.tidy("\n".join(lines)) == "\n".join(line.strip() for line in lines if line.strip()) + "\n"
    assert [*filter(None, html._whole_lines(["a", "b\nc", "", "d\ne\n", "f"]))] == ["ab\n", "cd\ne\n", "f"]
