# SPDX-License-Identifier: BSD-3-Clause
"""The charts against size: who is best where by the verdicts, ranks in their numbers, steps in lines, who is absent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
import test_picture
from chromium import Browser

from cadge_analysis import report
from cadge_analysis.cells.build import judged_cells
from cadge_analysis.draw import plots, svg
from cadge_analysis.draw.chart import Chart, Line, Mark
from cadge_analysis.draw.palette import Identity
from cadge_analysis.page.figures.field_figures import best_by_size, steps
from cadge_analysis.page.figures.main_figure import data_table
from cadge_analysis.stats.compare import compare

PATHS = {"short_path": "eager", "long_path": "rendezvous"}


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """As in the picture, but at 4 KiB rdma-ucx alone is best; streams of mpi-p2p are unsound."""
    known = synthetic.flat(point)
    test_picture.by_hand(point, attempt, number)
    if known["layer"] == "rdma-ucx" and known["pattern"] == "rpc" and known["request_bytes"] == 4096:
        synthetic.set_samples(attempt, [(700 + test_picture.ORDER[number], 2000)])
    if known["layer"] == "mpi-p2p" and known["pattern"] == "stream":
        attempt["checks"] = [{"name": "payload", "ok": False, "detail": "byte 3 differs"}]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("field")
    data = test_picture.data_of(folder / "campaign", attempt_hook=by_hand)
    made = folder / "report.html"
    made.write_text(report.html(report.page_of(data)))
    return made


@pytest.fixture(scope="module")
def page(path: Path) -> pagereader.Node:
    return pagereader.read(path.read_text())


def caption(page: pagereader.Node, name: str) -> str:
    return page.one("figure", id=f"fig-{name}").one("figcaption").text


def test_ties_and_leaders_are_those_of_the_verdicts(page: pagereader.Node) -> None:
    said = caption(page, "rpc-within-poll").replace("\u2068", "").replace("\u2069", "").replace("\u202f", " ")
    tied = "native-ofi, native-ucx (tie)"
    assert said.startswith(f"Best at 8 B: {tied}; 4 KiB: rdma-ucx; 1 MiB: {tied}.")


def test_ranks_stand_in_the_numbers_as_in_the_matrix(page: pagereader.Node) -> None:
    table = page.one("figure", id="fig-rpc-within-poll").one("table", class_="numbers")
    layers = [head.text for head in table.one("thead").all("th")]
    first = table.one("tbody").all("tr")[0]
    cells = {head: cell.text for head, cell in zip(layers[1:], first.all("td"), strict=True)}
    asked = page.one("section", id="questions").one("table", class_="asked")
    for row in asked.one("tbody").all("tr"):
        layer = row.one("bdi").text
        text = next(cell for head, cell in cells.items() if layer in head)
        assert text.endswith(f"; rank {row.all('td')[0].one('i', class_='rank').text}")


def test_where_nothing_is_concluded_the_best_median_is_named(tmp_path: Path) -> None:
    cells = judged_cells(compare(test_picture.data_of(tmp_path, attempt_hook=by_hand)))
    rows = [row for row in cells.comparison.rows if row.cell.case.pattern == "rpc"]
    held = {case: replace(group, withheld=True) for case, group in cells.verdicts.groups.items()}
    said = best_by_size(rows, replace(cells.verdicts, groups=held))
    assert said.startswith("Lowest median at 8 B: ")
    assert "tie" not in said
    assert best_by_size([row for row in rows if row.cell.case.size == 8], cells.verdicts) == ""
    assert best_by_size([row for row in rows if row.cell.series.label == "mpi-p2p"], cells.verdicts) == ""


def test_a_layer_of_the_other_charts_is_absent_for_a_reason(page: pagereader.Node) -> None:
    assert "Not here" not in caption(page, "rpc-within-poll")
    said = caption(page, "stream-within-poll")
    assert "Not here: " in said
    assert "(unsound)" in said
    assert said.partition("Not here: ")[2].count("mpi-p2p") == 1


# ---- lines that change their path ----


def line(label: str, values: dict[int, float], short_bytes: int = 0, **given: Any) -> Line:  # noqa: ANN401
    marks = tuple(Mark(size=size, value=value) for size, value in values.items())
    look = Identity(0, int(label[-1]))
    return Line(label=label, look=look, marks=marks, short_bytes=short_bytes, long_path="rendezvous", **given)


def chart(*lines: Line, more_is_better: bool = False) -> Chart:
    sizes = {mark.size: f"{mark.size} B" for one in lines for mark in one.marks}
    return Chart(
        unit="µs",
        spoken="microseconds",
        title="round trip",
        along="size",
        along_title="message size",
        sizes=sizes,
        lines=lines,
        more_is_better=more_is_better,
    )


def test_a_step_is_a_loss_beyond_that_of_layers_whose_path_stays() -> None:
    stays = (line("a-1", {8: 1.0, 64: 2.0, 512: 8.0}), line("a-2", {8: 2.0, 64: 4.0, 512: 16.0}))
    as_all = line("b-3", {8: 1.0, 64: 2.5}, short_bytes=8)
    jumps = line("b-4", {8: 1.0, 64: 6.0}, short_bytes=63)
    later = line("b-5", {64: 1.0, 512: 7.0}, short_bytes=64)  # 7 times, where others take 4 times as long
    said = steps(chart(*stays, as_all, jumps, later)).replace("\u2068", "").replace("\u2069", "")
    assert said == "Steps where the path changes: b-4 at 64 B (rendezvous), b-5 at 512 B (rendezvous)."
    assert steps(chart(*stays, as_all)) == ""
    assert steps(chart(jumps)) == "", "beside nobody"


def test_a_rate_steps_down() -> None:
    stays = line("a-1", {8: 1.0, 64: 2.0})
    falls, rises = line("b-2", {8: 1.0, 64: 1.0}, short_bytes=8), line("b-3", {8: 1.0, 64: 8.0}, short_bytes=8)
    said = steps(chart(stays, falls, rises, more_is_better=True))
    assert "b-2" in said
    assert "b-3" not in said


def test_the_numbers_name_the_path_where_it_begins() -> None:
    one, other = line("b-1", {8: 1.0, 64: 6.0, 512: 9.0}, short_bytes=8), line("a-2", {8: 1.0, 64: 1.0})
    column = [row[1] for row in data_table(chart(one, other)).rows]
    assert ["from here rendezvous" in text for text in column] == [False, True, False]
    assert one.turn == one.marks[:2]
    assert other.turn is None


def test_grey_lines_are_named_where_all_names_have_room() -> None:
    for many, named in ((9, True), (40, False)):
        lines = [
            Line(label=f"s{n:02d}-x", look=Identity(n % 10, n % 12), marks=(Mark(size=8, value=1.0 + n),), faint=n > 7)
            for n in range(many)
        ]
        spec = plots.beside_figure(chart(*lines))
        picture = pagereader.read(str(svg.render(spec, name="f", title="t", description="d")))
        texts = {node.text for node in picture.all("text")}
        assert {f"s{n:02d}-x" for n in range(8)} <= texts
        assert ("s08-x" in texts) is named


# ---- in a browser ----

PICK = "Array.from(document.querySelectorAll('#field .keys label')).find(e => e.textContent === {name!r}).click()"
RANKED = "document.querySelector('#fig-{figure} .read [role=status]').textContent"


def test_two_layers_are_set_beside_each_other_by_rank(browser: Browser, path: Path) -> None:
    browser.open(path, width=1280)
    said = RANKED.format(figure="rpc-within-poll")
    assert browser.value(said) == ""
    browser.value(PICK.format(name="rdma-ucx"))
    assert browser.value(said) == ""
    browser.value(PICK.format(name="native-ucx"))
    ahead = "native-ucx ahead at {}; rdma-ucx ahead at {}; native-ucx ahead at {}"
    assert browser.value(said) == "By rank: " + ahead.format("8 B", "4\u202fKiB", "1\u202fMiB").replace(
        "\u202f", browser.value("document.querySelector('.numbers tbody').rows[1].cells[0].textContent")[1]
    )
    browser.value(PICK.format(name="rdma-ucx"))
    browser.value(PICK.format(name="native-ofi"))
    assert browser.value(said).startswith("By rank: tied at 8 B to 1")
    browser.value(PICK.format(name="native-ofi"))
    browser.value(PICK.format(name="mpi-p2p"))
    assert browser.value(RANKED.format(figure="stream-within-poll")) == "", "one of both has no line there"
    assert browser.complaints() == []
