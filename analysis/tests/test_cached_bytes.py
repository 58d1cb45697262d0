# SPDX-License-Identifier: BSD-3-Clause
"""A rate from buffers that a cache may hold says so; a time, and what rotates over more, does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic

from cadge_analysis.page.ranked import cached_bytes
from cadge_analysis.stats.load import read


@pytest.mark.parametrize(
    ("values", "held"),
    [({}, 16 * 4096), ({"depth": 1}, 4096), ({"buffers": "same"}, 4096), ({"spread": 1 << 27}, None)],
)
def test_a_rate_says_what_a_cache_may_hold(tmp_path: Path, values: dict[str, int | str], held: int | None) -> None:
    options = synthetic.Options(sizes=(4096,), patterns=(("rpc", 1), ("stream", 16)), launches=1, troubles=False)
    data = read(synthetic.make(tmp_path / "a", options))
    for cell in data.cells:
        if cell.case.pattern in ("rpc", "stream"):
            workload = cell.case.workload
            case = replace(cell.case, workload=workload.model_copy(update={"values": {**workload.values, **values}}))
            assert cached_bytes(case) == (held if case.pattern == "stream" else None)
