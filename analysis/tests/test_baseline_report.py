# SPDX-License-Identifier: BSD-3-Clause
"""A pattern with a baseline in a report: each point beside the same without what it compares, launch by launch."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import export, report
from cadge_analysis.messages import say
from cadge_results import Campaign

SLOWER = {"none": 1, "same": 8, "channel": 2}
CALLS = 2000


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """A call takes 1 us alone, more with each launch; 2 % of those beside a stream take ten times as long."""
    given = point["workload"]["parameters"]
    alone_ns = 1000 * (number + 1)
    took_ns = alone_ns * SLOWER[given["aggressor"]] * given["bulk_bytes"] // 32768
    slow = 0 if given["aggressor"] == "none" else CALLS // 50
    attempt["quantities"] = {}
    values = [(took_ns, CALLS - slow), (10 * took_ns, slow)]
    synthetic.set_samples(attempt, [value for value in values if value[1]], "latency")
    attempt["operations"] = CALLS
    if slow:
        synthetic.set_samples(attempt, [(100_000, 500)], "bulk")
        synthetic.set_rate(attempt, 500 * given["bulk_bytes"], 25_000_000)


def campaign(folder: Path, sizes: tuple[int, ...] = (32768, 262144), launches: int = 6) -> Campaign:
    options = synthetic.Options(
        layers=("sockets-tcp",),
        sizes=sizes,
        places=("within",),
        waits=("poll",),
        patterns=(("mixed", 1),),
        given=({"aggressor": "none", "bulk_bytes": 32768}, {"aggressor": "same"}, {"aggressor": "channel"}),
        launches=launches,
        floors=False,
        troubles=False,
        attempt_hook=by_hand,
    )
    return synthetic.make(folder, options)


def rows(made: Campaign, folder: Path) -> dict[str, pagereader.FullRow]:
    report.build(made.path, folder / "r.html")
    root = pagereader.read((folder / "r.html").read_text())
    assert "Calls beside a stream within one host" in root.text
    return {row.case: row for row in pagereader.full_rows(root)}


def case(aggressor: str, bulk: int = 32768) -> str:
    return f"mixed/within/8/8/{bulk}/16/{aggressor}/write+read"


def test_each_point_is_divided_by_the_one_without_a_stream(tmp_path: Path) -> None:
    """Eight and two times as long in every launch, however the launches differ."""
    found = rows(campaign(tmp_path / "store", sizes=(32768,)), tmp_path)
    same, channel, none = (found[case(aggressor)].fields for aggressor in ("same", "channel", "none"))
    assert same["base"].numbers == pytest.approx([8, 8, 8], rel=2e-3)
    assert channel["base"].numbers == pytest.approx([2, 2, 2], rel=2e-3)
    assert same["base_p99"].numbers == pytest.approx([80, 80, 80], rel=2e-3)
    assert none["base"].smalls == [say("cells", "shown.nothing_to_compare")]
    assert same["throughput"].numbers[0] == pytest.approx(500 * 32768 / 25_000, rel=1e-6)
    assert none["throughput"].text == "\u2013"
    heads = pagereader.read((tmp_path / "r.html").read_text()).text
    assert "\u00f7 aggressor none" in heads
    assert "p99 \u00f7 aggressor none" in heads
    figure = pagereader.read((tmp_path / "r.html").read_text()).one("figure", id="fig-mixed-within-poll-contrast")
    (row,) = [[cell.text for cell in line.all("td")] for line in figure.one("tbody").all("tr")]
    assert row == ["8.00\u00d7 [8.00,\u00a08.00]", "2.00\u00d7 [2.00,\u00a02.00]"]
    assert "below 1\u00d7 is better" in figure.one("figcaption").text
    texts = {node.text for node in figure.one("svg", role="img").all("text")}
    assert {"sockets-tcp", "same 8.00\u00d7, channel 2.00\u00d7"} <= texts


def test_few_samples_give_no_ratio_of_tails(tmp_path: Path) -> None:
    """2000 calls a launch: the p99 of four launches has 80 beyond it, that of six 120."""
    found = rows(campaign(tmp_path / "store", sizes=(32768,), launches=4), tmp_path)
    same = found[case("same")].fields
    assert same["base"].numbers[0] == pytest.approx(8, rel=2e-3)
    assert same["base_p99"].text == "\u2013"
    assert same["base_p99"].smalls == ["8\u202f000 samples; needs 10\u202f000"]


def test_the_export_has_both(tmp_path: Path) -> None:
    stream = io.StringIO()
    export.write(campaign(tmp_path, sizes=(32768,)), "csv", stream)
    by_aggressor = {row["aggressor"]: row for row in csv.DictReader(io.StringIO(stream.getvalue()))}
    assert float(by_aggressor["same"]["baseline_ratio"]) == pytest.approx(8, rel=2e-3)
    assert float(by_aggressor["same"]["baseline_p99_ratio"]) == pytest.approx(80, rel=2e-3)
    assert by_aggressor["none"]["baseline_ratio"] == ""
