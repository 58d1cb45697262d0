# SPDX-License-Identifier: BSD-3-Clause
"""The Peregrine engine's benchmarks: a study reads what one writes; idle bindings and clients cost nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cadge_analysis.study.engine import read

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "layers/peregrine/engine"
FLOORS = ROOT / "harness/bench/engine"


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


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two processes that spin take two processors")
def test_the_comparison_has_a_floor_beside_each_reading(tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-j2", "-C", FLOORS, f"BUILD={tmp_path}"], check=True)
    written = tmp_path / "floors.json"
    subprocess.run([tmp_path / "pgr-floors", "--keep", written, "1", "8 B"], check=True, timeout=120)
    readings = {reading.name: reading for reading in read(written).readings}
    assert {name: reading.of for name, reading in readings.items()} == {
        "two lines": None,
        "shm 8 B": "two lines",
        "bare udp": None,
        "udp 8 B": "bare udp",
    }
    for name in ("shm 8 B", "udp 8 B"):
        reading = readings[name]
        floor = readings[str(reading.of)]
        assert reading.ratio == pytest.approx(reading.median / floor.median, rel=1e-3)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind counts the instructions")
def test_cost_does_not_grow_with_bindings_or_clients(tmp_path: Path) -> None:
    program = tmp_path / "pgr-bindings"
    subprocess.run(["make", "-s", "-j2", "-C", ENGINE, f"BUILD={tmp_path}", program], check=True)
    counted = subprocess.run(
        [ENGINE / "bench/bindings", program, "128", "2048"], check=True, timeout=600, text=True, stdout=subprocess.PIPE
    ).stdout
    costs = {}
    for line in counted.splitlines():
        what, _, numbers = line.partition(": ")
        costs[what] = tuple(int(number) for number in numbers.split())
    assert set(costs) == {"binding made and ended", "poll with idle bindings", "poll with idle clients"}
    for few, many in costs.values():
        assert 0 < few < 5000
        assert many <= 1.1 * few
