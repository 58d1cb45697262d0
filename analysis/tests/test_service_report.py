# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `handler` in a report: a row for each kind of work, its columns, and what a kind does not have."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import export, report
from cadge_results import Campaign

OWN_NS = {"spin": 20, "sleep": 3000}
"""How much longer than it was to take the work takes."""


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """The layer takes 2 us, more with each launch; memory is touched in 50 us, and nothing is drawn for it."""
    given = point["workload"]["parameters"]
    drawn_ns, layer_ns = given["service_ns"], 2000 + 10 * number
    service_ns = drawn_ns + OWN_NS[given["work"]] if given["work"] in OWN_NS else 50_000
    attempt["quantities"] = {}
    synthetic.set_samples(attempt, [(layer_ns + service_ns, 2000)], "latency")
    synthetic.set_samples(attempt, [(service_ns, 2000)], "service")
    attempt["quantities"]["service"][0]["endpoint"] = 1
    if given["work"] in OWN_NS:
        synthetic.set_samples(attempt, [(layer_ns + service_ns - drawn_ns, 2000)], "overhead")
        if drawn_ns:
            slowdown = (layer_ns + service_ns) / drawn_ns
            attempt["quantities"]["slowdown"] = [{"endpoint": 0, "value": slowdown}]


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(0, 1000, 10_000, 100_000),
        places=("within",),
        waits=("poll",),
        patterns=(("handler", 1),),
        given=({}, {"work": "sleep"}, {"work": "touch", "work_bytes": 65536}),
        floors=False,
        troubles=False,
        attempt_hook=by_hand,
    )
    return synthetic.make(tmp_path_factory.mktemp("worked"), options)


def test_the_report_tells_what_stands_above_the_handlers_time(worked: Campaign, tmp_path: Path) -> None:
    report.build(worked.path, tmp_path / "r.html")
    root = pagereader.read((tmp_path / "r.html").read_text())
    rows = {row.case: row for row in pagereader.full_rows(root) if row.layer == "sockets-tcp"}
    spin = rows["handler/within/64/64/1/10000/0/0/spin/fixed/inline/write+read"].fields
    assert {name: spin[name].numbers[0] for name in ("p50", "overhead", "service")} == pytest.approx(
        {"p50": 12_045, "overhead": 2045, "service": 10_020}, rel=1e-3
    )
    assert spin["slowdown"].text == "1.20"
    late = rows["handler/within/64/64/1/10000/0/0/sleep/fixed/inline/write+read"].fields
    assert late["overhead"].numbers[0] == pytest.approx(5025, rel=1e-3), "waking up late is overhead"
    nothing = rows["handler/within/64/64/1/0/0/0/spin/fixed/inline/write+read"].fields
    assert (nothing["overhead"].numbers[0], nothing["slowdown"].text) == (nothing["p50"].numbers[0], "\u2013")
    touched = rows["handler/within/64/64/1/0/65536/0/touch/fixed/inline/write+read"].fields
    assert (touched["overhead"].text, touched["slowdown"].text) == ("\u2013", "\u2013")
    assert touched["service"].numbers[0] == pytest.approx(50_000, rel=1e-3)
    figure = root.one("figure", id="fig-handler-within-poll")
    assert [line.one("th").text for line in figure.one("tbody").all("tr")] == [
        "0 \u00b5s",
        "1.00 \u00b5s",
        "10.0 \u00b5s",
        "100 \u00b5s",
    ]


def test_the_export_has_a_column_for_each(worked: Campaign) -> None:
    stream = io.StringIO()
    export.write(worked, "csv", stream)
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    spin = next(row for row in rows if (row["service_ns"], row["work"]) == ("10000", "spin"))
    assert float(spin["overhead_p50_ns"]) == pytest.approx(2045, rel=1e-3)
    assert float(spin["service_p50_ns"]) == pytest.approx(10_020, rel=1e-3)
    assert float(spin["slowdown_times"]) == pytest.approx(1.2045, rel=1e-3)
    assert next(row for row in rows if row["work"] == "touch")["overhead_p50_ns"] == ""
