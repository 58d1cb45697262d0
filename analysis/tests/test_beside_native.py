# SPDX-License-Identifier: BSD-3-Clause
"""What a layer's file says of it beside a plain program marks its points wherever they are ranked."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
from pageparts import section, sections

from cadge_analysis import export, report
from cadge_analysis.blocks.make import tables_of
from cadge_analysis.blocks.model import Matrix
from cadge_analysis.cells.shown import Value
from cadge_analysis.judged import judged
from cadge_analysis.messages import say
from cadge_analysis.page.ranked import pictured
from cadge_analysis.page.views import of_campaign, page
from cadge_analysis.stats.beside_native import MARK, tax_text
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.load import Cell, read
from cadge_results import Campaign, FormatError, LayerFile
from cadge_results.plugins.catalogue import load_yaml

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("layers/*/*.layer.yml"))
KNOWN: dict[str, Any] = {
    "pattern": "msgrate",
    "parameters": {"depth": 64},
    "places": ["within"],
    "bytes_max": 8,
    "ratio": [0.57, 0.72],
    "command": "cadge crosscheck --layers mpi-p2p",
    "measured": "2026-11, Open MPI 4.1.4",
}
SAYS = "a plain program over the same library reaches 1.39 to 1.75\u00d7 this rate"


def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    if point["workload"]["pattern"] == "msgrate":
        rate = {"mpi-p2p": 3e6, "native-ucx": 4e6, "sockets-tcp": 1e6}[point["subject"]["layer"]]
        attempt["quantities"] = {}
        synthetic.set_rate(attempt, round(rate * (1 + (number * 3 % 7) / 1000)), 10**9, "rate")


def made(folder: Path, **changes: Any) -> Campaign:  # noqa: ANN401
    usual: dict[str, Any] = {
        "layers": ("mpi-p2p", "native-ucx", "sockets-tcp"),
        "sizes": (8,),
        "places": ("within", "between"),
        "waits": ("poll",),
        "patterns": (("msgrate", 64), ("msgrate", 1)),
        "given": ({"bytes": 8}, {"bytes": 64}),
        "launches": 9,
        "floors": False,
        "troubles": False,
        "beside_native": {"mpi-p2p": [KNOWN]},
        "attempt_hook": hook,
    }
    return synthetic.make(folder, synthetic.Options(**(usual | changes)))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return made(tmp_path_factory.mktemp("taxed"))


def marked(campaign: Campaign) -> dict[str, Cell]:
    data = read(campaign)
    taxes = judged(compare(data)).taxes
    return {cell.point_id: cell for cell in data.cells if cell.point_id in taxes}


def test_only_what_is_known_is_marked(campaign: Campaign, tmp_path: Path) -> None:
    """Its pattern, place, parameters and size; and the layer as it is."""
    [cell] = marked(campaign).values()
    case = cell.case
    assert (cell.series.layer, case.place, case.workload["bytes"], case.size) == ("mpi-p2p", "within", 8, 64)
    assert not marked(made(tmp_path / "none", beside_native={}))
    settings = ({"env.OMPI_MCA_btl": "self"},)
    assert not marked(made(tmp_path / "set", settings=settings))
    wider = KNOWN | {"parameters": {}, "bytes_max": 64, "places": ["within", "between"]}
    assert len(marked(made(tmp_path / "wider", beside_native={"mpi-p2p": [wider]}))) == 8


def test_what_is_said(campaign: Campaign) -> None:
    data = read(campaign)
    [cell] = marked(campaign).values()
    [known] = data.plan.beside_native["mpi-p2p"]
    assert tax_text(cell, known) == SAYS
    one = known.model_copy(update={"ratio": (0.78, 0.78)})
    assert tax_text(cell, one) == say("stats", "beside_native.plain_rate", ratio="1.28")


def test_a_time_is_told_as_a_time(tmp_path: Path) -> None:
    known = KNOWN | {"pattern": "rpc", "parameters": {}, "ratio": [1.25, 1.6]}
    campaign = made(tmp_path, sizes=(8, 64), given=({},), patterns=(("rpc", 1),), beside_native={"mpi-p2p": [known]})
    [cell] = marked(campaign).values()
    [one] = read(campaign).plan.beside_native["mpi-p2p"]
    assert tax_text(cell, one) == say("stats", "beside_native.plain_time", ratio="0.62 to 0.8")


def test_answer_table_and_summary_have_the_mark(campaign: Campaign) -> None:
    comparison = compare(read(campaign))
    verdicts = judged(comparison)
    picture = pictured(comparison)
    taxed = {(one.place, bar.name) for one in picture.questions for bar in one.bars if MARK in bar.marks}
    assert taxed == {("within", "mpi-p2p")}
    assert [note.mark for note in picture.notes if note.mark == MARK] == [MARK]
    built = page(comparison, of_campaign(generated="now"))
    lines = [line for table in tables_of(sections(built)) for line in table.lines]
    details = {
        dict(line.data)["point"]: cell.detail
        for line in lines
        for cell in line.cells
        if isinstance(cell, Value) and SAYS in cell.detail
    }
    assert details.keys() == verdicts.taxes.keys()
    replies = [
        cell
        for table in section(built, "questions").blocks
        if isinstance(table, Matrix)
        for row in table.rows
        for cell in row.cells
    ]
    assert [SAYS in cell.detail for cell in replies].count(True) == 1


def test_exports_and_a_report_that_is_opened_again_know_it(campaign: Campaign, tmp_path: Path) -> None:
    stream = io.StringIO()
    export.write(campaign, "csv", stream)
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    found = {row["point_id"]: (row["beside_native_low"], row["beside_native_high"]) for row in rows}
    [name] = marked(campaign)
    assert found.pop(name) == ("0.57", "0.72")
    assert set(found.values()) == {("", "")}
    path = tmp_path / "report.html"
    report.build(campaign.path, path)
    assert SAYS in pagereader.read(path.read_text()).text
    again = report.html(report.page_again(path.read_text(), "report.html", None))
    assert SAYS in pagereader.read(again).text


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"ratio": [0.72, 0.57]}, "beside_native"),
        ({"ratio": [0, 0.57]}, "beside_native"),
        ({"ratio": [0.57]}, "ratio"),
        ({"bytes_max": -1}, "bytes_max"),
        ({"command": "osu_mbw_mr"}, "command"),
        ({"measured": ""}, "measured"),
        ({"other": 1}, "other"),
    ],
)
def test_a_wrong_one_is_refused_with_its_place(change: dict[str, object], where: str) -> None:
    raw = load_yaml(ROOT / "layers/mpi/p2p.layer.yml", LayerFile).to_object()
    with pytest.raises(FormatError, match=where):
        LayerFile.from_object(raw | {"beside_native": [KNOWN | change]}, source="p2p.layer.yml")


def test_what_layer_files_say_can_be_measured_and_matches_points() -> None:
    """Each names a pattern with its parameters, and a native tool of the layer measures the same."""
    said = [(file, one) for path in FILES for file in (load_yaml(path, LayerFile),) for one in file.beside_native]
    assert said
    for file, one in said:
        parameters = synthetic.WORKLOADS.file(one.pattern).parameters
        assert all(parameters[name].refuse(value) is None for name, value in one.parameters.items())
        assert any(
            tool.usual and tool.pattern == one.pattern and tool.parameters.items() >= one.parameters.items()
            for tool in file.natives
        )
        assert file.name in one.command
        assert "plain program" in file.notes, "the mark's note sends readers there for the cause"
