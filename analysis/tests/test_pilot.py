# SPDX-License-Identifier: BSD-3-Clause
"""The rate that a pilot proposes, from closed loops that were made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic

from cadge_analysis.stats import load
from cadge_analysis.stats.offered import ClosedLoop, closed_loops, proposed


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """One launch of each point is slow: the median is not."""
    known = synthetic.flat(point)
    slow = 10 if number == 0 else 1
    rate = {50: 9000, 400: 4100}[known["working_percent"]] // slow
    attempt["quantities"] = {}
    synthetic.set_samples(attempt, [(100_000, 1000)], "response")
    synthetic.set_rate(attempt, rate // 5, 200_000_000, "closed_loop")
    attempt |= {"operations": 1000, "elapsed_ns": 1_000_000_000}


def test_the_slowest_point_is_first_by_the_median_of_its_launches(tmp_path: Path) -> None:
    options = synthetic.Options(
        layers=("sockets-tcp",),
        sizes=(50, 400),
        places=("between",),
        waits=("block",),
        patterns=(("press", 1),),
        roles=("client", "node"),
        attempt_hook=by_hand,
        floors=False,
        troubles=False,
    )
    data = load.read(synthetic.make(tmp_path / "campaign", options))
    loops = closed_loops(data, "press", "closed_loop")
    assert [one.per_s for one in loops] == pytest.approx([4100, 9000])
    assert "400" in loops[0].label
    assert proposed(loops) == 2000
    assert closed_loops(data, "rpc", "closed_loop") == ()


@pytest.mark.parametrize(
    ("least", "rate"), [(10_500, 5200), (4798, 2300), (199, 99), (7, 3), (1.5, 1), (0.2, 1), (2_000_000, 1_000_000)]
)
def test_half_of_the_slowest_in_two_digits(least: float, rate: int) -> None:
    assert proposed((ClosedLoop(label="", per_s=least), ClosedLoop(label="", per_s=least * 9))) == rate
