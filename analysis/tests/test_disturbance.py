# SPDX-License-Identifier: BSD-3-Clause
"""What else ran is seen in what the kernel counted, and a report says how often, by layer and by size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import messages, report
from cadge_analysis.stats.disturbance import WAKE_NS, disturbed, disturbed_share
from cadge_results.formats.result import CpuUse

NBSP = "\u202f"


def use(*, wall_ns: int | None, run_wait_ns: int | None = 0, stolen_ns: int | None = 0, switches: int = 0) -> CpuUse:
    return CpuUse(
        user_ns=1,
        system_ns=1,
        voluntary_switches=switches,
        involuntary_switches=0,
        minor_faults=0,
        major_faults=0,
        wall_ns=wall_ns,
        run_wait_ns=run_wait_ns,
        stolen_ns=stolen_ns,
    )


@pytest.mark.parametrize(
    ("found", "wake_ns", "share"),
    [
        (use(wall_ns=None), 0, None),
        (use(wall_ns=1_000_000, run_wait_ns=None, stolen_ns=None), 0, None),
        (use(wall_ns=1_000_000, run_wait_ns=30_000), 0, 0.03),
        (use(wall_ns=1_000_000, run_wait_ns=None, stolen_ns=100_000), 0, 0.1),
        (use(wall_ns=1_000_000, run_wait_ns=60_000, switches=10), 6_000, 0.0),  # waking takes a moment
        (use(wall_ns=1_000_000, run_wait_ns=260_000, switches=10), 20_000, 0.06),
    ],
)
def test_the_share_that_others_took(found: CpuUse, wake_ns: float, share: float | None) -> None:
    assert disturbed_share(found, wake_ns) == pytest.approx(share)


def test_either_side_counts() -> None:
    quiet, busy = use(wall_ns=1_000_000, run_wait_ns=49_000), use(wall_ns=1_000_000, run_wait_ns=51_000)
    assert disturbed([[quiet, quiet], [quiet, busy], [], [busy, quiet]], "poll") == [False, True, False, True]
    assert disturbed([[use(wall_ns=1_000_000, run_wait_ns=50_000)]], "poll") == [False]  # the limit is still allowed
    assert disturbed([], "poll") == []


def blocking(wait_a_wake_ns: int, wakes: int = 1000) -> CpuUse:
    return use(wall_ns=40_000_000, run_wait_ns=wait_a_wake_ns * wakes, switches=wakes)


def test_waking_takes_what_it_takes_in_the_other_launches() -> None:
    """A processor that sleeps deeply takes long to wake, in every launch; what takes longer still is somebody else."""
    quick, slow, other = blocking(WAKE_NS // 2), blocking(60_000), blocking(130_000)
    assert disturbed([[quick, quick]] * 3 + [[quick, blocking(10_000)]], "block") == [False, False, False, True]
    assert disturbed([[slow, quick]] * 3 + [[other, quick]], "block") == [False, False, False, True]
    assert disturbed([[quick, quick], [slow, quick], [slow, quick]], "poll") == [False, True, True]
    assert disturbed([[slow, quick]], "block") == [True], "of one launch nothing can be told"
    assert disturbed([[], [quick, quick]], "block") == [False, False]


def remarks(tmp_path: Path, spoil: Callable[[dict[str, Any], dict[str, Any], int], None]) -> dict[str, str]:
    """Return the remarks of a report by their titles, and its tables' marks under ""."""
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8, 4096),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        troubles=False,
        attempt_hook=spoil,
    )
    path = tmp_path / "report.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path)
    return {"": path.read_text(), "banner": pagereader.read(path.read_text()).one("section", class_="banner").text}


def test_a_report_says_how_many_by_layer(tmp_path: Path) -> None:
    def beside_a_busy_loop(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        disturbed = point["subject"]["layer"] == "sockets-tcp" and number == 1
        for one in attempt["cpu"]:
            one |= {"wall_ns": 25_000_000, "run_wait_ns": 9_000_000 if disturbed else 0, "stolen_ns": None}

    said = remarks(tmp_path, beside_a_busy_loop)["banner"]
    assert "2 attempts disturbed" in said
    assert "sockets-tcp 2 of 12" in said
    assert "native-ucx" not in said.partition("disturbed")[2].partition("None of them is dropped")[0]


def test_nothing_is_said_of_older_records(tmp_path: Path) -> None:
    assert "disturbed" not in remarks(tmp_path, lambda *_: None)["banner"]


def test_warm_up_is_a_warning_where_it_is_often_cut_short(tmp_path: Path) -> None:
    def unsteady(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        size = point["workload"]["parameters"].get("request_bytes")
        attempt["warmup"]["steady"] = size != 4096 and number != 1

    said = remarks(tmp_path, unsteady)["banner"]
    assert "Warm-up cut short" in said
    assert "4 KiB 100" in said.replace("\u00a0", " ").replace(NBSP, " ")


def test_few_operations_are_marked(tmp_path: Path) -> None:
    def few(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        if point["workload"]["parameters"].get("request_bytes") == 4096 and number == 1:
            synthetic.set_samples(attempt, [(100_000, 49)])
            attempt["operations"] = 49

    page = remarks(tmp_path, few)
    assert messages.say("remarks", "few_operations.title", n=2) in page["banner"]
    assert page[""].count("under 50 in a launch") == 1, "of both rows, above them"
