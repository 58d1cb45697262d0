# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue of columns, over every pattern: names are unique, descriptions are of fields, headings stand."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pageparts import sections

from cadge_analysis import export, units
from cadge_analysis.blocks.make import tables_of
from cadge_analysis.cells import catalogue as catalogue_module
from cadge_analysis.cells.build import CellRow
from cadge_analysis.cells.catalogue import entries
from cadge_analysis.cells.entry import RANGE, Entry, bounded, described, headed
from cadge_analysis.cells.shown import Value, tail_value
from cadge_analysis.flat import lines
from cadge_analysis.page.parts.tables import columns_of, parted
from cadge_analysis.report import page_of
from cadge_analysis.stats.intervals import Tail
from cadge_analysis.stats.load import read
from cadge_analysis.tables import TABLES
from cadge_analysis.versus.as_data import PAIRS
from cadge_analysis.versus.history_data import COURSE, STOP, TURN
from cadge_results import Campaign, PatternFile, read_workloads

WORKLOADS = read_workloads(Path(__file__).parents[2] / "harness")
EVERY = tuple(WORKLOADS.patterns.values())


def names(*files: str) -> list[str]:
    chosen = tuple(WORKLOADS.file(name) for name in files) if files else EVERY
    return [field.name for entry in entries(chosen, twins=True) for field in entry.fields]


def test_no_column_stands_twice_whatever_patterns_a_campaign_has() -> None:
    assert len(names()) == len(set(names()))
    for file in WORKLOADS.patterns:
        assert len(names(file)) == len(set(names(file))), file


def test_each_column_of_pairs_is_described_and_each_description_is_of_one() -> None:
    """Comparisons and histories have them."""
    told = {one.name for known in (PAIRS, COURSE, STOP, TURN) for one in known}
    assert told == set(described("pairs"))


def test_each_description_is_of_a_column_that_every_campaign_has() -> None:
    for file in WORKLOADS.patterns:
        assert set(described()) <= set(names(file)), file


def test_a_parameter_gives_way_to_a_quantity_of_its_name() -> None:
    assert {"offered_per_s", "parameter_offered_per_s"} <= set(names("load"))
    assert "parameter_depth" not in names("rpc")


@pytest.mark.parametrize("against", [None, "sockets-tcp"])
@pytest.mark.parametrize("name", WORKLOADS.patterns)
def test_every_pattern_has_its_tables(name: str, against: str | None) -> None:
    file = WORKLOADS.file(name)
    columns = columns_of(file, (), against)
    assert all(one.head for one in columns)
    assert len({one.key for one in columns}) == len(columns)
    assert any(one.key == "verdict" for one in columns) is (against is not None)
    first, rest = parted(file, columns)
    assert {one.key for one in first} & {one.key for one in rest} == set()
    heads = {one.key: one.head for one in columns}
    assert heads["p50"] == file.main_quantity.heading
    beside = {name: one.heading for name, one in file.quantities.items() if name != file.main and not one.caveat}
    assert {name: heads[name] for name in beside} == beside  # none of them has the key of another column


def test_a_new_quantity_with_a_companion_is_one_entry(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then in every export, in questions in SQL, and in the report; nothing else is edited."""
    own = catalogue_module._costs

    def with_p90(files: Sequence[PatternFile]) -> Iterator[Entry]:
        def of(row: CellRow) -> Tail | None:
            return row.numbers.p90 if row.numbers is not None else None

        yield from own(files)
        fields = bounded("main_p90", "ns", of, RANGE)
        yield Entry("p90", fields, headed("p90", "ns"), lambda row: tail_value(of(row)))

    monkeypatch.setattr(catalogue_module, "_costs", with_p90)
    names = ("main_p90_ns", "main_p90_lowest_launch_ns", "main_p90_highest_launch_ns")
    table = TABLES["cells"]
    assert set(names) <= {one.name for one in table.columns(campaign)}
    rows = {str(one["point_id"]): one for one in table.rows(campaign) if one["main_p90_ns"] is not None}
    assert rows
    for kind in ("csv", "json"):
        stream = io.StringIO()
        export.write(campaign, kind, stream)
        assert all(name in stream.getvalue() for name in names)
    (first, *_) = lines("jsonl", names, rows.values())
    assert list(json.loads(first)) == list(names)
    shown = {
        dict(line.data)["point"]: cell.raw
        for table in tables_of(sections(page_of(read(campaign)))[:1])
        for line in table.lines
        for column, cell in zip(table.columns, line.cells, strict=True)
        if column.key == "p90" and isinstance(cell, Value)
    }
    assert {name: raw for name, raw in shown.items() if raw} == {
        name: units.raw(*(row[field] for field in names)) for name, row in rows.items() if name in shown
    }
