# SPDX-License-Identifier: BSD-3-Clause
"""What control groups allow and hold up: of a made-up system, and of a group that this test makes, where it may."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent.host import fit  # type: ignore[import-not-found, unused-ignore]
from cadge_agent.host.quota import quota, throttled_ns  # type: ignore[import-not-found, unused-ignore]

AGENT = Path(__file__).parents[1] / "agent"
V1 = Path("/sys/fs/cgroup/cpu")


def proc(folder: Path, groups: str, mounts: str) -> Path:
    """Return a folder like /proc/self."""
    made = folder / "proc"
    made.mkdir()
    (made / "cgroup").write_text(groups)
    (made / "mountinfo").write_text(mounts)
    return made


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"cpu.{name}").write_text(text + "\n")


def test_the_least_of_groups_inside_each_other_counts(tmp_path: Path) -> None:
    top = tmp_path / "cgroup"
    group(top, stat="usage_usec 5")
    group(top / "job", max="150000 100000", stat="usage_usec 5\nnr_throttled 2\nthrottled_usec 40")
    group(top / "job" / "step", max="max 100000", stat="usage_usec 5\nnr_throttled 0\nthrottled_usec 2")
    here = proc(tmp_path, "0::/job/step\n", f"33 24 0:28 / {top} rw - cgroup2 cgroup rw\n")
    assert quota(here) == 1.5
    assert throttled_ns(here) == 42_000


def test_a_container_sees_its_part_of_the_groups(tmp_path: Path) -> None:
    top = tmp_path / "cgroup"
    group(top, cfs_quota_us="50000", cfs_period_us="100000", stat="nr_periods 3\nnr_throttled 1\nthrottled_time 77")
    mounts = (
        f"30 24 0:25 /docker/ab {tmp_path / 'other'} rw - cgroup cgroup rw,memory\n"
        f"31 24 0:26 /docker/ab {top} rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    )
    here = proc(tmp_path, "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n0::/\n", mounts)
    assert quota(here) == 0.5
    assert throttled_ns(here) == 77


@pytest.mark.parametrize("shown", [True, False])
def test_no_quota_is_not_an_unknown_one(tmp_path: Path, *, shown: bool) -> None:
    top = tmp_path / "cgroup"
    if shown:
        group(top, stat="usage_usec 5")
    here = proc(tmp_path, "0::/\n", f"33 24 0:28 / {top} rw - cgroup2 cgroup rw\n")
    assert quota(here) == ("none" if shown else {"unknown": "no control groups are visible"})
    assert throttled_ns(here) == (0 if shown else None)


@pytest.mark.parametrize("text", ["", "max", "a b"])
def test_what_cannot_be_read_is_unknown(tmp_path: Path, text: str) -> None:
    top = tmp_path / "cgroup"
    group(top, max=text, stat="throttled_usec x")
    here = proc(tmp_path, "0::/\n", f"33 24 0:28 / {top} rw - cgroup2 cgroup rw\n")
    assert list(quota(here)) == ["unknown"]
    assert throttled_ns(here) is None


def test_a_host_with_fewer_processors_than_it_shows_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(fit, "quota", lambda: 1.5)
    (one,) = fit.processor_faults({"name": "n1", "cpus": []})
    assert (one["level"], one["about"]) == ("warn", "processors")
    assert "allows 1.5 of its 2 processors" in one["text"]
    assert list(fit.processor_faults({"name": "n1", "cpus": [1]})) == []


@pytest.fixture
def twentieth() -> Iterator[Path]:
    """A control group of a twentieth of a processor."""
    folder = V1 / "cadge-test-quota"
    try:
        folder.mkdir()
        (folder / "cpu.cfs_quota_us").write_text("5000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()


def test_a_real_quota_stops_what_runs_longer(twentieth: Path) -> None:
    program = """
import os, sys, time
from cadge_agent.host.quota import quota, throttled_ns
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
before = throttled_ns()
end = time.process_time() + 0.02
while time.process_time() < end:
    pass
print(quota(), throttled_ns() - before)
"""
    argv = [sys.executable, "-c", program, str(twentieth)]
    done = subprocess.run(argv, env={"PYTHONPATH": str(AGENT)}, capture_output=True, text=True, timeout=60, check=True)
    allowed, held_ns = done.stdout.split()
    assert float(allowed) == 0.05
    assert int(held_ns) > 50_000_000, "20 ms of computing take four periods of 100 ms"
