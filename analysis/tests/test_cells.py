# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue of columns, over every pattern: names are unique, descriptions are of fields, headings stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cadge_analysis.cells.catalogue import entries
from cadge_analysis.cells.entry import described
from cadge_analysis.page.tables import columns_of, parted
from cadge_results import read_workloads

WORKLOADS = read_workloads(Path(__file__).parents[2] / "harness")
EVERY = tuple(WORKLOADS.patterns.values())


def names(*files: str) -> list[str]:
    chosen = tuple(WORKLOADS.file(name) for name in files) if files else EVERY
    return [field.name for entry in entries(chosen, twins=True) for field in entry.fields]


def test_no_column_stands_twice_whatever_patterns_a_campaign_has() -> None:
    assert len(names()) == len(set(names()))
    for file in WORKLOADS.patterns:
        assert len(names(file)) == len(set(names(file))), file


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
    assert next(one for one in columns if one.key == "p50").head == file.main_quantity.heading
