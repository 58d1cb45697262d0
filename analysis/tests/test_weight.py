# SPDX-License-Identifier: BSD-3-Clause
"""What the report of a campaign of the default sweep's shape weighs, and how long it takes to make."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.draw.kept import drawn_afresh
from cadge_analysis.stats.load import read

LAYERS = """
am-ucx bip-ucx fm-ucx mpi-p2p native-ofi native-ucx peregrine-shm peregrine-udp pm-ucx rdma-ucx sockets-tcp vmmc-ucx
"""
SIZES = (8, 64, 1024, 4096, 16384, 65536, 262144, 1048576)
MOST_BYTES = 1_800_000
"""Of two million bytes that a default campaign's report may have; the rest is for what a real campaign has beside."""
TAKES_S = 15


@pytest.mark.long
def test_a_default_campaigns_report_is_light_and_soon_made(tmp_path: Path) -> None:
    """Twelve layers, two places, eight sizes, nine launches; three patterns."""
    options = synthetic.Options(
        layers=tuple(LAYERS.split()),
        sizes=SIZES,
        places=("within", "between"),
        waits=("poll",),
        patterns=(("rpc", 1), ("pingpong", 1), ("stream", 16)),
        launches=9,
        samples=2000,
    )
    made = synthetic.make(tmp_path, options)
    before = time.process_time()
    with drawn_afresh():
        text = report.html(report.page_of(read(made)))
    assert time.process_time() - before <= TAKES_S
    assert 500_000 < len(text.encode()) <= MOST_BYTES
