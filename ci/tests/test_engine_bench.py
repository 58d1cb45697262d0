# SPDX-License-Identifier: BSD-3-Clause
"""What the Peregrine engine's benchmark writes is what a study reads."""

import os
import subprocess
from pathlib import Path

import pytest

from cadge_analysis.study.engine import read

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "layers/peregrine/engine"


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two processes that spin take two processors")
def test_a_study_reads_the_benchmark(tmp_path: Path) -> None:
    program = tmp_path / "pgr-bench"
    subprocess.run(["make", "-s", "-j2", "-C", ENGINE, f"BUILD={tmp_path}", program], check=True)
    written = tmp_path / "bench.json"
    with written.open("wb") as out:
        subprocess.run([program, "--json", "1", "null"], check=True, timeout=120, stdout=out)
    found = read(written)
    assert found.rounds == 1
    floor, null = found.find("two lines"), found.find("shm null")
    assert floor is not None
    assert null is not None
    assert null.of == "two lines"
    assert null.ratio == pytest.approx(null.median / floor.median, rel=1e-3)
    assert null.median > floor.low / 2
