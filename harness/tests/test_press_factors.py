# SPDX-License-Identifier: BSD-3-Clause
"""What the cluster web server is measured under, one factor at a time: processor overhead."""

import pytest

from .test_driver_run import Json, Pair, need
from .test_press import cluster, only_attempt, site, value

__all__ = ["cluster"]  # a fixture

pytestmark = pytest.mark.alone

SEND_NS = 20_000
MESSAGES = ("forward", "file", "caching", "load", "credit")


def worked(attempt: Json) -> int:
    """Return on how many sends the shim worked."""
    return sum(int(of_one.get("delay.worked_sends", 0)) for of_one in attempt["counters"])


def node_ns(attempt: Json) -> float:
    """Return the processor time of all nodes a request."""
    used = sum(int(one["user_ns"]) + int(one["system_ns"]) for one in attempt["cpu"][1:])
    return used / int(attempt["operations"])


def test_overhead_costs_its_time_a_message_and_nodes_sleep(cluster: Pair) -> None:
    """Nothing is held for it, so that the layer's own descriptor is waited for."""
    need("sockets-tcp", "shim-delay")
    seen = []
    for _ in range(4):  # other work on the machine may move it
        bare = only_attempt(cluster.run(site("sockets-tcp", working_percent=200, load_percent=20)))
        overhead = site("sockets-tcp", working_percent=200, load_percent=30)
        overhead |= {"shims": ["delay"], "settings": {"delay.send_ns": str(SEND_NS)}}
        attempt = only_attempt(cluster.run(overhead))
        messages = sum(value(attempt, f"{name}_messages") for name in MESSAGES)
        # what tells nodes of phases, and each other of what they counted, is sent as well
        assert worked(attempt) / attempt["operations"] == pytest.approx(messages, rel=0.05)
        assert value(attempt, "wakeups") > 0.5
        seen.append((node_ns(attempt) - node_ns(bare)) / (messages * SEND_NS))
        if 0.75 < seen[-1] < 1.35:
            return
    pytest.fail(f"of the work on each message, nodes took {seen} times as much more a request")
