# SPDX-License-Identifier: BSD-3-Clause
"""A tiny campaign whose every number was worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import messages, report
from cadge_analysis.messages import say
from cadge_results import Campaign

US = 1000
THIN, NBSP, MINUS = "\u202f", "\u00a0", "\u2212"


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Layer: p50 of 1000, 1010 ... 1050 ns; floors 500 and 600 ns; 1.25 % of the layer's samples take 5 us."""
    known = synthetic.flat(point)
    if known["pattern"] in ("stream", "flow"):
        attempt["operations"] = 1000
        attempt["bytes"] = 8000
        attempt["elapsed_ns"] = (250 if known["kind"] == "floor" else US) * (number + 1)
        synthetic.set_rate(attempt, 8000, attempt["elapsed_ns"])
        return
    values = [(1000 + 10 * number, 1975), (5000, 25)]
    if known["kind"] == "floor":
        values = [(500 if known["layer"] == "floor-cacheline" else 600, 2000)]
    synthetic.set_samples(attempt, values)
    attempt["operations"] = 2000
    attempt["elapsed_ns"] = 2_000_000
    use = {"voluntary_switches": 1, "involuntary_switches": 0, "minor_faults": 0, "major_faults": 0}
    attempt["cpu"] = [{"user_ns": 1_500_000, "system_ns": 500_000, **use}, {"user_ns": 900_000, "system_ns": 0, **use}]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    options = synthetic.Options(
        layers=("sockets-tcp",),
        sizes=(8,),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1), ("stream", 16)),
        troubles=False,
        attempt_hook=by_hand,
    )
    return synthetic.make(tmp_path_factory.mktemp("golden"), options)


@pytest.fixture(scope="module")
def rows(golden: Campaign, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pagereader.FullRow]:
    path = tmp_path_factory.mktemp("golden-report") / "report.html"
    report.build(golden.path, path)
    found = pagereader.full_rows(pagereader.read(path.read_text()))
    return {row.case: row for row in found}


def test_latency(rows: dict[str, pagereader.FullRow]) -> None:
    row = rows["rpc/within/8/8/1/usual/cont/write+read"]
    assert (row.layer, row.wait) == ("sockets-tcp", "poll")
    # Medians of the launches: 1000, 1010, 1020, 1030, 1040, 1050 ns. Their median is 1025.
    assert row.fields["p50"].numbers == [1025.0, 1000.0, 1050.0]
    assert row.fields["p50"].text == "1.02"
    assert row.fields["p50"].smalls == [f"[1.00,{NBSP}1.05]"]
    # 12,000 samples: the 11,880th is among the 150 slow ones; 5000 ns lies in the bucket 5000 to 5003 ns.
    assert row.fields["p99"].numbers == [5003.0, 5003.0, 5003.0]
    assert row.fields["p99"].text == "5.00"
    assert row.fields["p999"].text == "\u2013"
    assert row.fields["p999"].smalls == [f"12{THIN}000 samples; needs 100{THIN}000"]
    assert row.fields["launches"].text == "6"
    assert row.fields["launches"].smalls == [f"96.9{THIN}%"]
    assert row.fields["samples"].text == f"12{THIN}000"


def test_floor(rows: dict[str, pagereader.FullRow]) -> None:
    row = rows["rpc/within/8/8/1/usual/cont/write+read"]
    # The faster floor is 500 ns in every round: ratios 2.00, 2.02 ... 2.10; differences 500, 510 ... 550 ns.
    assert row.fields["floor"].text == "cache line bounced"
    assert row.fields["ratio"].numbers == pytest.approx([2.05, 2.0, 2.1], rel=2e-4)
    assert row.fields["ratio"].text == "2.05"
    assert row.fields["above"].numbers == [525.0, 500.0, 550.0]
    assert row.fields["above"].text == "0.525"
    assert row.fields["above"].classes == ""


def test_cost_of_an_operation(rows: dict[str, pagereader.FullRow]) -> None:
    row = rows["rpc/within/8/8/1/usual/cont/write+read"]
    # 2 ms and 0.9 ms of CPU time for 2000 operations, in each launch; 2000 operations in 2 ms.
    assert row.fields["cpu_client"].text == "1.00"
    assert row.fields["cpu_server"].text == "0.450"
    assert row.fields["cpu_all"].text == "1.45"
    assert row.fields["switches_client"].text == "0.000500"
    assert row.fields["rate"].text == f"1{THIN}000{THIN}000"
    assert row.fields["lost"].text == "0"


def test_stream(rows: dict[str, pagereader.FullRow]) -> None:
    row = rows["stream/within/8/16/write+read/rotated/0/one/1"]
    # 8000 bytes in 1, 2 ... 6 us: 8000, 4000, 2666.7, 2000, 1600, 1333.3 MB/s; all together 48,000 bytes in 21 us.
    assert row.fields["p50"].numbers == pytest.approx([7000 / 3, 4000 / 3, 8000.0])
    assert row.fields["p50"].text == f"2{THIN}330"
    assert row.fields["pooled"].text == f"2{THIN}290"
    # The floor's stream takes a quarter of the time in every round.
    assert row.fields["ratio"].text == "0.250"
    assert row.fields["ratio"].smalls == [f"[0.250,{NBSP}0.250]"]


def test_a_result_below_its_floor_is_said_aloud(tmp_path: Path) -> None:
    def too_good(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        by_hand(point, attempt, (2, 0, 4, 1, 5, 3)[number])  # in an order in which no round is like the one before
        if point["workload"]["pattern"] == "exchange":
            synthetic.set_samples(attempt, [(4000, 2000)])

    options = synthetic.Options(
        layers=("sockets-tcp",),
        sizes=(8,),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        troubles=False,
        attempt_hook=too_good,
    )
    path = tmp_path / "report.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path)
    root = pagereader.read(path.read_text())
    banner = root.one("section", class_="banner").text
    assert messages.say("remarks", "better_than_floor.title", n=1) in banner
    assert (
        say(
            "remarks",
            "better_than_floor.one",
            layer="sockets-tcp",
            pattern="RPC",
            workload="8 B",
            place="within one host",
            wait="polling",
            ratio="0.256\u00d7",
            floor="cache line bounced",
        )
        in banner
    )
    row = pagereader.full_rows(root)[0]
    assert row.fields["ratio"].classes == row.fields["above"].classes == "below"
    assert row.fields["above"].text == f"{MINUS}2.98"  # 1025 - 4001 (the upper end of the bucket of 4000)
    assert row.fields["above"].numbers[0] == -2976.0


def test_raw_files_stay_as_they_were(golden: Campaign, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in sorted(golden.path.rglob("*")) if path.is_file()}
    report.build(golden.path, tmp_path / "r.html")
    after = {path: path.read_bytes() for path in sorted(golden.path.rglob("*")) if path.is_file()}
    assert before == after


def test_embedded_numbers_are_those_of_the_launches(golden: Campaign, tmp_path: Path) -> None:
    report.build(golden.path, tmp_path / "r.html")
    data = json.loads(pagereader.read((tmp_path / "r.html").read_text()).one("script", id="data").text)
    (layer,) = (
        cell
        for cell in data["cells"]
        if data["subjects"][cell["subject"]]["kind"] == "layer"
        and data["workloads"][cell["workload"]]["pattern"] == "rpc"
    )
    rounds = {data["launches"][int(place)][1]: value for place, value in layer["by_launch"].items()}
    assert rounds == {n: 1000 + 10 * n for n in range(6)}
    assert set(layer["p99_ns_by_launch"].values()) == {5003}  # the top of the bucket of 5 us
    assert (layer["p99_ns_by_launch"].keys(), layer["fewest_samples"]) == (layer["by_launch"].keys(), 2000)
    assert "planned" not in layer
