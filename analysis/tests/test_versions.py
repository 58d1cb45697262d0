# SPDX-License-Identifier: BSD-3-Clause
"""The report's part on versions: what each build of a library is, and what became faster or slower between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pagereader
import pytest
from synthetic import Options, make

from cadge_analysis import messages
from cadge_analysis.blocks.lines import FlatTable, lines_of
from cadge_analysis.blocks.make import tables_of
from cadge_analysis.blocks.model import Items, Region, Table
from cadge_analysis.judged import judged
from cadge_analysis.messages import say
from cadge_analysis.page.parts.compared import _carried
from cadge_analysis.page.parts.versions import versions
from cadge_analysis.report import edition, html, page_of
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.launch_facts import launch_facts
from cadge_analysis.stats.load import Dataset, read
from cadge_results.formats.result import PathFacts
from cadge_results.plugins.build import Build

NEW = "sockets-tcp@9.9"
PROVIDER = Build(
    schema_=Build.schema_id(),
    library="lib",
    title="Lib",
    version="9.9",
    source="wheel",
    origin="lib 9.9",
    file="root/lib/lib.so",
    lacks={"verbs": "it was built without verbs"},
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    options = Options(
        layers=("sockets-tcp", NEW, "native-ucx"), sizes=(8, 65536), waits=("poll",), launches=12, troubles=False
    )
    found = read(make(tmp_path_factory.mktemp("versions"), options))
    return replace(found, plan=found.plan.model_copy(update={"providers": {NEW: PROVIDER}}))


def flat(table: Table) -> FlatTable:
    """Return a table as an edition has it."""
    (found,) = lines_of((table,))
    assert isinstance(found, FlatTable)
    return found


def tables(region: Region) -> list[Table]:
    return list(tables_of((region,)))


def said(data: Dataset) -> Region:
    comparison = compare(data)
    found = versions(data, launch_facts(data), judged(comparison).delta)
    assert found is not None
    return found


def test_each_build_stands_with_what_was_loaded(data: Dataset) -> None:
    builds = flat(tables(said(data))[0])
    rows = {row[0]: row[1:] for row in builds.rows}
    assert rows.keys() == {"sockets-tcp", NEW}
    assert rows["sockets-tcp"][2] == say("report", "versions.as_found")
    assert rows[NEW][2] == "wheel: lib 9.9; no verbs"
    assert rows[NEW][4] == say("report", "versions.no_build_id")


def test_cells_stand_with_a_ratio_and_a_verdict(data: Dataset) -> None:
    found = said(data)
    (table,) = map(flat, tables(found)[1:])
    assert table.caption == f"{NEW} beside sockets-tcp"
    cells = len(
        {(cell.case.pattern, cell.case.place, cell.case.size) for cell in data.cells if cell.series.layer == NEW}
    )
    assert len(table.rows) == cells == 8
    ratios = [float(row[4].split("\u00d7")[0].replace("\u202f", "")) for row in table.rows]
    assert min(ratios) < 0.9 or max(ratios) > 1.1
    assert {row[5] for row in table.rows} <= {"faster", "slower", "same", "undecided"}
    assert any(row[5] in {"faster", "slower"} for row in table.rows)
    (sentences,) = (one for one in found.blocks if isinstance(one, Items))
    assert sentences.items[0].text.startswith(f"{NEW} beside sockets-tcp: ")


def test_cells_without_numbers_stand_with_the_reason(tmp_path: Path) -> None:
    def spoiled(point: dict[str, Any], attempt: dict[str, Any], _round: int) -> None:
        if point["subject"]["layer"] == NEW and point["subject"]["place"] == "between":
            attempt.update(status="unsound", reason="path: not the one asked for", reason_code="CHECK")

    options = Options(layers=("sockets-tcp", NEW), sizes=(8,), waits=("poll",), troubles=False, attempt_hook=spoiled)
    left = flat(tables(said(read(make(tmp_path, options))))[-1])
    assert left.caption == f"{NEW} beside sockets-tcp: points that are not compared"
    assert left.rows == ((f"unsound in {NEW}", "2"),)


def test_a_campaign_without_providers_says_nothing_of_it(data: Dataset) -> None:
    without = replace(data, cells=tuple(cell for cell in data.cells if cell.series.layer != NEW))
    assert NEW not in {series.layer for series in without.layers}
    assert versions(without, launch_facts(without), 0.05) is None


def test_the_page_and_its_other_editions_have_it(data: Dataset) -> None:
    page = page_of(data)
    section = pagereader.read(html(page)).one("section", id="versions")
    assert NEW in section.text
    assert "wheel: lib 9.9" in section.text
    assert "wheel: lib 9.9" in edition(page, "markdown")


def test_a_path_that_is_not_read_back_is_told_as_that() -> None:
    path = PathFacts(medium="unknown", as_asked=False, used="not read back: this MPI has no call that tells it")
    assert _carried(path) == messages.say("report", "compared.unknown_path")
