# SPDX-License-Identifier: BSD-3-Clause
"""The outside base of the cluster web server: nginx in the nodes' place, whole launches of it, and its failures."""

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from cadge_results.plugins.pattern import PatternFile

from .test_driver_run import Json, Pair, in_long_form, need
from .test_press import PATTERN, site, value
from .test_press import cluster as cluster  # a fixture

pytestmark = pytest.mark.alone

FOLDERS = f"{os.environ['PATH']}:/usr/sbin"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which every nginx has its own, as an agent would give one."""
    need("sockets-tcp")
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("PATH", FOLDERS)
    return folder


def need_nginx() -> None:
    if shutil.which("nginx", path=FOLDERS) is None:
        pytest.skip("nginx is not installed (Debian's package nginx; its service need not run)")


def outside(nodes: int = 2, duration: int = 300, **parameters: int | str) -> Json:
    document = site("sockets-tcp", nodes=nodes, duration=duration, server="nginx", working_percent=100)
    document["points"][0]["workload"]["parameters"] |= parameters
    return document


def nginx_of(cluster: Pair) -> dict[int, Path]:
    """Return every nginx that a process of a launch started, with its folder in /proc."""
    found: dict[int, Path] = {}
    for process in cluster.processes:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                if "nginx" in Path(f"/proc/{child}/comm").read_text():
                    found[int(child)] = Path("/proc", child)
    return found


def used_ns(nginx: Path) -> int:
    """Return its processor time, as the scheduler has counted it."""
    return int((nginx / "schedstat").read_text().split()[0])


def start(cluster: Pair, document: Json) -> dict[int, Path]:
    """Start a launch, and return every nginx of it once each has had some work."""
    nodes = len(document["endpoints"]) - 1
    for number in range(nodes + 1):
        cluster.start(number, document)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = nginx_of(cluster)
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if len(found) == nodes and all(used_ns(one) > 20_000_000 for one in found.values()):
                return found
        time.sleep(0.005)
    pytest.fail("not every node has an nginx that works")


def runs(process: Path) -> bool:
    """Tell whether a process is there; one that has ended is not, also where nobody has waited for it."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_gone(every: dict[int, Path]) -> None:
    end = time.monotonic() + 5
    while any(runs(process) for process in every.values()):
        assert time.monotonic() < end, f"left behind: {every}"
        time.sleep(0.01)


def ended(cluster: Pair) -> list[str]:
    return [process.communicate(timeout=30)[1] for process in cluster.processes]


@pytest.mark.parametrize("nodes", [2, *in_long_form(1, 4, 8)])
def test_nginx_serves_what_press_would(cluster: Pair, place: Path, nodes: int) -> None:
    """Every byte is compared; a request goes to the node that has the file; what nginx uses is the node's own time."""
    need_nginx()
    every = start(cluster, outside(nodes, cache_kib=2048))
    last = dict.fromkeys(every, 0)
    while any(process.poll() is None for process in cluster.processes):
        for pid, folder in every.items():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                last[pid] = max(last[pid], used_ns(folder))
        time.sleep(0.002)
    errors = ended(cluster)
    assert [process.returncode for process in cluster.processes] == [0] * (nodes + 1), errors
    [attempt] = cluster.result()["attempts"]
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    assert attempt["verified"]["mismatches"] == 0 < attempt["verified"]["in_loop"]
    # nodes are asked in turn: whoever has a file, so many requests for it come to another
    assert value(attempt, "forwarded") == pytest.approx(100 * (nodes - 1) / nodes, abs=0 if nodes == 1 else 8)
    assert not {"hit", "message_bytes", "wakeups"} & set(attempt["quantities"]), "what nobody counted"
    # of all that every nginx used in its life, the phase that is measured has a part; the endpoint itself sleeps
    told = sum(side["user_ns"] + side["system_ns"] for side in attempt["cpu"][1:])
    assert 0.2 * sum(last.values()) < told < 1.1 * sum(last.values()) + 50e6
    assert 2_000 < told / attempt["operations"] < 2_000_000
    assert all(side["system_calls"] is None for side in attempt["cpu"][1:])
    assert_gone(every)
    assert not list(place.iterdir()), "a folder stays behind"


def test_no_nginx_stays_where_a_driver_is_killed(cluster: Pair) -> None:
    need_nginx()
    every = start(cluster, outside(duration=20000))
    cluster.processes[1].send_signal(signal.SIGKILL)
    errors = ended(cluster)
    assert all(process.returncode for process in cluster.processes), errors
    assert_gone(every)


def test_an_nginx_that_dies_is_the_reason(cluster: Pair, place: Path) -> None:
    need_nginx()
    every = start(cluster, outside(duration=20000))
    os.kill(min(every), signal.SIGKILL)
    errors = ended(cluster)
    assert any("nginx ended with signal 9" in error for error in errors), errors
    assert_gone(every)
    assert not list(place.iterdir()), "a folder stays behind"


def test_a_host_without_nginx_is_told_what_to_install(cluster: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    [attempt] = cluster.run(outside())["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("refused", "NODE_LACKS")
    assert "install Debian's package nginx" in attempt["reason"]


def test_a_configuration_that_nginx_refuses(cluster: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An nginx of other days: it says what it does not know, and the attempt says it after it."""
    need_nginx()
    real = shutil.which("nginx", path=FOLDERS)
    other = tmp_path / "nginx"
    other.write_text(f'#!/bin/sh\nsed -i s/sendfile/sendfiles/ "$4"\nexec {real} "$@"\n')
    other.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{FOLDERS}")
    document = outside()
    for number in range(3):
        cluster.start(number, document)
    errors = ended(cluster)
    assert any('unknown directive "sendfiles"' in error for error in errors), errors


def test_the_pattern_file_allows_it_over_one_layer_alone() -> None:
    assert isinstance(PATTERN, PatternFile)
    usual, other = (PATTERN.workload("press", {"server": server, "nodes": 2}) for server in ("press", "nginx"))
    large = PATTERN.workload("press", {"server": "nginx", "working_percent": 101})
    reasons = {
        case: [one.reason_code.name for one in PATTERN.limits if not one.allows(*case)]
        for case in (
            ("sockets-tcp", "block", other),
            ("sockets-unix", "block", other),
            ("sockets-tcp", "poll", other),
            ("sockets-tcp", "block", large),
            ("sockets-unix", "poll", usual),
        )
    }
    assert list(reasons.values()) == [[], ["NO_CAP"], ["NO_POLL"], ["NO_CAP"], []]
