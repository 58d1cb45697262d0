# SPDX-License-Identifier: BSD-3-Clause
"""Exports: a row for every planned point, the same numbers as the report, readable by any tool."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import export
from cadge_analysis.errors import BadInputError
from cadge_results import Campaign


def exported(campaign: Campaign, kind: str) -> str:
    stream = io.StringIO()
    export.write(campaign, kind, stream)
    return stream.getvalue()


def test_csv_has_a_row_for_every_planned_point(campaign: Campaign) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(campaign, "csv"))))
    assert {row["point_id"] for row in rows} == {point.point_id for point in campaign.plan.points}
    assert len(rows) == len(campaign.plan.points)
    refused = [row for row in rows if row["state"] == "refused"]
    assert refused
    for row in refused:
        assert row["reason"]
        assert row["latency_p50_ns"] == row["throughput_mb_s"] == row["ratio"] == ""
        assert row["attempts_planned"] == "0"


@pytest.mark.long
def test_csv_and_report_show_the_same_numbers(campaign: Campaign, report_text: str) -> None:
    rows = {row["point_id"]: row for row in csv.DictReader(io.StringIO(exported(campaign, "csv")))}
    compared = 0
    for shown in pagereader.full_rows(pagereader.read(report_text)):
        row = rows[shown.point_id]
        name = "throughput_mb_s" if row["pattern"] == "stream" else "latency_p50_ns"
        assert math.isclose(shown.fields["p50"].numbers[0], float(row[name]), rel_tol=5e-8)
        for column, field in (("ratio", "ratio"), ("cpu_all", "cpu_all_ns"), ("rate", "operations_per_s")):
            numbers = shown.fields[column].numbers
            assert (row[field] == "") is (numbers == [])
            if numbers:
                assert math.isclose(numbers[0], float(row[field]), rel_tol=5e-8)
                compared += 1
    assert compared > 300


def test_json_holds_every_launch(campaign: Campaign) -> None:
    document = json.loads(exported(campaign, "json"))
    assert document["schema"] == "cadge.export/4"
    assert document["campaign_id"] == campaign.campaign_id
    by_id = {row["point_id"]: row for row in document["rows"]}
    assert len(by_id) == len(campaign.plan.points)
    for row in by_id.values():
        assert len(row["by_launch"]) == row["attempts_valid"]
        if row["attempts_valid"]:
            middle = row["throughput_mb_s"] if "throughput_mb_s" in row else row["latency_p50_ns"]
            assert min(row["by_launch"].values()) <= middle <= max(row["by_launch"].values())


def test_json_has_a_row_a_line_and_no_field_without_a_value(campaign: Campaign) -> None:
    """A campaign of all patterns has some 500 columns, of which a row has 50: nine tenths of its JSON said nothing."""
    text = exported(campaign, "json")
    rows = json.loads(text)["rows"]
    lines = text.partition('"rows": [\n')[2].partition("\n],\n")[0].split(",\n")
    assert [json.loads(line) for line in lines] == rows
    flat = list(csv.DictReader(io.StringIO(exported(campaign, "csv"))))
    for row, beside in zip(rows, flat, strict=True):
        assert None not in row.values()
        assert {name for name, value in beside.items() if value} <= set(row)
        assert {name for name in set(row) & set(beside) if row[name] != ""} == {n for n, v in beside.items() if v}


def test_json_says_what_layers_counted(tmp_path: Path) -> None:
    def counting(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        if point["subject"]["kind"] != "layer":
            return
        attempt["counters"] = [{"copies": attempt["operations"]}, {"copies": attempt["operations"], "retries": 0}]

    options = synthetic.Options(
        layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), troubles=False, attempt_hook=counting
    )
    rows = json.loads(exported(synthetic.make(tmp_path, options), "json"))["rows"]
    counted = [row["counted_an_operation"] for row in rows if row["attempts_valid"]]

    assert {tuple(one.items()) for one in counted} == {(), (("copies", 2.0),)}  # floors count nothing


def test_exports_are_the_same_each_time(campaign: Campaign) -> None:
    for kind in ("csv", "json"):  # which every campaign has
        assert exported(campaign, kind) == exported(campaign, kind)


def test_an_unknown_format_is_named(campaign: Campaign) -> None:
    with pytest.raises(BadInputError, match=r"parquet.*csv, json"):
        exported(campaign, "parquet")


@pytest.mark.parametrize(("places", "used"), [(("within",), ["h1"]), (("within", "between"), ["h1", "h2"])])
def test_exports_name_the_hosts_that_were_used(tmp_path: Path, places: tuple[str, ...], used: list[str]) -> None:
    """As the report's head does, and of each point those that its launches had."""
    options = synthetic.Options(
        layers=("sockets-tcp", "peregrine-shm"), places=places, sizes=(8,), patterns=(("rpc", 1),), waits=("poll",)
    )
    made = synthetic.make(tmp_path, options)
    testbed = made.meta.testbed
    assert testbed.hosts == ("h1", "h2")
    assert json.loads(exported(made, "json"))["testbed"] == {
        "name": testbed.name,
        "kind": testbed.kind,
        "hosts": 2,
        "hosts_used": used,
    }
    rows = list(csv.DictReader(io.StringIO(exported(made, "csv"))))
    found = {(row["layer"], row["place"]): row["hosts"] for row in rows}
    assert found["sockets-tcp", "within"] == "h1"
    assert found.get(("sockets-tcp", "between"), "h1 h2") == "h1 h2"
    assert found.get(("peregrine-shm", "between"), "") == "", "refused when it was planned"


def test_a_parameter_that_is_called_like_a_quantity_has_a_column_of_its_own(tmp_path: Path) -> None:
    """The rate that the pattern load is asked to offer, and the one that it offered."""
    options = synthetic.Options(
        layers=("sockets-tcp",), sizes=(50,), places=("within",), waits=("poll",), patterns=(("load", 64),),
        given=({"request_bytes": 8},), floors=False, troubles=False,
    )  # fmt: skip
    text = exported(synthetic.make(tmp_path, options), "csv")
    (heads, *_) = csv.reader(io.StringIO(text))
    assert len(heads) == len(set(heads))
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["parameter_offered_per_s"] == "0", "a share of the closed loop is offered"
