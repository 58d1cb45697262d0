# SPDX-License-Identifier: BSD-3-Clause
"""What the cluster web server is measured under, one factor at a time: processor overhead, disks."""

import statistics
import tempfile
from pathlib import Path

import pytest

from .test_driver_run import Json, Pair, in_long_form, need
from .test_press import cluster, only_attempt, site, value

__all__ = ["cluster"]  # a fixture

pytestmark = pytest.mark.alone

SEND_NS = 100_000
"""Long beside what a node spends on waking up once more, and short beside the time between two requests."""
OFFERED_S = 300


def worked(attempt: Json) -> int:
    """Return on how many sends the shim worked."""
    return sum(int(of_one.get("delay.worked_sends", 0)) for of_one in attempt["counters"])


def node_ns(attempt: Json) -> float:
    """Return the processor time of all nodes a request."""
    used = sum(int(one["user_ns"]) + int(one["system_ns"]) for one in attempt["cpu"][1:])
    return used / int(attempt["operations"])


@pytest.mark.still
def test_overhead_costs_its_time_a_message_and_nodes_sleep(cluster: Pair) -> None:
    """Nothing is held for it, so that the layer's own descriptor is waited for."""
    need("sockets-tcp", "shim-delay")
    seen = []
    for _ in range(3):
        bare = only_attempt(
            cluster.run(site("sockets-tcp", duration=800, working_percent=200, offered_per_s=OFFERED_S))
        )
        overhead = site("sockets-tcp", duration=800, working_percent=200, offered_per_s=OFFERED_S)
        overhead |= {"shims": ["delay"], "settings": {"delay.send_ns": str(SEND_NS)}}
        attempt = only_attempt(cluster.run(overhead))
        messages = value(attempt, "posts")
        # what tells nodes of phases, and each other of what they counted, is sent as well: some 11 messages
        assert worked(attempt) == pytest.approx(messages * attempt["operations"], abs=30)
        assert value(attempt, "wakeups") > 0.5
        seen.append((node_ns(attempt) - node_ns(bare)) / (messages * SEND_NS))
    assert 0.75 < statistics.median(seen) < 1.35, seen


@pytest.mark.parametrize("version", in_long_form("v3"))
def test_overhead_is_worked_for_remote_writes_too(cluster: Pair, version: str) -> None:
    need("pm-ucx", "shim-delay")
    overhead = site("pm-ucx", working_percent=200, load_percent=30, version=version)
    attempt = only_attempt(cluster.run(overhead | {"shims": ["delay"], "settings": {"delay.send_ns": str(SEND_NS)}}))
    assert value(attempt, "puts") > 0.5
    sends = value(attempt, "posts") + value(attempt, "puts")
    assert worked(attempt) / attempt["operations"] == pytest.approx(sends, rel=0.1)


def test_a_real_disk_is_read_and_leaves_nothing(cluster: Pair) -> None:
    """Every byte of every answer is compared, as ever."""
    need("sockets-tcp")
    given = site("sockets-tcp", working_percent=400, service_ns=0, disk="real")
    result = cluster.run(given)
    [attempt] = result["attempts"]
    if attempt["reason_code"] == "NODE_LACKS":
        pytest.skip(attempt["reason"])
    attempt = only_attempt(result)
    assert value(attempt, "hit") < 90
    assert 0 < value(attempt, "disk_read") < 1e9
    assert not list(Path(tempfile.gettempdir()).glob("cadge-press-*"))
