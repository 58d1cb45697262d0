# SPDX-License-Identifier: BSD-3-Clause
"""The bill of a small message: its parts by hand, and where they cannot be told apart."""

from __future__ import annotations

from typing import Any, cast

import pagereader
import pytest
import synthetic
from pagereader import Node

from cadge_analysis import report
from cadge_analysis.draw import stacked
from cadge_analysis.draw.scales import linear_axis
from cadge_analysis.draw.stacked import GAP, WIDTH, StackedBar
from cadge_analysis.messages import say

FLOOR_NS, BARE_NS = 200, 500
LAYER_NS = {"sockets-tcp": 800, "native-ucx": 1000, "sockets-udp": 400}


def _set(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
    one = synthetic.flat(point)
    if one["kind"] == "layer":
        synthetic.set_samples(attempt, [(LAYER_NS[one["layer"]], 2000)])
    else:
        bare = one["layer"] in ("floor-tcp", "floor-udp")
        synthetic.set_samples(attempt, [(BARE_NS if bare else FLOOR_NS, 2000)])


@pytest.fixture(scope="module")
def figure(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """The bill of three layers between hosts, from a report."""
    folder = tmp_path_factory.mktemp("bill")
    options = synthetic.Options(
        layers=tuple(LAYER_NS),
        sizes=(8, 4096),
        places=("between",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        launches=5,
        troubles=False,
        attempt_hook=_set,
    )
    report.build(synthetic.make(folder / "store", options).path, folder / "r.html")
    return pagereader.read((folder / "r.html").read_text()).one("figure", id="fig-rpc-between-poll-bill")


def test_parts_add_up_and_say_why_they_are_not_told_apart(figure: Node) -> None:
    heads = [cell.text for cell in figure.one("thead").all("th")]
    assert heads[2:] == ["machine, µs", "transport, µs", "layer's own, µs", "transport and layer together, µs",
                         "remark"]  # fmt: skip
    rows = {
        row.one("th").text: [cell.text.split(" ")[0] for cell in row.all("td")][:5]
        for row in figure.one("tbody").all("tr")
    }
    none = "\u2013"
    assert rows == {
        "sockets-udp": ["0.400", "0.200", none, none, "0.200"],
        "sockets-tcp": ["0.800", "0.200", "0.300", "0.300", none],
        "native-ucx": ["1.00", "0.200", none, none, "0.800"],
    }
    remarks = [row.all("td")[-1].text for row in figure.one("tbody").all("tr")]
    assert remarks == [
        say("figures", "bill_figure.bare_exchange_lies", why="above the layer"),
        "",
        say("figures", "bill_figure.no_bare_exchange"),
    ]


def test_bars_are_as_long_as_they_say(figure: Node) -> None:
    picture = figure.all("svg", role="img")[0]
    end = linear_axis([1.0]).high
    bars = [node for node in picture.all("path") if node.attrs.get("d", "").count("h") == 2]
    found = []
    for bar in bars:
        start, rest = bar.attrs["d"].removeprefix("M").split("h")[:2]
        found.append((float(start.split(",")[0]) / WIDTH * end, float(rest.split("v")[0]) / WIDTH * end))
    gap = GAP * end
    pieces = [(0, 0.2), (0.2, 0.2), (0, 0.2), (0.2, 0.3), (0.5, 0.3), (0, 0.2), (0.2, 0.8)]
    expected = [(at, length - gap) for at, length in pieces]
    assert [at for at, _ in found] == pytest.approx([at for at, _ in expected], abs=0.001)
    assert [length for _, length in found] == pytest.approx([length for _, length in expected], abs=0.001)
    assert (
        "0.800\u00a0µs = machine 0.200 (25\u202f%) + transport 0.300 (38\u202f%) + layer's own 0.300 (38\u202f%)"
        in {node.text for node in picture.all("text")}
    )


def test_one_bar_too_long_does_not_hide_the_others() -> None:
    """It is cut at the axis' end, an arrow stands there, and the others keep their lengths."""
    bars = [
        StackedBar(name="a", text="1", parts={"x": 1.0}),
        StackedBar(name="b", text="900", parts={"x": 1.0, "y": 899.0}),
    ]
    spec = stacked.figure(bars, {"x": "#111111", "y": "#222222"}, end=2.0, title="µs", ticks=(0, 1, 2), tick_expr="")
    pieces, *_, arrows = [layer["data"]["values"] for layer in cast("Any", spec["layer"])]
    assert [(piece["from"], piece["to"]) for piece in pieces] == [
        (0.0, 1.0 - 2 * GAP),
        (0.0, 1.0 - 2 * GAP),
        (1.0, 2.0),
    ]
    assert [int(arrow["y"]) for arrow in arrows] == [1]
    assert {arrow["from"] for arrow in arrows} == {2.0}
