# SPDX-License-Identifier: BSD-3-Clause
"""The picture in the terminal: the values of the report's tables, ranked, in the room that there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic

from cadge_analysis import report, units
from cadge_analysis.blocks import bars
from cadge_analysis.blocks.make import tables_of
from cadge_analysis.blocks.plain import cells_wide
from cadge_analysis.blocks.ranked import Bar, Picture, PicturedQuestion
from cadge_analysis.cells.shown import Value
from cadge_analysis.page.ranked import pictured
from cadge_analysis.stats import compare, load

ORDER = (5, 0, 9, 3, 11, 1, 7, 2, 10, 4, 8, 6)  # no round is like the one before
# ns of a round trip at 8 B: the second is told apart from nobody, since its rounds lie on both sides of the first's
TOOK = {"mpi-p2p": 3000, "native-ofi": 1000, "native-ucx": 1000, "rdma-ucx": 6000, "sockets-tcp": 60_000}


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Each layer takes its own time and 10 ns more a round; the floor 500 ns, and a stream's bytes a tenth of that."""
    known = synthetic.flat(point)
    took = 500 if known["kind"] == "floor" else TOOK[known["layer"]]
    if known["layer"] == "native-ofi":
        took += 100 if ORDER[number] in (0, 1, 4, 5, 10, 11) else -100
    if known["pattern"] in ("stream", "flow"):
        synthetic.set_rate(attempt, 1_000_000, took * 100)
    else:
        synthetic.set_samples(attempt, [(took + 10 * ORDER[number], 2000)])


def data_of(folder: Path, **given: Any) -> load.Dataset:  # noqa: ANN401
    usual: dict[str, Any] = {
        "layers": tuple(TOOK),
        "sizes": (8, 4096, 1 << 20),
        "patterns": (("rpc", 1), ("stream", 16)),
        "places": ("within",),
        "waits": ("poll",),
        "launches": 12,
        "samples": 200,
        "troubles": False,
        "attempt_hook": by_hand,
    }
    return load.read(synthetic.make(folder, synthetic.Options(**(usual | given))))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> load.Dataset:
    return data_of(tmp_path_factory.mktemp("picture"))


@pytest.fixture(scope="module")
def found(data: load.Dataset) -> Picture:
    return pictured(compare.compare(data))


def test_its_numbers_are_those_of_the_reports_tables(data: load.Dataset, found: Picture) -> None:
    shown: dict[str, dict[str, str]] = {}
    for table in tables_of(report.page_of(data).blocks):
        if table.role != "full" or "-more" in table.heads:
            continue
        for line in table.lines:
            values = {
                column.key: cell
                for column, cell in zip(table.columns, line.cells, strict=True)
                if isinstance(cell, Value)
            }
            shown[dict(line.data)["point"]] = {key: cell.text for key, cell in values.items()} | {
                f"{key} raw": cell.raw for key, cell in values.items()
            }
    every = [(bar, one) for one in found.questions for bar in one.bars]
    assert len(every) == 2 * len(TOOK)
    for bar, question in every:
        row = shown[bar.point_id]
        scale = 1000 if question.unit == "µs" else 1
        assert bar.value is not None
        assert bar.low is not None
        assert bar.high is not None
        assert units.sig3(bar.value) == row["p50"]
        assert units.raw(bar.value * scale, bar.low * scale, bar.high * scale) == row["p50 raw"]
        assert bar.floor_times is not None
        assert units.sig3(bar.floor_times) == row["ratio"]


def test_what_is_best_stands_first_and_who_leads_is_marked(found: Picture) -> None:
    rpc, stream = found.questions
    assert (rpc.better, stream.better) == ("low", "high")
    # of rounds from 0 to 110 ns more the median is 55; of the second the halves lie 100 ns to either side
    took = {bar.name: bar.value for bar in rpc.bars if bar.name != "native-ofi"}
    assert list(took) == ["native-ucx", "mpi-p2p", "rdma-ucx", "sockets-tcp"]
    assert list(took.values()) == pytest.approx([1.055, 3.055, 6.055, 60.055], rel=1e-3)
    assert {bar.name for bar in rpc.bars if bar.leads} == {"native-ucx", "native-ofi"}
    assert [bar.name for bar in stream.bars][-3:] == ["mpi-p2p", "rdma-ucx", "sockets-tcp"]
    values = [bar.value or 0 for bar in stream.bars]
    assert values == sorted(values, reverse=True)
    drawn = bars.lines(found, most=30, unicode=False)
    assert [line.split()[1] for line in drawn if line.startswith("*")][:2] == [bar.name for bar in rpc.bars[:2]]


def test_few_launches_are_a_first_look_and_no_layer_leads(tmp_path: Path) -> None:
    for launches, is_first in ((5, True), (6, False)):
        of_few = pictured(compare.compare(data_of(tmp_path / str(launches), launches=launches)))
        assert {bar.launches for one in of_few.questions for bar in one.bars} == {launches}
        assert of_few.conclusion.startswith("A first look") == is_first
        if is_first:
            assert not [bar for one in of_few.questions for bar in one.bars if bar.leads]


def test_a_layer_without_a_number_is_named(tmp_path: Path) -> None:
    def fails(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        by_hand(point, attempt, number)
        if synthetic.flat(point)["layer"] == "mpi-p2p":
            attempt["checks"] = [{"name": "payload", "ok": False, "detail": "byte 3 differs"}]

    of_few = pictured(compare.compare(data_of(tmp_path, attempt_hook=fails)))
    for one in of_few.questions:
        assert [(bar.name, bar.value, bar.why) for bar in one.bars if bar.value is None] == [
            ("mpi-p2p", None, "unsound")
        ]
    assert sum("mpi-p2p (unsound)" in line for line in bars.lines(of_few, most=30)) == 2


def test_without_a_question_or_a_number_it_says_so_or_nothing(tmp_path: Path) -> None:
    streams = {"patterns": (("stream", 16),), "waits": ("block",)}  # which no first screen asks for
    measured = pictured(compare.compare(data_of(tmp_path / "streams", **streams)))
    assert bars.lines(measured, most=15) == []
    nothing = pictured(compare.compare(data_of(tmp_path / "nothing", lost=lambda _launch: True)))
    assert (nothing.questions, len(bars.lines(nothing, most=15))) == ((), 1)


def drawn_picture(many: int, questions: int) -> Picture:
    """Return one whose bars take 1, 2, 3 and so on, in the 2nd question with very long names."""
    return Picture(
        questions=tuple(
            PicturedQuestion(
                workload="RPC of 8 B",
                place="between",
                wait="poll",
                quantity="median round trip",
                unit="µs",
                better="low",
                floor=0.5,
                bars=tuple(
                    Bar(name=f"{'long-' * 12 * (at == 1)}layer{number}", point_id="", value=number, low=1, high=1e6)
                    for number in range(1, many + 1)
                ),
            )
            for at in range(questions)
        ),
        conclusion="A first look: no verdicts, 5 launches of each are too few.",
    )


@pytest.mark.parametrize(
    ("columns", "heading"),
    [
        (100, "RPC of 8 B between hosts: median round trip, lower is better; floor 0.500 µs"),
        (70, "RPC of 8 B between hosts: median round trip, lower is better"),
        (50, "RPC of 8 B between hosts: median round trip"),
        (42, "RPC of 8 B between hosts: lower is better"),
    ],
)
def test_a_heading_names_its_quantity_as_long_as_there_is_room(columns: int, heading: str) -> None:
    assert bars.lines(drawn_picture(2, 1), most=15, columns=columns)[0].rstrip() == heading


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("columns", [20, 40, 59, 60, 80, 100, 200])
def test_it_keeps_within_its_lines_and_columns(columns: int, unicode: bool) -> None:
    for most in (15, 30):
        for many, questions in ((1, 1), (5, 2), (27, 4), (9, 12)):
            drawn = bars.lines(drawn_picture(many, questions), most=most, columns=columns, unicode=unicode)
            assert len(drawn) <= most
            assert max(map(cells_wide, drawn)) <= columns
            assert unicode or all(line.isascii() for line in drawn)
            assert sum("layer1" in line for line in drawn) >= 1 or columns == 20


def test_bars_are_as_long_as_their_values(found: Picture) -> None:
    drawn = bars.lines(drawn_picture(4, 1), most=15, columns=100, unicode=False)
    lengths = [line.count("#") for line in drawn[1:5]]
    assert lengths[3] > 20
    assert lengths == [round(lengths[3] * number / 4) for number in (1, 2, 3, 4)]
    # 60 times as long, and yet it can be seen
    assert min(line.count("#") for line in bars.lines(found, most=15, unicode=False)[1:6]) == 1


def test_what_there_is_no_line_for_is_counted() -> None:
    drawn = bars.lines(drawn_picture(27, 4), most=30, columns=80)
    shown = [line.split()[0] for line in drawn if line.split()[0].startswith("layer")]
    assert shown == [f"layer{number}" for number in range(1, len(shown) // 3 + 1)] * 3  # of the second question: long-
    (left,) = {line for line in drawn if "more" in line and "long" not in line}
    assert left.split()[1] == str(27 - len(shown) // 3)
    assert "layer27" in left


@pytest.mark.parametrize(
    ("encoding", "environment", "reads"),
    [
        ("utf-8", {"LANG": "en_US.UTF-8"}, True),
        ("UTF-8", {"LANG": "C.utf8"}, True),
        ("utf-8", {"LC_ALL": "de_DE.utf8", "LANG": "C"}, True),
        ("utf-8", {"LC_CTYPE": "en_US.UTF-8", "LANG": "C"}, True),
        ("utf-8", {"LC_CTYPE": "C.UTF-8", "LANG": "C"}, False),  # Python's own doing
        ("utf-8", {"LC_CTYPE": "C.UTF-8"}, False),
        ("utf-8", {"LC_ALL": "C", "LANG": "en_US.UTF-8"}, False),
        ("utf-8", {}, False),
        ("latin-1", {"LANG": "en_US.UTF-8"}, False),
        (None, {"LANG": "en_US.UTF-8"}, False),
    ],
)
def test_a_terminal_that_has_ascii_alone(encoding: str | None, environment: dict[str, str], reads: bool) -> None:
    assert bars.reads_unicode(encoding, environment) is reads


def test_it_is_handed_on_as_plain_data(found: Picture) -> None:
    assert Picture.of(found.stored()) == found


def test_long_names_keep_the_end_where_they_differ(found: Picture) -> None:
    names = {f"native-ucx ({value})": value for value in ("tcp.buffers=4M, tcp.nodelay=off", "tcp.nodelay=off")}
    one = found.questions[0]
    renamed = tuple(replace(bar, name=name) for bar, name in zip(one.bars, names, strict=False))
    _, rows = next(bars.panels(replace(found, questions=(replace(one, bars=renamed),)), columns=100))
    shown = [row.split("█")[0].strip(" *") for row in rows]
    assert len(set(shown)) == len(names)
    assert all(one.startswith("native-ucx") and one.endswith("nodelay=off)") for one in shown)
